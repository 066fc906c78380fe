import Foundation
import NotesContract
import NotesServer
import NotesService
import Synchronization
import TestSupport
import Testing
import Wire

/// The rows of the contract table against a server of their own, over HTTP, for each contract.
@Suite(.tags(.services), .timeLimit(.minutes(10))) struct ContractTests {
    @Test(arguments: APIContract.all) func everyRowHolds(contract: APIContract) async throws {
        let document = Document(contract)
        for row in Row.all {
            let store = try NotesStore(path: nil, contract: contract)
            let service = NotesService(store: store, users: ["ada": "secret", "bo": "hidden:too"])
            let server = try await NotesServer.start(service, host: "127.0.0.1", port: 0)
            let port = server.port
            do {
                try await blocking { try row.run(contract, port, document) }
            } catch {
                Issue.record("\(contract) \(row): \(error)")
            }
            await server.stop()
        }
        // The rows cover every documented status, except those that need a broken server or a slow client.
        #expect(document.unseen.subtracting([408, 429, 503, 507]) == [], "\(contract)")
    }
}

/// One row of the contract table: the initial state, a request, and the expected response.
struct Row: CustomStringConvertible, Sendable {
    /// The notes before the request.
    enum Given { case nothing, note, changed, deleted, bosNote, two }

    /// One status for all contracts, or one for each.
    enum Status: ExpressibleByIntegerLiteral {
        case all(Int)
        case each(orig: Int, compat: Int, strict: Int)

        init(integerLiteral value: Int) { self = .all(value) }

        func of(_ contract: APIContract) -> Int {
            switch self {
            case .all(let status): return status
            case .each(let orig, let compat, let strict):
                return contract == .orig ? orig : contract == .compat ? compat : strict
            }
        }
    }

    /// The input of a check.
    struct Seen {
        let contract: APIContract
        let reply: HTTPReply
        /// The note before the request.
        let before: Note?
        let ask: (String, String, String, [String]) throws -> HTTPReply

        var isOrig: Bool { contract == .orig }
        var object: JSONObject { JSONText.parse(Array(reply.body.utf8))?.object ?? [:] }
        var note: Note? { Note(json: Array(reply.body.utf8)) }

        /// Returns the note from another GET.
        func after(_ uuid: String = Row.uuid) throws -> JSONObject {
            let reply = try ask("GET", "/api/notes/\(uuid)/", "", [])
            return JSONText.parse(Array(reply.body.utf8))?.object ?? [:]
        }
    }

    typealias Check = @Sendable (Seen) throws -> Void

    /// The section of the contract.
    let section: String
    let title: String
    let given: Given
    let method: String
    let path: String
    let body: String
    let fields: [String]
    let user: String?
    let status: Status
    let check: Check

    /// `$U` stands for the note's uuid, `$R` for its revision.
    init(
        _ section: String, _ title: String, _ given: Given, _ method: String, _ path: String, _ body: String,
        _ fields: [String], as user: String? = Fixture.ada, _ status: Status, _ check: @escaping Check = { _ in }
    ) {
        self.section = section
        self.title = title
        self.given = given
        self.method = method
        self.path = path
        self.body = body
        self.fields = fields
        self.user = user
        self.status = status
        self.check = check
    }

    init(
        _ section: String, _ title: String, _ given: Given, _ method: String, _ path: String, _ body: String,
        as user: String? = Fixture.ada, _ status: Status, _ check: @escaping Check = { _ in }
    ) {
        self.init(section, title, given, method, path, body, [], as: user, status, check)
    }

    init(
        _ section: String, _ title: String, _ given: Given, _ method: String, _ path: String,
        as user: String? = Fixture.ada,
        _ status: Status, _ check: @escaping Check = { _ in }
    ) {
        self.init(section, title, given, method, path, "", [], as: user, status, check)
    }

    var description: String { "\(section): \(title)" }

    static let uuid = "abcdef00-0000-4000-8000-000000000001"
    static let other = "abcdef00-0000-4000-8000-000000000002"

