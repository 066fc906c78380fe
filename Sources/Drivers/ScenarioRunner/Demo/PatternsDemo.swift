internal import ConfigFiles
public import Determinism
internal import Scenario
internal import Worlds

/// The demonstration of the offline patterns: a run in virtual time of five devices with one pattern each, drawn side by
/// side as text.
public struct PatternsDemo: Sendable {
    /// A pattern: the device that shows it, its name, and what it does without a network.
    struct Column: Sendable {
        let device: String
        let title: String
        let rule: String
    }

    static let columns = [
        Column(device: "None", title: "none", rule: "shows what it has"),
        Column(device: "A", title: "A: optimistic", rule: "changes at once, no feedback"),
        Column(device: "B", title: "B: pending UI", rule: "changes at once, pending is visible"),
        Column(device: "C", title: "C: form", rule: "can be filled, not submitted"),
        Column(device: "D", title: "D: page", rule: "shows nothing stale"),
    ]

    /// What a column shows.
    private struct Shown: Sendable {
        var isOnline = true
        var state: History.DeviceState?
        /// The last act of the user.
        var act = ""
        /// The last response to a write, or to a read before the first write.
        var response = ""
        var hasWritten = false
    }

    private static let file = "demo/patterns.yaml"

    /// The time at which the story ends.
    public let end: Nanoseconds
    /// What the devices show from each time on at which something changes, in order.
    private let snapshots: [(time: Nanoseconds, shown: [String: Shown])]
    private let names: [String: String]

    /// Runs the scenario in virtual time.
    public init() throws {
        let scenario = try ScenarioFile(parsing: EmbeddedFile.page(Self.file) ?? "", file: Self.file).scenario
        let result = try SimulatedRun.run(scenario)
        guard result.verdict.result == .pass else {
            throw Demo.Failure(description: "\(Self.file): the run has the result '\(result.verdict.result.rawValue)'")
        }
        let end = scenario.restoreAt ?? scenario.limit
        var names: [String: String] = [:]
        for record in scenario.records { names[record.row] = record.title }
        for step in scenario.steps {
            if case .create(let row, let title?, _)? = step.action?.action { names[row] = title }
        }
        self.end = end
        self.names = names
        snapshots = Self.snapshots(of: result.history, until: end, names)
    }

    private static func snapshots(
        of history: History, until end: Nanoseconds, _ names: [String: String]
    ) -> [(time: Nanoseconds, shown: [String: Shown])] {
        var requests: [Int: (actor: String, text: String, isWrite: Bool)] = [:]
        var shown: [String: Shown] = [:]
        var snapshots: [(time: Nanoseconds, shown: [String: Shown])] = []
        for entry in history.entries {
            guard entry.time <= end else { break }
            switch entry.event {
            case .network(let device, _, let isOnline): shown[device, default: Shown()].isOnline = isOnline
            case .device(let device, let state): shown[device, default: Shown()].state = state
            case .action(let actor, let action): shown[actor, default: Shown()].act = "user: \(action)"
            case .notice(let actor, let notice): shown[actor, default: Shown()].act = "user: \(notice)"
            case .request(let id, let actor, let method, let row, _, _, _):
                requests[id] = (actor, method + (row.map { " \(names[$0] ?? $0)" } ?? ""), method != "GET")
                continue
            case .serverResponded(let id, let status, _, _):
                guard let request = requests[id] else { continue }
                var device = shown[request.actor] ?? Shown()
                guard request.isWrite || !device.hasWritten else { continue }
                device.hasWritten = device.hasWritten || request.isWrite
                device.response = "\(request.text): \(status)"
                shown[request.actor] = device
            default: continue
            }
            if snapshots.last?.time == entry.time { snapshots.removeLast() }
            snapshots.append((entry.time, shown))
        }
        return snapshots
    }

    /// Returns what each device shows at a time.
    private func shown(at time: Nanoseconds) -> [String: Shown] {
        snapshots.last { $0.time <= time }?.shown ?? [:]
    }

