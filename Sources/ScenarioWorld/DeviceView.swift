public import ScenarioModel
public import SyncEngine

/// The view of a device as a user sees it, collected from the changes that its client reports.
public struct DeviceView: Sendable {
    private var rows: [RecordID: NotesView.Row] = [:]
    private var outbox = 0
    private var belief: Connectivity?

    /// Creates an empty view.
    public init() {}

    /// Replaces the view: a client has started.
    public mutating func restart(_ engine: SyncEngine) {
        rows = [:]
        for row in engine.rows { rows[row.id] = NotesView.Row(row) }
        outbox = engine.status.outbox
    }

    /// Empties the view: a client starts, and reports all its rows with its first change.
    public mutating func removeAll() { rows = [:] }

    /// Applies a change of the view. Returns the event of the client's new belief about connectivity, if it has changed.
    public mutating func apply(_ change: ViewChange, of device: String) -> History.Event? {
        for row in change.rows { rows[row.id] = NotesView.Row(row) }
        for id in change.removed { rows[id] = nil }
        outbox = change.outbox
        guard change.connectivity != belief else { return nil }
        belief = change.connectivity
        return .belief(device: device, "\(change.connectivity)")
    }

    /// Returns the event of the view; `nil` if it is the same as the last one.
    public func event(of device: String, _ recorder: inout HistoryRecorder) -> History.Event? {
        let view = NotesView(rows: Array(rows.values), outbox: outbox, connectivity: .unknown)
        let rows = view.rows.map { row in
            HistoryRecorder.Row(
                record: Array(row.uuid.utf8), title: row.title, text: row.text, icon: row.icon.rawValue,
                isDeleted: row.isDeleted, kept: row.kept)
        }
        return recorder.view(rows, outbox: outbox, of: device)
    }
}
