public import Client
internal import Foundation
internal import GRDB
public import NotesContract
internal import Wire

/// Attachments: rows in the file, bytes in the folder `FILE-attachments` beside it.
///
/// The bytes of an upload are a file named after their SHA-256 digest, written before the row. Those of an incomplete
/// download are a file named after the transfer; the digest names the complete one. A file without a row is removed
/// by the next ``removeUnusedAttachmentFiles()``.
extension SyncStore {
    /// A copy of a file, which ``attach(_:to:name:)`` adds to a record.
    public struct StagedFile: Sendable {
        /// The size in bytes.
        public let size: Int
        /// The digest.
        public let digest: AttachmentDigest
        let path: String
    }

    private static let copyBytes = 256 << 10
    private static let stagedPrefix = "new-"
    /// The age in seconds from which a staged copy counts as left over by a process that has ended.
    private static let stagedSecondsMax = 3600.0

    // MARK: Reading

    /// Returns all attachments in the order of their numbers.
    public func attachments() throws(SyncStoreError) -> [LocalAttachment] {
        try transaction(.deferred) { database in
            var found: [LocalAttachment] = []
            let rows = try Row.fetchCursor(
                database.cachedStatement(sql: "SELECT \(LocalAttachment.columns) FROM attachment ORDER BY number"))
            // A row that cannot be read is left as it is.
            while let row = try rows.next() { if let attachment = LocalAttachment(row) { found.append(attachment) } }
            return found
        }
    }

    // MARK: Changes of any process

    /// Copies a file into the folder, and returns the copy. Blocking.
    ///
    /// - Throws: A ``SyncStoreError`` if the file cannot be read or is too large, or the copy cannot be written.
    public func stage(file: String) throws(SyncStoreError) -> StagedFile {
        let source = try AttachmentFile(file, O_RDONLY, "read")
        guard let size = source.size else {
            throw SyncStoreError(.unwritable, "cannot attach \(file): it is not a regular file")
        }
        try Self.checkSize(size, file)
        let path = try folder(isCreated: true) + "/" + Self.stagedPrefix + UUID().uuidString
        do throws(SyncStoreError) {
            return try Self.copy(source, file, to: path)
        } catch {
            unlink(path)
            throw error
        }
    }

    private static func copy(
        _ source: AttachmentFile, _ file: String, to path: String
    ) throws(SyncStoreError) -> StagedFile {
        let target = try AttachmentFile(path, O_WRONLY | O_CREAT | O_EXCL, "create")
        var hasher = SHA256Hasher()
        var size = 0
        while true {
            let bytes = try source.read(at: size, count: copyBytes)
            if bytes.isEmpty { break }
            try target.write(bytes, at: size)
            hasher.update(bytes)
            size += bytes.count
            // The file may grow while it is read.
            try checkSize(size, file)
        }
        try target.synchronize()
        return StagedFile(size: size, digest: AttachmentDigest(of: hasher), path: path)
    }

    private static func checkSize(_ size: Int, _ file: String) throws(SyncStoreError) {
        guard size <= AttachmentHTTP.bytesMax else {
            throw SyncStoreError(
                .unwritable,
                "cannot attach \(file): it has \(size) bytes, and the limit of the server is \(AttachmentHTTP.bytesMax) "
                    + "bytes (\(AttachmentHTTP.bytesMax >> 20) MiB)")
        }
    }

    /// Adds a staged file to a record. It is durable when the call returns. The same content under the same name is
    /// sent again if the server rejected it; otherwise nothing happens.
    public func attach(
        _ file: StagedFile, to record: RecordID, name: AttachmentName
    ) throws(SyncStoreError) -> LocalAttachment {
        defer { unlink(file.path) }
        let folder = try folder(isCreated: true)
        let path = folder + "/" + Self.fileName(file.digest)
        return try transaction(.immediate) { database in
            try requireRecord(record, database)
            if let old = try find(record, name, .upload, database) {
                guard old.digest == file.digest else {
                    throw SyncStoreError(
                        .unwritable,
                        "cannot attach '\(name.description.prefix(60))': the note has another attachment with this name; "
                            + "use another name")
                }
                // Only a parked upload is started again. One that is done needs no copy, so its copy may be gone.
                guard case .parked = old.state else { return old }
            }
            try AttachmentFile.move(file.path, to: path, in: folder)
            return try insert(
                record, name, .upload, (file.size, file.digest), database)
        }
    }

