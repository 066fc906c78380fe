public import Client
internal import Determinism
internal import Foundation
internal import Wire

/// The notes of a store, read and changed without a connection, also while another process synchronises the store.
///
/// Each change is durable when its call returns. A process that synchronises the store sends it at once; otherwise the
/// next sync does.
public struct OfflineNotes {
    private(set) var store: SyncStore
    private let path: String
    private let resource = NotesResource()
    /// The state when it was last read; empty if it was not.
    private var engine: SyncEngine
    private let readsNotes: Bool
    /// The account of the store; `nil` before the first sync.
    public private(set) var account: SyncAccount?

    /// The reason why a note was not found or a change was rejected.
    public struct NoteError: Error, CustomStringConvertible {
        public let description: String
    }

    /// Opens the store at a path, or creates one.
    ///
    /// - Parameter readsNotes: Whether all notes are read. To create a note, that is not necessary.
    /// - Throws: A `SyncStoreError` if the store cannot be used.
    public init(path: String, readsNotes: Bool = true) throws {
        self.path = path
        self.readsNotes = readsNotes
        store = try SyncStore(path: path, resource: resource.name)
        engine = Self.engine(StoredState(), resource)
        try load()
    }

    /// Reads the store at a path, which is not created, changed or locked. Changes are rejected.
    ///
    /// - Throws: A `SyncStoreError` if there is no store, or it cannot be read.
    public init(reading path: String) throws {
        (self.path, readsNotes) = (path, true)
        store = try SyncStore(reading: path, resource: resource.name)
        engine = Self.engine(StoredState(), resource)
        try load()
    }

    private static func engine(_ state: StoredState, _ resource: NotesResource) -> SyncEngine {
        var engine = SyncEngine(
            SyncEngine.Configuration(resource: resource, restoring: state, seed: .random(in: 0...(.max))))
        engine.started(interface: NetworkInterface(isUp: false), at: .start)
        return engine
    }

    private mutating func load() throws {
        guard readsNotes else { return }
        let state = try store.load()
        account = state.account
        engine = Self.engine(state, resource)
    }

    // MARK: State

    /// Reads what other processes have changed since the last call, and returns whether there was anything.
    public mutating func refresh() throws -> Bool {
        guard try store.hasForeignChanges else { return false }
        if store.isCopy { store = try SyncStore(reading: path, resource: resource.name) }
        try load()
        return true
    }

    /// The notes with their states.
    public var view: NotesView { NotesView(engine) }

    /// The state of the outbox.
    public var status: SyncStatus { engine.status }

    /// Returns a note with its base and the server's version.
    public func record(_ uuid: String) -> LocalRecord? { engine.record(RecordID(uuid)) }

    /// Returns a note as a user interface would draw it.
    public func row(_ uuid: String) -> NotesView.Row? { engine.row(RecordID(uuid)).map(NotesView.Row.init) }

    /// Returns the changes of a note that the server has not acknowledged.
    public func entries(of uuid: String) -> [OutboxEntry] { engine.entries(of: RecordID(uuid)) }

    /// The identifier of the process that synchronises the store at present; `nil` if none does.
    public var syncProcess: Int? { syncState?.runningProcess }

    /// The state of the store's last synchronisation; `nil` if there was none.
    public var syncState: SyncState? { SyncState(storePath: path) }

    /// Returns the uuid of the note with this title, or with a uuid that begins with `name` of at least 4 characters.
    public func find(_ name: String) throws(NoteError) -> String {
        let rows = view.rows.filter { !$0.isDeleted || $0.icon == .conflict || $0.icon == .error }
        let found = rows.filter {
            $0.title?.hasSameBytes(as: name) == true
                || (name.utf8.count >= 4 && $0.uuid.utf8.starts(with: name.lowercased().utf8))
        }
        guard let only = found.first, found.count == 1 else {
            let reason = found.isEmpty ? "no note matches" : "\(found.count) notes match"
            let advice =
                found.isEmpty
                ? "'slowlane notes list' shows all" : "give the first characters of a uuid from 'notes list'"
            throw NoteError(description: "\(reason) '\(name.prefix(60))' (\(advice))")
        }
        return only.uuid
    }

    // MARK: Changes

    /// Creates a note and returns its uuid.
    public mutating func create(title: String, text: String) throws -> String {
        let content = NoteContent(
            title: title, text: text, date: SyncClient.date(shiftedBy: .seconds(Int64(clockOffset)))
        ).encoded
        let id = RecordID(UUID().uuidString.lowercased())
        return try change(id) { engine throws(SyncEngine.RecordError) in
            try engine.create(content, id: id, at: .start)
        }.text
    }

