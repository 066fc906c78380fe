public import Client
internal import Foundation
internal import NotesContract

/// Attachments of records. A store in memory has none.
extension SyncClient {
    /// The reason why an attachment's name cannot be used, or a transfer has stopped.
    public struct AttachmentError: Error, Hashable, CustomStringConvertible {
        public let description: String
    }

    /// Attaches a copy of a file to a record; the file may be deleted when the call returns. The upload starts as soon
    /// as the server has the record, and continues after a restart.
    ///
    /// - Parameter name: The name of the attachment; that of the file by default.
    @discardableResult
    public func attach(_ record: RecordID, file: String, name: String? = nil) async throws -> LocalAttachment {
        let name = try Self.attachmentName(name ?? URL(filePath: file).lastPathComponent)
        let store = try await onLoop { $0.store }
        // The copy is made outside of the client's thread.
        let staged = try store.stage(file: file)
        return try await onLoop { core in
            let attachment = try core.store.attach(staged, to: record, name: name)
            core.loadAttachments()
            return attachment
        }
    }

    /// Returns all attachments whose transfer was requested by this store, with their states.
    public func attachments() async throws -> [LocalAttachment] { try await onLoop { $0.attachments } }

    /// Returns the attachments of a record whose transfer was requested by this store, with their states.
    public func attachments(of record: RecordID) async throws -> [LocalAttachment] {
        try await onLoop { core in core.attachments.filter { $0.record == record } }
    }

    /// Removes an attachment from the store, and deletes what the server has of it: all of it, or a part of an upload. A later
    /// attachment may have the name again.
    public func deleteAttachment(_ record: RecordID, name: String) async throws {
        let name = try Self.attachmentName(name)
        try await onLoop { core in
            try core.store.requestDeletion(of: name, record: record)
            core.loadAttachments()
        }
    }

    /// Downloads an attachment to a file. What was downloaded before a restart is not requested again.
    ///
    /// - Throws: An `AttachmentError` if the server does not have the attachment, or its digest is wrong.
    public func download(_ record: RecordID, name: String, to file: String) async throws {
        let name = try Self.attachmentName(name)
        let requested = try await onLoop { core in
            let attachment = try core.store.requestDownload(of: name, record: record)
            core.loadAttachments()
            return attachment
        }
        while true {
            let found = try await onLoop { core in core.attachments.first { $0.id == requested.id } }
            guard let found else { throw AttachmentError(description: "the note was deleted") }
            let store = try await onLoop { $0.store }
            if case .parked(let reason) = found.state {
                try store.remove(found)
                try await onLoop { $0.loadAttachments() }
                throw AttachmentError(description: reason)
            }
            if found.state == .done {
                try store.moveDownload(found, to: file)
                return try await onLoop { $0.loadAttachments() }
            }
            try await Task.sleep(for: Self.downloadPoll)
        }
    }

    /// The interval at which the state of a download is looked at.
    private static let downloadPoll = Duration.milliseconds(50)

    static func attachmentName(_ text: String) throws -> AttachmentName {
        guard let name = AttachmentName(text) else {
            throw AttachmentError(
                description:
                    "'\(text.prefix(60))' cannot be the name of an attachment: 1 to \(AttachmentName.bytesMax) "
                    + "bytes of UTF-8 without '/', and neither '.' nor '..'")
        }
        return name
    }
}
