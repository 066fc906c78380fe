public import Client
public import Determinism
public import Scenario

/// The reason why an action of a user or writer is an error.
public struct ActionError: Error, CustomStringConvertible, Sendable {
    /// What is wrong.
    public let description: String

    /// Creates an error.
    public init(_ description: String) { self.description = description }
}

/// A change that a user makes on a device: the action of a step with the identifiers of its notes.
public struct UserChange: Sendable {
    private let action: Scenario.Action
    /// The record: an existing one, or the one to create.
    public let record: RecordID
    /// The name of the record in the scenario.
    public let row: String
    /// The date of the change in the contract's format.
    private let date: String

    /// Creates the change of an action; `nil` if the action is none.
    ///
    /// - Parameters:
    ///   - ids: Identifiers of new notes.
    ///   - date: The date of the change in the contract's format.
    ///   - isKnown: Whether the device has a record, of several with one name.
    public init?(
        _ action: Scenario.Action, _ recorder: HistoryRecorder, ids: RandomIdentifiers, date: String,
        isKnown: (RecordID) -> Bool
    ) throws(ActionError) {
        self.action = action
        self.date = date
        switch action {
        case .create(let row, _, _):
            self.row = row
            record = RecordID(ids.uuid())
        case .edit(let row, _, _), .delete(let row), .resolve(let row, _, _), .choose(let row, _), .keep(let row):
            self.row = row
            record = try Self.record(row, recorder, isKnown)
        case .pin(let row):
            self.row = row
            record = try Self.record(row, recorder, isKnown)
        case .call(let name, let arguments):
            guard ReferenceClient.Call(rawValue: name) != nil else {
                throw ActionError("the reference client has no call '\(name)'")
            }
            row = arguments.first { $0.name == "note" }?.value ?? ""
            record = try Self.record(row, recorder, isKnown)
        case .sync, .kill, .start: return nil
        case .editStale, .deleteStale, .open, .send, .upgrade, .clock, .signOut, .signIn, .disk, .server:
            throw ActionError("the action is not a change of a note")
        }
    }

    /// Whether the change replaces the user's earlier changes of the note. A repetition does not.
    public var isAccepted: Bool {
        if case .call(let name, _) = action { name != ReferenceClient.Call.retry.rawValue } else { true }
    }

    /// Returns the identifier of a note: of several with one name the last one that the device has, or else the last.
    public static func record(
        _ row: String, _ recorder: HistoryRecorder, _ isKnown: (RecordID) -> Bool = { _ in true }
    ) throws(ActionError) -> RecordID {
        let records = recorder.records(of: row).map { RecordID(String(decoding: $0, as: UTF8.self)) }
        guard let last = records.last else { throw ActionError("no note is called '\(row)'") }
        return records.count == 1 ? last : records.last(where: isKnown) ?? last
    }

    /// The identifier that the name of the note stands for from now on, before the change is made: a note has its name
    /// before it is visible.
    public var newRecord: RecordID? { if case .create = action { record } else { nil } }

    /// Makes the change. Returns the record that the name stands for afterwards.
    public func apply(to engine: inout SyncEngine, at time: Instant) throws -> RecordID {
        switch action {
        case .create(_, let title, let text):
            return try engine.create(content(nil, title, text), id: record, at: time)
        case .edit(_, let title, let text):
            try engine.edit(record, content(engine.shownRecord(record), title, text), at: time)
            return record
        case .delete:
            try engine.delete(record, at: time)
            return record
        case .resolve(_, let title, let text):
            return try engine.resolve(
                record, .write(content(engine.shownRecord(record), title, text)), at: time)
        case .choose(_, let choice):
            if choice == .delete, engine.shownRecord(record)?.isDeleted == false { try engine.delete(record, at: time) }
            return try engine.resolve(record, choice == .theirs ? .theirs : .mine, at: time)
        case .keep:
            // The deletion is taken back, and the other client's change kept.
            guard let local = engine.shownRecord(record), local.isDeleted, local.theirs?.revision != nil else {
                throw ActionError("the deletion is not in conflict with a change of another client")
            }
            return try engine.resolve(record, .theirs, at: time)
        case .pin:
            try engine.hold(ClientVersion.pin, of: record, at: time)
            return record
        case .call(let name, _):
            switch ReferenceClient.Call(rawValue: name) {
            case .retry: try engine.retry(record, at: time)
            case .dismiss: try engine.dismiss(record, at: time)
            case nil: break
            }
            return record
        case .editStale, .deleteStale, .open, .sync, .send, .kill, .start, .upgrade, .clock, .signOut, .signIn, .disk,
            .server:
            return record
        }
    }

    /// Returns the content of a note with a new title or text; `nil` keeps the local value.
    private func content(_ current: LocalRecord?, _ title: String?, _ text: String?) -> RecordContent {
        let current = current.map { NoteContent($0.mine) }
        return NoteContent(title: title ?? current?.title, text: text ?? current?.text, date: date).encoded
    }
}
