internal import Impairment
internal import Scenario
internal import Worlds

/// The exchanges and the view of a device whose client is a program: what turns the events of its proxy and the lines of
/// its adapter into events of the history. A value without clock and sockets.
///
/// A program reports neither its connections nor what it reads. So attempts to connect are not known, and a response counts
/// as received when the proxy has delivered its last byte, also if the program gives the exchange up at that instant.
struct ProgramLedger: Sendable {
    private let name: String
    private var exchanges: ExchangeLedger
    private var open: Set<ExchangeID> = []
    private var view: AdapterView?

    init(_ name: String) {
        self.name = name
        exchanges = ExchangeLedger(name)
    }

    /// The number of exchanges that have not ended.
    var openCount: Int { open.count }

    // MARK: Exchanges

    /// Records whether an exchange is open, whether or not its events are part of the history.
    mutating func track(_ event: ExchangeEvent) {
        switch event {
        case .requested(let id, _, _, _): open.insert(id)
        case .responseDelivered(let id, _, _), .interrupted(let id), .protocolSwitched(let id): open.remove(id)
        default: break
        }
    }

    /// Returns the events of an exchange.
    mutating func exchange(_ event: ExchangeEvent, _ recorder: inout HistoryRecorder) -> [History.Event] {
        exchanges.exchange(event, on: nil, &recorder)
    }

    /// Returns the events of a kill: the exchanges of the program have failed.
    mutating func killed() -> [History.Event] {
        open = []
        return exchanges.endUnconnected()
    }

    // MARK: The view

    /// Records what a program shows; a new process shows nothing at first.
    mutating func shows(_ view: AdapterView?) { self.view = view }

    /// Returns the events of the view: the names that it gives to notes, and the view if it has changed.
    func viewEvents(_ recorder: inout HistoryRecorder) -> [History.Event] {
        guard let view else { return [] }
        var events: [History.Event] = []
        var rows: [HistoryRecorder.Row] = []
        for row in view.rows {
            let record: [UInt8]
            if let id = row.id {
                record = Array(id.utf8)
                if let note = row.note, recorder.row(of: record) != note {
                    events += recorder.assign(row: note, to: record)
                }
            } else {
                let note = row.note ?? ""
                record = recorder.record(of: note) ?? Array(note.utf8)
                if recorder.record(of: note) == nil { events += recorder.assign(row: note, to: record) }
            }
            rows.append(
                HistoryRecorder.Row(
                    record: record, title: row.title, text: row.text, icon: row.icon, isDeleted: row.isDeleted,
                    kept: row.kept, opacity: row.opacity, isStruck: row.isStruck))
        }
        return events + (recorder.view(rows, outbox: view.outbox, screen: view.screen, of: name).map { [$0] } ?? [])
    }
}
