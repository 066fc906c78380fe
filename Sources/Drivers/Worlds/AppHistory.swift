public import Client
public import Scenario

/// The view of an app as history events.
public struct AppHistory: Sendable {
    private var view: AppView?
    private var belief: ConnectivityEstimate.Belief?

    /// Creates an empty view.
    public init() {}

    /// Forgets the view: a client starts.
    public mutating func removeAll() { view = nil }

    /// Applies a view of the client. Returns the event of its new belief about connectivity, if it has changed.
    public mutating func apply(_ view: AppView, of device: String) -> History.Event? {
        self.view = view
        guard view.connectivity != belief else { return nil }
        belief = view.connectivity
        return .belief(device: device, Self.belief(view.connectivity))
    }

    private static func belief(_ belief: ConnectivityEstimate.Belief) -> History.Belief {
        switch belief {
        case .online: .online
        case .interfaceDown: .interfaceDown
        case .unreachable: .unreachable(failures: nil)
        }
    }

    /// Returns the event of the view; `nil` if it is the same as the last one, or if there is none.
    public func event(of device: String, _ recorder: inout HistoryRecorder) -> History.Event? {
        guard let view else { return nil }
        let rows = view.rows.map { row in
            let shown = Self.texts { row.fields[$0] }
            return recorder.state(
                of: HistoryRecorder.Row(
                    record: Array(row.key.text.utf8), title: shown.title, text: shown.text,
                    icon: row.error != nil ? .error : row.isPending ? .upload : .plain, isDeleted: row.isDeleted,
                    opacity: row.isGrey ? "0.5" : "1", isStruck: row.isStruck, error: row.error ?? "none",
                    hasMarker: row.hasMarker))
        }
        let screen = view.screen
        let name = screen.record.map { recorder.name(of: Array($0.text.utf8)) } ?? screen.name
        return recorder.view(
            History.DeviceState(
                rows: rows, outbox: view.outbox,
                screen: History.ScreenState(
                    name: name, controls: screen.controls, dialog: screen.dialog ?? "none",
                    toast: screen.toast ?? "none",
                    error: screen.error ?? "none", hasMarker: screen.hasMarker,
                    fields: screen.fields.sorted.map { "\($0.name)=\($0.value)" })), of: device)
    }

    /// Returns title and text of a record: without a field `text` the amount, or for a chat `pinned` or `unpinned`.
    public static func texts(_ field: (String) -> String?) -> (title: String?, text: String?) {
        let text = field("text") ?? field("amount") ?? field("pinned").map { $0 == "true" ? "pinned" : "unpinned" }
        return (field("title"), text)
    }
}
