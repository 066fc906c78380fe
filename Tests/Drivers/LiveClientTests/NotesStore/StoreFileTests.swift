import Client
import Foundation
import GRDB
import TestSupport
import Testing
import Wire

@testable import LiveClient

/// The acceptance of files. A rejected file is not changed, and no file is created beside it.
@Suite struct StoreFileTests {
    /// All files of a folder.
    private static func contents(_ folder: TemporaryFolder) throws -> [String: Data] {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path("."))
        return try Dictionary(
            uniqueKeysWithValues: names.map { ($0, try Data(contentsOf: URL(filePath: folder.path($0)))) })
    }

    private static func expectRejection(
        _ path: String, in folder: TemporaryFolder, _ kind: SyncStoreError.Kind, containing text: String,
        resource: String = SyncStoreTests.resource, ignoring ignored: Set<String> = []
    ) throws {
        func seen() throws -> [String: Data] { try contents(folder).filter { !ignored.contains($0.key) } }
        let before = try seen()
        let error = #expect(throws: SyncStoreError.self) { () throws -> Void in
            _ = try SyncStore(path: path, resource: resource)
        }
        #expect(error?.kind == kind)
        #expect(error?.description.contains(text) == true, "\(error?.description ?? "")")
        #expect(try seen() == before)
    }

    private static let foreign = [
        "CREATE TABLE person (name TEXT); INSERT INTO person VALUES ('x')",
        "CREATE TABLE note (title TEXT); CREATE TABLE outbox (x); PRAGMA user_version = 1",
        "PRAGMA user_version = 9", "PRAGMA application_id = 0x534C4E54",
        "PRAGMA journal_mode = WAL; CREATE TABLE t (x)",
        "CREATE VIEW v AS SELECT 1",
    ]

    @Test(arguments: foreign) func anotherProgramsDatabaseIsRejectedUnchanged(sql: String) throws {
        let folder = try TemporaryFolder()
        let path = folder.path("other.db")
        try DatabaseQueue(path: path).writeWithoutTransaction { try $0.execute(sql: sql) }
        try Self.expectRejection(path, in: folder, .foreign, containing: "database of another program")
    }

    /// The tables are in a write-ahead log: of a running program, or of one that was killed.
    @Test(arguments: [true, false]) func anotherProgramsLogIsRejectedUnchanged(isRunning: Bool) throws {
        let folder = try TemporaryFolder()
        let path = folder.path("other.db")
        let other = try DatabaseQueue(path: path)
        try other.writeWithoutTransaction {
            try $0.execute(sql: "PRAGMA journal_mode = WAL; CREATE TABLE person (name TEXT)")
        }
        // The index of the log holds locks only, not data.
        if isRunning {
            try Self.expectRejection(path, in: folder, .foreign, containing: "person", ignoring: ["other.db-shm"])
        }
        let copies = try TemporaryFolder()
        for suffix in ["", "-wal"] {
            try FileManager.default.copyItem(atPath: path + suffix, toPath: copies.path("copy.db" + suffix))
        }
        try Self.expectRejection(copies.path("copy.db"), in: copies, .foreign, containing: "person")
    }

    @Test func anotherProgramsInterruptedTransactionIsRejectedUnchanged() throws {
        let folder = try TemporaryFolder()
        let copies = try TemporaryFolder()
        let other = try DatabaseQueue(path: folder.path("other.db"))
        try other.writeWithoutTransaction { database in
            try database.execute(sql: "CREATE TABLE person (name BLOB); PRAGMA cache_size = 1")
            try database.inTransaction {
                // More than the cache holds, so that the file is changed before the transaction ends.
                for _ in 0..<50 { try database.execute(sql: "INSERT INTO person VALUES (randomblob(4000))") }
                for suffix in ["", "-journal"] {
                    try FileManager.default.copyItem(
                        atPath: folder.path("other.db" + suffix), toPath: copies.path("copy.db" + suffix))
                }
                return .rollback
            }
        }
        try Self.expectRejection(copies.path("copy.db"), in: copies, .foreign, containing: "person")
    }

    @Test func aNewerSchemaAndAnotherResourceAreRejectedUnchanged() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("s.db")
        try SyncStore(path: path, resource: "notes").close()
        try Self.expectRejection(
            path, in: folder, .foreign, containing: "records of 'notes', not of 'tasks'", resource: "tasks")
        try DatabaseQueue(path: path).writeWithoutTransaction { try $0.execute(sql: "PRAGMA user_version = 4") }
        try Self.expectRejection(path, in: folder, .newer, containing: "newer version (4; this program supports 3)")
        try DatabaseQueue(path: path).writeWithoutTransaction {
            try $0.execute(sql: "PRAGMA user_version = 3; DROP TABLE store")
        }
        try Self.expectRejection(path, in: folder, .unreadable, containing: "damaged")
    }

    @Test func otherFilesAreRejectedUnchanged() throws {
        let folder = try TemporaryFolder()
        let text = Data(String(repeating: "Dear Bo, ", count: 200).utf8)
        try text.write(to: URL(filePath: folder.path("letter")))
        try Self.expectRejection(folder.path("letter"), in: folder, .unreadable, containing: "not a database")
        try Data("SQLite format 3\0 and no more".utf8).write(to: URL(filePath: folder.path("cut")))
        try Self.expectRejection(folder.path("cut"), in: folder, .unreadable, containing: "not a database")
        try Data().write(to: URL(filePath: folder.path("lost")))
        try text.write(to: URL(filePath: folder.path("lost-wal")))
        try Self.expectRejection(folder.path("lost"), in: folder, .unreadable, containing: "is empty, and")
        let directory = try TemporaryFolder()
        try Self.expectRejection(directory.path("."), in: directory, .unwritable, containing: "is a directory")
        try Self.expectRejection("/dev/null", in: directory, .unwritable, containing: "not a regular file")
        try Self.expectRejection("", in: directory, .unwritable, containing: "does not name a file")
        try Self.expectRejection(":memory:", in: directory, .unwritable, containing: "does not name a file")
        try Self.expectRejection(
            directory.path("none/s.db"), in: directory, .unwritable, containing: "no such directory")
        try FileManager.default.createSymbolicLink(atPath: folder.path("loop"), withDestinationPath: "loop")
        let loop = #expect(throws: SyncStoreError.self) { try SyncStore(path: folder.path("loop"), resource: "notes") }
        #expect(loop?.description.contains("(ELOOP)") == true)
        try FileManager.default.createSymbolicLink(atPath: folder.path("dangling"), withDestinationPath: "gone")
        let dangling = #expect(throws: SyncStoreError.self) {
            try SyncStore(path: folder.path("dangling"), resource: "notes")
        }
        #expect(dangling?.description.contains("symbolic link to a file that does not exist") == true)
    }

    @Test func aSymbolicLinkAndItsFileShareTheLeaseAndTheLog() throws {
        let (folder, links) = (try TemporaryFolder(), try TemporaryFolder())
        let store = try SyncStoreTests.holder(folder.path("s.db"))
        #expect(try store.commit(SyncStoreTests.change) == .committed)
        try FileManager.default.createSymbolicLink(
            atPath: links.path("link"), withDestinationPath: folder.path("s.db"))
        let linked = try SyncStore(path: links.path("link"), resource: "notes")
        SyncStoreTests.expect(try linked.load(), equals: SyncStoreTests.change)
        #expect(throws: SyncStoreError.self) { try linked.acquireLease() }
        #expect(try FileManager.default.contentsOfDirectory(atPath: links.path(".")) == ["link"])
    }

    @Test(.enabled(if: geteuid() != 0, "root may write everything"), arguments: [0o400, 0o200])
    func aFileWithoutPermissionIsRejected(mode: Int) throws {
        let folder = try TemporaryFolder()
        let path = folder.path("s.db")
        try SyncStore(path: path, resource: "notes").close()
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        let error = #expect(throws: SyncStoreError.self) { try SyncStore(path: path, resource: "notes") }
        #expect(error?.kind == .unwritable && error?.description.contains("(EACCES)") == true)
    }

    @Test(.enabled(if: geteuid() != 0, "root may write everything")) func aReadOnlyDirectoryIsRejected() throws {
        let folder = try TemporaryFolder()
        try SyncStore(path: folder.path("s.db"), resource: "notes").close()
        try FileManager.default.setAttributes([.posixPermissions: 0o500], ofItemAtPath: folder.url.path)
        for name in ["s.db", "new.db"] {
            try Self.expectRejection(folder.path(name), in: folder, .unwritable, containing: "(EACCES)")
        }
    }

    // MARK: Reading

    /// Reads a store, and expects that no file of its folder changes. The index of the log holds locks, not data.
    private static func expectReading(_ path: String, in folder: TemporaryFolder, ignoring ignored: String = "") throws
    {
        let before = try contents(folder).filter { $0.key != ignored }
        let store = try SyncStore(reading: path, resource: "notes")
        SyncStoreTests.expect(try store.load(), equals: SyncStoreTests.change)
        #expect(try contents(folder).filter { $0.key != ignored } == before)
        #expect(throws: SyncStoreError.self) { try store.change(of: "a") { _ in SyncStoreTests.change } }
        #expect(try contents(folder).filter { $0.key != ignored } == before)
    }

    @Test func readingChangesNoFile() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("s.db")
        let store = try SyncStoreTests.holder(path)
        #expect(try store.commit(SyncStoreTests.change) == .committed)
        // Beside a running process, whose log has the change.
        try Self.expectReading(path, in: folder, ignoring: "s.db-shm")
        // After a process that was killed, and a loss of the index.
        let copies = try TemporaryFolder()
        for name in ["s.db", "s.db-wal"] {
            try FileManager.default.copyItem(atPath: folder.path(name), toPath: copies.path(name))
        }
        try Self.expectReading(copies.path("s.db"), in: copies)
        store.close()
        #expect(try Self.contents(folder).keys.sorted() == ["s.db"])
        try Self.expectReading(path, in: folder)
    }

    @Test(.enabled(if: geteuid() != 0, "root may write everything")) func aStoreWithoutWritePermissionIsRead() throws {
        let folder = try TemporaryFolder()
        let store = try SyncStoreTests.holder(folder.path("s.db"))
        #expect(try store.commit(SyncStoreTests.change) == .committed)
        store.close()
        try FileManager.default.setAttributes([.posixPermissions: 0o400], ofItemAtPath: folder.path("s.db"))
        try FileManager.default.setAttributes([.posixPermissions: 0o500], ofItemAtPath: folder.url.path)
        try Self.expectReading(folder.path("s.db"), in: folder)
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder.url.path)
    }

    @Test func readingWaitsForNoWriteLock() throws {
        let folder = try TemporaryFolder()
        let store = try SyncStoreTests.holder(folder.path("s.db"))
        #expect(try store.commit(SyncStoreTests.change) == .committed)
        let writer = try DatabaseQueue(path: folder.path("s.db"))
        try writer.writeWithoutTransaction { database in
            try database.execute(sql: "BEGIN IMMEDIATE; DELETE FROM record")
            // A wait for the lock would end after 5 s with an error.
            let reader = try SyncStore(reading: folder.path("s.db"), resource: "notes")
            SyncStoreTests.expect(try reader.load(), equals: SyncStoreTests.change)
            try database.execute(sql: "ROLLBACK")
        }
    }

    @Test func aReaderSeesThatTheFileHasChanged() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("s.db")
        let store = try SyncStoreTests.holder(path)
        let reader = try SyncStore(reading: path, resource: "notes")
        #expect(try !reader.hasForeignChanges && reader.load().records.isEmpty)
        #expect(try store.commit(SyncStoreTests.change) == .committed)
        #expect(try reader.hasForeignChanges)
        let next = try SyncStore(reading: path, resource: "notes")
        #expect(try !next.hasForeignChanges)
        SyncStoreTests.expect(try next.load(), equals: SyncStoreTests.change)
    }

    @Test func readingNeedsAStore() throws {
        let folder = try TemporaryFolder()
        try Data().write(to: URL(filePath: folder.path("empty")))
        for name in ["none", "none/s.db", "empty"] {
            let error = #expect(throws: SyncStoreError.self) {
                try SyncStore(reading: folder.path(name), resource: "notes")
            }
            #expect(error?.kind == .missing && error?.description.contains("no store at ") == true)
        }
        #expect(try Self.contents(folder).keys.sorted() == ["empty"])
    }

    @Test func anEmptyFileAndAnEmptyDatabaseAreAccepted() throws {
        let folder = try TemporaryFolder()
        try Data().write(to: URL(filePath: folder.path("empty")))
        try DatabaseQueue(path: folder.path("bare")).writeWithoutTransaction {
            try $0.execute(sql: "PRAGMA journal_mode = WAL; CREATE TABLE t (x); DROP TABLE t")
        }
        for name in ["empty", "bare"] {
            let store = try SyncStoreTests.holder(folder.path(name))
            #expect(try store.commit(SyncStoreTests.change) == .committed)
            store.close()
            // The header of the file itself identifies it: application_id at 68, user_version at 60.
            let header = try Data(contentsOf: URL(filePath: folder.path(name)))
            #expect(Array(header[68..<72]) == [0x53, 0x4C, 0x59, 0x53] && Array(header[60..<64]) == [0, 0, 0, 3])
            SyncStoreTests.expect(
                try SyncStore(path: folder.path(name), resource: "notes").load(), equals: SyncStoreTests.change)
        }
    }

    @Test func simultaneousCreationsMakeOneStore() async throws {
        for _ in 0..<5 {
            let folder = try TemporaryFolder()
            let path = folder.path("s.db")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<4 {
                    group.addTask {
                        let store = try SyncStore(path: path, resource: "notes")
                        try store.change(of: nil) { _ in
                            var change = StoreChange()
                            let id = RecordID("record-\(number)")
                            change.records[id] = LocalRecord(id: id, mine: SyncStoreTests.content("x"))
                            return change
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(try SyncStore(path: path, resource: "notes").load().records.count == 4)
        }
    }

    /// Another process creates the store, and commits while the inspection reads its files.
    @Test func anInspectionIsRepeatedIfTheFilesChange() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("s.db")
        let other = try DatabaseQueue(path: path)
        try other.writeWithoutTransaction { database in
            try database.execute(sql: "PRAGMA cache_size = 1; BEGIN")
            try SyncStore.createSchema(database, resource: "notes")
            var copied: [String] = []
            let content = try StoreFile.inspect(path, name: path, resource: "notes") { file in
                copied.append(String(file.dropFirst(path.count)))
                if copied.last == "-journal" { try? database.execute(sql: "COMMIT") }
            }
            #expect(content == .current && copied == ["", "-journal"])
            #expect(!database.isInsideTransaction)
        }
    }

    @Test func aMovedFileRejectsCommits() throws {
        let folder = try TemporaryFolder()
        let store = try SyncStoreTests.holder(folder.path("s.db"))
        try FileManager.default.moveItem(atPath: folder.path("s.db"), toPath: folder.path("moved.db"))
        let error = #expect(throws: SyncStoreError.self) { try store.commit(SyncStoreTests.change) }
        #expect(
            error?.kind == .unwritable && error?.description.contains("moved or deleted") == true,
            "\(error?.description ?? "")")
    }
}
