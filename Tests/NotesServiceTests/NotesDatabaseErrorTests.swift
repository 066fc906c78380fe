import Foundation
import GRDB
import NotesContract
import TestSupport
import Testing

@testable import NotesService

/// What clients, the log and `/health` are told when the database does not do what it is asked to.
@Suite struct NotesDatabaseErrorTests {
    /// More than the probe of `/health` takes.
    private static let largeNote = #"{"title":"x","text":"\#(String(repeating: "x", count: 100_000))"}"#

    private static func limitPages(_ fixture: Fixture, to count: Int?) throws {
        try fixture.store.queue.inDatabase { database in
            let count = try count ?? Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
            try database.execute(sql: "PRAGMA max_page_count = \(count)")
        }
    }

    /// A desk on a file, with one note.
    private static func makeFixture(_ folder: TemporaryFolder) throws -> Fixture {
        let fixture = try Fixture(store: NotesStore(path: folder.path("notes.db")))
        fixture.create()
        return fixture
    }

    private static func health(_ fixture: Fixture) -> Fixture.Response {
        fixture.clock.pass(seconds: 1)
        return fixture.send("GET", "/health", as: nil)
    }

    @Test func aFullDiskIsA507UntilThereIsSpaceAgain() throws {
        let folder = try TemporaryFolder()
        let fixture = try Self.makeFixture(folder)
        #expect(Self.health(fixture).body == #"{"status":"ok"}"#)
        try Self.limitPages(fixture, to: nil)
        let before = try fixture.notes
        for _ in 0..<20 {
            let refused = fixture.send("POST", "/api/notes/", Self.largeNote)
            #expect(refused.status == 507)
            #expect(refused.body == #"{"detail":"The disk is full, nothing was written."}"#)
        }
        #expect(try fixture.notes == before)
        #expect(fixture.send("GET", "/api/notes/").status == 200)
        let unhealthy = Self.health(fixture)
        #expect(unhealthy.status == 503)
        #expect(unhealthy.body.contains("unhealthy") && unhealthy.body.contains("the disk is full"))
        #expect(!unhealthy.body.contains(folder.path(".")))
        #expect(fixture.send("GET", "/api/notes/").status == 200)
        // One line for all of them, with what, where and why.
        let lines = fixture.log.lines
        #expect(lines.count == 1, "\(lines)")
        #expect(lines.first?.contains(folder.path("notes.db")) == true && lines.first?.contains("code 13") == true)

        try Self.limitPages(fixture, to: 1 << 30)
        #expect(Self.health(fixture).status == 200)
        #expect(fixture.log.lines.last?.hasSuffix("writes succeed again") == true)
        #expect(fixture.send("POST", "/api/notes/", Self.largeNote).status == 201)
    }

    @Test func aFullDiskIsSeenByHealthBeforeAnybodyWrites() throws {
        let folder = try TemporaryFolder()
        let fixture = try Self.makeFixture(folder)
        try Self.limitPages(fixture, to: nil)
        #expect(Self.health(fixture).status == 503)
        // Not more than one write a second, whoever asks.
        try Self.limitPages(fixture, to: 1 << 30)
        #expect(fixture.send("GET", "/health", as: nil).status == 503)
        #expect(Self.health(fixture).status == 200)
    }

    @Test func anotherProcessesLockIsA503() throws {
        let folder = try TemporaryFolder()
        let fixture = try Self.makeFixture(folder)
        try fixture.store.queue.inDatabase { try $0.execute(sql: "PRAGMA busy_timeout = 10") }
        try DatabaseQueue(path: folder.path("notes.db")).inDatabase { other in
            try other.execute(sql: "BEGIN IMMEDIATE")
            let refused = fixture.send("POST", "/api/notes/", "{}")
            #expect(refused.status == 503)
            #expect(refused.field("Retry-After") == "1")
            #expect(refused.body.contains("nother process"))
            #expect(Self.health(fixture).status == 503)
            try other.execute(sql: "ROLLBACK")
        }
        #expect(fixture.send("POST", "/api/notes/", "{}").status == 201)
        #expect(Self.health(fixture).status == 200)
    }

    @Test func aDatabaseThatBecomesReadOnlyIsA503ForWritesOnly() throws {
        let folder = try TemporaryFolder()
        let fixture = try Self.makeFixture(folder)
        try fixture.store.queue.inDatabase { try $0.execute(sql: "PRAGMA query_only = 1") }
        let refused = fixture.send("POST", "/api/notes/", "{}")
        #expect(refused.status == 503)
        #expect(refused.body.contains("cannot be written"))
        #expect(fixture.send("GET", "/api/notes/").body.contains("Milk"))
        #expect(Self.health(fixture).status == 503)
    }

    @Test func aDamagedFileIsA503AndStaysUnhealthy() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("notes.db")
        do {
            let fixture = try Self.makeFixture(folder)
            for _ in 0..<50 {
                fixture.send("POST", "/api/notes/", #"{"title":"\#(String(repeating: "x", count: 3000))"}"#)
            }
            try fixture.store.queue.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
        }
        var bytes = try Data(contentsOf: URL(filePath: path))
        // All but the schema and the pages that say where the user's writes are.
        let root = try DatabaseQueue(path: path).read {
            try Int.fetchOne($0, sql: "SELECT rootpage FROM sqlite_master WHERE name = 'note'") ?? 0
        }
        let page = (root - 1) * 4096
        bytes.replaceSubrange(page..<page + 4096, with: Data(repeating: 0xFF, count: 4096))
        try bytes.write(to: URL(filePath: path))
        let fixture = try Fixture(store: NotesStore(path: path))
        let refused = fixture.send("GET", "/api/notes/")
        #expect(refused.status == 503)
        #expect(refused.body.contains("damaged"))
        #expect(fixture.log.lines.first?.contains("restore the file") == true)
        for _ in 0..<3 { #expect(Self.health(fixture).status == 503) }
    }

    /// What is written into a file without a name is lost when the server ends.
    @Test(arguments: [true, false]) func aFileThatIsGoneOrReplacedIsA503(isReplaced: Bool) throws {
        let folder = try TemporaryFolder()
        let fixture = try Self.makeFixture(folder)
        let path = folder.path("notes.db")
        try FileManager.default.moveItem(atPath: path, toPath: path + ".old")
        if isReplaced { try Data().write(to: URL(filePath: path)) }
        #expect(fixture.send("POST", "/api/notes/", "{}").status == 503)
        #expect(Self.health(fixture).body.contains("moved or deleted"))
        #expect(fixture.log.lines.first?.contains(path) == true)
        try? FileManager.default.removeItem(atPath: path)
        try FileManager.default.moveItem(atPath: path + ".old", toPath: path)
        #expect(Self.health(fixture).status == 200)
        #expect(fixture.send("POST", "/api/notes/", "{}").status == 201)
    }

    @Test func aBugIsA500() throws {
        let fixture = try Fixture()
        try fixture.store.queue.inDatabase { try $0.execute(sql: "DROP TABLE pruned") }
        let response = fixture.send("GET", "/api/notes/")
        #expect(response.status == 500)
        #expect(!response.body.contains("pruned"))
        #expect(fixture.log.lines.first?.contains("no such table: pruned") == true)
    }
}
