import NotesContract
import TestSupport
import Testing

@testable import NotesService

/// The store in collections against the store in SQLite: random conversations must have the same responses.
@Suite struct CollectionStoreTests {
    /// A conversation with two services at once.
    private struct Pair {
        let sqlite: Fixture
        let collections: Fixture
        var random: SeededGenerator
        var revisions: [String] = ["1-x"]
        var cursors: [String] = [""]
        var tokens: [String] = []

        init(_ contract: APIContract, seed: UInt64) throws {
            sqlite = try Fixture(contract, store: NotesStore(path: nil, contract: contract) { "epoch" })
            collections = try Fixture(contract, store: NotesStore(inCollectionsFor: contract) { "epoch" })
            random = SeededGenerator(seed: seed)
        }

        mutating func pick<Value>(_ values: [Value]) -> Value {
            values[Int.random(in: 0..<values.count, using: &random)]
        }

        /// Sends the next request to both, and returns a description of the first difference; `nil` if there is none.
        mutating func step() -> String? {
            let uuid = "00000000-0000-4000-8000-00000000000\(Int.random(in: 1...6, using: &random))"
            let revision = Bool.random(using: &random) ? revisions[revisions.count - 1] : pick(revisions)
            let text = pick([
                "a", "b", "\\u0000", "\\n \\\"quoted\\\"",
                String(repeating: "long ", count: pick([10, 10, 10, 10_000])),
            ])
            let body = #"{"uuid":"\#(uuid)","title":"t","text":"\#(text)","date":"2026-03-01T08:00:00.000Z"}"#
            let change = #"{"revision":"\#(revision)","title":"t","text":"\#(text)","date":"2026-03-01T08:00:00Z"}"#
            let cursor = pick(cursors)
            let note = "/api/notes/\(uuid)/"
            let requests: [(String, String, String)] = [
                ("POST", "/api/notes/", body), ("POST", "/api/notes/", body), ("PUT", note, change),
                ("PUT", note, change),
                ("PATCH", note, change), ("DELETE", "\(note)?revision=\(revision)", ""), ("DELETE", note, ""),
                ("GET", note, ""), ("GET", "/api/notes/", ""), ("GET", "/api/notes-uuids/", ""),
                ("GET", "/api/notes-uuids/?since=\(cursor)&limit=\(pick([1, 2, 100]))", ""),
                ("PUT", "\(note)pin/", ""), ("DELETE", "\(note)pin/", ""), ("GET", "\(note)pin/", ""),
                ("POST", "/api/tokens/", ""),
                ("POST", "/api/tokens/refresh/", #"{"refresh_token":"\#(tokens.last ?? "x")"}"#),
                ("DELETE", "/api/tokens/", ""), ("GET", "/health", ""),
            ]
            let (method, path, content) = pick(requests)
            var fields = ["Content-Type": "application/json"]
            if Bool.random(using: &random) {
                fields["Idempotency-Key"] = pick(["k1", "k2", "k3", "k\(revisions.count)"])
            }
            if pick([true, false, false]) { fields["If-Match"] = "\"\(revision)\"" }
            if pick([true, false, false]) { fields["If-None-Match"] = "\"\(revision)\"" }
            var credentials = pick([Fixture.ada, Fixture.ada, Fixture.bo])
            if let token = tokens.last, pick([true, false, false]) { credentials = "Bearer \(token)" }
            if pick([true] + Array(repeating: false, count: 30)) {
                let seconds = pick([61, 4000, 16 * 86_400])
                for fixture in [sqlite, collections] { fixture.clock.advance(seconds: seconds) }
            }
            let one = sqlite.send(method, path, content, as: credentials, with: fields)
            let other = collections.send(method, path, content, as: credentials, with: fields)
            if let found = one.note?.revision.description { revisions.append(found) }
            if let found = one.field("Slowlane-Cursor") { cursors.append(found) }
            for name in ["access_token", "refresh_token"] {
                let parts = one.body.split(separator: "\"").map(String.init)
                if let index = parts.firstIndex(of: name), index + 2 < parts.count { tokens.append(parts[index + 2]) }
            }
            guard one.status != other.status || one.body != other.body || one.head != other.head else { return nil }
            return "\(method) \(path.prefix(80)): \(one.head) and \(other.head), \(one.body.prefix(80)) and "
                + "\(other.body.prefix(80))"
        }
    }

    @Test(arguments: ["orig", "compat", "strict"]) func bothStoresGiveTheSameResponses(_ name: String) throws {
        for seed in UInt64(1)...1 {
            var pair = try Pair(try #require(APIContract.named[name]), seed: seed)
            for number in 0..<150 {
                if let difference = pair.step() {
                    Issue.record("seed \(seed), request \(number): \(difference)")
                    break
                }
            }
            let contents = try [pair.sqlite, pair.collections].map { try $0.notes.map { "\($0)" } }
            #expect(contents[0] == contents[1])
        }
    }

    @Test func aFailedTransactionChangesNothing() throws {
        struct Failure: Error {}
        let memory = NotesMemory()
        let note = StoredNote(
            Note(uuid: Fixture.n1, revision: Revision(number: 1, suffix: "s"), date: "", title: "t", text: nil))
        let transaction = StoreTransaction.memory(memory)
        try memory.transaction { _ = try note.save(transaction, owner: "ada", at: 1, uptime: 1) }
        #expect(throws: Failure.self) {
            try memory.transaction {
                let stored = try StoredNote.find(transaction, owner: "ada", uuid: Fixture.n1)
                var changed = try #require(stored)
                changed.state = .deleted
                _ = try changed.save(transaction, owner: "ada", at: 2, uptime: 2)
                try changed.erase(transaction)
                _ = try note.save(transaction, owner: "bo", at: 2, uptime: 2)
                throw Failure()
            }
        }
        #expect(memory.note(owner: "ada", uuid: Fixture.n1)?.state == .live)
        #expect(memory.note(owner: "ada", uuid: Fixture.n1)?.sequence == 1)
        #expect(memory.note(owner: "bo", uuid: Fixture.n1) == nil)
    }

    @Test func attachmentsNeedADatabase() throws {
        let fixture = try Fixture(.compat, store: NotesStore(inCollectionsFor: .compat) { "epoch" })
        fixture.create()
        #expect(fixture.send("GET", "/api/notes/\(Fixture.n1)/attachments/").status == 500)
    }
}