    /// Requests the download of an attachment; one that has stopped continues, one that is done is kept.
    public func requestDownload(of name: AttachmentName, record: RecordID) throws(SyncStoreError) -> LocalAttachment {
        _ = try folder(isCreated: true)
        return try transaction(.immediate) { database in
            try requireRecord(record, database)
            if let old = try find(record, name, .download, database) {
                guard case .parked = old.state else { return old }
            }
            return try insert(record, name, .download, nil, database)
        }
    }

    /// Requests that the server deletes an attachment, which is removed from the store.
    public func requestDeletion(of name: AttachmentName, record: RecordID) throws(SyncStoreError) {
        try transaction(.immediate) { database in
            try requireRecord(record, database)
            try database.execute(
                sql: "DELETE FROM attachment WHERE record = ? AND name = ?",
                arguments: [record.data, Data(name.key.text.utf8)])
            _ = try insert(record, name, .deletion, nil, database)
        }
        try removeUnusedAttachmentFiles()
    }

    /// Requests the stopped transfers of a record again, and returns whether there are any.
    public func retryTransfers(of record: RecordID) throws(SyncStoreError) -> Bool {
        let stopped = try attachments().filter { attachment in
            guard case .parked = attachment.state else { return false }
            return attachment.record == record
        }
        if stopped.isEmpty { return false }
        try transaction(.immediate) { database in
            try requireRecord(record, database)
            for attachment in stopped {
                let isUpload = attachment.direction == .upload
                let content = isUpload ? attachment.size.flatMap { size in attachment.digest.map { (size, $0) } } : nil
                _ = try insert(record, attachment.name, attachment.direction, content, database)
            }
        }
        return true
    }

    /// Removes an attachment from the store; nothing happens if it is gone. The server keeps what it has.
    public func remove(_ attachment: LocalAttachment) throws(SyncStoreError) {
        try transaction(.immediate) { database in
            try database.execute(sql: "DELETE FROM attachment WHERE number = ?", arguments: [attachment.id])
            try logForeign(attachment.record, database)
        }
        try removeUnusedAttachmentFiles()
    }

    private func find(
        _ record: RecordID, _ name: AttachmentName, _ direction: LocalAttachment.Direction, _ database: Database
    ) throws -> LocalAttachment? {
        try Row.fetchOne(
            database,
            sql: "SELECT \(LocalAttachment.columns) FROM attachment WHERE record = ? AND name = ? AND direction = ?",
            arguments: [record.data, Data(name.key.text.utf8), direction.rawValue]
        ).flatMap(LocalAttachment.init)
    }

    private func requireRecord(_ id: RecordID, _ database: Database) throws {
        let exists = try Bool.fetchOne(
            database, sql: "SELECT deleted = 0 FROM record WHERE id = ?", arguments: [id.data])
        guard exists == true else {
            throw SyncStoreError(.unwritable, "cannot add the attachment: the note does not exist in \(name)")
        }
    }

    /// Inserts a row in place of one that has stopped.
    private func insert(
        _ record: RecordID, _ name: AttachmentName, _ direction: LocalAttachment.Direction,
        _ content: (size: Int, digest: AttachmentDigest)?, _ database: Database
    ) throws -> LocalAttachment {
        let key: [any DatabaseValueConvertible] = [record.data, Data(name.key.text.utf8), direction.rawValue]
        try database.execute(
            sql: "DELETE FROM attachment WHERE record = ? AND name = ? AND direction = ?",
            arguments: StatementArguments(key))
        try database.execute(
            sql: """
                INSERT INTO attachment (record, name, direction, size, digest, state) VALUES (?, ?, ?, ?, ?, 'waiting')
                """,
            arguments: StatementArguments(key)
                + [content?.size, content.map { Data($0.digest.bytes) }])
        let attachment = LocalAttachment(
            id: Int(database.lastInsertedRowID), record: record, name: name, direction: direction,
            size: content?.size, digest: content?.digest)
        try logForeign(record, database)
        return attachment
    }

