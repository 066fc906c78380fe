public import Scenario
internal import Yams

/// A file with new words in place of renamed ones (``RenamedWords``): a scenario, also a saved failure; a timeline; a
/// profile; or the lines of results of a run or an exploration.
///
/// Only the words are replaced, at their positions, so that comments and layout stay. The result of a migration has
/// nothing left to replace.
///
/// `refuse`, which was never reported to a client, becomes `offline`, which is: entries of a scenario's network get
/// `signalled: false`, so that the run stays the same. `offline` itself is a new word in these files and stays as it is.
public struct FileMigration: Sendable {
    /// A replaced word, or an added key.
    public struct Replacement: Hashable, Sendable, CustomStringConvertible {
        /// The location in the file before the migration.
        public let location: SourceLocation
        /// The old text; empty if the new one is added.
        public let old: String
        /// The new text.
        public let new: String

        public var description: String {
            old.isEmpty ? "\(location): added '\(new)'" : "\(location): '\(old)' -> '\(new)'"
        }
    }

    /// The text after the migration.
    public private(set) var text: String
    /// What was replaced, in the order of the file.
    public let replacements: [Replacement]
    /// What cannot be kept as it was.
    public let warnings: [Problem]
    /// The path that the file extends, as the file gives it; `nil` if there is none.
    public let extended: String?

    /// Migrates the text of a file.
    public init(_ text: String, file: String) throws(FileError) {
        if text.utf8.first(where: { $0 > 0x20 }) == UInt8(ascii: "{"), text.utf8.contains(0x0A) {
            var lines = ResultLines(file: file)
            (self.text, replacements) = (lines.migrate(text), lines.replacements)
            (warnings, extended) = ([], nil)
            return
        }
        let byteOrderMark = text.hasPrefix("\u{FEFF}") ? "\u{FEFF}" : ""
        let text = String(text.unicodeScalars.dropFirst(byteOrderMark.unicodeScalars.count))
        let reader = YAMLReader(file: file)
        let expected = "a scenario, a timeline, a profile, or lines of results"
        guard let root = reader.root(of: text, expected: expected), let mapping = root.mapping else {
            throw reader.error
        }
        var walker = Walker(text, reader)
        if mapping["scenario"] != nil || mapping["extends"] != nil {
            walker.visitScenario(root)
        } else if mapping["timeline"] != nil {
            walker.visitTimeline(root)
        } else if mapping["profile"] != nil {
            walker.visitProfile(root)
        } else {
            reader.report(
                "neither 'scenario', 'timeline' nor 'profile' is a key of the file; expected \(expected)", at: root)
            throw reader.error
        }
        (self.text, replacements) = walker.result
        warnings = reader.warnings
        extended = mapping["extends"]?.scalar?.string
        let other = YAMLReader(file: file)
        guard replacements.isEmpty || other.root(of: self.text, expected: expected, bytesMax: .max) != nil else {
            reader.report("this file cannot be migrated (please report)", at: SourceLocation(file: file))
            throw reader.error
        }
        self.text = byteOrderMark + self.text
    }
}

/// A walk over a YAML document, with the words that are replaced.
private struct Walker {
    private struct Edit {
        let line: Int
        let column: Int
        let old: String
        let new: String
    }

    private let reader: YAMLReader
    private var lines: [[Unicode.Scalar]]
    private var edits: [Edit] = []
    /// The positions of edits: an anchor's value is visited once for each of its aliases.
    private var positions: Set<[Int]> = []
    /// The shapes of the values for which the parameters of a matrix stand.
    private var parameters: [String: [ScenarioFormat.Shape]] = [:]

    private static let unsignalled = "signalled: false"

    init(_ text: String, _ reader: YAMLReader) {
        self.reader = reader
        lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map(Array.init)
    }

    /// The new text, and what was replaced.
    var result: (text: String, replacements: [FileMigration.Replacement]) {
        var lines = lines
        let sorted = edits.sorted { ($0.line, $0.column, $0.old.count) < ($1.line, $1.column, $1.old.count) }
        for edit in sorted.reversed() {
            let start = edit.column - 1
            lines[edit.line - 1].replaceSubrange(
                start..<start + edit.old.unicodeScalars.count, with: Array(edit.new.unicodeScalars))
        }
        var text = String.UnicodeScalarView()
        for (index, line) in lines.enumerated() {
            if index > 0 { text.append("\n") }
            text.append(contentsOf: line)
        }
        let replacements = sorted.map { edit in
            FileMigration.Replacement(
                location: SourceLocation(file: reader.file, line: edit.line, column: edit.column), old: edit.old,
                new: edit.old.isEmpty ? Self.unsignalled : edit.new)
        }
        return (String(text), replacements)
    }

    // MARK: Edits

