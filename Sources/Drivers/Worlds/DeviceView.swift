public import Client
public import Scenario
internal import Wire

/// The view of a device as a user sees it, collected from the changes that its client reports.
///
/// Notes are kept in order with their states, so that a change costs the notes that have changed.
public struct DeviceView: Sendable {
    private struct Entry {
        let row: NotesView.Row
        /// The bytes of the identifier; empty in an entry to search for.
        var record: [UInt8] = []
        /// The state that is recorded; `nil` until the next event.
        var state: History.DeviceState.Row?

        func precedes(_ other: Entry) -> Bool {
            let (date, otherDate) = (ByteKey(row.date), ByteKey(other.row.date))
            return date == otherDate ? ByteKey(row.uuid) < ByteKey(other.row.uuid) : date < otherDate
        }
    }

    /// The notes, oldest first, then by uuid: the order of ``NotesView``.
    private var entries: [Entry] = []
    private var rows: [RecordID: NotesView.Row] = [:]
    private var outbox = 0
    private var belief: Connectivity?
    /// The belief of the client that runs.
    private var connectivity = Connectivity.unknown
    /// The note that the user has opened; `nil` for the list.
    private var opened: RecordID?
    private var lastScreen: (screen: NotesScreen, state: History.ScreenState)?
    /// The version of the client.
    public var version = ClientVersion.current
    /// The recorder's number of names at the last event.
    private var namings = 0

    /// Creates an empty view.
    public init() {}

    /// Replaces the view: a client has started.
    public mutating func restart(_ engine: SyncEngine) {
        removeAll()
        for row in engine.rows { insert(row) }
        outbox = engine.status.outbox
    }

    /// Empties the view: a client starts, and reports all its rows with its first change.
    public mutating func removeAll() {
        entries = []
        rows = [:]
        opened = nil
        connectivity = .unknown
    }

    /// Opens a note, or the list.
    public mutating func open(_ id: RecordID?) { opened = id }

    /// Keeps a note open that has got another identifier.
    public mutating func renamed(_ id: RecordID, to other: RecordID) { if opened == id { opened = other } }

    /// Applies a change of the view. Returns the event of the client's new belief about connectivity, if it has changed.
    public mutating func apply(_ change: ViewChange, of device: String) -> History.Event? {
        for row in change.rows {
            remove(row.id)
            insert(row)
        }
        for id in change.removed { remove(id) }
        outbox = change.outbox
        connectivity = change.connectivity
        guard change.connectivity != belief else { return nil }
        belief = change.connectivity
        return .belief(device: device, Self.belief(change.connectivity))
    }

    private static func belief(_ belief: Connectivity) -> History.Belief {
        switch belief {
        case .unknown: .unknown
        case .online: .online
        case .interfaceDown: .interfaceDown
        case .interfaceNotAllowed: .interfaceNotAllowed
        case .suspected: .suspected
        case .unreachable(let failures): .unreachable(failures: failures)
        }
    }

    private mutating func insert(_ row: RecordRow) {
        var entry = Entry(row: NotesView.Row(row))
        entry.record = Array(entry.row.uuid.utf8)
        rows[row.id] = entry.row
        entries.insert(entry, at: index(of: entry))
    }

    private mutating func remove(_ id: RecordID) {
        guard let row = rows.removeValue(forKey: id) else { return }
        entries.remove(at: index(of: Entry(row: row)))
    }

    /// Returns the index of the first entry that does not precede `entry`.
    private func index(of entry: Entry) -> Int {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].precedes(entry) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Returns the event of the view; `nil` if it is the same as the last one.
    public mutating func event(of device: String, _ recorder: inout HistoryRecorder) -> History.Event? {
        let areNamesKnown = namings == recorder.namings
        namings = recorder.namings
        let states = entries.indices.map { index in
            if let state = entries[index].state,
                areNamesKnown || recorder.hasName(state.name, entries[index].record)
            {
                return state
            }
            let state = Self.state(of: entries[index].row, entries[index].record, recorder)
            entries[index].state = state
            return state
        }
        return recorder.view(
            History.DeviceState(rows: states, outbox: outbox, screen: screen(recorder)), of: device)
    }

    /// Returns what the client shows beside the notes.
    private mutating func screen(_ recorder: HistoryRecorder) -> History.ScreenState {
        let screen = NotesScreen(
            note: opened.flatMap { rows[$0] }, connectivity: connectivity, hasPins: version == .first)
        let name = screen.note.map { recorder.name(of: Array($0.utf8)) } ?? "list"
        if let last = lastScreen, last.screen == screen, last.state.name == name { return last.state }
        let state = History.ScreenState(
            name: name, controls: screen.controls.map(\.rawValue), dialog: "none", toast: screen.toast.rawValue)
        lastScreen = (screen, state)
        return state
    }

    private static func state(
        of row: NotesView.Row, _ record: [UInt8], _ recorder: HistoryRecorder
    ) -> History.DeviceState.Row {
        recorder.state(
            of: HistoryRecorder.Row(
                record: record, title: row.title, text: row.text, icon: icon(row.icon),
                isDeleted: row.isDeleted, kept: row.kept,
                opacity: row.isGrey ? "0.5" : "1", isStruck: row.isStruck))
    }

    private static func icon(_ icon: RecordRow.Icon) -> History.Icon {
        switch icon {
        case .none: .plain
        case .upload: .upload
        case .conflict: .conflict
        case .error: .error
        }
    }
}
