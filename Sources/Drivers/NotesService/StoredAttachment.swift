internal import Foundation
internal import GRDB
internal import NotesContract

/// An attachment, complete or not, as stored in the database.
///
/// The bytes are in pieces of ``pieceBytes``; only the last piece is shorter. The state of the digest's computation is
/// stored with the attachment, so that the end of an upload does not read the pieces again.
struct StoredAttachment {
    let id: Int64
    let name: AttachmentName
    /// The size of the complete attachment.
    let length: Int
    let digest: AttachmentDigest
    /// The number of bytes stored.
    private(set) var received: Int
    /// The digest of the bytes stored; `nil` if the attachment is complete.
    private(set) var hasher: SHA256Hasher?

    var isComplete: Bool { hasher == nil }

    var entry: AttachmentEntry {
        AttachmentEntry(name: name, size: length, digest: digest, isComplete: isComplete)
    }

    /// The size of a piece in bytes.
    static let pieceBytes = 64 << 10
    /// The maximum number of pieces that one transaction removes, 16 MiB. An attachment is removed in several steps,
    /// because SQLite reads all pages of the pieces.
    static let piecesRemovedMax = 256

    // MARK: Queries

    private static let columns = "id, name, length, digest, received, hasher"

    private init(_ row: SQLiteRow) throws {
        func bytes(_ column: CInt) -> [UInt8] { row.bytes(column).map { Array($0) } ?? [] }
        guard let name = AttachmentName(row.text(1) ?? ""), let digest = AttachmentDigest(bytes: bytes(3)) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "malformed attachment")
        }
        id = Int64(row.integer(0))
        self.name = name
        length = row.integer(2)
        self.digest = digest
        received = row.integer(4)
        if row.bytes(5) != nil {
            guard let hasher = SHA256Hasher(state: bytes(5)) else {
                throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "malformed digest of an attachment")
            }
            self.hasher = hasher
        }
    }

    /// Returns the attachments of a note in the order of their names' bytes.
    static func all(_ transaction: StoreTransaction, note: Int64) throws -> [StoredAttachment] {
        let database = try transaction.database(for: "attachments")
        var all: [StoredAttachment] = []
        try database.cachedStatement(sql: "SELECT \(columns) FROM attachment WHERE note = ? ORDER BY name")
            .forEachRow([note]) {
                all.append(try StoredAttachment($0))
                return true
            }
        return all
    }

    static func find(_ transaction: StoreTransaction, note: Int64, name: AttachmentName) throws -> StoredAttachment? {
        let database = try transaction.database(for: "attachments")
        return try database.cachedStatement(sql: "SELECT \(columns) FROM attachment WHERE note = ? AND name = ?")
            .firstRow([note, Data(name.description.utf8)], StoredAttachment.init)
    }

    static func count(_ transaction: StoreTransaction, note: Int64) throws -> Int {
        let database = try transaction.database(for: "attachments")
        return try Int.fetchOne(
            database.cachedStatement(sql: "SELECT COUNT(*) FROM attachment WHERE note = ?"), arguments: [note]) ?? 0
    }

    /// Returns the bytes of all attachments of a user; incomplete ones count with their full length.
    static func bytes(_ transaction: StoreTransaction, owner: String) throws -> Int {
        let database = try transaction.database(for: "attachments")
        return try Int.fetchOne(
            database.cachedStatement(
                sql: "SELECT SUM(length) FROM attachment WHERE owner = ? AND note IS NOT NULL"),
            arguments: [owner]) ?? 0
    }

    /// Returns a piece; `nil` if there is none.
    static func piece(_ transaction: StoreTransaction, _ id: Int64, _ position: Int) throws -> [UInt8]? {
        let database = try transaction.database(for: "attachments")
        return try database.cachedStatement(
            sql: "SELECT bytes FROM attachmentPiece WHERE attachment = ? AND position = ?"
        )
        .firstRow([id, position]) { $0.bytes(0).map { Array($0) } ?? [] }
    }

    // MARK: Writes

    /// Creates an attachment without bytes.
    ///
    /// - Parameter uptime: The ``DatabaseUptime`` from which an incomplete upload is kept.
    static func create(
        _ transaction: StoreTransaction, note: Int64, owner: String, name: AttachmentName, length: Int,
        digest: AttachmentDigest, uptime: Int
    ) throws -> StoredAttachment? {
        let database = try transaction.database(for: "attachments")
        try database.cachedStatement(
            sql: """
                INSERT INTO attachment (note, owner, name, length, digest, received, hasher, touched)
                    VALUES (?, ?, ?, ?, ?, 0, ?, ?)
                """
        ).execute(arguments: [
            note, owner, Data(name.description.utf8), length, Data(digest.bytes), Data(SHA256Hasher().state), uptime,
        ])
        return try find(transaction, note: note, name: name)
    }

    /// Appends bytes.
    mutating func append(_ bytes: [UInt8], _ transaction: StoreTransaction, uptime: Int) throws {
        let database = try transaction.database(for: "attachments")
        hasher?.update(bytes)
        var rest = bytes[...]
        while !rest.isEmpty {
            let (position, used) = received.quotientAndRemainder(dividingBy: Self.pieceBytes)
            let old = used == 0 ? [] : try Self.piece(transaction, id, position) ?? []
            let some = rest.prefix(Self.pieceBytes - used)
            try database.cachedStatement(
                sql: """
                    INSERT INTO attachmentPiece VALUES (?, ?, ?)
                        ON CONFLICT (attachment, position) DO UPDATE SET bytes = excluded.bytes
                    """
            ).execute(arguments: [id, position, Data(old + some)])
            received += some.count
            rest = rest.dropFirst(some.count)
        }
        try save(transaction, uptime: uptime)
    }

    /// Marks the attachment as complete.
    mutating func complete(_ transaction: StoreTransaction, uptime: Int) throws {
        hasher = nil
        try save(transaction, uptime: uptime)
    }

    private func save(_ transaction: StoreTransaction, uptime: Int) throws {
        let database = try transaction.database(for: "attachments")
        try database.cachedStatement(
            sql: "UPDATE attachment SET received = ?, hasher = ?, touched = ? WHERE id = ?"
        ).execute(arguments: [received, hasher.map { Data($0.state) }, uptime, id])
    }

    // MARK: Removal

    /// Discards the attachment.
    func discard(_ transaction: StoreTransaction) throws {
        let database = try transaction.database(for: "attachments")
        try database.execute(sql: "UPDATE attachment SET note = NULL WHERE id = ?", arguments: [id])
    }

    /// Discards all attachments of a note.
    static func discardAll(_ transaction: StoreTransaction, owner: String, uuid: String) throws {
        guard case .sqlite(let database) = transaction else { return }
        try database.cachedStatement(
            sql: """
                UPDATE attachment SET note = NULL WHERE note = (SELECT id FROM note WHERE owner = ? AND uuid = ?)
                """
        ).execute(arguments: [owner, uuid])
    }

    /// Discards incomplete uploads whose last bytes arrived before a time.
    ///
    /// - Parameter time: A ``DatabaseUptime``.
    static func discardIncomplete(_ transaction: StoreTransaction, before time: Int) throws {
        guard case .sqlite(let database) = transaction else { return }
        try database.cachedStatement(
            sql: "UPDATE attachment SET note = NULL WHERE hasher IS NOT NULL AND note IS NOT NULL AND touched < ?"
        ).execute(arguments: [time])
    }

    /// Removes at most ``piecesRemovedMax`` pieces of discarded attachments.
    static func removeDiscarded(_ transaction: StoreTransaction) throws {
        guard case .sqlite(let database) = transaction else { return }
        var left = piecesRemovedMax
        while left > 0 {
            let next = try Int64.fetchOne(
                database.cachedStatement(sql: "SELECT id FROM attachment WHERE note IS NULL LIMIT 1"))
            guard let id = next else { return }
            try database.cachedStatement(
                sql: """
                    DELETE FROM attachmentPiece WHERE attachment = ?1 AND position IN
                        (SELECT position FROM attachmentPiece WHERE attachment = ?1 LIMIT ?2)
                    """
            ).execute(arguments: [id, left])
            left -= database.changesCount
            guard left > 0 else { return }
            try database.execute(sql: "DELETE FROM attachment WHERE id = ?", arguments: [id])
            left -= 1
        }
    }
}
