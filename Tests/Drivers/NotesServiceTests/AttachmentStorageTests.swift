import Foundation
import GRDB
import NotesContract
import TestSupport
import Testing

@testable import NotesService

/// Attachments in the database: removal, expiry, limits and migration.
@Suite struct AttachmentStorageTests {
    private static let note = "/api/notes/\(Fixture.n1)/"

    // MARK: Removal

    /// The numbers of rows of attachments and pieces.
    private static func rows(_ fixture: Fixture) throws -> [Int] {
        try fixture.store.database().unsafeRead { database in
            try ["attachment", "attachmentPiece"].map {
                try Int.fetchOne(database, sql: "SELECT COUNT(*) FROM \($0)") ?? -1
            }
        }
    }

    @Test func aDeletedAttachmentLeavesNoRows() throws {
        let fixture = try Fixture.withNote()
        let bytes = Fixture.sample(200_000)
        fixture.put(bytes, of: bytes)
        #expect(try Self.rows(fixture) == [1, 4])
        #expect(fixture.transfer("DELETE").status == 204)
        #expect(fixture.transfer("DELETE").status == 404)
        #expect(fixture.transfer("GET").status == 404)
        #expect(try Self.rows(fixture) == [0, 0])
        // The name can be used again.
        #expect(fixture.put([7], of: [7]).status == 201)
        #expect(fixture.transfer("GET").body == [7])
    }

    @Test(arguments: [APIContract.compat, .strict]) func aDeletedNoteLosesItsAttachments(contract: APIContract) throws {
        let fixture = try Fixture.withNote(contract)
        fixture.create(Fixture.n2)
        let other = Fixture.path.replacing(Fixture.n1, with: Fixture.n2)
        fixture.put(other, [9], of: [9])
        fixture.put(Array(Fixture.sample(100)[..<50]), of: Fixture.sample(100))
        fixture.put(Fixture.list + "b", [1], of: [1])
        let revision = fixture.send("GET", Self.note).revision
        #expect(fixture.send("DELETE", "\(Self.note)?revision=\(revision)").status == 204)
        #expect(try Self.rows(fixture) == [1, 1])
        #expect(fixture.transfer("GET", other).body == [9])
    }

    /// A transaction removes at most 256 pieces.
    @Test func aLargeAttachmentIsRemovedInSteps() throws {
        let fixture = try Fixture.withNote()
        let bytes = [UInt8](repeating: 1, count: 17 << 20)
        let piece = Array(bytes[..<(1 << 20)])
        fixture.put(piece, of: bytes)
        for index in 1..<17 { fixture.patch(piece, at: index << 20, complete: index == 16) }
        #expect(try Self.rows(fixture) == [1, 272])
        #expect(fixture.transfer("DELETE").status == 204)
        #expect(try Self.rows(fixture) == [1, 16])
        #expect(fixture.transfer("GET", Fixture.list).text == "[]")
        #expect(fixture.put(Fixture.list + "b", [], of: []).status == 201)
        #expect(try Self.rows(fixture) == [1, 0])
    }

    @Test func incompleteUploadsExpireWithTheRetention() throws {
        var limits = NotesService.Limits()
        limits.retentionSeconds = 1000
        let fixture = try Fixture.withNote(limits: limits)
        let bytes = Fixture.sample(100)
        fixture.put(Fixture.list + "complete", bytes, of: bytes)
        fixture.put(Array(bytes[..<50]), of: bytes)
        fixture.clock.advance(seconds: 900)
        #expect(fixture.patch(Array(bytes[50..<60]), at: 50, complete: false).status == 204)
        fixture.clock.advance(seconds: 900)
        fixture.send("PUT", Self.note + "pin/")
        #expect(fixture.transfer("HEAD").field("Upload-Offset") == "60")
        fixture.clock.advance(seconds: 200)
        fixture.send("PUT", Self.note + "pin/")
        #expect(fixture.transfer("HEAD").status == 404)
        #expect(fixture.patch(Array(bytes[60...]), at: 60, complete: true).status == 404)
        #expect(fixture.transfer("GET", Fixture.list + "complete").body == bytes)
        #expect(try Self.rows(fixture) == [1, 1])
    }

    // MARK: Limits

