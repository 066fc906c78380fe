internal import CommandSupport
internal import Determinism
internal import LinkModel
public import Scenario
internal import Wire
internal import Worlds

/// The trace of a run: one line per event, in a format that programs can read.
///
/// A line has the time in seconds with nine decimals, the kind of the event, and `key=value` for each value. A value
/// with characters other than ASCII letters, digits and `._-/:` is a JSON string. Texts of notes are digests.
public enum RunTrace {
    /// Returns the lines of a run.
    static func lines(_ run: PlannedRun, _ result: RunResult) -> [String] {
        let end = footer(
            result: result.verdict.result.rawValue, digest: result.digestText, events: result.eventCount)
        return [header(run)] + result.history.entries.map(line) + [end]
    }

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

    /// The writer of an event's line.
    private struct Line: FieldVisitor {
        private(set) var text = ""

        private mutating func add(_ key: String, _ text: String) { self.text += " \(key)=\(RunTrace.value(text))" }

        /// Adds a value; one that is missing has a word or is left out.
        private mutating func add(_ field: History.Field, _ text: String?) {
            guard let name = field.traceName, let text = text ?? field.missing else { return }
            add(name, text)
        }

        mutating func begin(_ kind: History.Kind) { text = kind.name }

        mutating func text(_ field: History.Field, _ value: String) { add(field, value) }

        mutating func text(_ field: History.Field, _ value: String?) { add(field, value) }

        mutating func number(_ field: History.Field, _ value: Int) { add(field, "\(value)") }

        mutating func number(_ field: History.Field, _ value: Int?) { add(field, value.map { "\($0)" }) }

        mutating func digest(_ field: History.Field, _ value: UInt64) { add(field, RunTrace.hexadecimal(value, 16)) }

        mutating func flag(_ field: History.Field, _ value: Bool) {
            add(field, value ? field.words.yes : field.words.no)
        }

        mutating func duration(_ field: History.Field, _ value: Nanoseconds) { add(field, RunTrace.time(value)) }

        mutating func duration(_ field: History.Field, _ value: Nanoseconds?) { add(field, value.map(RunTrace.time)) }

        mutating func value(_ field: History.Field, _ value: some EncodedValue) { add(field, value.text) }

        mutating func value(_ field: History.Field, _ value: (some EncodedValue)?) { add(field, value?.text) }

        mutating func state(_ state: History.DeviceState) {
            add("outbox", "\(state.outbox)")
            for row in state.rows { add("note", RunTrace.row(row)) }
            for (key, value) in RunTrace.screen(state.screen) { add(key, value) }
        }

        mutating func rows(_ rows: [History.ServerRow]) {
            for row in rows {
                let digests = "\(RunTrace.digest(row.title)):\(RunTrace.digest(row.text))"
                add("note", "\(row.user):\(row.name):\(row.revision):\(digests)")
            }
        }

        mutating func contents(_ contents: RequestContents) {
            switch contents.account {
            case .user(let name)?: add("account", name)
            case .token(let number)?: add("token", "\(number)")
            case nil: break
            }
            if let base = contents.base {
                add("base", "\(base.number.map(String.init) ?? "-"):\(Self.short(base.digest))")
            }
            if contents.isConditional { add("conditional", "yes") }
            if case .note(let title, let text) = contents.body {
                add("note", "\(Self.short(title)):\(Self.short(text))")
            }
        }

        mutating func result(_ result: WriteResult) {
            add("target", RunTrace.hexadecimal(result.target, 16))
            if let isReplayed = result.isReplayed { add("replayed", isReplayed ? "yes" : "no") }
            if let record = result.record { add("record", RunTrace.hexadecimal(record, 16)) }
            if let body = result.body { add("body", RunTrace.hexadecimal(body, 16)) }
        }

        private static func short(_ digest: UInt64?) -> String {
            digest.map { String(RunTrace.hexadecimal($0, 16).suffix(8)) } ?? "-"
        }
    }

    private static func text(of event: History.Event) -> String {
        var line = Line()
        event.describe(to: &line)
        return line.text
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
        let icon = row.isDeleted ? "\(row.icon)/deleted" : row.icon.rawValue
        return "\(row.name):\(icon):\(digest(row.title)):\(digest(row.text)):\(kept.isEmpty ? "-" : kept)"
    }

    private static func digest(_ text: String?) -> String { text.map { digest($0) } ?? "-" }
}
