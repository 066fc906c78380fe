import NotesContract
import NotesService
import Testing

/// Requests that count as equal under one `Idempotency-Key`.
@Suite struct IdempotencyTests {
    /// A request. `REV` stands for the revision of the first note, `ENCODED` for its form with `%2D`.
    struct Request: Sendable, CustomTestStringConvertible {
        let method: String
        let path: String
        var body = ""
        var fields: [String: String] = [:]

        init(_ method: String, _ path: String, _ body: String = "", _ fields: [String: String] = [:]) {
            self.method = method
            self.path = path
            self.body = body
            self.fields = fields
        }

        var testDescription: String { "\(method) \(path) \(body.prefix(60)) \(fields)" }
    }

    private static let json = ["Content-Type": "application/json"]
    private static let note = "/api/notes/\(Fixture.n1)/"

    private static func multipart(_ boundary: String) -> Request {
        let parts = [("title", "Bread"), ("text", "one"), ("uuid", Fixture.n2)].map {
            "--\(boundary)\r\nContent-Disposition: form-data; name=\"\($0.0)\"\r\n\r\n\($0.1)\r\n"
        }
        return Request(
            "POST", "/api/notes/", parts.joined() + "--\(boundary)--\r\n",
            ["Content-Type": "multipart/form-data; boundary=\(boundary)"])
    }

    private static func post(_ body: String, _ type: String? = "application/json") -> Request {
        Request("POST", "/api/notes/", body, type.map { ["Content-Type": $0] } ?? [:])
    }

    private static func put(_ body: String, _ fields: [String: String] = json) -> Request {
        Request("PUT", note, body, fields)
    }