    /// Replaces a scalar, in quotes or not.
    private mutating func replace(_ node: Node, with new: String) {
        guard let old = node.scalar?.string, let mark = node.mark else { return }
        let quote = node.scalar?.style == .singleQuoted || node.scalar?.style == .doubleQuoted ? 1 : 0
        let word = Array(old.unicodeScalars)
        let column = mark.column + quote
        if lines.indices.contains(mark.line - 1), lines[mark.line - 1].dropFirst(column - 1).starts(with: word) {
            // What is inserted in place of a scalar in quotes would be a text.
            if quote == 1, new.hasPrefix("{") {
                return add(Edit(line: mark.line, column: column - 1, old: quoted(old, mark, column), new: new))
            }
            return add(Edit(line: mark.line, column: column, old: old, new: new))
        }
        reader.warn(
            "'\(old.prefix(40))' was not replaced by '\(new)': write it as a plain word", at: reader.location(node))
    }

    private func quoted(_ word: String, _ mark: Mark, _ column: Int) -> String {
        let count = word.unicodeScalars.count + 2
        var text = String.UnicodeScalarView()
        text.append(contentsOf: lines[mark.line - 1].dropFirst(column - 2).prefix(count))
        return String(text)
    }

    /// Returns whether a mapping is written in braces. The parser does not report the style reliably.
    private func isInBraces(_ node: Node) -> Bool {
        guard let mark = node.mark, lines.indices.contains(mark.line - 1) else { return false }
        return lines[mark.line - 1].dropFirst(mark.column - 1).first == "{"
    }

    private mutating func add(_ edit: Edit) {
        if positions.insert([edit.line, edit.column, edit.old.isEmpty ? 0 : 1]).inserted { edits.append(edit) }
    }

    /// Replaces a renamed word by the new one of those that are possible at its place.
    private mutating func rename(_ node: Node, among words: some Collection<String>) {
        guard let word = node.scalar?.string, let new = RenamedWords.newWord(for: word, among: words) else { return }
        replace(node, with: new)
    }

    private static let profiles = ProfileCatalogue.builtIn.map(\.id)

    private mutating func renameLink(_ node: Node) { rename(node, among: Self.profiles) }

    // MARK: Scenarios

    mutating func visitScenario(_ root: Node) {
        visit(root, .object("scenario"))
        // The values of parameters, in the shapes in which the scenario uses them. Those of the variants are among them.
        var mappings = [root]
        for (_, variant) in root.mapping?["variants"]?.mapping ?? [:] { mappings.append(variant) }
        for mapping in mappings {
            guard let matrix = mapping.mapping?["matrix"]?.mapping else { continue }
            for (key, values) in matrix {
                guard let name = key.scalar?.string, let shapes = parameters[name] else { continue }
                for value in values.sequence ?? [] { for shape in shapes { visit(value, shape) } }
            }
        }
    }

    /// Visits a value of the format's table.
    private mutating func visit(_ node: Node, _ shape: ScenarioFormat.Shape) {
        if let text = node.scalar?.string, text.hasPrefix("$"), text.utf8.count <= 64 {
            parameters[String(text.dropFirst()), default: []].append(shape)
            return
        }
        switch shape {
        case .choice(let words): rename(node, among: words)
        case .name(.link): renameLink(node)
        case .list(let item, _, _): for node in node.sequence ?? [] { visit(node, item) }
        case .map(let kind, let value):
            for (key, node) in node.mapping ?? [:] {
                if kind == .link { renameLink(key) }
                visit(node, value)
            }
        case .object(let name): visit(node, ScenarioFormat.object(name))
        case .link:
            guard node.scalar?.string == "refuse" else { return renameLink(node) }
            replace(node, with: "{ link: offline, \(Self.unsignalled) }")
        case .either(let shapes):
            for shape in shapes {
                // A parameter is recorded once, with all its shapes.
                visit(node, shape)
            }
        case .version, .text, .kebabCase, .integer, .fraction, .boolean, .time, .signedTime, .percentage, .size, .name,
            .timeOrMark, .request, .response, .invariant, .path, .anything:
            break
        }
    }

    private mutating func visit(_ node: Node, _ object: ScenarioFormat.Object) {
        guard let mapping = node.mapping else { return }
        if object.name == "network" { return visitNetwork(node, mapping, object) }
        let names = object.keys.map(\.name)
        for (key, value) in mapping {
            let old = key.scalar?.string ?? ""
            if !names.contains(old) { rename(key, among: names.filter { mapping[$0] == nil }) }
            let name = names.contains(old) ? old : RenamedWords.newWord(for: old, among: names) ?? old
            if object.name == "device", name == "settings" {
                if let network = value.mapping?["network"] { rename(network, among: ["unmetered", "any"]) }
            } else if let found = object.key(name) {
                visit(value, found.shape)
            } else if let named = object.named {
                visit(value, named.shape)
            }
        }
    }

