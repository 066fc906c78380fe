internal import Determinism
public import SyncEngine
internal import SyncStore

/// The notes of a store, read and changed without a connection.
///
/// Each change is durable when its call returns; the next sync sends it.
public struct OfflineNotes {
    private let store: SyncStore
    private var engine: SyncEngine

    /// The reason why a note was not found or a change was rejected.
    public struct NoteError: Error, CustomStringConvertible {
        public let description: String
    }

    /// Opens the store at a path, or creates one.
    ///
    /// - Throws: A `SyncStoreError` if the store cannot be used.
    public init(path: String) throws {
        store = try SyncStore(path: path)
        engine = SyncEngine(restoring: try store.load(), seed: .random(in: 0...(.max)))
        engine.interfaceChanged(isUp: false, at: .start)
    }

    /// The notes with their states.
    public var view: NotesView { engine.view }

    /// Returns a note with its base and the server's version.
    public func note(_ uuid: String) -> LocalNote? { engine.note(uuid) }

    /// Creates a note and returns its uuid.
    public mutating func create(title: String, text: String) throws -> String {
        try change { engine, date in engine.create(title: title, text: text, date: date, at: .start) }
    }

    /// Changes a note's title or text; `nil` leaves it unchanged.
    public mutating func edit(_ uuid: String, title: String?, text: String?) throws {
        try change { engine, date in try engine.edit(uuid, title: title, text: text, date: date, at: .start) }
    }

    /// Deletes a note.
    public mutating func delete(_ uuid: String) throws {
        try change { engine, _ in try engine.delete(uuid, at: .start) }
    }

    /// Resolves a conflict.
    public mutating func resolve(_ uuid: String, _ resolution: SyncEngine.Resolution) throws {
        _ = try change { engine, date in try engine.resolve(uuid, resolution, date: date, at: .start) }
    }

    /// Returns the uuid of the note with this title, or with a uuid that begins with `name` of at least 4 characters.
    public func find(_ name: String) throws(NoteError) -> String {
        let rows = view.rows.filter { !$0.isDeleted || $0.icon == .conflict || $0.icon == .error }
        let found = rows.filter { $0.title == name || (name.count >= 4 && $0.uuid.hasPrefix(name.lowercased())) }
        guard let only = found.first, found.count == 1 else {
            let reason = found.isEmpty ? "no note matches" : "\(found.count) notes match"
            throw NoteError(description: "\(reason) '\(name.prefix(60))' ('slowlane notes list' shows all)")
        }
        return only.uuid
    }

    private mutating func change<Value>(_ body: (inout SyncEngine, String) throws -> Value) throws -> Value {
        var next = engine
        let value: Value
        do {
            value = try body(&next, SyncClient.date())
        } catch let error as SyncEngine.NoteError {
            throw NoteError(description: error.description)
        }
        while case .commit(let change)? = next.takeAction() { try store.commit(change) }
        engine = next
        return value
    }
}