    /// The seconds by which the server's clock is ahead, as the last sync has found.
    private var clockOffset: Int { syncState?.clockOffset ?? 0 }

    /// Changes a note's title or text; `nil` leaves it unchanged.
    public mutating func edit(_ uuid: String, title: String?, text: String?) throws {
        let (id, clockOffset) = (RecordID(uuid), clockOffset)
        try change(id) { engine throws(SyncEngine.RecordError) in
            try engine.edit(
                id, engine.noteContent(id, title: title, text: text, clockOffset: clockOffset), at: .start)
        }
    }

    /// Deletes a note.
    public mutating func delete(_ uuid: String) throws {
        try change(RecordID(uuid)) { engine throws(SyncEngine.RecordError) in
            try engine.delete(RecordID(uuid), at: .start)
        }
    }

    /// A resolution of a conflict between two versions of a note.
    public enum Resolution: Sendable {
        /// Keep the local version.
        case mine
        /// Keep the server's version.
        case theirs
        /// Store a title and a text; `nil` keeps the local value.
        case write(title: String?, text: String?)
    }

    /// Resolves a conflict.
    ///
    /// - Parameter seen: The conflict as the user saw it. If the server's version has changed since, nothing happens.
    public mutating func resolve(_ uuid: String, _ resolution: Resolution, seen: LocalRecord.Theirs) throws {
        let (id, clockOffset) = (RecordID(uuid), clockOffset)
        _ = try change(id) { engine throws(SyncEngine.RecordError) in
            // A conflict that is gone is reported by the engine.
            if let theirs = engine.record(id)?.theirs, theirs != seen { throw .notInConflict }
            switch resolution {
            case .mine: return try engine.resolve(id, .mine, at: .start)
            case .theirs: return try engine.resolve(id, .theirs, at: .start)
            case .write(let title, let text):
                return try engine.resolve(
                    id, .write(engine.noteContent(id, title: title, text: text, clockOffset: clockOffset)),
                    at: .start)
            }
        }
    }

    /// Resolves all conflicts by a policy. Returns the notes that it has resolved, and those that it leaves to the user.
    public mutating func resolveAll(by policy: ConflictPolicy) throws -> (resolved: [String], open: [String]) {
        var (resolved, open): ([String], [String]) = ([], [])
        for row in view.rows where row.icon == .conflict {
            let id = RecordID(row.uuid)
            let isResolved = try change(id) { engine throws(SyncEngine.RecordError) in
                guard let resolution = engine.resolution(of: id, by: policy) else { return false }
                try engine.resolve(id, resolution, at: .start)
                return true
            }
            if isResolved { resolved.append(row.uuid) } else { open.append(row.uuid) }
        }
        return (resolved, open)
    }

    /// Sends a rejected change again, and transfers the note's stopped attachments again, at the next sync.
    public mutating func retry(_ uuid: String) throws {
        let hasTransfers = try store.retryTransfers(of: RecordID(uuid))
        if hasTransfers && engine.row(RecordID(uuid))?.icon != .error { return }
        try change(RecordID(uuid)) { engine throws(SyncEngine.RecordError) in
            try engine.retry(RecordID(uuid), at: .start)
        }
    }

    /// Discards the rejected change of a note.
    public mutating func dismiss(_ uuid: String) throws {
        try change(RecordID(uuid)) { engine throws(SyncEngine.RecordError) in
            try engine.dismiss(RecordID(uuid), at: .start)
        }
    }

    /// Makes a change in one transaction, on the note as it is stored now.
    private mutating func change<Value>(
        _ id: RecordID, _ body: (inout SyncEngine) throws(SyncEngine.RecordError) -> Value
    ) throws -> Value {
        var value: Value?
        try store.change(of: id) { state in
            var next = Self.engine(state, resource)
            do throws(SyncEngine.RecordError) {
                value = try body(&next)
            } catch {
                throw NoteError(error)
            }
            while let action = next.takeAction() {
                if case .commit(let change) = action { return change }
            }
            return StoreChange()
        }
        try load()
        guard let value else { throw NoteError(description: "the note was not changed") }
        return value
    }
}

extension OfflineNotes.NoteError {
    /// Creates the error of a rejected change.
    public init(_ error: SyncEngine.RecordError) {
        description =
            switch error {
            case .unknownKind: error.description
            case .unknown: "no such note ('slowlane notes list' shows all)"
            case .exists: "a note with this uuid exists"
            case .notInConflict:
                "the note is not in conflict, or its server version has changed; look at it again with "
                    + "'slowlane notes show'"
            case .notParked:
                "the server rejects no change of the note, and none of its attachments has stopped ('slowlane notes status' "
                    + "lists both)"
            }
    }
}
