/// What a run has reached: the counted cells of an exploration's table.
public enum CoverageCell: Hashable, Sendable {
    /// A state of a client: its belief about its connectivity, its pending changes (none, one or more), and whether it
    /// shows a conflict or an error.
    case state(belief: String, pending: Int, hasConflict: Bool, hasError: Bool)
    /// The result of an exchange for a note in a state: a cell of the table by which the client merges.
    case merge(method: String, row: RowState, result: String)
    /// A fault at a point of a request.
    case fault(action: String, point: String, method: String)

    /// A state of a note on a device.
    public enum RowState: String, CaseIterable, Hashable, Sendable {
        case absent, clean, pending, deleted, conflict, error
    }

    /// A part of the table.
    public enum Table: String, CaseIterable, Sendable {
        case states, merges, faults
    }

    /// The part of the table to which the cell belongs.
    public var table: Table {
        switch self {
        case .state: .states
        case .merge: .merges
        case .fault: .faults
        }
    }
}

extension CoverageCell: CustomStringConvertible {
    public var description: String {
        switch self {
        case .state(let belief, let pending, let hasConflict, let hasError):
            let count = pending == 0 ? "nothing pending" : pending == 1 ? "1 pending" : "several pending"
            return "\(belief), \(count)" + (hasConflict ? ", conflict" : "") + (hasError ? ", error" : "")
        case .merge(let method, let row, let result): return "\(method) of a note that is \(row.rawValue): \(result)"
        case .fault(let action, let point, let method): return "\(action) at \(point) of \(method)"
        }
    }
}

/// The cells that runs reach.
public enum RunCoverage {
    /// The number of pending changes from which they count as several.
    private static let pendingMax = 2

    /// Returns the cells that a run has reached.
    public static func cells(_ scenario: Scenario, _ history: History) -> Set<CoverageCell> {
        var collector = Collector(scenario)
        for entry in history.entries { collector.add(entry.event) }
        return collector.cells
    }

    private struct Device {
        var belief = "unknown"
        var state = History.DeviceState(rows: [], outbox: 0)
        var pending = 0
        var hasConflict = false
        var hasError = false

        /// Returns the state of a note; `nil` if it is absent.
        func row(_ name: String) -> CoverageCell.RowState? {
            state.rows.last { $0.name == name }.map(Collector.state)
        }
    }

    private struct Exchange {
        let device: String
        let method: String
        var row: String?
        /// The state of the note when the request was sent.
        var state: CoverageCell.RowState
    }

    private struct Collector {
        let scenario: Scenario
        var cells: Set<CoverageCell> = []
        var devices: [String: Device] = [:]
        var exchanges: [Int: Exchange] = [:]

        init(_ scenario: Scenario) {
            self.scenario = scenario
            for device in scenario.devices { devices[device.name] = Device() }
        }

        mutating func add(_ event: History.Event) {
            switch event {
            case .belief(let name, let belief):
                // Without the number of failures.
                devices[name]?.belief = belief.name
                addState(of: name)
            case .device(let name, let state):
                guard devices[name] != nil else { return }
                devices[name]?.state = state
                devices[name]?.pending = min(pendingMax, state.outbox)
                devices[name]?.hasConflict = state.rows.contains { $0.icon == .conflict }
                devices[name]?.hasError = state.rows.contains { $0.icon == .error }
                addState(of: name)
            case .request(let id, let actor, let method, let row, _, _, _):
                guard let device = devices[actor] else { return }
                exchanges[id] = Exchange(
                    device: actor, method: row == nil && method == "GET" ? "GET index" : method, row: row,
                    state: row.map { device.row($0) ?? .absent } ?? .clean)
            case .named(let id, let row):
                guard let exchange = exchanges[id], let device = devices[exchange.device] else { return }
                exchanges[id]?.row = row
                exchanges[id]?.state = device.row(row) ?? .absent
            case .fault(let index, let id, let point):
                guard let exchange = exchanges[id], scenario.faults.indices.contains(index) else { return }
                let fault = scenario.faults[index]
                cells.insert(
                    .fault(
                        action: fault.action.name, point: (point ?? fault.point).rawValue, method: exchange.method))
            case .responseReceived(let id, let status): ended(id, "\(status)")
            case .failed(let id): ended(id, "lost")
            default: break
            }
        }

        private mutating func ended(_ id: Int, _ result: String) {
            guard let exchange = exchanges.removeValue(forKey: id) else { return }
            // A note that the user changes meanwhile is in another state now.
            let now = exchange.row.flatMap { devices[exchange.device]?.row($0) } ?? exchange.state
            cells.insert(.merge(method: exchange.method, row: now, result: result))
        }

        private mutating func addState(of name: String) {
            guard let device = devices[name] else { return }
            cells.insert(
                .state(
                    belief: device.belief, pending: device.pending, hasConflict: device.hasConflict,
                    hasError: device.hasError))
        }

        static func state(of row: History.DeviceState.Row) -> CoverageCell.RowState {
            switch row.icon {
            case .conflict: .conflict
            case .error: .error
            default: row.isDeleted ? .deleted : row.icon == .upload ? .pending : .clean
            }
        }
    }
}
