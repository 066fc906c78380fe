public import Determinism
public import Scenario

/// The events of a run that explain a failure: those of its devices and notes, around its time.
public struct RelevantEvents: Sendable {
    /// An event for a reader.
    public struct Line: Hashable, Sendable {
        /// The time.
        public let time: Nanoseconds
        /// The event in words.
        public let text: String
    }

    /// An exchange whose response has not been recorded.
    private struct Exchange {
        let actor: String
        let method: String
        var row: String?
        let time: Nanoseconds
    }

    private let context: FailureContext
    private let texts: TextDisplay
    private var exchanges: [Int: Exchange] = [:]
    private var views: [String: History.DeviceState] = [:]
    private var links: [String: String] = [:]

    private init(_ context: FailureContext, _ texts: TextDisplay) {
        self.context = context
        self.texts = texts
    }

    /// The duration below which an exchange has one line, that of its response.
    private static let shortExchange = Nanoseconds.seconds(1)
    /// The maximum number of events after the failure.
    private static let laterMax = 1

    /// Returns at most `max` events: the last ones before the failure, and a few after it. The link of each device at
    /// the first of them comes first.
    public static func lines(_ history: History, _ context: FailureContext, _ texts: TextDisplay, max: Int) -> [Line] {
        var events = RelevantEvents(context, texts)
        // Requests get the names of their notes before they are judged.
        var starts: [Int: Nanoseconds] = [:]
        for entry in history.entries {
            switch entry.event {
            case .named(let id, let row): events.names[id] = row
            case .request(let id, _, _, _, _, _, _): starts[id] = entry.time
            case .responseReceived(let id, _):
                if let start = starts[id], entry.time - start < shortExchange { events.short.insert(id) }
            default: break
            }
        }
        var lines: [(line: Line, link: String?)] = []
        for entry in history.entries {
            guard let text = events.text(entry.event, entry.time) else { continue }
            var device: String?
            if case .network(let name, _, _) = entry.event { device = name }
            lines.append((Line(time: entry.time, text: text), device))
        }
        let before = lines.prefix { $0.line.time <= context.time }
        let after = lines[before.endIndex...].prefix(Self.laterMax)
        var shown = before.suffix(Swift.max(0, max - after.count))
        // The link in effect at the first event shown is part of its explanation.
        var openings: [Line] = []
        for device in Set(before.compactMap(\.link)).sorted() {
            let missing = before[..<shown.startIndex].last { $0.link == device }
            if let missing { openings.append(missing.line) }
        }
        openings = Array(openings.suffix(Swift.max(0, max / 3)))
        shown = shown.dropFirst(Swift.max(0, shown.count + after.count + openings.count - max))
        return openings.sorted { $0.time < $1.time } + (shown + after).map(\.line)
    }

    /// The names of notes that requests got later.
    private var names: [Int: String] = [:]
    /// Exchanges whose request has no line of its own.
    private var short: Set<Int> = []

    // MARK: Relevance

    private func concerns(_ actor: String) -> Bool { context.actors.isEmpty || context.actors.contains(actor) }

    private func concerns(row: String?) -> Bool {
        context.rows.isEmpty || row.map { context.rows.contains($0) } ?? false
    }

    /// Whether a request is relevant: one of the devices or notes concerned; with a note, also of other actors.
    private func concerns(_ exchange: Exchange) -> Bool {
        if !context.rows.isEmpty { return concerns(row: exchange.row) }
        return concerns(exchange.actor)
    }

    // MARK: Texts

