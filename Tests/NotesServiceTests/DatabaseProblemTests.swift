import Foundation
import GRDB
import NotesContract
import TestSupport
import Testing

@testable import NotesService

/// What clients, the log and `/health` are told when the database does not do what it is asked to.
@Suite struct DatabaseProblemTests {
    /// More than the probe of `/health` takes.
    private static let largeNote = #"{"title":"x","text":"\#(String(repeating: "x", count: 100_000))"}"#

    private static func limitPages(_ desk: Desk, to count: Int?) throws {
        try desk.store.queue.inDatabase { database in
            let count = try count ?? Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
            try database.execute(sql: "PRAGMA max_page_count = \(count)")
        }
    }

    /// A desk on a file, with one note.
    private static func makeDesk(_ folder: TemporaryFolder) throws -> Desk {
        let desk = try Desk(store: NotesStore(path: folder.path("notes.db")))
        desk.create()
        return desk
    }

    private static func health(_ desk: Desk) -> Desk.Answer {
        desk.clock.pass(seconds: 1)
        return desk.ask("GET", "/health", as: nil)
    }

    @Test func aFullDiskIsA507UntilThereIsSpaceAgain() throws {
        let folder = try TemporaryFolder()
        let desk = try Self.makeDesk(folder)
        #expect(Self.health(desk).body == #"{"status":"ok"}"#)
        try Self.limitPages(desk, to: nil)
        let before = try desk.notes
        for _ in 0..<20 {
            let refused = desk.ask("POST", "/api/notes/", Self.largeNote)
            #expect(refused.status == 507)
            #expect(refused.body == #"{"detail":"The disk is full, nothing was written."}"#)
        }
        #expect(try desk.notes == before)
        #expect(desk.ask("GET", "/api/notes/").status == 200)
        let unhealthy = Self.health(desk)
        #expect(unhealthy.status == 503)
        #expect(unhealthy.body.contains("unhealthy") && unhealthy.body.contains("the disk is full"))
        #expect(!unhealthy.body.contains(folder.path(".")))
        #expect(desk.ask("GET", "/api/notes/").status == 200)
        // One line for all of them, with what, where and why.
        let lines = desk.log.lines
        #expect(lines.count == 1, "\(lines)")
        #expect(lines.first?.contains(folder.path("notes.db")) == true && lines.first?.contains("code 13") == true)

        try Self.limitPages(desk, to: 1 << 30)
        #expect(Self.health(desk).status == 200)
        #expect(desk.log.lines.last?.hasSuffix("writes succeed again") == true)
        #expect(desk.ask("POST", "/api/notes/", Self.largeNote).status == 201)
    }

    @Test func aFullDiskIsSeenByHealthBeforeAnybodyWrites() throws {
        let folder = try TemporaryFolder()
        let desk = try Self.makeDesk(folder)
        try Self.limitPages(desk, to: nil)
        #expect(Self.health(desk).status == 503)
        // Not more than one write a second, whoever asks.
        try Self.limitPages(desk, to: 1 << 30)
        #expect(desk.ask("GET", "/health", as: nil).status == 503)
        #expect(Self.health(desk).status == 200)
    }

    @Test func anotherProcessesLockIsA503() throws {
        let folder = try TemporaryFolder()
        let desk = try Self.makeDesk(folder)
        try desk.store.queue.inDatabase { try $0.execute(sql: "PRAGMA busy_timeout = 10") }
        try DatabaseQueue(path: folder.path("notes.db")).inDatabase { other in
            try other.execute(sql: "BEGIN IMMEDIATE")
            let refused = desk.ask("POST", "/api/notes/", "{}")
            #expect(refused.status == 503)
            #expect(refused.field("Retry-After") == "1")
            #expect(refused.body.contains("nother process"))
            #expect(Self.health(desk).status == 503)
            try other.execute(sql: "ROLLBACK")
        }
        #expect(desk.ask("POST", "/api/notes/", "{}").status == 201)
        #expect(Self.health(desk).status == 200)
    }

    @Test func aDatabaseThatBecomesReadOnlyIsA503ForWritesOnly() throws {
        let folder = try TemporaryFolder()
        let desk = try Self.makeDesk(folder)
        try desk.store.queue.inDatabase { try $0.execute(sql: "PRAGMA query_only = 1") }
        let refused = desk.ask("POST", "/api/notes/", "{}")
        #expect(refused.status == 503)
        #expect(refused.body.contains("cannot be written"))
        #expect(desk.ask("GET", "/api/notes/").body.contains("Milk"))
        #expect(Self.health(desk).status == 503)
    }

    @Test func aDamagedFileIsA503AndStaysUnhealthy() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("notes.db")
        do {
            let desk = try Self.makeDesk(folder)
            for _ in 0..<50 {
                desk.ask("POST", "/api/notes/", #"{"title":"\#(String(repeating: "x", count: 3000))"}"#)
            }
            try desk.store.queue.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
        }
        var bytes = try Data(contentsOf: URL(filePath: path))
        // All but the schema and the pages that say where the user's writes are.
        let root = try DatabaseQueue(path: path).read {
            try Int.fetchOne($0, sql: "SELECT rootpage FROM sqlite_master WHERE name = 'note'") ?? 0
        }
        let page = (root - 1) * 4096
        bytes.replaceSubrange(page..<page + 4096, with: Data(repeating: 0xFF, count: 4096))
        try bytes.write(to: URL(filePath: path))
        let desk = try Desk(store: NotesStore(path: path))
        let refused = desk.ask("GET", "/api/notes/")
        #expect(refused.status == 503)
        #expect(refused.body.contains("damaged"))
        #expect(desk.log.lines.first?.contains("restore the file") == true)
        for _ in 0..<3 { #expect(Self.health(desk).status == 503) }
    }

    /// What is written into a file without a name is lost when the server ends.
    @Test(arguments: [true, false]) func aFileThatIsGoneOrReplacedIsA503(isReplaced: Bool) throws {
        let folder = try TemporaryFolder()
        let desk = try Self.makeDesk(folder)
        let path = folder.path("notes.db")
        try FileManager.default.moveItem(atPath: path, toPath: path + ".old")
        if isReplaced { try Data().write(to: URL(filePath: path)) }
        #expect(desk.ask("POST", "/api/notes/", "{}").status == 503)
        #expect(Self.health(desk).body.contains("moved or deleted"))
        #expect(desk.log.lines.first?.contains(path) == true)
        try? FileManager.default.removeItem(atPath: path)
        try FileManager.default.moveItem(atPath: path + ".old", toPath: path)
        #expect(Self.health(desk).status == 200)
        #expect(desk.ask("POST", "/api/notes/", "{}").status == 201)
    }

    @Test func aBugIsA500() throws {
        let desk = try Desk()
        try desk.store.queue.inDatabase { try $0.execute(sql: "DROP TABLE pruned") }
        let answer = desk.ask("GET", "/api/notes/")
        #expect(answer.status == 500)
        #expect(!answer.body.contains("pruned"))
        #expect(desk.log.lines.first?.contains("no such table: pruned") == true)
    }
}
