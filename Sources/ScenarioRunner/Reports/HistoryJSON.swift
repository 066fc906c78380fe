internal import Determinism
internal import JSON
internal import LinkModel
public import ScenarioModel

/// The events of a history as JSON objects, for the report of a run and the pages of the demonstration.
///
/// `t` is the time from the start in milliseconds, `type` the kind of the event as in the trace. The view of a device lists the
/// notes that have changed since its last view, and the names of those that are gone. Texts of notes that are not part of the
/// scenario file are replaced by their length and digest.
public struct HistoryJSON: Sendable {
    private typealias Members = [(key: String, value: String)]

    private let texts: TextDisplay
    /// The last view of each device.
    private var views: [String: [String: History.DeviceState.Row]] = [:]

    /// Creates the encoder for the history of one run.
    public init(texts: TextDisplay) { self.texts = texts }

    /// Returns the object of an event; to be called with each event, in order.
    public mutating func object(_ entry: History.Entry) -> String {
        let (type, members) = members(of: entry.event)
        return JSONText.object([("t", Self.milliseconds(entry.time)), ("type", JSONText.string(type))] + members)
    }

    static func milliseconds(_ time: Nanoseconds) -> String { JSONText.number(Double(time.count) / 1_000_000) }

    private static func actor(_ name: String) -> (key: String, value: String) { ("actor", JSONText.string(name)) }

    private static func exchange(_ number: Int) -> (key: String, value: String) { ("exchange", "\(number)") }

    private static func number(_ value: Int?) -> String { value.map { "\($0)" } ?? "null" }

    private mutating func members(of event: History.Event) -> (type: String, Members) {
        switch event {
        case .network(let device, let link, let isOnline):
            return (
                "network",
                [Self.actor(device), ("link", JSONText.string(link)), ("interface", isOnline ? "true" : "false")]
            )
        case .interface(let device, let isUp, let isMetered):
            return ("interface", [Self.actor(device), ("up", "\(isUp)"), ("metered", "\(isMetered)")])
        case .device(let device, let state): return ("view", [Self.actor(device)] + view(device, state))
        case .belief(let device, let belief):
            return ("belief", [Self.actor(device), ("connectivity", JSONText.string(belief))])
        case .connectionAttempt(let connection, let device):
            return ("connect", [Self.actor(device), ("connection", "\(connection)")])
        case .connectionEnded(let connection, let device):
            return ("disconnect", [Self.actor(device), ("connection", "\(connection)")])
        case .started(let device): return ("started", [Self.actor(device)])
        case .stopped(let device): return ("stopped", [Self.actor(device)])
        case .commit(let device, _): return ("commit", [Self.actor(device)])
        case .accepted(let device, let row): return ("accepted", [Self.actor(device), ("note", JSONText.string(row))])
        case .action(let actor, let text):
            return ("action", [Self.actor(actor), ("action", JSONText.string(text))])
        case .policy(let device, let policy):
            return (
                "policy",
                [
                    Self.actor(device), ("first_delay_ms", Self.milliseconds(policy.firstDelay)),
                    ("longest_delay_ms", Self.milliseconds(policy.longestDelay)),
                ]
            )
        case .server(let rows): return ("server", [("notes", JSONText.array(rows.map(serverRow)))])
        case .world(let facts): return ("world", [("simulated", "\(facts.isSimulated)")])
        case .bytesChanged(let device, let direction, let offset):
            return (
                "changed",
                [
                    Self.actor(device), ("direction", JSONText.string(direction == .up ? "up" : "down")),
                    ("offset", "\(offset)"),
                ]
            )
        case .phase(let phase): return ("phase", [("phase", JSONText.string(phase.rawValue))])
        case .step(let step): return ("step", [("step", "\(step)")])
        case .mark(let mark): return ("mark", [("mark", JSONText.string(mark))])
        case .missed(let step, let reason):
            return ("missed", [("step", "\(step)"), ("reason", JSONText.string(reason))])
        case .stepFailed(let step, let reason):
            return ("step-failed", [("step", "\(step)"), ("reason", JSONText.string(reason))])
        case .late(let span): return ("late", [("late_ms", Self.milliseconds(span))])
        case .hostPause(let span): return ("host-pause", [("pause_ms", Self.milliseconds(span))])
        case .aborted(let reason): return ("aborted", [("reason", JSONText.string(reason))])
        default: return exchangeMembers(of: event)
        }
    }