    private mutating func text(_ event: History.Event, _ time: Nanoseconds) -> String? {
        switch event {
        case .network(let device, let link, let isOnline):
            links[device] = link
            guard concerns(device) else { return nil }
            return "\(device)  network: \(link)\(isOnline ? "" : ", interface down")"
        case .device(let device, let state):
            let before = views.updateValue(state, forKey: device)
            return concerns(device) ? change(before, state).map { "\(device)  \($0)" } : nil
        case .connectionAttempt(let connection, let device):
            return context.rows.isEmpty && concerns(device) ? "\(device)  connects, connection \(connection)" : nil
        case .connectionEnded: return nil
        case .request(let id, let actor, let method, let row, _, _, _):
            let exchange = Exchange(actor: actor, method: method, row: row ?? names[id], time: time)
            exchanges[id] = exchange
            return concerns(exchange) && !short.contains(id)
                ? "\(actor)  \(Self.subject(exchange)), exchange \(id)\(link(actor))" : nil
        case .responseReceived(let id, let status): return response(id, "\(status)", time)
        case .failed(let id): return response(id, "no response", time)
        case .fault(let index, let id, let point):
            guard let exchange = exchanges[id], concerns(exchange) else { return nil }
            return "fault \(index) applies to exchange \(id)" + (point.map { " at \($0.rawValue)" } ?? "")
        case .notice(let actor, let notice):
            return context.rows.isEmpty && concerns(actor) ? "\(actor)  \(notice)" : nil
        case .action(let actor, let action):
            let isOfDevice = [.kill, .start, .sync].contains(action.kind)
            let isRelevant = isOfDevice || context.rows.isEmpty ? concerns(actor) : concerns(row: action.subject)
            return isRelevant ? "\(actor)  \(action)" : nil
        case .belief(let device, let belief): return concerns(device) ? "\(device)  believes: \(belief)" : nil
        case .started(let device): return concerns(device) ? "\(device)  client started" : nil
        case .stopped(let device): return concerns(device) ? "\(device)  client stopped" : nil
        case .phase(.restore): return "restore: faults disarmed, all links restored"
        case .mark(let mark): return "mark \(mark)"
        case .missed(_, let reason): return reason.description
        case .stepFailed(_, let reason, let location): return "\(location): \(reason)"
        case .aborted(let reason): return "aborted: \(reason)"
        case .hostPause(let span): return "host paused for \(TimeFormat.duration(span))"
        case .server(let rows):
            let found = rows.filter { concerns(row: $0.name) }
            let shown = found.prefix(3).map { "\($0.name) revision \($0.revision), text \(texts.display($0.text))" }
            let more = found.count > shown.count ? ["\(found.count - shown.count) more"] : []
            return "server: " + (found.isEmpty ? "no such note" : (shown + more).joined(separator: "; "))
        case .bytesChanged(let device, _, _): return concerns(device) ? event.description : nil
        case .named, .requestSent, .arrived, .serverResponded, .commit, .accepted, .phase, .step, .late, .contents,
            .writeResult,
            .policy, .interface, .world:
            return nil
        }
    }

    private func link(_ actor: String) -> String { links[actor].map { " (\($0))" } ?? "" }

    private static func subject(_ exchange: Exchange) -> String { "\(exchange.method) \(exchange.row ?? "index")" }

    private func response(_ id: Int, _ result: String, _ time: Nanoseconds) -> String? {
        guard let exchange = exchanges[id], concerns(exchange) else { return nil }
        return "\(exchange.actor)  \(Self.subject(exchange)) -> \(result) after "
            + "\(TimeFormat.duration(time - exchange.time)), exchange \(id)"
    }

    /// Returns what has changed in a view for the notes concerned; `nil` if nothing has.
    private func change(_ before: History.DeviceState?, _ after: History.DeviceState) -> String? {
        var parts: [String] = []
        for row in after.rows where concerns(row: row.name) {
            let old = before?.rows.first { $0.name == row.name }
            guard let old else {
                parts.append("\(row.name) appears: \(row.icon), text \(texts.display(row.text))")
                continue
            }
            var changes: [String] = []
            if old.icon != row.icon { changes.append("icon \(old.icon) -> \(row.icon)") }
            if old.title != row.title { changes.append("title \(texts.display(row.title))") }
            if old.text != row.text { changes.append("text \(texts.display(row.text))") }
            if let error = row.error {
                if old.opacity != row.opacity, let opacity = row.opacity { changes.append("opacity \(opacity)") }
                if old.error != error { changes.append("error '\(error)'") }
            }
            if old.isDeleted != row.isDeleted { changes.append(row.isDeleted ? "deleted" : "restored") }
            if !changes.isEmpty { parts.append("\(row.name) \(changes.joined(separator: ", "))") }
        }
        for row in before?.rows ?? [] where concerns(row: row.name) {
            if !after.rows.contains(where: { $0.name == row.name }) { parts.append("\(row.name) disappears") }
        }
        if before?.outbox != after.outbox { parts.append("outbox \(after.outbox)") }
        let (old, new) = (before?.screen, after.screen)
        for (name, old, new) in [
            ("screen", old?.name, new.name), ("dialog", old?.dialog, new.dialog), ("toast", old?.toast, new.toast),
            ("error", old?.error, new.error),
        ] {
            if let new, old.map({ $0 != new }) ?? false { parts.append("\(name) \(new)") }
        }
        return parts.isEmpty ? nil : parts.joined(separator: "; ")
    }
}
