internal import Determinism
public import Scenario

/// The lines of a run: one for each event that matters to a reader.
public struct RunLog: Sendable {
    private var links: [String: String] = [:]
    private var outboxes: [String: Int] = [:]
    private var requests: [Int: (actor: String, subject: String, time: Nanoseconds)] = [:]

    /// Creates the log of a run.
    public init() {}

    /// Returns the line of an event; `nil` if it has none.
    public mutating func line(_ entry: History.Entry) -> String? {
        guard let text = text(entry.event, entry.time) else { return nil }
        let seconds = TimeFormat.seconds(entry.time)
        return String(repeating: " ", count: max(0, 8 - seconds.count)) + seconds + "  " + text
    }

    private mutating func text(_ event: History.Event, _ time: Nanoseconds) -> String? {
        switch event {
        case .network(let device, let link, let isOnline):
            links[device] = link
            return "\(device)  network: \(link)\(isOnline ? "" : ", interface down")"
        case .device(let device, let state):
            let before = outboxes.updateValue(state.outbox, forKey: device)
            let icons = state.rows.filter { $0.icon != .plain }.map { "\($0.name) \($0.icon)" }
            let isPrinted = before != nil && before != state.outbox || state.rows.contains { $0.icon == .conflict }
            return isPrinted
                ? "\(device)  outbox \(state.outbox)\(icons.isEmpty ? "" : ": \(icons.joined(separator: ", "))")" : nil
        case .request(let id, let actor, let method, let row, _, _, _):
            requests[id] = (actor, "\(method) \(row ?? "index")", time)
            return "\(actor)  \(method) \(row ?? "index")"
        case .responseReceived(let id, let status): return line(id, "\(status)", time)
        case .failed(let id): return line(id, "no response", time)
        case .fault(_, let id, _): return line(id, "fault", time)
        case .mark(let mark): return "mark \(mark)"
        case .notice(_, .restoresLinks): return "plan finished; all links restored, waiting for convergence"
        case .action(let actor, let action): return "\(actor)  \(action)"
        case .notice(let actor, let notice): return "\(actor)  \(notice)"
        case .hostPause(let span): return "the host was paused for \(TimeFormat.seconds(span))"
        case .stepFailed(_, let reason, let location): return "\(location): \(reason)"
        case .missed(_, let reason), .aborted(let reason): return reason.description
        default: return nil
        }
    }

    private func line(_ id: Int, _ result: String, _ time: Nanoseconds) -> String? {
        guard let request = requests[id] else { return nil }
        let link = links[request.actor].map { " (\($0))" } ?? ""
        let duration = TimeFormat.duration(time - request.time)
        return "\(request.actor)  \(request.subject) -> \(result) after \(duration)\(link)"
    }
}
