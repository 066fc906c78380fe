import Client
import Foundation
import GRDB
import GRDBSQLite
import TestSupport
import Testing
import Wire

@testable import LiveClient

/// Commits and loads of one process.
@Suite struct SyncStoreTests {
    static let resource = "notes"

    static func content(_ text: String) -> RecordContent { RecordContent(Array(text.utf8)) }

    /// Opens a store with the lease.
    static func holder(_ path: String?) throws -> SyncStore {
        let store = try SyncStore(path: path, resource: resource)
        try store.acquireLease()
        return store
    }

    /// A change with every field of every table.
    static var change: StoreChange {
        var change = StoreChange()
        let records = [
            LocalRecord(id: "a", mine: content("ä\u{0}\"'"), edits: 3),
            LocalRecord(
                id: "b\u{0}c", base: RecordRevision("2-x", number: 2), baseContent: content("base"),
                mine: content("mine"),
                isDeleted: true, theirs: LocalRecord.Theirs(revision: nil, content: nil)),
            LocalRecord(
                id: "\u{e9}", mine: RecordContent([]),
                theirs: LocalRecord.Theirs(
                    revision: RecordRevision("tag\u{0}1"), content: RecordContent([0, 0xFF, 0xC3, 0x28]))),
            // The same characters in another normalisation are another record.
            LocalRecord(id: "e\u{301}", base: RecordRevision("r"), mine: content("other")),
        ]
        for record in records { change.records[record.id] = .some(record) }
        change.entries = [
            4: OutboxEntry(
                operation: "o", sequence: 4, id: "a", kind: .create, content: content("sent"), edits: 3,
                base: RecordRevision("1-z", number: 1), attempts: 2, mayBeCommitted: true, serverErrors: 3),
            9: OutboxEntry(
                operation: "p", sequence: 9, id: "b\u{0}c", kind: .delete, content: RecordContent([]), edits: 1,
                parked: "rejected: 400"),
        ]
        change.quarantine = ["q": "not a note", "": "no identifier"]
        change.account = SyncAccount(user: "ada", server: "localhost:8000", history: "00ff")
        change.index = IndexState(cursor: "c.1.2", entityTag: "\"x\"", isAdopting: true)
        return change
    }