    /// Returns the members of an event of an exchange.
    private func exchangeMembers(of event: History.Event) -> (type: String, Members) {
        switch event {
        case .request(let id, let actor, let method, let row, _, _, let connection):
            return (
                "request",
                [
                    Self.exchange(id), Self.actor(actor), ("method", JSONText.string(method)),
                    ("note", JSONText.string(row)), ("connection", Self.number(connection)),
                ]
            )
        case .named(let id, let row): return ("named", [Self.exchange(id), ("note", JSONText.string(row))])
        case .requestSent(let id, let bytes): return ("sent", [Self.exchange(id), ("bytes", "\(bytes)")])
        case .arrived(let id): return ("arrived", [Self.exchange(id)])
        case .serverResponded(let id, let status, let bytes, let revision):
            return (
                "responded",
                [
                    Self.exchange(id), ("status", "\(status)"), ("bytes", "\(bytes)"),
                    ("revision", Self.number(revision)),
                ]
            )
        case .responseReceived(let id, let status): return ("received", [Self.exchange(id), ("status", "\(status)")])
        case .failed(let id): return ("failed", [Self.exchange(id)])
        case .fault(let index, let exchange, let point):
            return (
                "fault", [("fault", "\(index)"), Self.exchange(exchange), ("point", JSONText.string(point?.rawValue))]
            )
        case .contents(let id, let contents):
            return ("contents", [Self.exchange(id), ("base", Self.number(contents.base?.number))])
        default: return ("other", [])
        }
    }

    // MARK: Notes

    private mutating func view(_ device: String, _ state: History.DeviceState) -> Members {
        let before = views[device] ?? [:]
        var rows: [String: History.DeviceState.Row] = [:]
        var changed: [String] = []
        for row in state.rows {
            rows[row.name] = row
            if before[row.name] != row { changed.append(object(row)) }
        }
        views[device] = rows
        let removed = before.keys.filter { rows[$0] == nil }.sorted()
        let screen = state.screen
        return [
            ("outbox", "\(state.outbox)"), ("changed", JSONText.array(changed)),
            ("removed", JSONText.array(removed.map { JSONText.string($0) })), ("screen", JSONText.string(screen.name)),
            ("dialog", JSONText.string(screen.dialog)), ("toast", JSONText.string(screen.toast)),
            ("controls", screen.controls.map { JSONText.array($0.map { JSONText.string($0) }) } ?? "null"),
        ] + Self.patternMembers(screen)
    }

    /// Returns the values that only clients with offline patterns publish.
    private static func patternMembers(_ screen: History.ScreenState) -> Members {
        guard screen.error != nil || screen.hasMarker != nil else { return [] }
        return [
            ("error", JSONText.string(screen.error)), ("marker", screen.hasMarker.map { "\($0)" } ?? "null"),
            ("fields", screen.fields.map { JSONText.array($0.map { JSONText.string($0) }) } ?? "null"),
        ]
    }

    private static func patternMembers(_ row: History.DeviceState.Row) -> Members {
        guard row.error != nil || row.hasMarker != nil else { return [] }
        return [("error", JSONText.string(row.error)), ("marker", row.hasMarker.map { "\($0)" } ?? "null")]
    }

    private func object(_ row: History.DeviceState.Row) -> String {
        JSONText.object(
            [
                ("note", JSONText.string(row.name)), ("title", text(row.title)), ("text", text(row.text)),
                ("icon", JSONText.string(row.icon)), ("deleted", "\(row.isDeleted)"),
                ("kept", JSONText.array(row.kept.map { text($0) })), ("opacity", JSONText.string(row.opacity)),
                ("struck", row.isStruck.map { "\($0)" } ?? "null"),
            ] + Self.patternMembers(row))
    }

    private func serverRow(_ row: History.ServerRow) -> String {
        JSONText.object([
            ("user", JSONText.string(row.user)), ("note", JSONText.string(row.name)), ("revision", "\(row.revision)"),
            ("title", text(row.title)), ("text", text(row.text)),
        ])
    }

    private func text(_ text: String?) -> String { JSONText.string(text.map { texts.replacement(of: $0) ?? $0 }) }
}
