import Determinism
import Foundation
import GRDB
import NotesContract
import TestSupport
import Testing

@testable import NotesService

/// The acceptance of database files. A rejected file is not changed.
@Suite struct DatabaseFileTests {
    /// All files of a folder.
    private static func contents(_ folder: TemporaryFolder) throws -> [String: Data] {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path("."))
        return try Dictionary(
            uniqueKeysWithValues: names.map { ($0, try Data(contentsOf: URL(filePath: folder.path($0)))) })
    }

    private static func expectRejection(
        _ path: String, in folder: TemporaryFolder, containing text: String, _ contract: APIContract = .compat
    ) throws {
        let before = try contents(folder)
        let error = #expect(throws: NotesStoreError.self) { () throws -> Void in
            _ = try NotesStore(path: path, contract: contract)
        }
        let description = try #require(error).description
        #expect(description.contains(text), "\(description)")
        #expect(try contents(folder) == before)
    }

    private static let foreign = [
        "CREATE TABLE person (name TEXT); INSERT INTO person VALUES ('x')",
        "CREATE TABLE note (title TEXT); CREATE TABLE operation (x); PRAGMA user_version = 2",
        "PRAGMA user_version = 7", "PRAGMA application_id = 7",
        "CREATE TABLE t (x); PRAGMA journal_mode = WAL",
        "CREATE VIEW v AS SELECT 1",
    ]

    @Test(arguments: foreign) func anotherProgramsDatabaseIsRejectedUnchanged(sql: String) throws {
        let folder = try TemporaryFolder()
        let path = folder.path("other.db")
        try DatabaseQueue(path: path).writeWithoutTransaction { try $0.execute(sql: sql) }
        try Self.expectRejection(path, in: folder, containing: "is not a notes database")
    }

    @Test func aNewerSchemaAndAnotherContractAreRejectedUnchanged() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("notes.db")
        _ = try NotesStore(path: path)
        try Self.expectRejection(path, in: folder, containing: "use contract compat or strict", .orig)
        try DatabaseQueue(path: path).writeWithoutTransaction { try $0.execute(sql: "PRAGMA user_version = 99") }
        try Self.expectRejection(path, in: folder, containing: "newer version (99")
    }

    @Test func otherFilesAreRejectedUnchanged() throws {
        let folder = try TemporaryFolder()
        try Data("not a database, but long enough to be taken for one ".utf8 + Array(repeating: 32, count: 200)).write(
            to: URL(filePath: folder.path("text")))
        try Self.expectRejection(folder.path("text"), in: folder, containing: "is not a notes database")
        try Data("SQLite format 3\0 and no more".utf8).write(to: URL(filePath: folder.path("cut")))
        try Self.expectRejection(folder.path("cut"), in: folder, containing: "is not a notes database")
        let directory = try TemporaryFolder()
        try Self.expectRejection(directory.path("."), in: directory, containing: "is a directory")
        try Self.expectRejection("/dev/null", in: directory, containing: "is not a regular file")
        try Self.expectRejection("", in: directory, containing: "name a file")
        try Self.expectRejection(":memory:", in: directory, containing: "name a file")
    }

    /// The same applies to a file system that is mounted read-only.
    @Test(.enabled(if: geteuid() != 0, "root may write everything")) func aReadOnlyFileIsRejected() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("notes.db")
        _ = try NotesStore(path: path)
        try FileManager.default.setAttributes([.posixPermissions: 0o400], ofItemAtPath: path)
        try Self.expectRejection(path, in: folder, containing: "cannot be written")
    }

    @Test func anEmptyFileAndAnEmptyDatabaseAreAccepted() throws {
        let folder = try TemporaryFolder()
        try Data().write(to: URL(filePath: folder.path("empty")))
        try DatabaseQueue(path: folder.path("bare")).writeWithoutTransaction {
            try $0.execute(sql: "PRAGMA journal_mode = WAL; CREATE TABLE t (x); DROP TABLE t")
        }
        for name in ["empty", "bare"] {
            for _ in 0..<2 {
                let fixture = try Fixture(store: NotesStore(path: folder.path(name)))
                #expect(fixture.send("GET", "/api/notes/").status == 200)
            }
            let id = try DatabaseQueue(path: folder.path(name)).read {
                try Int.fetchOne($0, sql: "PRAGMA application_id")
            }
            #expect(id == DatabaseFile.applicationID)
        }
    }

    /// A file of version 2 without the application ID, with and without a write-ahead log.
    @Test(arguments: [false, true]) func aFileOfVersion2IsMigrated(hasLog: Bool) throws {
        let folder = try TemporaryFolder()
        let path = folder.path("notes.db")
        let old = try DatabaseQueue(path: path)
        try old.writeWithoutTransaction { database in
            if hasLog { try database.execute(sql: "PRAGMA journal_mode = WAL") }
            try database.execute(
                sql: """
                    CREATE TABLE note (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        owner TEXT NOT NULL, uuid TEXT NOT NULL, number INTEGER NOT NULL, suffix TEXT NOT NULL,
                        date TEXT NOT NULL, title BLOB, text BLOB,
                        state INTEGER NOT NULL, pinned INTEGER NOT NULL, sequence INTEGER NOT NULL, modified INTEGER NOT NULL,
                        UNIQUE (owner, uuid)
                    ) STRICT;
                    CREATE UNIQUE INDEX noteBySequence ON note (owner, sequence);
                    CREATE INDEX noteByName ON note (uuid);
                    CREATE INDEX tombstoneByAge ON note (modified) WHERE state = 1;
                    CREATE TABLE operation (
                        owner TEXT NOT NULL, key TEXT NOT NULL, digest INTEGER NOT NULL, status INTEGER NOT NULL,
                        etag TEXT, body TEXT NOT NULL, made INTEGER NOT NULL,
                        PRIMARY KEY (owner, key)
                    ) STRICT;
                    CREATE INDEX operationByAge ON operation (made);
                    CREATE TABLE token (
                        secret TEXT PRIMARY KEY, owner TEXT NOT NULL, kind TEXT NOT NULL, csrf TEXT, expires INTEGER NOT NULL
                    ) STRICT;
                    CREATE INDEX tokenByAge ON token (expires);
                    CREATE TABLE pruned (owner TEXT PRIMARY KEY, sequence INTEGER NOT NULL) STRICT;
                    CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
                    INSERT INTO setting VALUES ('naming', 'uuid'), ('epoch', 'e');
                    INSERT INTO note VALUES
                        (1, 'ada', '\(Fixture.n1)', 3, 'x', '2026-03-01T08:00:00.000Z', x'4d696c6b', NULL, 0, 0, 7, 1),
                        (2, 'ada', '\(Fixture.n2)', 2, 'y', '2026-03-01T08:00:00.000Z', NULL, NULL, 1, 0, 9, 1);
                    INSERT INTO token VALUES ('t', 'ada', 'access', NULL, 9000000000000);
                    PRAGMA user_version = 2;
                    """)
            // The digest of version 2, over the bytes of the request below.
            let bytes = "POST\n/api/notes/\n\n\n\napplication/json".utf8 + [0] + #"{"title":"Bread"}"#.utf8
            try database.execute(
                sql: "INSERT INTO operation VALUES ('ada', 'k', ?, 200, NULL, '{\"kept\":true}', 5)",
                arguments: [Int64(bitPattern: FNV1a.digest(Array(bytes)))])
        }
        for _ in 0..<2 {
            let fixture = try Fixture(store: NotesStore(path: path))
            #expect(fixture.send("GET", "/api/notes/\(Fixture.n1)/").note?.title == "Milk")
            let entries = IndexEntry.index(json: Array(fixture.send("GET", "/api/notes-uuids/").body.utf8))
            #expect(entries?.map(\.isDeleted) == [false, true])
            #expect(fixture.send("GET", "/api/", as: "Bearer t").status == 403)
            let again = fixture.send(
                "POST", "/api/notes/", #"{"title":"Bread"}"#,
                with: ["Idempotency-Key": "k", "Content-Type": "application/json"])
            #expect(again.body == #"{"kept":true}"#)
        }
        withExtendedLifetime(old) {}
    }
}
