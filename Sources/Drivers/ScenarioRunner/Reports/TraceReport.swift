internal import CommandSupport
internal import Determinism
internal import Scenario
internal import Wire

/// A run as Chrome trace events (JSON), which Perfetto reads: a process for each device and writer, and one for the server.
///
/// Slices of one thread never overlap; exchanges, which may, are asynchronous slices with the number of the exchange.
struct TraceReport {
    /// The lanes of a process: threads.
    private enum Lane: Int, CaseIterable {
        case link = 1, client, user, requests

        var name: String {
            switch self {
            case .link: "link"
            case .client: "client"
            case .user: "user"
            case .requests: "requests"
            }
        }
    }

    private let run: PlannedRun
    private let facts: RunFacts
    private var processes: [String: Int] = [:]
    private let server: Int
    private var events: [String] = []

    /// Returns the trace of a run.
    static func document(_ run: PlannedRun, _ facts: RunFacts, _ history: History) -> String {
        var report = TraceReport(run, facts)
        return report.document(history)
    }

    private init(_ run: PlannedRun, _ facts: RunFacts) {
        self.run = run
        self.facts = facts
        let names = run.scenario.devices.map(\.name) + run.scenario.writers.map(\.name)
        for (index, name) in names.enumerated() { processes[name] = index + 1 }
        server = names.count + 1
    }

    private mutating func document(_ history: History) -> String {
        addNames()
        for device in run.scenario.devices { addLanes(of: device.name) }
        for exchange in facts.exchanges { add(exchange) }
        for entry in history.entries { add(entry) }
        let other = JSONText.object([
            ("scenario", JSONText.string(run.title)), ("seed", JSONText.string("\(run.seed)")),
            ("world", JSONText.string(run.world.rawValue)), ("slowlane", JSONText.string(SlowlaneVersion.current)),
        ])
        return "{\"displayTimeUnit\":\"ms\",\"otherData\":\(other),\"traceEvents\":[\n"
            + events.joined(separator: ",\n") + "\n]}"
    }

    /// Adds an event with a time in microseconds.
    private mutating func add(
        _ phase: String, _ name: String, _ process: Int, _ lane: Int, at time: Nanoseconds,
        _ more: [(key: String, value: String)] = []
    ) {
        events.append(
            JSONText.object(
                [
                    ("ph", JSONText.string(phase)), ("name", JSONText.string(name)), ("pid", "\(process)"),
                    ("tid", "\(lane)"), ("ts", Self.microseconds(time)),
                ] + more))
    }

    private static func microseconds(_ time: Nanoseconds) -> String { JSONText.number(Double(time.count) / 1000) }

    private mutating func addNames() {
        let names = processes.sorted { $0.value < $1.value }.map { ($0.value, $0.key) } + [(server, "server")]
        for (process, name) in names {
            let title = JSONText.object([("name", JSONText.string(name))])
            add("M", "process_name", process, 0, at: .zero, [("args", title)])
            add("M", "process_sort_index", process, 0, at: .zero, [("args", "{\"sort_index\":\(process)}")])
            for lane in Lane.allCases where process != server || lane == .requests {
                let title = JSONText.object([("name", JSONText.string(lane.name))])
                add("M", "thread_name", process, lane.rawValue, at: .zero, [("args", title)])
            }
        }
    }

    private mutating func addLanes(of device: String) {
        guard let process = processes[device] else { return }
        for span in facts.links[device] ?? [] { addSlice(span, process, .link) }
        for span in facts.stops[device] ?? [] { addSlice(span, process, .client) }
    }

    private mutating func addSlice(_ span: RunFacts.Span, _ process: Int, _ lane: Lane) {
        let length = span.end - span.start
        add(
            "X", span.name, process, lane.rawValue, at: span.start,
            [("cat", JSONText.string(lane.name)), ("dur", Self.microseconds(length))])
    }

    private mutating func add(_ exchange: RunExchange) {
        guard let process = processes[exchange.actor] else { return }
        let lane = Lane.requests.rawValue
        let end = max(exchange.sent, exchange.ended ?? facts.end)
        func identity(_ category: String) -> [(key: String, value: String)] {
            // A local identifier makes the slice one of its process.
            let local = JSONText.object([("local", JSONText.string("0x" + String(exchange.number, radix: 16)))])
            return [("cat", JSONText.string(category)), ("id2", local)]
        }
        let arguments = JSONText.object([
            ("exchange", "\(exchange.number)"), ("connection", exchange.connection.map { "\($0)" } ?? "null"),
            ("attempt", "\(exchange.attempt)"), ("link", JSONText.string(exchange.link)),
            ("request_bytes", "\(exchange.requestBytes)"), ("response_bytes", "\(exchange.responseBytes)"),
            ("end", JSONText.string(exchange.outcome)),
        ])
        add("b", exchange.title, process, lane, at: exchange.sent, identity("exchange") + [("args", arguments)])
        for fault in exchange.faults {
            let point = JSONText.object([("point", JSONText.string(fault.point))])
            add(
                "n", "fault", process, lane, at: min(max(fault.time, exchange.sent), end),
                identity("exchange") + [("args", point)])
        }
        add("e", exchange.title, process, lane, at: end, identity("exchange"))
        guard let arrived = exchange.arrived else { return }
        let done = max(arrived, exchange.responded ?? end)
        let title = "\(exchange.actor) \(exchange.title)"
        add("b", title, server, lane, at: arrived, identity("server") + [("args", arguments)])
        add("e", title, server, lane, at: done, identity("server"))
    }

    private mutating func add(_ entry: History.Entry) {
        switch entry.event {
        case .device(let device, let state):
            guard let process = processes[device] else { return }
            add("C", "outbox of \(device)", process, 0, at: entry.time, [("args", "{\"changes\":\(state.outbox)}")])
        case .action(let actor, let action):
            guard let process = processes[actor] else { return }
            add("i", action.description, process, Lane.user.rawValue, at: entry.time, [("s", "\"t\"")])
        case .notice(let actor, let notice):
            guard let process = processes[actor] else { return }
            add("i", notice.description, process, Lane.user.rawValue, at: entry.time, [("s", "\"t\"")])
        case .belief(let device, let belief):
            guard let process = processes[device] else { return }
            add("i", "believes \(belief)", process, Lane.client.rawValue, at: entry.time, [("s", "\"t\"")])
        case .stopped(let device):
            guard let process = processes[device] else { return }
            add("i", "\(device) stopped", process, Lane.client.rawValue, at: entry.time, [("s", "\"g\"")])
        case .mark(let name): addGlobal("mark \(name)", at: entry.time)
        case .phase(let phase): addGlobal("phase \(phase.rawValue)", at: entry.time)
        default: break
        }
    }

    private mutating func addGlobal(_ name: String, at time: Nanoseconds) {
        add("i", name, server, Lane.requests.rawValue, at: time, [("s", "\"g\"")])
    }
}