    /// Returns the lines of a device's screen.
    private func screen(_ state: History.DeviceState) -> [StyledText] {
        let screen = state.screen
        var lines: [StyledText] = []
        func value(_ name: String) -> String {
            (screen.fields ?? []).first { $0.hasPrefix("\(name)=") }.map { String($0.dropFirst(name.count + 1)) } ?? ""
        }
        switch screen.name {
        case "balance":
            lines.append(StyledText("Balance"))
            lines.append(StyledText(value("balance").isEmpty ? "(no content)" : value("balance")))
        case "transfer":
            for name in ["to", "amount", "memo"] { lines.append(StyledText("\(name) [\(value(name))]")) }
            let isActive = screen.controls?.contains("submit") ?? false
            lines.append(StyledText(isActive ? "<Send>" : "(Send)", isActive ? [] : .dim))
        default:
            for row in state.rows where isOnScreen(row.name, screen.name ?? "") {
                var style: StyledText.Style = []
                if row.opacity == "0.5" { style.insert(.dim) }
                if row.isStruck == true { style.insert(.struck) }
                let title = row.title ?? row.name
                let text = row.text.map { " \($0)" } ?? ""
                let mark = row.isStruck == true ? "-" : row.opacity == "0.5" ? "~" : " "
                lines.append(StyledText("\(mark)\(title)\(text)", style))
                if let error = row.error, error != "none" { lines.append(StyledText("!\(error)", .red)) }
            }
        }
        if screen.error != "none", let error = screen.error { lines.append(StyledText("! \(error)", .red)) }
        if screen.dialog != "none", let dialog = screen.dialog { lines.append(StyledText("[\(dialog)]")) }
        if screen.toast != "none", let toast = screen.toast { lines.append(StyledText("(\(toast))")) }
        if state.outbox > 0 { lines.append(StyledText("\(state.outbox) to send", .dim)) }
        return lines
    }

    /// Whether a record is drawn: chats in the list, expenses in their report.
    private func isOnScreen(_ row: String, _ screen: String) -> Bool {
        screen == "list" ? row.hasPrefix("c") || row.hasPrefix("r") : row.hasPrefix("e")
    }
}

/// Text with attributes of a terminal.
public struct StyledText: Hashable, Sendable {
    /// Attributes of a terminal (ECMA-48, SGR).
    public struct Style: OptionSet, Hashable, Sendable {
        public let rawValue: Int

        public init(rawValue: Int) { self.rawValue = rawValue }

        /// Faint: half opacity.
        public static let dim = Style(rawValue: 1)
        /// Crossed out.
        public static let struck = Style(rawValue: 2)
        /// Red.
        public static let red = Style(rawValue: 4)
        /// Bold.
        public static let bold = Style(rawValue: 8)
    }

    /// The text.
    public let text: String
    /// The attributes.
    public let style: Style

    init(_ text: String, _ style: Style = []) {
        self.text = text
        self.style = style
    }

    /// Returns the text with the width: cut, or filled with spaces; with escape sequences if wanted.
    func fitted(_ width: Int, withEscapes: Bool) -> String {
        let cut = text.count > width ? String(text.prefix(max(0, width - 1))) + "…" : text
        let spaces = String(repeating: " ", count: max(0, width - cut.count))
        guard withEscapes, !style.isEmpty, !cut.isEmpty else { return cut + spaces }
        let codes = [(Style.bold, "1"), (.dim, "2"), (.struck, "9"), (.red, "31")].filter { style.contains($0.0) }
        return "\u{1B}[\(codes.map(\.1).joined(separator: ";"))m\(cut)\u{1B}[0m\(spaces)"
    }
}

extension PatternsDemo {
    /// The number of lines of a screen in a frame.
    private static let screenLines = 9
    /// The number of lines of a frame, and the number of columns that it needs.
    public static let frameSize = (columns: 79, lines: 20)
    /// The narrowest and the widest column.
    private static let columnWidths = 15...30