    static func expect(_ state: StoredState, equals change: StoreChange) {
        #expect(state.records.map(\.id) == state.records.map(\.id).sorted())
        #expect(
            Dictionary(uniqueKeysWithValues: state.records.map { ($0.id, $0) })
                == change.records.compactMapValues { $0 })
        #expect(state.entries == change.entries.compactMapValues { $0 }.sorted { $0.key < $1.key }.map(\.value))
        #expect(state.quarantine == change.quarantine.compactMapValues { $0 })
        #expect(state.account == change.account ?? nil)
        #expect(state.index == change.index ?? IndexState())
    }

    @Test(arguments: [true, false]) func aCommittedChangeIsLoadedAgain(isFile: Bool) throws {
        let folder = try TemporaryFolder()
        let path = isFile ? folder.path("s.db") : nil
        let store = try Self.holder(path)
        Self.expect(try store.load(), equals: StoreChange())
        #expect(try store.commit(Self.change) == .committed)
        Self.expect(try store.load(), equals: Self.change)
        store.close()
        if isFile {
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path(".")) == ["s.db"])
            Self.expect(try SyncStore(path: path, resource: Self.resource).load(), equals: Self.change)
            let mode = try FileManager.default.attributesOfItem(atPath: folder.path("s.db"))[.posixPermissions] as? Int
            #expect(mode == 0o600)
        }
    }

    @Test func aChangeReplacesAndDeletes() throws {
        let store = try Self.holder(nil)
        #expect(try store.commit(Self.change) == .committed)
        var second = StoreChange()
        second.records = [
            "a": nil, "b\u{0}c": LocalRecord(id: "b\u{0}c", mine: Self.content("new"), edits: 7),
            "unknown": nil,
        ]
        second.entries = [4: nil, 5: nil]
        second.quarantine = ["": nil, "q": "again"]
        second.account = SyncAccount(user: "bo", server: "localhost:1")
        #expect(try store.commit(second) == .committed)
        var expected = Self.change
        expected.records["a"] = .some(nil)
        expected.records["b\u{0}c"] = second.records["b\u{0}c"]
        expected.entries[4] = .some(nil)
        expected.quarantine = ["q": "again"]
        expected.account = second.account ?? nil
        Self.expect(try store.load(), equals: expected)
    }

    @Test func anUnknownKindIsParkedAndKept() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("s.db")
        let store = try Self.holder(path)
        #expect(try store.commit(Self.change) == .committed)
        try DatabaseQueue(path: path).write {
            try $0.execute(sql: "UPDATE outbox SET kind = CAST('merge' AS BLOB) WHERE sequence = 4")
        }
        let state = try store.load()
        #expect(state.entries.count == 2 && state.quarantine == Self.change.quarantine.compactMapValues { $0 })
        let entry = try #require(state.entries.first)
        #expect(entry.kind == .unknown("merge"))
        #expect(entry.parked?.contains("'merge'") == true)
        var change = StoreChange()
        change.entries[4] = .some(entry)
        #expect(try store.commit(change) == .committed)
        #expect(try store.load().entries.first == entry)
    }

    @Test(arguments: [
        ("UPDATE record SET base = x'ff', base_number = NULL WHERE id = x'61'", "base is not text", "a", 3, 2),
        ("UPDATE record SET deleted = 2 WHERE id = x'61'", "deleted is neither", "a", 3, 2),
        ("UPDATE record SET edits = -1 WHERE id = x'61'", "edits is negative", "a", 3, 2),
        ("UPDATE record SET id = x'fffe' WHERE id = x'61'", "id is not text", "\u{fffd}\u{fffd}", 3, 2),
        ("UPDATE outbox SET operation = x'c3' WHERE sequence = 4", "operation is not text", "a", 4, 1),
        ("UPDATE outbox SET sequence = -4 WHERE sequence = 4", "sequence is negative", "a", 4, 1),
    ]) func aDamagedRowIsQuarantinedAlone(sql: String, reason: String, id: String, records: Int, entries: Int) throws {
        let folder = try TemporaryFolder()
        let path = folder.path("s.db")
        var store = try Self.holder(path)
        var change = Self.change
        change.quarantine = [:]
        #expect(try store.commit(change) == .committed)
        store.close()
        try DatabaseQueue(path: path).write { try $0.execute(sql: sql) }
        // The first is a reader, which changes nothing.
        for isHolder in [false, true, true] {
            store = try SyncStore(path: path, resource: Self.resource)
            if isHolder { try store.acquireLease() }
            let state = try store.load()
            #expect(state.records.count == records && state.entries.count == entries)
            #expect(state.quarantine.count == 1)
            #expect(state.quarantine[RecordID(id)]?.contains(reason) == true, "\(state.quarantine)")
            store.close()
        }
        // The row is kept, where a new record or entry does not overwrite it.
        let kept = try DatabaseQueue(path: path).read {
            try Int.fetchOne(
                $0, sql: "SELECT (SELECT count(*) FROM damaged_record) + (SELECT count(*) FROM damaged_outbox)")
        }
        #expect(kept == 1)
    }

    /// SQLite counts the steps of its virtual machine. Statements are compiled once.
    @Test func commitAndLoadAreLinear() throws {
        func counts(_ size: Int) throws -> (steps: Int, statements: Int) {
            let store = try Self.holder(nil)
            var change = StoreChange()
            for number in 0..<size {
                let id = RecordID("record-\(number)")
                change.records[id] = LocalRecord(id: id, mine: Self.content("text"), edits: 1)
                if number % 10 == 0 {
                    change.entries[number] = OutboxEntry(
                        operation: "o\(number)", sequence: number, id: id, kind: .create, content: Self.content("text"),
                        edits: 1)
                }
            }
            #expect(try store.commit(change) == .committed)
            #expect(try store.commit(change) == .committed)
            let state = try store.load()
            #expect(state.records.count == size && state.entries.count == size / 10)
            return store.queue.unsafeRead { database in
                var (steps, statements) = (0, 0)
                var statement = sqlite3_next_stmt(database.sqliteConnection, nil)
                while let current = statement {
                    steps += Int(sqlite3_stmt_status(current, SQLITE_STMTSTATUS_VM_STEP, 0))
                    statements += 1
                    statement = sqlite3_next_stmt(database.sqliteConnection, current)
                }
                return (steps, statements)
            }
        }
        let small = try counts(1000)
        let large = try counts(10_000)
        #expect(small.statements == large.statements && small.statements < 30)
        #expect(small.steps > 1000 * 3)
        #expect((90...110).contains(large.steps * 10 / small.steps), "\(small) \(large)")
    }
}
