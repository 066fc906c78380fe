import HTTPTypes
import NotesContract
import NotesService

/// Requests to attachments, whose bodies are bytes.
extension Fixture {
    static let list = "/api/notes/\(Fixture.n1)/attachments/"
    static let path = list + "photo.jpg"

    /// Returns a fixture with one note of the user ada.
    static func withNote(_ contract: APIContract = .compat, limits: NotesService.Limits = .init()) throws -> Fixture {
        let fixture = try Fixture(contract, limits: limits)
        fixture.create()
        return fixture
    }

    struct BytesResponse {
        let status: Int
        let body: [UInt8]
        let head: HTTPResponse

        func field(_ name: String) -> String? { HTTPField.Name(name).flatMap { head.headerFields[$0] } }

        var text: String { String(decoding: body, as: UTF8.self) }
    }

    @discardableResult
    func transfer(
        _ method: String, _ path: String = Fixture.path, _ body: [UInt8] = [],
        as credentials: String? = Fixture.ada, with fields: [(String, String)] = []
    ) -> BytesResponse {
        var request = HTTPRequest(
            method: .init(rawValue: method) ?? .get, scheme: "http", authority: "localhost:8000", path: path)
        request.headerFields[.authorization] = credentials
        for (name, value) in fields {
            if let name = HTTPField.Name(name) { request.headerFields[name] = value }
        }
        let response = service.respond(to: request, body: body)
        return BytesResponse(
            status: response.head.status.code, body: Fixture.bytes(of: response.body), head: response.head)
    }

    /// Sends a PUT with the fields of an upload.
    @discardableResult
    func put(
        _ path: String, _ body: [UInt8], of whole: [UInt8], complete: Bool? = nil,
        as credentials: String? = Fixture.ada
    ) -> BytesResponse {
        transfer(
            "PUT", path, body, as: credentials,
            with: [
                ("Upload-Complete", (complete ?? (body.count == whole.count)) ? "?1" : "?0"),
                ("Upload-Length", String(whole.count)), ("Repr-Digest", AttachmentDigest(of: whole).field),
            ])
    }

    @discardableResult
    func put(_ body: [UInt8], of whole: [UInt8], complete: Bool? = nil, as credentials: String? = Fixture.ada)
        -> BytesResponse
    {
        put(Fixture.path, body, of: whole, complete: complete, as: credentials)
    }

    @discardableResult
    func patch(_ body: [UInt8], at offset: Int, complete: Bool) -> BytesResponse {
        transfer(
            "PATCH", Fixture.path, body,
            with: [
                ("Upload-Complete", complete ? "?1" : "?0"), ("Upload-Offset", String(offset)),
                ("Content-Type", "application/partial-upload"),
            ])
    }

    static func bytes(of body: NotesService.Body) -> [UInt8] {
        guard case .bytes(let parts) = body else { return Array(((try? body.text) ?? "incomplete").utf8) }
        var whole: [UInt8] = []
        do { while let part = try parts.next() { whole += part } } catch { return Array("aborted".utf8) }
        return whole
    }

    /// Bytes that differ from position to position.
    static func sample(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) } }
}
