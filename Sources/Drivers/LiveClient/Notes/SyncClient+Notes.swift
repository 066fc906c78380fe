public import Client
public import Determinism
internal import Foundation
internal import NotesContract
internal import Wire

/// Notes: the records of `NotesResource`.
extension SyncClient {
    /// Creates a note and returns its identifier.
    ///
    /// - Parameter uuid: The identifier; a random one by default.
    public func create(title: String?, text: String?, uuid: String? = nil) async throws -> String {
        let content = NoteContent(title: title, text: text, date: Self.date())
        return try await create(content.encoded, id: uuid.map { RecordID($0) }).text
    }

    /// Changes a note's title or text; `nil` leaves it unchanged.
    public func edit(_ uuid: String, title: String?, text: String?) async throws {
        let id = RecordID(uuid)
        try await change { engine, now in
            try engine.edit(id, engine.noteContent(id, title: title, text: text), at: now)
        }
    }

    /// Deletes a note.
    public func delete(_ uuid: String) async throws { try await delete(RecordID(uuid)) }

    /// Resolves a conflict with a title and a text and returns the note's identifier, which is new if the server's side
    /// was a deletion; `nil` keeps the local value.
    @discardableResult
    public func resolve(_ uuid: String, title: String?, text: String?) async throws -> String {
        let id = RecordID(uuid)
        return try await change { engine, now in
            try engine.resolve(id, .write(engine.noteContent(id, title: title, text: text)), at: now)
        }.text
    }

    /// Returns the notes as a user interface would draw them.
    public func view() async throws -> NotesView { try await onLoop { NotesView($0.engine) } }

    /// Returns the current time in the contract's date format, shifted by a span.
    public static func date(shiftedBy shift: Nanoseconds = .zero) -> String {
        NoteDate.text(millisecondsSince1970: Int(Date().timeIntervalSince1970 * 1000 + shift.inMilliseconds))
    }
}

extension NotesView {
    /// Creates the view of an engine with `NotesResource`.
    init(_ engine: SyncEngine) {
        let status = engine.status
        self.init(rows: engine.rows, outbox: status.outbox, connectivity: status.connectivity)
    }
}

extension SyncEngine {
    /// Returns the content of a note with a new title or text, dated now; `nil` keeps the local value.
    func noteContent(_ id: RecordID, title: String?, text: String?) -> RecordContent {
        let current = record(id).map { NoteContent($0.mine) }
        return NoteContent(title: title ?? current?.title, text: text ?? current?.text, date: SyncClient.date()).encoded
    }
}
