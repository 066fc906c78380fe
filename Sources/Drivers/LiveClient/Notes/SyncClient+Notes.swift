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
        try await change { engine, now in
            let date = Self.date(shiftedBy: .seconds(Int64(engine.status.serverClock?.offset(at: now) ?? 0)))
            let content = NoteContent(title: title, text: text, date: date)
            return try engine.create(content.encoded, id: uuid.map { RecordID($0) }, at: now)
        }.text
    }

    /// Changes a note's title or text; `nil` leaves it unchanged.
    public func edit(_ uuid: String, title: String?, text: String?) async throws {
        let id = RecordID(uuid)
        try await change { engine, now in
            try engine.edit(id, engine.noteContent(id, title: title, text: text, at: now), at: now)
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
            try engine.resolve(id, .write(engine.noteContent(id, title: title, text: text, at: now)), at: now)
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

extension ServerClock {
    /// A response shows the server's time to a second, and takes time itself: less says nothing.
    private static let offsetMin = 2

    /// Returns the seconds by which the server's clock is ahead of this device's; 0 if they agree.
    func offset(at now: Instant) -> Int {
        let wall = Int64(Date().timeIntervalSince1970)
        let (server, isTooLarge) = seconds.addingReportingOverflow((now - at).count / 1_000_000_000)
        guard !isTooLarge, abs(server) < 1 << 40, abs(server - wall) >= Self.offsetMin else { return 0 }
        return Int(clamping: server - wall)
    }
}

extension SyncEngine {
    /// Returns the content of a note with a new title or text, dated now by the server's clock; `nil` keeps the local value.
    func noteContent(_ id: RecordID, title: String?, text: String?, at now: Instant) -> RecordContent {
        noteContent(id, title: title, text: text, clockOffset: status.serverClock?.offset(at: now) ?? 0)
    }

    /// Returns the same content, dated by a clock that is ahead by a number of seconds.
    func noteContent(_ id: RecordID, title: String?, text: String?, clockOffset: Int) -> RecordContent {
        let current = shownRecord(id).map { NoteContent($0.mine) }
        return NoteContent(
            title: title ?? current?.title, text: text ?? current?.text,
            date: SyncClient.date(shiftedBy: .seconds(Int64(clockOffset)))
        ).encoded
    }
}