    /// Tells the process that synchronises of a change of the record's attachments.
    private func logForeign(_ record: RecordID, _ database: Database) throws {
        if holdsLease { return }
        try database.execute(sql: "INSERT OR IGNORE INTO foreign_change VALUES (?)", arguments: [record.data])
    }

    // MARK: Changes of the lease holder

    /// Commits states in one transaction. An attachment that is gone stays so.
    public func commit(_ attachments: [LocalAttachment]) throws(SyncStoreError) {
        try requireLease("commit to")
        let folder = try folder(isCreated: true)
        try transaction(.immediate) { database in
            for var attachment in attachments {
                if attachment.direction == .deletion, attachment.state == .done {
                    try database.execute(sql: "DELETE FROM attachment WHERE number = ?", arguments: [attachment.id])
                    continue
                }
                if attachment.direction == .download, attachment.state == .done {
                    do throws(SyncStoreError) { try completeDownload(attachment, folder) } catch {
                        attachment.state = .parked(error.description)
                    }
                }
                var reason: Data?
                if case .parked(let text) = attachment.state { reason = Data(text.utf8) }
                try database.execute(
                    sql: """
                        UPDATE attachment SET size = ?, digest = ?, entity_tag = ?, state = ?, reason = ?
                        WHERE number = ?
                        """,
                    arguments: [
                        attachment.size, attachment.digest.map { Data($0.bytes) },
                        attachment.entityTag.map { Data($0.utf8) }, attachment.state.name, reason, attachment.id,
                    ])
            }
        }
        if attachments.contains(where: { $0.state == .done }) { try removeUnusedAttachmentFiles() }
    }

    private func completeDownload(_ attachment: LocalAttachment, _ folder: String) throws(SyncStoreError) {
        guard let digest = attachment.digest, let size = attachment.size else { return }
        let part = folder + "/" + Self.partName(attachment)
        let file = try AttachmentFile(part, O_RDWR | O_CREAT, "open")
        try file.truncate(to: size)
        try file.synchronize()
        try AttachmentFile.move(part, to: folder + "/" + Self.fileName(digest), in: folder)
    }

    /// Returns bytes of an upload.
    public func bytes(of attachment: LocalAttachment, in range: Range<Int>) throws(SyncStoreError) -> [UInt8] {
        try AttachmentFile(path(of: attachment), O_RDONLY, "read").read(at: range.lowerBound, count: range.count)
    }

    /// Writes bytes of a download at an offset.
    public func write(_ bytes: [UInt8], at offset: Int, to attachment: LocalAttachment) throws(SyncStoreError) {
        let path = try folder(isCreated: true) + "/" + Self.partName(attachment)
        try AttachmentFile(path, O_WRONLY | O_CREAT, "create").write(bytes, at: offset)
    }

    /// Discards the bytes of a download.
    public func discardBytes(of attachment: LocalAttachment) throws(SyncStoreError) {
        unlink(try folder(isCreated: false) + "/" + Self.partName(attachment))
    }

    /// Returns the hash state after the bytes of a download that are in its file; `nil` if the file is too long.
    public func hash(of attachment: LocalAttachment) throws(SyncStoreError) -> SHA256Hasher? {
        let path = try folder(isCreated: false) + "/" + Self.partName(attachment)
        guard FileManager.default.fileExists(atPath: path) else { return SHA256Hasher() }
        let file = try AttachmentFile(path, O_RDONLY, "read")
        var hasher = SHA256Hasher()
        while hasher.count <= attachment.size ?? 0 {
            let bytes = try file.read(at: Int(clamping: hasher.count), count: Self.copyBytes)
            if bytes.isEmpty { return hasher }
            hasher.update(bytes)
        }
        return nil
    }

