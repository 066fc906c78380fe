import Client
import Foundation
import GRDB
import TestSupport
import Testing
import Wire

@testable import LiveClient

/// The migration of stores of version 1.
@Suite struct MigrationTests {
    private static let schema = """
        CREATE TABLE note (
            uuid TEXT PRIMARY KEY, base TEXT, base_title BLOB, base_text BLOB, base_date TEXT,
            title BLOB, text BLOB, date TEXT NOT NULL, deleted INTEGER NOT NULL, edits INTEGER NOT NULL,
            in_conflict INTEGER NOT NULL, theirs TEXT, theirs_title BLOB, theirs_text BLOB, theirs_date TEXT,
            problem TEXT
        ) STRICT;
        CREATE TABLE outbox (
            sequence INTEGER PRIMARY KEY, operation TEXT NOT NULL, uuid TEXT NOT NULL, kind TEXT NOT NULL,
            title BLOB, text BLOB, date TEXT NOT NULL, edits INTEGER NOT NULL, base TEXT,
            attempts INTEGER NOT NULL
        ) STRICT;
        PRAGMA user_version = 1;
        """
    private static let rows = """
        INSERT INTO note VALUES
            ('a', NULL, NULL, NULL, NULL, x'c3a400', NULL, 'd1', 0, 3, 0, NULL, NULL, NULL, NULL, NULL),
            ('b', '2-x', x'62', x'63', 'd0', x'62', x'64', 'd2', 0, 4, 1, '3-y', NULL, x'65', 'd3', NULL),
            ('c', '2-x', x'62', NULL, 'd0', NULL, NULL, 'd2', 1, 4, 1, NULL, NULL, NULL, NULL, NULL),
            ('p1', NULL, NULL, NULL, NULL, x'70', NULL, 'd1', 0, 1, 0, NULL, NULL, NULL, NULL, 'rejected: 400'),
            ('p2', '2-x', x'62', NULL, 'd0', x'70', NULL, 'd1', 0, 2, 0, NULL, NULL, NULL, NULL, 'rejected: 413'),
            ('p3', '2-x', x'62', NULL, 'd0', x'62', NULL, 'd0', 1, 3, 0, NULL, NULL, NULL, NULL, 'failed 3 times'),
            ('p4', NULL, NULL, NULL, NULL, x'70', NULL, 'd1', 1, 2, 0, NULL, NULL, NULL, NULL, 'rejected: 400');
        INSERT INTO outbox VALUES
            (4, 'o4', 'a', 'create', x'c3a4', NULL, 'd1', 2, NULL, 2), (7, 'o7', 'a', 'update', NULL, x'00', 'd1', 3, '1-z', 0),
            (8, 'o8', 'a', 'merge', NULL, NULL, 'd1', 3, 'odd', 0);
        """

    private static func note(_ title: String?, _ text: String?, _ date: String) -> RecordContent {
        NoteContent(title: title, text: text, date: date).encoded
    }

    /// A closed file, and the files that a killed process leaves: the exclusive lock of version 1 had no `-shm`.
    @Test(arguments: [true, false]) func everythingIsKept(isClosed: Bool) throws {
        let (folder, copies) = (try TemporaryFolder(), try TemporaryFolder())
        do {
            let old = try DatabaseQueue(path: folder.path("old.db"))
            try old.writeWithoutTransaction {
                try $0.execute(sql: "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL")
                try $0.execute(sql: Self.schema + Self.rows)
            }
            if !isClosed {
                for suffix in ["", "-wal"] {
                    try FileManager.default.copyItem(
                        atPath: folder.path("old.db" + suffix), toPath: copies.path("s.db" + suffix))
                }
            }
        }
        if isClosed {
            try FileManager.default.copyItem(atPath: folder.path("old.db"), toPath: copies.path("s.db"))
        }
        let foreign = #expect(throws: SyncStoreError.self) {
            try SyncStore(path: copies.path("s.db"), resource: "tasks")
        }
        #expect(foreign?.kind == .foreign)

