internal import Determinism
internal import LinkModel
public import Scenario
internal import Wire

/// The events of a history as JSON objects, for the report of a run and the pages of the demonstration.
///
/// `t` is the time from the start in milliseconds, `type` the kind of the event as in the trace. The view of a device lists the
/// notes that have changed since its last view, and the names of those that are gone. Texts of notes that are not part of the
/// scenario file are replaced by their length and digest.
public struct HistoryJSON: Sendable {
    private let texts: TextDisplay
    /// The last view of each device.
    private var views: [String: [String: History.DeviceState.Row]] = [:]

    /// Creates the encoder for the history of one run.
    public init(texts: TextDisplay) { self.texts = texts }

    /// Returns the object of an event; to be called with each event, in order.
    public mutating func object(_ entry: History.Entry) -> String {
        var object = Object(time: entry.time, texts: texts, views: views)
        views = [:]
        entry.event.describe(to: &object)
        views = object.views
        return JSONText.object(object.members)
    }

    static func milliseconds(_ time: Nanoseconds) -> String { JSONText.number(Double(time.count) / 1_000_000) }
}

/// The writer of an event's object.
private struct Object: FieldVisitor {
    private(set) var members: [(key: String, value: String)]
    /// The last view of each device.
    private(set) var views: [String: [String: History.DeviceState.Row]]
    private let texts: TextDisplay
    private var actor = ""

    init(time: Nanoseconds, texts: TextDisplay, views: [String: [String: History.DeviceState.Row]]) {
        members = [("t", HistoryJSON.milliseconds(time))]
        self.texts = texts
        self.views = views
    }

    private mutating func add(_ field: History.Field, _ value: @autoclosure () -> String) {
        if let name = field.jsonName { members.append((name, value())) }
    }

    mutating func begin(_ kind: History.Kind) { members.append(("type", JSONText.string(kind.name))) }

    mutating func text(_ field: History.Field, _ value: String) {
        if case .actor = field { actor = value }
        add(field, JSONText.string(value))
    }

    mutating func text(_ field: History.Field, _ value: String?) { add(field, JSONText.string(value)) }

    mutating func number(_ field: History.Field, _ value: Int) { add(field, "\(value)") }

    mutating func number(_ field: History.Field, _ value: Int?) { add(field, value.map { "\($0)" } ?? "null") }

    // A digest has more digits than a JSON number.
    mutating func digest(_ field: History.Field, _ value: UInt64) {
        add(field, JSONText.string(String(value, radix: 16)))
    }

    mutating func flag(_ field: History.Field, _ value: Bool) { add(field, "\(value)") }

    mutating func duration(_ field: History.Field, _ value: Nanoseconds) { add(field, HistoryJSON.milliseconds(value)) }

    mutating func duration(_ field: History.Field, _ value: Nanoseconds?) {
        add(field, value.map(HistoryJSON.milliseconds) ?? "null")
    }

    mutating func value(_ field: History.Field, _ value: some EncodedValue) { add(field, JSONText.string(value.text)) }

    mutating func value(_ field: History.Field, _ value: (some EncodedValue)?) {
        add(field, JSONText.string(value?.text))
    }

    mutating func state(_ state: History.DeviceState) { members += view(actor, state) }

    mutating func rows(_ rows: [History.ServerRow]) { members.append(("notes", JSONText.array(rows.map(serverRow)))) }

    mutating func contents(_ contents: RequestContents) {
        members.append(("base", contents.base?.number.map { "\($0)" } ?? "null"))
    }

    mutating func result(_ result: WriteResult) {}

    // MARK: Notes

    private mutating func view(_ device: String, _ state: History.DeviceState) -> [(key: String, value: String)] {
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
    private static func patternMembers(_ screen: History.ScreenState) -> [(key: String, value: String)] {
        guard screen.error != nil || screen.hasMarker != nil else { return [] }
        return [
            ("error", JSONText.string(screen.error)), ("marker", screen.hasMarker.map { "\($0)" } ?? "null"),
            ("fields", screen.fields.map { JSONText.array($0.map { JSONText.string($0) }) } ?? "null"),
        ]
    }

    private static func patternMembers(_ row: History.DeviceState.Row) -> [(key: String, value: String)] {
        guard row.error != nil || row.hasMarker != nil else { return [] }
        return [("error", JSONText.string(row.error)), ("marker", row.hasMarker.map { "\($0)" } ?? "null")]
    }

    private func object(_ row: History.DeviceState.Row) -> String {
        JSONText.object(
            [
                ("note", JSONText.string(row.name)), ("title", text(row.title)), ("text", text(row.text)),
                ("icon", JSONText.string(row.icon.rawValue)), ("deleted", "\(row.isDeleted)"),
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
