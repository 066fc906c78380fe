public import Client
internal import Foundation
internal import NotesContract

/// Attachments of notes, added and read without a connection.
extension OfflineNotes {
    /// Returns all attachments whose transfer was requested, in the order of the requests.
    public func attachments() throws -> [LocalAttachment] { try store.attachments() }

    /// Returns the attachments of a note.
    public func attachments(of uuid: String) throws -> [LocalAttachment] {
        try attachments().filter { $0.record == RecordID(uuid) }
    }

    /// Attaches a copy of a file to a note; the next sync uploads it.
    ///
    /// - Parameter name: The name of the attachment; that of the file by default.
    @discardableResult
    public func attach(_ uuid: String, file: String, name: String? = nil) throws -> LocalAttachment {
        let name = try SyncClient.attachmentName(name ?? URL(filePath: file).lastPathComponent)
        return try store.attach(store.stage(file: file), to: RecordID(uuid), name: name)
    }

    /// Requests the download of an attachment; the next sync begins it.
    public func requestDownload(_ uuid: String, name: String) throws -> LocalAttachment {
        try store.requestDownload(of: SyncClient.attachmentName(name), record: RecordID(uuid))
    }

    /// Moves a download that is done to a file, which is replaced.
    public func moveDownload(_ attachment: LocalAttachment, to file: String) throws {
        try store.moveDownload(attachment, to: file)
    }

    /// Removes an attachment of a name from the store; the next sync deletes what the server has of it.
    public func requestDeletion(_ uuid: String, name: String) throws {
        try store.requestDeletion(of: SyncClient.attachmentName(name), record: RecordID(uuid))
    }

    /// Removes an attachment from the store. The server keeps what it has.
    public func detach(_ attachment: LocalAttachment) throws { try store.remove(attachment) }
}

extension SyncStore {
    /// Moves a download that is done to a file, which is replaced, and removes it from the store.
    func moveDownload(_ attachment: LocalAttachment, to file: String) throws {
        let target = URL(filePath: file)
        let copy = target.deletingLastPathComponent().appendingPathComponent(".slowlane-\(UUID().uuidString)")
        defer { unlink(copy.path(percentEncoded: false)) }
        do {
            try FileManager.default.copyItem(at: URL(filePath: path(of: attachment)), to: copy)
            guard rename(copy.path(percentEncoded: false), file) == 0 else {
                throw SyncClient.AttachmentError(
                    description: "cannot write \(file): \(String(cString: strerror(errno)))")
            }
        } catch let error as CocoaError {
            throw SyncClient.AttachmentError(description: "cannot write \(file): \(error.localizedDescription)")
        }
        try remove(attachment)
    }
}