    // MARK: Files

    /// Returns the path of an attachment's complete bytes.
    public func path(of attachment: LocalAttachment) throws(SyncStoreError) -> String {
        guard let digest = attachment.digest else {
            throw SyncStoreError(.unreadable, "cannot read the attachment: its digest is not known")
        }
        return try folder(isCreated: false) + "/" + Self.fileName(digest)
    }

    /// Removes the files that no attachment needs: those of uploads that are done, and those without a row.
    public func removeUnusedAttachmentFiles() throws(SyncStoreError) {
        guard resolved != nil else { return }
        let folder = try folder(isCreated: false)
        guard FileManager.default.fileExists(atPath: folder) else { return }
        // The transaction excludes a process that adds an attachment.
        try transaction(.immediate) { database in
            var used: Set<String> = []
            let rows = try Row.fetchCursor(database, sql: "SELECT \(LocalAttachment.columns) FROM attachment")
            while let row = try rows.next() {
                guard let attachment = LocalAttachment(row) else { continue }
                switch (attachment.direction, attachment.state) {
                case (.upload, .done), (.deletion, _): break
                case (.upload, _), (.download, .done):
                    if let digest = attachment.digest { used.insert(Self.fileName(digest)) }
                case (.download, _): used.insert(Self.partName(attachment))
                }
            }
            for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] where !used.contains(name)
            {
                let path = folder + "/" + name
                let values = try? FileManager.default.attributesOfItem(atPath: path)
                guard values?[.type] as? FileAttributeType == .typeRegular else { continue }
                let age = -((values?[.modificationDate] as? Date)?.timeIntervalSinceNow ?? 0)
                if name.hasPrefix(Self.stagedPrefix) && age < Self.stagedSecondsMax { continue }
                unlink(path)
            }
        }
    }

    private func folder(isCreated: Bool) throws(SyncStoreError) -> String {
        guard let resolved else {
            throw SyncStoreError(.unwritable, "cannot use attachments: a store in memory has none; name a file")
        }
        let folder = resolved + "-attachments"
        if isCreated, mkdir(folder, 0o700) != 0, errno != EEXIST {
            throw SyncStoreError(systemError: errno, "create", folder)
        }
        return folder
    }

    private static func fileName(_ digest: AttachmentDigest) -> String {
        digest.bytes.map { byte in
            let text = String(byte, radix: 16)
            return byte < 16 ? "0\(text)" : text
        }.joined()
    }

    private static func partName(_ attachment: LocalAttachment) -> String { "part-\(attachment.id)" }
}

extension LocalAttachment {
    static let columns = "number, record, name, direction, size, digest, entity_tag, state, reason"

    /// Reads a row; `nil` if it cannot be read.
    fileprivate init?(_ row: Row) {
        var reader = RowReader(row)
        guard let number = try? reader.count(), let record = try? reader.id(),
            let name = (try? reader.text()).flatMap({ $0 }).flatMap({ AttachmentName($0) }),
            let direction = (row["direction"] as String?).flatMap(Direction.init), let state = row["state"] as String?
        else { return nil }
        let digest: Data? = row["digest"]
        let tag: Data? = row["entity_tag"]
        let reason: Data? = row["reason"]
        self.init(
            id: number, record: record, name: name, direction: direction, size: row["size"],
            digest: digest.flatMap { AttachmentDigest(bytes: [UInt8]($0)) },
            entityTag: tag.map { String(decoding: $0, as: UTF8.self) },
            state: State(name: state, reason: reason.map { String(decoding: $0, as: UTF8.self) }))
    }
}

extension LocalAttachment.State {
    fileprivate var name: String {
        switch self {
        case .waiting: "waiting"
        case .sending: "sending"
        case .done: "done"
        case .parked: "parked"
        }
    }

    fileprivate init(name: String, reason: String?) {
        switch name {
        case "waiting": self = .waiting
        case "sending": self = .sending
        case "done": self = .done
        default: self = .parked(reason ?? "the reason is not known")
        }
    }
}
