internal import CommandSupport
internal import Determinism
internal import JSON
internal import LinkModel
public import ScenarioModel

/// The trace of a run: one line per event, in a format that programs can read.
///
/// A line has the time in seconds with nine decimals, the kind of the event, and `key=value` for each value. A value
/// with characters other than ASCII letters, digits and `._-/:` is a JSON string. Texts of notes are digests.
public enum RunTrace {
    /// Returns the first line of a run.
    public static func header(_ run: PlannedRun) -> String {
        fields(
            "run",
            [
                ("scenario", run.scenario.name), ("variant", run.scenario.variant ?? "none"), ("seed", "\(run.seed)"),
                ("world", run.world.rawValue),
            ] + run.scenario.parameters.map { ("parameter", "\($0.name)=\($0.value)") }
                + (run.mutantNames.map { [("mutant", $0)] } ?? []))
    }

    /// Returns the last line of a run.
    public static func footer(result: String, digest: String, events: Int) -> String {
        fields("end", [("result", result), ("digest", digest), ("events", "\(events)")])
    }

    /// Returns the line of an event.
    public static func line(_ entry: History.Entry) -> String {
        time(entry.time) + " " + text(of: entry.event)
    }

    /// Returns the digest of a text: eight hexadecimal digits.
    static func digest(_ text: String) -> String { hexadecimal(FNV1a.digest(text.utf8), 16).suffix(8).description }

    private static func time(_ time: Nanoseconds) -> String {
        let (seconds, rest) = time.count.quotientAndRemainder(dividingBy: 1_000_000_000)
        let decimals = String(rest.magnitude)
        return "\(seconds)." + String(repeating: "0", count: 9 - decimals.utf8.count) + decimals
    }

    private static func hexadecimal(_ value: UInt64, _ digits: Int) -> String {
        let text = String(value, radix: 16)
        return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
    }

    private static func fields(_ kind: String, _ values: [(key: String, value: String)]) -> String {
        kind + values.map { " \($0.key)=\(value($0.value))" }.joined()
    }