        var states: [StoredState] = []
        for _ in 0..<2 {
            let store = try SyncStoreTests.holder(copies.path("s.db"))
            states.append(try store.load())
            store.close()
        }
        let state = states[1]
        #expect(states[0].records == state.records && states[0].entries == state.entries)
        #expect(state.account == nil && state.index == IndexState(isAdopting: true) && state.quarantine.isEmpty)
        #expect(state.records.map(\.id.text) == ["a", "b", "c", "p1", "p2", "p3", "p4"])
        #expect(state.records[0] == LocalRecord(id: "a", mine: Self.note("ä\u{0}", nil, "d1"), edits: 3))
        #expect(
            state.records[1]
                == LocalRecord(
                    id: "b", base: RecordRevision("2-x"), baseContent: Self.note("b", "c", "d0"),
                    mine: Self.note("b", "d", "d2"), edits: 4,
                    theirs: LocalRecord.Theirs(revision: RecordRevision("3-y"), content: Self.note(nil, "e", "d3"))))
        #expect(state.records[1].base?.number == 2 && state.records[1].theirs?.revision?.number == 3)
        #expect(
            state.records[2]
                == LocalRecord(
                    id: "c", base: RecordRevision("2-x"), baseContent: Self.note("b", nil, "d0"),
                    mine: Self.note(nil, nil, "d2"), isDeleted: true, edits: 4,
                    theirs: LocalRecord.Theirs(revision: nil, content: nil)))

        #expect(state.entries.map(\.sequence) == [4, 7, 8, 9, 10, 11, 12, 13])
        #expect(
            state.entries[0]
                == OutboxEntry(
                    operation: "o4", sequence: 4, id: "a", kind: .create, content: Self.note("ä", nil, "d1"), edits: 2,
                    attempts: 2, mayBeCommitted: true))
        #expect(
            state.entries[1]
                == OutboxEntry(
                    operation: "o7", sequence: 7, id: "a", kind: .update, content: Self.note(nil, "\u{0}", "d1"),
                    edits: 3,
                    base: RecordRevision("1-z")))
        #expect(state.entries[2].kind == .unknown("merge") && state.entries[2].parked != nil)
        #expect(state.entries[2].base == RecordRevision("odd") && state.entries[2].base?.number == nil)
        // Rejected changes are parked with the reason; the last is a deletion after a creation.
        let parked = state.entries[3...]
        #expect(parked.map(\.id.text) == ["p1", "p2", "p3", "p4", "p4"])
        #expect(parked.map(\.kind) == [.create, .update, .delete, .create, .delete])
        #expect(
            parked.map(\.parked) == ["rejected: 400", "rejected: 413", "failed 3 times", "rejected: 400", nil])
        #expect(parked.map(\.base?.description) == [nil, "2-x", "2-x", nil, nil])
        #expect(parked.map(\.edits) == [1, 2, 3, 2, 2])
        #expect(parked.map(\.content)[1] == Self.note("p", nil, "d1"))
        #expect(Set(state.entries.map(\.operation)).count == 8)
    }

    @Test func aPresentEntryOfARejectedNoteIsParked() throws {
        let folder = try TemporaryFolder()
        try DatabaseQueue(path: folder.path("s.db")).writeWithoutTransaction {
            try $0.execute(sql: Self.schema + Self.rows + "; UPDATE note SET problem = 'no' WHERE uuid = 'a'")
        }
        let entries = try SyncStore(path: folder.path("s.db"), resource: "notes").load().entries.filter { $0.id == "a" }
        #expect(entries.map(\.sequence) == [4, 7, 8])
        #expect(entries.map(\.parked)[..<2] == ["no", nil])
    }

    /// Version 2 counted server errors in memory only.
    @Test func aStoreOfVersion2GetsACountOfServerErrors() throws {
        let folder = try TemporaryFolder()
        let store = try SyncStoreTests.holder(folder.path("s.db"))
        _ = try store.commit(SyncStoreTests.change)
        store.close()
        try DatabaseQueue(path: folder.path("s.db")).writeWithoutTransaction {
            try $0.execute(
                sql: """
                    ALTER TABLE outbox DROP COLUMN server_errors;
                    ALTER TABLE damaged_outbox DROP COLUMN server_errors;
                    PRAGMA user_version = 2;
                    """)
        }
        var expected = SyncStoreTests.change
        expected.entries[4]??.serverErrors = 0
        // A reader migrates its copy only.
        let reader = try SyncStore(reading: folder.path("s.db"), resource: "notes")
        #expect(
            try reader.load().entries == expected.entries.compactMap(\.value).sorted { $0.sequence < $1.sequence })
        for _ in 0..<2 {
            let store = try SyncStoreTests.holder(folder.path("s.db"))
            let state = try store.load()
            #expect(state.entries == expected.entries.compactMap(\.value).sorted { $0.sequence < $1.sequence })
            #expect(state.records.count == expected.records.count && state.account == expected.account)
            store.close()
        }
        let version = try DatabaseQueue(path: folder.path("s.db")).read {
            try Int.fetchOne($0, sql: "PRAGMA user_version")
        }
        #expect(version == 3)
    }

    @Test func aRunningVersion1KeepsItsFile() throws {
        let folder = try TemporaryFolder()
        let old = try DatabaseQueue(path: folder.path("s.db"))
        try old.writeWithoutTransaction {
            try $0.execute(sql: "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL")
            try $0.execute(sql: Self.schema + Self.rows)
        }
        let error = #expect(throws: SyncStoreError.self) { try SyncStore(path: folder.path("s.db"), resource: "notes") }
        #expect(error?.kind == .inUse)
        #expect(try old.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM note") } == 7)
    }

    /// What a scenario does to replace version 1: in a file and in memory, the same migration with the same result. The
    /// entry of an unknown kind is kept and parked, a rejected one gets its reason back, and version 1 does not open the
    /// new file and changes no byte of it.
    @Test func theStoreOfVersion1ThatAScenarioWritesIsMigrated() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("s.db")
        var change = StoreChange()
        let base = RecordRevision("2-x", number: 2)
        let (old, new) = (Self.note("t", "old", "d0"), Self.note("t", "new", "d1"))
        for id: RecordID in ["a", "b", "c"] {
            let record = LocalRecord(id: id, base: base, baseContent: old, mine: new, edits: 2)
            change.records[id] = .some(record)
        }
        change.entries = [
            3: OutboxEntry(
                operation: "o3", sequence: 3, id: "a", kind: .update, content: new, edits: 2, base: base, attempts: 1,
                mayBeCommitted: true),
            4: OutboxEntry(operation: "o4", sequence: 4, id: "b", kind: .unknown("pin"), content: new, edits: 2),
            5: OutboxEntry(
                operation: "o5", sequence: 5, id: "c", kind: .update, content: new, edits: 2, base: base, attempts: 1,
                parked: "rejected: 422"),
        ]
        change.account = SyncAccount(user: "ada", server: "localhost:8000", history: "00ff")
        let store = try SyncStoreTests.holder(path)
        _ = try store.commit(change)
        let state = try store.load()
        store.close()
        try SyncStore.rewriteAsVersion1(path: path)
        try SyncStore.check(path: path, canBeOpenedBy: 1)
        let reopened = try SyncStoreTests.holder(path)
        let migrated = try reopened.load()
        reopened.close()

        let inMemory = try SyncStore.migrate(version1: state) { "made" }
        #expect(migrated.records == state.records && inMemory.records == state.records)
        #expect(migrated.account == nil && migrated.index == IndexState(isAdopting: true))
        #expect(inMemory.account == nil && inMemory.index == migrated.index)
        #expect(migrated.entries.map(\.kind) == [.update, .unknown("pin"), .update])
        #expect(migrated.entries.map { $0.parked == nil } == [true, false, false])
        #expect(migrated.entries[0] == state.entries[0] && migrated.entries[2].parked == "rejected: 422")
        #expect(inMemory.entries.map(\.operation) == ["o3", "o4", "made"])
        #expect(inMemory.entries.dropLast() == migrated.entries.dropLast())

        let bytes = try Data(contentsOf: URL(filePath: path))
        let refusal = #expect(throws: SyncStoreError.self) {
            try SyncStore.check(path: path, canBeOpenedBy: 1)
        }
        #expect(refusal?.kind == .newer)
        #expect(try Data(contentsOf: URL(filePath: path)) == bytes)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.path(".")).allSatisfy { $0.hasPrefix("s.db") })
    }
}
