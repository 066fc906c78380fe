import HTTPTypes
import Testing

@testable import NotesService

@Suite struct APIRequestTests {
    private static func request(_ path: String, accept: String? = nil) -> APIRequest {
        var http = HTTPRequest(method: .get, scheme: "http", authority: "host", path: path)
        http.headerFields[.accept] = accept
        return APIRequest(http, body: [])
    }

    /// Percent-encoding does not change which resource a path names.
    @Test(arguments: [
        ("/api/notes/", APIRequest.Resource.notes), ("/api/notes-uuids/", .index), ("/api/notes/a-1/", .note("a-1")),
        ("/api/notes/a-1", .note("a-1")), ("/api/notes/.a", .unknown), ("/api/notes/.a/", .note(".a")),
        ("/api/notes//", .unknown), ("/api/notes/a/b/", .unknown), ("/api/notes/a/pin/", .pin("a")),
        ("/api/notes", .notes), ("/api/notesx/", .unknown), ("/api/notes-uuids", .index),
        ("/api/notes/a/attachments/", .attachments("a")),
    ])
    func aPathNamesAResource(_ path: String, _ resource: APIRequest.Resource) {
        #expect(Self.request(path).resource == resource)
        #expect(Self.request(path + "?a=1?2").resource == resource)
        #expect(Self.request(path + "?a=1?2").query == "a=1?2")
        #expect(Self.request("http://host" + path).resource == resource)
        let encoded = path.replacing("/api", with: "/%61pi")
        #expect(Self.request(encoded).resource == resource)
    }

    private static let preferences: [(accept: String?, media: APIRequest.Media?)] = [
        (nil, .json), ("application/json", .json), ("text/html", .html), ("text/*", .html),
        ("*/*", .json), ("TEXT/HTML;Q=0.9,\tapplication/json; q=0.1", .html), ("text/html;q=0", nil),
        ("text/html;level=1;q=0.2, */*;q=0.3", .json), ("image/png", nil), ("application", nil), ("", nil),
    ]

    @Test(arguments: preferences) func theClientPrefersAMediaType(_ accept: String?, _ media: APIRequest.Media?) {
        #expect(Self.request("/notes/", accept: accept).media([.json, .html]) == media)
    }
}