    /// Returns the frame at a time.
    ///
    /// - Parameters:
    ///   - width: The width of the terminal in columns. At least ``frameSize``.
    ///   - withEscapes: Whether the lines have escape sequences. Marks of their own have the same meaning without them.
    public func frame(at time: Nanoseconds, width: Int, withEscapes: Bool) -> [String] {
        let shown = shown(at: time)
        let column = min(Self.columnWidths.upperBound, max(Self.columnWidths.lowerBound, (width - 4) / 5))
        func row(_ cells: [StyledText]) -> String {
            let line = cells.map { $0.fitted(column, withEscapes: withEscapes) }.joined(separator: " ")
            return withEscapes ? line : String(line.reversed().drop { $0 == " " }.reversed())
        }
        let isOnline = shown["A"]?.isOnline ?? true
        let bar = Self.bar(time, end, width: max(10, min(50, width - 50)))
        var lines = [
            "\(TimeFormat.seconds(time)) [\(bar)] "
                + (isOnline ? "network: Wi-Fi" : "network: none (100 % loss)"),
            "",
            row(Self.columns.map { StyledText($0.title, .bold) }),
        ]
        let rules = Self.columns.map { Self.wrapped($0.rule, column) }
        for index in 0..<3 { lines.append(row(rules.map { StyledText(index < $0.count ? $0[index] : "", .dim) })) }
        lines.append(row(Self.columns.map { _ in StyledText(String(repeating: "-", count: column)) }))
        let screens = Self.columns.map { shown[$0.device]?.state.map(screen) ?? [] }.map { lines in
            lines.flatMap { line in Self.wrapped(line.text, column).map { StyledText($0, line.style) } }
        }
        for index in 0..<Self.screenLines {
            lines.append(row(screens.map { index < $0.count ? $0[index] : StyledText("") }))
        }
        lines.append(row(Self.columns.map { _ in StyledText(String(repeating: "-", count: column)) }))
        let acts = Self.columns.map { Self.wrapped(shown[$0.device]?.act ?? "", column) }
        for index in 0..<2 { lines.append(row(acts.map { StyledText(index < $0.count ? $0[index] : "", .dim) })) }
        lines.append(row(Self.columns.map { StyledText(shown[$0.device]?.response ?? "", .dim) }))
        return lines
    }

    /// What the marks mean.
    public static let legend =
        "~ pending (half opacity)   - struck through   ! notice or error   ( ) message, inert button"

    private static func bar(_ time: Nanoseconds, _ end: Nanoseconds, width: Int) -> String {
        let share = end > .zero ? max(0, min(1, time.inSeconds / end.inSeconds)) : 1
        let full = Int((share * Double(width)).rounded())
        return String(repeating: "=", count: full) + String(repeating: " ", count: width - full)
    }

    /// Returns words in lines of a width.
    private static func wrapped(_ text: String, _ width: Int) -> [String] {
        var lines: [String] = []
        for word in text.split(separator: " ", omittingEmptySubsequences: false) {
            if let last = lines.last, last.count + 1 + word.count <= width {
                lines[lines.count - 1] = "\(last) \(word)"
            } else {
                lines.append(String(word))
            }
        }
        return lines
    }

    /// Returns the story as lines, one for each change of what a device shows, for output that is no terminal.
    public func transcript() -> [String] {
        var lines: [String] = []
        var before: [String: [String]] = [:]
        var wasOnline = true
        for (time, shown) in snapshots {
            let isOnline = shown["A"]?.isOnline ?? true
            if isOnline != wasOnline {
                wasOnline = isOnline
                lines.append("\(TimeFormat.seconds(time))  network: \(isOnline ? "Wi-Fi" : "none (100 % loss)")")
            }
            for column in Self.columns {
                guard let state = shown[column.device]?.state else { continue }
                let texts = screen(state).map(\.text)
                guard texts != before[column.device] else { continue }
                before[column.device] = texts
                lines.append("\(TimeFormat.seconds(time))  \(column.title): \(texts.joined(separator: " | "))")
            }
        }
        return lines
    }
}