    private static func value(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
            case UInt8(ascii: "-")...UInt8(ascii: ":"), UInt8(ascii: "_"): true
            default: false
            }
        }
        return isPlain && !text.isEmpty ? text : JSONText.string(TextTable.singleLine(text))
    }

    private static func text(of event: History.Event) -> String {
        switch event {
        case .network(let device, let link, let isOnline):
            fields("network", [("actor", device), ("link", link), ("interface", isOnline ? "up" : "down")])
        case .device(let device, let state):
            fields(
                "view",
                [("actor", device), ("outbox", "\(state.outbox)")] + state.rows.map { ("note", row($0)) }
                    + screen(state.screen))
        case .connectionAttempt(let connection, let device):
            fields("connect", [("actor", device), ("connection", "\(connection)")])
        case .connectionEnded(let connection, let device):
            fields("disconnect", [("actor", device), ("connection", "\(connection)")])
        case .request(let id, let actor, let method, let row, let key, let digest, let connection):
            fields(
                "request",
                [("exchange", "\(id)"), ("actor", actor), ("method", method), ("note", row ?? "-")]
                    + [("body", hexadecimal(digest, 16))] + (key.map { [("key", $0)] } ?? [])
                    + (connection.map { [("connection", "\($0)")] } ?? []))
        case .named(let id, let row): fields("named", [("exchange", "\(id)"), ("note", row)])
        case .requestSent(let id, let bytes): fields("sent", [("exchange", "\(id)"), ("bytes", "\(bytes)")])
        case .arrived(let id): fields("arrived", [("exchange", "\(id)")])
        case .serverResponded(let id, let status, let bytes, let revision):
            fields(
                "responded",
                [("exchange", "\(id)"), ("status", "\(status)"), ("bytes", "\(bytes)")]
                    + (revision.map { [("revision", "\($0)")] } ?? []))
        case .responseReceived(let id, let status):
            fields("received", [("exchange", "\(id)"), ("status", "\(status)")])
        case .failed(let id): fields("failed", [("exchange", "\(id)")])
        case .fault(let index, let exchange, let point):
            fields(
                "fault",
                [("fault", "\(index)"), ("exchange", "\(exchange)")] + (point.map { [("point", $0.rawValue)] } ?? []))
        case .commit(let device, let digest):
            fields("commit", [("actor", device), ("digest", hexadecimal(digest, 16))])
        case .accepted(let device, let row): fields("accepted", [("actor", device), ("note", row)])
        case .belief(let device, let belief): fields("belief", [("actor", device), ("connectivity", belief)])
        case .started(let device): fields("started", [("actor", device)])
        case .stopped(let device): fields("stopped", [("actor", device)])
        case .phase(let phase): fields("phase", [("phase", phase.rawValue)])
        case .step(let step): fields("step", [("step", "\(step)")])
        case .mark(let mark): fields("mark", [("mark", mark)])
        case .missed(let step, let reason): fields("missed", [("step", "\(step)"), ("reason", reason)])
        case .stepFailed(let step, let reason): fields("step-failed", [("step", "\(step)"), ("reason", reason)])
        case .late(let span): fields("late", [("seconds", time(span))])
        case .action(let actor, let text): fields("action", [("actor", actor), ("action", text)])
        case .server(let rows):
            fields(
                "server",
                rows.map {
                    ("note", "\($0.user):\($0.name):\($0.revision):\(digest($0.title)):\(digest($0.text))")
                })
        case .hostPause(let span): fields("host-pause", [("seconds", time(span))])
        case .aborted(let reason): fields("aborted", [("reason", reason)])
        case .contents(let id, let contents): fields("contents", [("exchange", "\(id)")] + values(of: contents))
        case .writeResult(let id, let result): fields("result", [("exchange", "\(id)")] + values(of: result))
        case .policy(let device, let policy):
            fields(
                "policy",
                [
                    ("actor", device), ("first", time(policy.firstDelay)), ("longest", time(policy.longestDelay)),
                    ("poll", policy.poll.map(time) ?? "none"),
                ])
        case .interface(let device, let isUp, let isMetered):
            fields(
                "interface",
                [("actor", device), ("state", isUp ? "up" : "down"), ("metered", isMetered ? "yes" : "no")])
        case .world(let facts):
            fields(
                "world",
                [
                    ("kind", facts.isSimulated ? "simulated" : "live"),
                    ("bytes", facts.comparesBytes ? "compared" : "unknown"),
                ])
        case .bytesChanged(let device, let direction, let offset):
            fields(
                "changed",
                [("actor", device), ("direction", direction == .up ? "up" : "down"), ("offset", "\(offset)")])
        }
    }

    private static func values(of result: WriteResult) -> [(key: String, value: String)] {
        var values = [(key: "target", value: hexadecimal(result.target, 16))]
        if let isReplayed = result.isReplayed { values.append(("replayed", isReplayed ? "yes" : "no")) }
        if let record = result.record { values.append(("record", hexadecimal(record, 16))) }
        if let body = result.body { values.append(("body", hexadecimal(body, 16))) }
        return values
    }

    private static func values(of contents: RequestContents) -> [(key: String, value: String)] {
        var values: [(key: String, value: String)] = []
        switch contents.account {
        case .user(let name)?: values.append(("account", name))
        case .token(let number)?: values.append(("token", "\(number)"))
        case nil: break
        }
        if let base = contents.base {
            values.append(("base", "\(base.number.map(String.init) ?? "-"):\(hexadecimal(base.digest, 16).suffix(8))"))
        }
        if contents.isConditional { values.append(("conditional", "yes")) }
        if case .note(let title, let text) = contents.body {
            func short(_ digest: UInt64?) -> String { digest.map { String(hexadecimal($0, 16).suffix(8)) } ?? "-" }
            values.append(("note", "\(short(title)):\(short(text))"))
        }
        return values
    }

    /// Returns what is shown beside the notes, as far as the client publishes it.
    private static func screen(_ screen: History.ScreenState) -> [(key: String, value: String)] {
        var values: [(key: String, value: String)] = screen.name.map { [("screen", $0)] } ?? []
        for control in screen.controls ?? [] { values.append(("control", control)) }
        if let dialog = screen.dialog { values.append(("dialog", dialog)) }
        if let toast = screen.toast { values.append(("toast", toast)) }
        if let error = screen.error { values.append(("error", error)) }
        return values
    }

    /// Returns a note of a view: name, icon, deletion, and the digests of title, text and stored texts.
    private static func row(_ row: History.DeviceState.Row) -> String {
        let kept = row.kept.map(digest).joined(separator: "/")
        let icon = row.isDeleted ? "\(row.icon)/deleted" : row.icon
        return "\(row.name):\(icon):\(digest(row.title)):\(digest(row.text)):\(kept.isEmpty ? "-" : kept)"
    }

    private static func digest(_ text: String?) -> String { text.map { digest($0) } ?? "-" }
}