    func run(_ contract: APIContract, _ port: Int, _ document: Document) throws {
        let peer = HTTPPeer(port: port)
        func ask(_ method: String, _ path: String, _ body: String, _ fields: [String], _ user: String?) throws
            -> HTTPReply
        {
            try peer.ask(method, path, body, fields + (user.map { ["Authorization: \($0)"] } ?? []))
        }
        func make(_ uuid: String, _ user: String, date: String = "2026-03-01T08:30:00Z") throws -> Note? {
            let body = #"{"uuid":"\#(uuid)","title":"Milk","text":"two","date":"\#(date)"}"#
            return Note(json: Array(try ask("POST", "/api/notes/", body, [], user).body.utf8))
        }
        var before: Note?
        switch given {
        case .nothing: break
        case .note: before = try make(Row.uuid, Fixture.ada)
        case .bosNote: before = try make(Row.uuid, Fixture.bo)
        case .two:
            before = try make(Row.uuid, Fixture.ada)
            _ = try make(Row.other, Fixture.ada, date: "2026-02-01T08:30:00Z")
        case .changed:
            let first = try make(Row.uuid, Fixture.ada)?.revision.description ?? ""
            let body = #"{"revision":"\#(first)","title":"Bread","text":"one","date":"2026-03-01T08:30:00Z"}"#
            before = Note(json: Array(try ask("PUT", "/api/notes/\(Row.uuid)/", body, [], Fixture.ada).body.utf8))
        case .deleted:
            before = try make(Row.uuid, Fixture.ada)
            let revision = before?.revision.description ?? ""
            _ = try ask("DELETE", "/api/notes/\(Row.uuid)/?revision=\(revision)", "", [], Fixture.ada)
        }
        func filled(_ text: String) -> String {
            text.replacingOccurrences(of: "$U", with: Row.uuid).replacingOccurrences(
                of: "$R", with: before?.revision.description ?? "no revision")
        }
        let path = filled(path)
        let reply = try ask(method, path, filled(body), fields.map(filled), user)
        #expect(reply.status == status.of(contract), "\(contract) \(self): \(reply.body.prefix(200))")
        #expect(reply.header("Slowlane-Notes") == "1", "\(contract) \(self)")
        if !reply.body.isEmpty, !reply.body.hasPrefix("<") {
            #expect(reply.header("Content-Type") == "application/json", "\(contract) \(self)")
        }
        document.check(method, path, reply, self)
        try check(
            Seen(contract: contract, reply: reply, before: before) { method, path, body, fields in
                let isOwn = fields.contains { $0.hasPrefix("Authorization:") }
                let reply = try ask(method, path, body, fields, isOwn ? nil : Fixture.ada)
                document.check(method, path, reply, self)
                return reply
            })
    }
}

/// The OpenAPI document of a contract, and the statuses in it that no response has had yet.
final class Document: Sendable {
    private let paths: JSONObject
    private let left: Mutex<Set<Int>>

    /// The documented statuses that no response has had.
    var unseen: Set<Int> { left.withLock { $0 } }

    init(_ contract: APIContract) {
        var unseen: Set<Int> = []
        paths = JSONText.parse(Array(contract.openAPI.utf8))?.object?["paths"]?.object ?? [:]
        for path in paths.map(\.value) {
            for operation in (path.object ?? [:]).map(\.value) {
                for status in operation.object?["responses"]?.object?.keys.map({ $0 }) ?? [] {
                    if let status = Int(status) { unseen.insert(status) }
                }
            }
        }
        left = Mutex(unseen)
    }

    /// Records an issue if the document lacks the status or media type of a response.
    func check(_ method: String, _ path: String, _ reply: HTTPReply, _ row: Row) {
        _ = left.withLock { $0.remove(reply.status) }
        let words = path.prefix { $0 != "?" }.split(separator: "/", omittingEmptySubsequences: false)
        let template = paths.keys.first { key in
            let parts = key.split(separator: "/", omittingEmptySubsequences: false)
            return parts.count == words.count
                && zip(parts, words).allSatisfy { $0 == $1 || ["{uuid}", "{name}"].contains($0) && !$1.isEmpty }
        }
        guard let template, let operation = paths[template]?.object?[method.lowercased()]?.object else { return }
        let documented = operation["responses"]?.object?[String(reply.status)]?.object
        #expect(documented != nil, "\(row): \(method) \(template) does not document \(reply.status)")
        if !reply.body.isEmpty, let type = reply.header("Content-Type")?.prefix(while: { $0 != ";" }) {
            #expect(documented?["content"]?.object?[String(type)] != nil, "\(row): \(type) for \(reply.status)")
        }
    }
}