    @Test func limitsOfSizeNumberAndQuota() throws {
        let fixture = try Fixture.withNote()
        func create(_ name: String, _ length: Int, note: String = Fixture.n1) -> Fixture.BytesResponse {
            fixture.transfer(
                "PUT", "/api/notes/\(note)/attachments/\(name)",
                with: [
                    ("Upload-Complete", "?0"), ("Upload-Length", String(length)),
                    ("Repr-Digest", AttachmentDigest(of: []).field),
                ])
        }
        let large = create("large", (64 << 20) + 1)
        #expect(large.status == 413)
        #expect(large.field("Upload-Limit")?.hasPrefix("max-size=67108864") == true)
        #expect(large.text.contains("67108864 bytes"))
        // The declared lengths count: sixteen times 64 MiB is 1 GiB.
        for index in 0..<16 { #expect(create("\(index)", 64 << 20).status == 201) }
        let beyond = create("beyond", 1)
        #expect(beyond.status == 507)
        #expect(beyond.text.contains("1073741824 bytes"))
        // A quota says nothing about the disk.
        #expect(fixture.send("GET", "/health", as: nil).status == 200)
        for index in 0..<84 { #expect(create("empty\(index)", 0).status == 201) }
        let many = create("one more", 0)
        #expect(many.status == 507)
        #expect(many.text.contains("100 attachments"))
        fixture.create(Fixture.n2)
        #expect(create("a", 0, note: Fixture.n2).status == 201)
        #expect(create("b", 1, note: Fixture.n2).status == 507)
        #expect(fixture.transfer("DELETE", Fixture.list + "0").status == 204)
        #expect(create("b", 1, note: Fixture.n2).status == 201)
        #expect(create("c", 64 << 20, note: Fixture.n2).status == 507)
        #expect(create("d", (64 << 20) - 1, note: Fixture.n2).status == 201)
    }

    // MARK: The file

    @Test func anUploadContinuesAfterARestart() throws {
        let folder = try TemporaryFolder()
        let bytes = Fixture.sample(100_000)
        do {
            let fixture = try Fixture(store: NotesStore(path: folder.path("notes.db")))
            fixture.create()
            fixture.put(Array(bytes[..<77_777]), of: bytes)
        }
        let fixture = try Fixture(store: NotesStore(path: folder.path("notes.db")))
        #expect(fixture.transfer("HEAD").field("Upload-Offset") == "77777")
        #expect(fixture.patch(Array(bytes[77_777...]), at: 77_777, complete: true).status == 204)
        #expect(fixture.transfer("GET").body == bytes)
    }

    @Test func aFileOfVersion3IsMigrated() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("notes.db")
        let token = "t"
        try DatabaseQueue(path: path).writeWithoutTransaction { database in
            try database.execute(
                sql: """
                    CREATE TABLE note (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        owner TEXT NOT NULL, uuid TEXT NOT NULL, number INTEGER NOT NULL, suffix TEXT NOT NULL,
                        date TEXT NOT NULL, title BLOB, text BLOB,
                        state INTEGER NOT NULL, pinned INTEGER NOT NULL, sequence INTEGER NOT NULL, modified INTEGER NOT NULL,
                        deleted INTEGER, UNIQUE (owner, uuid)
                    ) STRICT;
                    CREATE UNIQUE INDEX noteBySequence ON note (owner, sequence);
                    CREATE INDEX noteByName ON note (uuid);
                    CREATE INDEX tombstoneByAge ON note (deleted) WHERE state = 1;
                    CREATE TABLE operation (
                        owner TEXT NOT NULL, key TEXT NOT NULL, digest INTEGER NOT NULL, status INTEGER NOT NULL,
                        etag TEXT, body TEXT NOT NULL, made INTEGER NOT NULL,
                        PRIMARY KEY (owner, key)
                    ) STRICT;
                    CREATE INDEX operationByAge ON operation (made);
                    CREATE TABLE token (
                        id TEXT PRIMARY KEY, owner TEXT NOT NULL, kind TEXT NOT NULL, csrf TEXT, expires INTEGER NOT NULL,
                        proof TEXT NOT NULL
                    ) STRICT;
                    CREATE INDEX tokenByAge ON token (expires);
                    CREATE TABLE pruned (owner TEXT PRIMARY KEY, sequence INTEGER NOT NULL) STRICT;
                    CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
                    INSERT INTO setting VALUES ('naming', 'uuid'), ('epoch', 'e');
                    INSERT INTO note VALUES
                        (5, 'ada', '\(Fixture.n1)', 3, 'x', '2026-03-01T08:00:00.000Z', x'4d696c6b', NULL, 0, 0, 7, 1, NULL),
                        (6, 'ada', '\(Fixture.n2)', 2, 'y', '2026-03-01T08:00:00.000Z', NULL, NULL, 1, 0, 9, 1, 4000);
                    INSERT INTO operation VALUES ('ada', 'k', 1, 200, NULL, '{}', 5000);
                    PRAGMA application_id = \(DatabaseFile.applicationID);
                    PRAGMA user_version = 3;
                    """)
            try database.execute(
                sql: "INSERT INTO token VALUES (?, 'ada', 'access', NULL, 9000000000000, ?)",
                arguments: [Secrets.tokenID(token), Secrets.proof(of: token, password: "secret")])
        }
        for round in 0..<2 {
            let fixture = try Fixture(store: NotesStore(path: path))
            #expect(fixture.send("GET", Self.note).note?.title == "Milk")
            let bytes = [UInt8(round)]
            #expect(fixture.put(Fixture.list + "\(round)", bytes, of: bytes).status == 201)
            #expect(fixture.transfer("GET", Fixture.list + "0").body == [0])
            // Tokens, tombstones and their times are kept, unlike those of versions 1 and 2.
            #expect(fixture.send("GET", "/api/", as: "Bearer \(token)").status == 200)
            let times = try fixture.store.database().unsafeRead {
                try Int.fetchAll($0, sql: "SELECT deleted FROM note WHERE state = 1 UNION SELECT made FROM operation")
            }
            #expect(times == [4000, 5000])
        }
        let version = try DatabaseQueue(path: path).read { try Int.fetchOne($0, sql: "PRAGMA user_version") }
        #expect(version == 4)
    }
}
