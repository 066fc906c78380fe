import GRDB
import NotesContract
import Synchronization
import Testing
import Wire

@testable import NotesService

/// The queries and pages of lists.
@Suite struct ListTests {
    private static func seed(_ fixture: Fixture, _ numbers: ClosedRange<Int>, text: String) throws {
        for number in numbers {
            let digits = String(number)
            let uuid = "00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits
            let note = Note(
                uuid: uuid, revision: Revision(number: 1, suffix: "s"), date: "2026-03-01T08:00:00.000Z",
                title: digits, text: text)
            try fixture.store.seed(note, owner: "ada")
        }
    }

    /// The number of statements that SQLite runs for a request.
    private static func statements(_ fixture: Fixture, _ path: String) throws -> Int {
        let count = Mutex(0)
        try fixture.store.database().unsafeRead { database in
            database.trace { event in if case .statement = event { count.withLock { $0 += 1 } } }
        }
        #expect(fixture.send("GET", path).status == 200)
        try fixture.store.database().unsafeRead { $0.trace(nil) }
        return count.withLock { $0 }
    }

    @Test(arguments: ["/api/notes/", "/api/notes-uuids/", "/api/notes-uuids/?since="])
    func aListOfAHundredNotesTakesAsManyQueriesAsAnEmptyOne(path: String) throws {
        let fixture = try Fixture()
        let empty = try Self.statements(fixture, path)
        try Self.seed(fixture, 1...100, text: "two litres")
        #expect(try Self.statements(fixture, path) == empty)
        #expect(empty == 2, "one for the position, one for the rows")
    }

    @Test(arguments: APIContract.all) func aLongListKeepsItsOrderAcrossPages(contract: APIContract) throws {
        let fixture = try Fixture(contract)
        try Self.seed(fixture, 1...1500, text: String(repeating: "x", count: 300))
        for path in ["/api/notes/", "/api/notes-uuids/"] {
            guard case .array(let notes)? = JSONText.parse(Array(fixture.send("GET", path).body.utf8)) else {
                Issue.record("\(path) is not JSON")
                continue
            }
            let numbers = notes.compactMap { $0.object?["uuid"]?.text.flatMap { Int($0.suffix(12)) } }
            #expect(numbers == Array(1...1500), "\(path)")
        }
    }

    /// Lists are written from the database's bytes, single notes from strings; both must have the same text.
    @Test(arguments: APIContract.all) func aListItemEqualsTheSingleNote(contract: APIContract) throws {
        let fixture = try Fixture(contract)
        for text in ["", "a\u{0}b", "e\u{301}", "é", "🧭", "\u{FEFF}x", "\r\n\t\\\"/\u{7F}\u{1}", "\u{2028}"] {
            let draft = NoteDraft(date: "2026-03-01T08:00:00.000Z", title: text, text: text)
            #expect(fixture.send("POST", "/api/notes/", draft.json(uuid: UUIDs.random(), base: nil)).status == 201)
        }
        #expect(fixture.send("POST", "/api/notes/", #"{"uuid":"\#(Fixture.n1)","title":null}"#).status == 201)
        let notes = try fixture.notes
        #expect(notes.count == 9)
        let alone = notes.map { fixture.send("GET", "/api/notes/\($0.uuid)/").body }
        let list = fixture.send("GET", "/api/notes/").body
        let members = alone.sorted().joined()
        #expect(list.utf8.count == members.utf8.count + notes.count + 1)
        #expect(alone.allSatisfy { list.contains($0) })
    }
}