    /// Visits an entry of a network. What was called `refuse` in it was not signalled.
    private mutating func visitNetwork(_ node: Node, _ mapping: Node.Mapping, _ object: ScenarioFormat.Object) {
        var first: Node?
        var hasOutage = false
        for (key, value) in mapping {
            switch key.scalar?.string {
            case "link"?, "access"?:
                if value.scalar?.string == "refuse" { first = first ?? key }
                rename(value, among: key.scalar?.string == "link" ? Self.profiles : ["offline"])
            case "flap"?:
                for item in value.sequence ?? [] {
                    for (link, _) in item.mapping ?? [:] {
                        if link.scalar?.string == "refuse" { first = first ?? key }
                        hasOutage = hasOutage || link.scalar?.string == "100-loss"
                    }
                }
                if let shape = object.key("flap")?.shape { visit(value, shape) }
            case let name?: if let shape = object.key(name)?.shape { visit(value, shape) }
            case nil: break
            }
        }
        guard let first, let mark = first.mark else { return }
        if let signalled = mapping["signalled"] {
            if signalled.scalar?.string != "false", !hasOutage { replace(signalled, with: "false") }
        } else if !hasOutage {
            let indent = String(repeating: " ", count: mark.column - 1)
            let isFlow = isInBraces(node)
            add(
                Edit(
                    line: mark.line, column: mark.column, old: "",
                    new: Self.unsignalled + (isFlow ? ", " : "\n" + indent)))
        }
        if hasOutage {
            reader.warn(
                "'offline' is signalled as '100-loss' in the same 'flap' is; what was called 'refuse' was not: check the "
                    + "scenario", at: reader.location(first))
        }
    }

    // MARK: Timelines and profiles

    mutating func visitTimeline(_ root: Node) {
        for (_, entry) in root.mapping?["at"]?.mapping ?? [:] {
            guard let mapping = entry.mapping else {
                renameLink(entry)
                continue
            }
            for (key, value) in mapping {
                switch key.scalar?.string {
                case "link"?, "ramp"?: renameLink(value)
                case "flap"?:
                    for item in value.sequence ?? [] { for (key, _) in item.mapping ?? [:] { renameLink(key) } }
                case "access"?: rename(value, among: ["offline"])
                default: break
                }
            }
        }
    }

    mutating func visitProfile(_ root: Node) {
        guard let access = root.mapping?["access"] else { return }
        rename(access.mapping?["value"] ?? access, among: ["offline"])
    }
}

/// Lines of results: JSON objects with the checks of runs, or with what an exploration has reached.
private struct ResultLines {
    private let file: String
    private(set) var replacements: [FileMigration.Replacement] = []

    /// The classes of faults of an exploration that have other names.
    private static let classes = ["cut": "reset", "held": "delayed", "trickle": "throttle"]
    private static let points = Scenario.Fault.Point.allCases.map(\.rawValue)
    private static let actions = ["reset", "close", "stall", "delay", "throttle", "respond", "kill"]

    init(file: String) { self.file = file }

    mutating func migrate(_ text: String) -> String {
        var result: [UInt8] = []
        for (index, line) in text.utf8.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
            if index > 0 { result.append(0x0A) }
            migrate(Array(line), number: index + 1, &result)
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Replaces the words of the texts of a line; everything else is kept byte by byte.
    private mutating func migrate(_ line: [UInt8], number: Int, _ result: inout [UInt8]) {
        var index = 0
        /// The last three texts.
        var last = ["", "", ""]
        while index < line.count {
            guard line[index] == UInt8(ascii: "\"") else {
                // A bracket begins a list: texts before it are no part of it.
                if line[index] == UInt8(ascii: "[") { last = ["", "", "["] }
                result.append(line[index])
                index += 1
                continue
            }
            var end = index + 1
            while end < line.count, line[end] != UInt8(ascii: "\"") { end += line[end] == UInt8(ascii: "\\") ? 2 : 1 }
            let old = String(decoding: line[min(index + 1, line.count)..<min(end, line.count)], as: UTF8.self)
            let new = Self.new(old, after: last)
            if new != old {
                replacements.append(
                    FileMigration.Replacement(
                        location: SourceLocation(file: file, line: number, column: index + 2), old: old, new: new))
            }
            result.append(contentsOf: Array("\"\(new)\"".utf8))
            last = [last[1], last[2], old]
            index = end + 1
        }
    }

    private static func new(_ text: String, after last: [String]) -> String {
        switch (last[0], last[1], last[2]) {
        // A cell of the coverage: ["fault", ACTION, POINT, METHOD].
        case (_, "[", "fault"): return RenamedWords.newWord(for: text, among: actions) ?? text
        case ("[", "fault", _): return RenamedWords.newWord(for: text, among: points) ?? text
        case (_, _, "check"): return text.replacing(", answers ", with: ", responses ")
        case (_, _, "--lean"):
            return text.split(separator: ",").map { classes[String($0)] ?? String($0) }.joined(separator: ",")
        default: return text == "--lean" ? "--bias" : text == "--gallery" ? "--all-mutants" : text
        }
    }
}
