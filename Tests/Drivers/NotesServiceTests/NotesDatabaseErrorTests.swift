import Foundation
import GRDB
import NotesContract
import TestSupport
import Testing

@testable import NotesService

/// Responses, log lines and `/health` when the database fails.
@Suite struct NotesDatabaseErrorTests {
    /// A note larger than the test write of `/health`.
    private static let largeNote = #"{"title":"x","text":"\#(String(repeating: "x", count: 100_000))"}"#

    private static func limitPages(_ fixture: Fixture, to count: Int?) throws {
        try fixture.store.database().inDatabase { database in
            let count = try count ?? Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
            try database.execute(sql: "PRAGMA max_page_count = \(count)")
        }
    }

    /// Returns a fixture with a database file and one note.
    private static func makeFixture(_ folder: TemporaryFolder) throws -> Fixture {
        let fixture = try Fixture(store: NotesStore(path: folder.path("notes.db")))
        fixture.create()
        return fixture
    }

    private static func health(_ fixture: Fixture) -> Fixture.Response {
        fixture.clock.advance(seconds: 1)
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
        // All rejected writes share one log line with file and cause.
        let lines = fixture.log.lines
        #expect(lines.count == 1, "\(lines)")
        #expect(lines.first?.contains(folder.path("notes.db")) == true && lines.first?.contains("code 13") == true)

        try Self.limitPages(fixture, to: 1 << 30)
        #expect(Self.health(fixture).status == 200)
        #expect(fixture.log.lines.last?.hasSuffix("writes succeed again") == true)
        #expect(fixture.send("POST", "/api/notes/", Self.largeNote).status == 201)
    }

    /// A rejected write leaves no trace, and stored notes can be read.
    @Test func aFullDiskLosesNoNotes() throws {
        let folder = try TemporaryFolder()
        let fixture = try Fixture(store: NotesStore(path: folder.path("notes.db")))
        let revision = fixture.create()
        try fixture.store.database().writeWithoutTransaction { database in
            let pages = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
            try database.execute(sql: "PRAGMA max_page_count = \(pages)")
        }
        let text = String(repeating: "x", count: 100_000)
        let refused = fixture.send("POST", "/api/notes/", #"{"uuid":"\#(Fixture.n2)","text":"\#(text)"}"#)
        #expect(refused.status == 507)
        #expect(refused.body.contains("disk is full"))
        #expect(
            fixture.send("PATCH", "/api/notes/\(Fixture.n1)/", #"{"revision":"\#(revision)","text":"\#(text)"}"#).status
                == 507
        )
        #expect(fixture.send("GET", "/api/notes/\(Fixture.n1)/").revision == revision)
        #expect(fixture.send("GET", "/api/notes/\(Fixture.n2)/").status == 404)
        try fixture.store.database().writeWithoutTransaction { try $0.execute(sql: "PRAGMA max_page_count = 1000000") }
        #expect(fixture.send("POST", "/api/notes/", #"{"uuid":"\#(Fixture.n2)","text":"\#(text)"}"#).status == 201)
    }

    @Test func healthDetectsAFullDiskWithoutOtherWrites() throws {
        let folder = try TemporaryFolder()
        let fixture = try Self.makeFixture(folder)
        try Self.limitPages(fixture, to: nil)
        #expect(Self.health(fixture).status == 503)
        // The test write runs at most once a second.
        try Self.limitPages(fixture, to: 1 << 30)
        #expect(fixture.send("GET", "/health", as: nil).status == 503)
        #expect(Self.health(fixture).status == 200)
    }

    @Test func aLockOfAnotherProcessIsA503() throws {
        let folder = try TemporaryFolder()
        let fixture = try Self.makeFixture(folder)
        try fixture.store.database().inDatabase { try $0.execute(sql: "PRAGMA busy_timeout = 10") }
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
        try fixture.store.database().inDatabase { try $0.execute(sql: "PRAGMA query_only = 1") }
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
            try fixture.store.database().writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
        }
        var bytes = try Data(contentsOf: URL(filePath: path))
        // The schema and the index by sequence stay intact.
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

    /// Writes to a file without a path are lost when the server stops.
    @Test(arguments: [true, false]) func aMovedOrReplacedFileIsA503(isReplaced: Bool) throws {
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

    @Test func anInternalErrorIsA500() throws {
        let fixture = try Fixture()
        try fixture.store.database().inDatabase { try $0.execute(sql: "DROP TABLE pruned") }
        let response = fixture.send("GET", "/api/notes/")
        #expect(response.status == 500)
        #expect(!response.body.contains("pruned"))
        #expect(fixture.log.lines.first?.contains("no such table: pruned") == true)
    }
}