    private static let created = post(#"{"uuid":"\#(Fixture.n2)","title":"Milk","date":"2026-03-01T08:30:00Z"}"#)
    private static let form = "application/x-www-form-urlencoded"
    private static let changed = put(#"{"revision":"REV","title":"Bread","text":null,"date":"2026-03-01T08:30:00Z"}"#)

    private static let same: [(Request, Request)] = [
        (Request("DELETE", note + "?revision=REV", "", json), Request("DELETE", note + "?revision=REV")),
        (Request("DELETE", note + "?revision=REV"), Request("DELETE", note + "?revision=REV", "{}", json)),
        (
            Request("DELETE", note + "?revision=REV"),
            Request("DELETE", note.replacing("-", with: "%2D") + "?%72evision=ENCODED")
        ),
        (Request("DELETE", note + "?a=1&revision=REV"), Request("DELETE", note + "?revision=REV&&a=%31")),
        (
            Request("DELETE", note + "?revision=REV"),
            Request("DELETE", note.uppercased().replacing("/API/NOTES/", with: "/api/n%6Ftes/") + "?revision=REV")
        ),
        (
            Request("DELETE", note, "", ["If-Match": "\"x\",\"REV\""]),
            Request("DELETE", note, "", ["If-Match": "\"REV\" , \"x\""])
        ),
        (Request("PUT", note + "pin/"), Request("PUT", note + "pin/", "", json)),
        (created, post(created.body, "application/json; charset=utf-8")),
        (created, post(created.body, "Application/JSON")),
        (created, post(created.body, nil)),
        (created, Request("POST", "/api/notes", created.body, json)),
        (
            created,
            post(
                #"{ "date":"2026-03-01T09:30:00.000+01:00", "title":"M\u0069lk", "uuid":"\#(Fixture.n2.uppercased())" }"#
            )
        ),
        (created, post(#"{"owner":"bo","uuid":"\#(Fixture.n2)","title":"Milk","date":"2026-03-01T08:30:00Z"}"#)),
        (multipart("a"), multipart("b-c")),
        (post("title=a+b&text=c", form), post("text=%63&title=a%20b", form)),
        (changed, put(#"{"date":"2026-03-01T08:30:00Z","text":null,"title":"Bread","revision":"REV"}"#)),
    ]

    /// Returns a fixture with one note, and a function that sends requests under one key.
    private static func makeSender() throws -> (fixture: Fixture, send: (Request) -> Fixture.Response) {
        let fixture = try Fixture()
        let revision = fixture.create()
        return (
            fixture,
            { request in
                func filled(_ text: String) -> String {
                    text.replacing("REV", with: revision)
                        .replacing("ENCODED", with: revision.replacing("-", with: "%2D"))
                }
                return fixture.send(
                    request.method, filled(request.path), filled(request.body),
                    with: request.fields.mapValues(filled).merging(["Idempotency-Key": "k"]) { _, key in key })
            }
        )
    }

    @Test(arguments: same) func aRetryInAnotherEncodingIsRecognised(first: Request, second: Request) throws {
        let (fixture, send) = try Self.makeSender()
        let response = send(first)
        #expect((200...204).contains(response.status), "\(response.body)")
        let before = try fixture.notes
        let again = send(second)
        #expect(again.status == (response.status == 201 ? 200 : response.status), "\(again.body)")
        #expect(again.body == response.body)
        #expect(again.field("ETag") == response.field("ETag"))
        #expect(try fixture.notes == before)
    }

    private static let different: [(Request, Request)] = [
        (created, post(created.body.replacing("Milk", with: "Bread"))),
        (created, post(#"{"uuid":"\#(Fixture.n2)","title":"Milk"}"#)),
        (created, post(created.body.replacing("08:30:00Z", with: "08:30:00+01:00"))),
        (created, post("uuid=\(Fixture.n2)&title=Milk&date=2026-03-01T08:30:00Z", form)),
        (created, post("{")),
        (created, Request("PUT", "/api/notes/\(Fixture.n2)/", created.body, json)),
        (post(#"{"title":"é"}"#), post(#"{"title":"e\u0301"}"#)),
        (post(#"{"title":"ab","text":"c"}"#), post(#"{"title":"a","text":"bc"}"#)),
        (multipart("a"), post(#"{"title":"Bread","text":"one","uuid":"\#(Fixture.n2)"}"#)),
        (changed, Request("PATCH", note, changed.body, json)),
        (changed, put(changed.body.replacing("null", with: "\"\""))),
        (changed, put(changed.body, ["Content-Type": "application/json", "If-Match": "*"])),
        (Request("DELETE", note + "?revision=REV"), Request("DELETE", note + "?revision=9-x")),
        (Request("DELETE", note + "?revision=REV"), Request("DELETE", note + "?revision=REV&a=1")),
        (Request("DELETE", note + "?revision=REV"), Request("DELETE", note, "", ["If-Match": "\"REV\""])),
        (Request("PUT", note + "pin/"), Request("DELETE", note + "pin/")),
        (Request("PUT", note + "pin/"), Request("PUT", note + "pin/", "", ["If-Match": ""])),
        (Request("PUT", note + "pin/"), Request("PUT", "/api/notes/\(Fixture.n2)/pin/")),
    ]

    @Test(arguments: different) func anotherRequestUnderTheSameKeyGets422(first: Request, second: Request) throws {
        let (fixture, send) = try Self.makeSender()
        let response = send(first)
        #expect((200...204).contains(response.status), "\(response.body)")
        let before = try fixture.notes
        let other = send(second)
        #expect(other.status == 422, "\(other.body)")
        #expect(other.body.contains("was used for another request"))
        #expect(other.body.contains(#""type":"urn:slowlane:idempotency-key-reused""#))
        #expect(try fixture.notes == before)
        // The result of the first request is kept.
        #expect(send(first).body == response.body)
    }

    /// Keys are scoped to their user.
    @Test func twoUsersMayUseTheSameKey() throws {
        let fixture = try Fixture()
        let key = ["Idempotency-Key": "k"]
        #expect(fixture.send("POST", "/api/notes/", #"{"title":"a"}"#, with: key).status == 201)
        #expect(fixture.send("POST", "/api/notes/", #"{"title":"b"}"#, as: Fixture.bo, with: key).status == 201)
    }
}
