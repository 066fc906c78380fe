internal import Scenario
internal import Yams

/// The canonical form of scenario files: keys in the order of the format's table, two spaces of indentation, lists and
/// mappings in braces where they were so and fit, comments beside their values.
///
/// Not kept: the alignment and indentation of comments, empty lines after a comment, more than one empty line in a row,
/// line breaks within braces and folded texts, and single quotes where double quotes do. Anchors, aliases, tags and several documents are refused.
public enum ScenarioFormatter {
    /// The maximum length of a line with braces.
    static let widthMax = 120

    /// Returns a file in canonical form. The result has the same values and the same comments, and is its own
    /// canonical form.
    public static func format(_ text: String, file: String) throws(FileError) -> String {
        var text = text.replacing("\r\n", with: "\n")
        if text.hasPrefix("\u{FEFF}") { text.removeFirst() }
        let reader = YAMLReader(file: file)
        guard let root = reader.root(of: text, expected: "a scenario") else { throw reader.error }
        let comments = YAMLComments(text, blockScalars: blockScalars(root))
        if let line = comments.unsupportedLine {
            reader.report(
                "anchors, aliases, tags, directives and several documents cannot be formatted; write the values out",
                at: SourceLocation(file: file, line: line, column: 1))
            throw reader.error
        }
        let layout = FormattedDocument(root, comments, text)
        let result = layout.text
        try check(result, root, comments, reader)
        return result
    }

    /// Throws an error if the canonical form has other values or comments.
    private static func check(
        _ result: String, _ root: Node, _ comments: YAMLComments, _ reader: YAMLReader
    ) throws(FileError) {
        let other = YAMLReader(file: reader.file)
        let node = other.root(of: result, expected: "a scenario", bytesMax: .max)
        let isSame = node.map { isEqual($0, root) } ?? false
        let found = node.map { YAMLComments(result, blockScalars: blockScalars($0)).all.map(\.text).sorted() }
        if isSame && found == comments.all.map(\.text).sorted() { return }
        reader.report(
            "this file cannot be formatted without changing its \(isSame ? "comments" : "values") (please report)",
            at: SourceLocation(file: reader.file))
        throw reader.error
    }

    private static func isEqual(_ left: Node, _ right: Node) -> Bool {
        switch (left, right) {
        case (.scalar(let left), .scalar(let right)): return left.string == right.string
        case (.sequence(let left), .sequence(let right)):
            return left.count == right.count && zip(left, right).allSatisfy(isEqual)
        case (.mapping(let left), .mapping(let right)):
            guard left.count == right.count else { return false }
            var values: [String: Node] = [:]
            for (key, value) in right { values[key.scalar?.string ?? ""] = value }
            return left.allSatisfy { key, value in
                values[key.scalar?.string ?? ""].map { isEqual(value, $0) } ?? false
            }
        default: return false
        }
    }

    /// Returns the lines with the indicators of block scalars.
    private static func blockScalars(_ node: Node) -> Set<Int> {
        var lines: Set<Int> = []
        func visit(_ node: Node) {
            switch node {
            case .scalar(let scalar):
                if scalar.style == .literal || scalar.style == .folded, let line = scalar.mark?.line {
                    lines.insert(line)
                }
            case .mapping(let mapping):
                for (key, value) in mapping {
                    visit(key)
                    visit(value)
                }
            case .sequence(let sequence): for item in sequence { visit(item) }
            case .alias: break
            }
        }
        visit(node)
        return lines
    }
}

/// A document with its comments, as lines.
private struct FormattedDocument {
    /// The comments of an entry of a mapping or list.
    private struct Notes {
        var leading: [String] = []
        var trailing: String?
        var hasBlankBefore = false
        var isEmpty: Bool { leading.isEmpty && trailing == nil }
    }

    /// A position: line, column, and 1 for an entry of a list, whose first key can be at the same position.
    private struct Position: Hashable, Comparable {
        let line: Int
        let column: Int
        let depth: Int

        static func < (left: Position, right: Position) -> Bool {
            (left.line, left.column, left.depth) < (right.line, right.column, right.depth)
        }
    }

    private let root: Node
    /// The lines of the original text.
    private let lines: [[Unicode.Scalar]]
    private var notes: [Position: Notes] = [:]
    private var header: [String] = []
    private var footer: [String] = []

    init(_ root: Node, _ comments: YAMLComments, _ text: String) {
        self.root = root
        lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map(Array.init)
        var positions: [Position] = []
        Self.collect(root, depth: 0, &positions)
        positions.sort()
        attach(comments, positions)
    }

    private static func position(_ node: Node, depth: Int) -> Position {
        Position(line: node.mark?.line ?? 1, column: node.mark?.column ?? 1, depth: depth)
    }

    private static func collect(_ node: Node, depth: Int, _ positions: inout [Position]) {
        switch node {
        case .mapping(let mapping):
            for (key, value) in mapping {
                positions.append(position(key, depth: depth))
                collect(value, depth: depth + 1, &positions)
            }
        case .sequence(let sequence):
            for item in sequence {
                positions.append(position(item, depth: depth))
                collect(item, depth: depth + 1, &positions)
            }
        case .scalar, .alias: break
        }
    }

    /// Gives each comment to an entry: one after a value to the first entry of its line, another to the next entry.
    private mutating func attach(_ comments: YAMLComments, _ positions: [Position]) {
        var firstComment: [Position: Int] = [:]
        var next = 0
        for comment in comments.all {
            while next < positions.count, positions[next].line < comment.line { next += 1 }
            var first = next
            if comment.isTrailing {
                if first < positions.count, positions[first].line == comment.line {
                    if notes[positions[first]]?.trailing == nil {
                        notes[positions[first], default: Notes()].trailing = comment.text
                        continue
                    }
                } else if first > 0 {
                    // After a closing bracket: the first entry of the line at which its value begins.
                    var owner = first - 1
                    while owner > 0, positions[owner - 1].line == positions[owner].line { owner -= 1 }
                    if notes[positions[owner]]?.trailing == nil {
                        notes[positions[owner], default: Notes()].trailing = comment.text
                        continue
                    }
                }
            }
            while first < positions.count, positions[first].line <= comment.line { first += 1 }
            guard first < positions.count else {
                footer.append(comment.text)
                continue
            }
            notes[positions[first], default: Notes()].leading.append(comment.text)
            if firstComment[positions[first]] == nil { firstComment[positions[first]] = comment.line }
        }
        var seenLines: Set<Int> = []
        for position in positions where seenLines.insert(position.line).inserted {
            let line = firstComment[position] ?? position.line
            if comments.blankLines.contains(line - 1) { notes[position, default: Notes()].hasBlankBefore = true }
        }
        // Comments at the start of the file that an empty line separates from the first key stay there.
        if let first = positions.first, let start = firstComment[first],
            let blank = (start..<first.line).last(where: { comments.blankLines.contains($0) })
        {
            let count = comments.all.prefix { $0.line < blank }.count
            header = Array(notes[first]?.leading.prefix(count) ?? [])
            notes[first]?.leading.removeFirst(header.count)
        }
    }

    // MARK: Lines

    var text: String {
        var lines = header + (header.isEmpty ? [] : [""])
        if let mapping = root.mapping {
            lines += block(mapping, depth: 0, indentation: 0, ScenarioFormat.object("scenario"), nil)
        }
        if !footer.isEmpty { lines += [""] + footer }
        while lines.first == "" { lines.removeFirst() }
        return lines.joined(separator: "\n") + "\n"
    }

    /// Returns the entries of a mapping in canonical order, with the shapes of their values.
    private func ordered(
        _ mapping: Node.Mapping, _ object: ScenarioFormat.Object?, _ named: ScenarioFormat.Shape?
    ) -> [(key: Node, value: Node, shape: ScenarioFormat.Shape?)] {
        var entries: [(rank: Double, index: Int, key: Node, value: Node, shape: ScenarioFormat.Shape?)] = []
        for (index, (key, value)) in mapping.enumerated() {
            let name = key.scalar?.string ?? ""
            guard let object else {
                entries.append((0, index, key, value, named))
                continue
            }
            if let position = object.keys.firstIndex(where: { $0.name == name }) {
                entries.append((Double(position), index, key, value, object.keys[position].shape))
            } else if let names = object.named {
                entries.append((Double(names.position) - 0.5, index, key, value, names.shape))
            } else {
                entries.append((Double(object.keys.count), index, key, value, nil))
            }
        }
        return entries.sorted { ($0.rank, $0.index) < ($1.rank, $1.index) }.map { ($0.key, $0.value, $0.shape) }
    }

    /// Returns the mapping of the table that a node with a shape is, or the shape of the values of its entries.
    private static func context(
        _ node: Node, _ shape: ScenarioFormat.Shape?
    ) -> (object: ScenarioFormat.Object?, values: ScenarioFormat.Shape?) {
        switch shape {
        case .object(let name)?: return (ScenarioFormat.object(name), nil)
        case .map(_, let inner)?, .list(let inner, _, _)?: return (nil, inner)
        case .either(let shapes)?:
            for inner in shapes {
                let isList = if case .list = inner { true } else { false }
                guard (node.sequence != nil) == isList else { continue }
                if case .object(let name) = inner, let keys = node.mapping?.keys {
                    // Of several mappings, the one that knows a key.
                    let known = ScenarioFormat.object(name).keys.map(\.name)
                    if !keys.contains(where: { known.contains($0.scalar?.string ?? "") }) { continue }
                }
                let found = context(node, inner)
                if found.object != nil || found.values != nil { return found }
            }
            return (nil, nil)
        default: return (nil, nil)
        }
    }

    private func block(
        _ mapping: Node.Mapping, depth: Int, indentation: Int, _ object: ScenarioFormat.Object?,
        _ values: ScenarioFormat.Shape?
    ) -> [String] {
        let space = String(repeating: " ", count: indentation)
        var lines: [String] = []
        for (key, value, shape) in ordered(mapping, object, values) {
            let notes = notes[Self.position(key, depth: depth)] ?? Notes()
            if notes.hasBlankBefore && !lines.isEmpty { lines.append("") }
            lines += notes.leading.map { space + $0 }
            lines += entry(
                space + Self.text(key, isKey: true) + ":", value, shape, depth: depth, indentation: indentation, notes)
        }
        return lines
    }

    private func block(
        _ sequence: Node.Sequence, depth: Int, indentation: Int, _ shape: ScenarioFormat.Shape?
    ) -> [String] {
        let space = String(repeating: " ", count: indentation)
        var lines: [String] = []
        for item in sequence {
            let notes = notes[Self.position(item, depth: depth)] ?? Notes()
            if notes.hasBlankBefore && !lines.isEmpty { lines.append("") }
            lines += notes.leading.map { space + $0 }
            lines += entry(space + "-", item, shape, depth: depth, indentation: indentation, notes)
        }
        return lines
    }

    /// Returns the lines of one entry, which begins with `start`: a key with its colon, or a dash.
    private func entry(
        _ start: String, _ value: Node, _ shape: ScenarioFormat.Shape?, depth: Int, indentation: Int, _ notes: Notes
    ) -> [String] {
        let trailing = notes.trailing.map { "  \($0)" } ?? ""
        if case .scalar(let scalar) = value, scalar.style == .folded || scalar.style == .literal,
            let lines = Self.blockScalar(scalar, indentation: indentation + 2)
        {
            return ["\(start) \(lines[0])\(trailing)"] + lines.dropFirst()
        }
        let isFlow: Bool =
            switch value {
            case .mapping(let mapping): mapping.isEmpty || isInBraces(value)
            case .sequence(let sequence): sequence.isEmpty || isInBraces(value)
            case .scalar, .alias: true
            }
        if isFlow, !hasNotes(value, depth: depth + 1) {
            let text = flow(value, shape)
            let line = text.isEmpty ? start : "\(start) \(text)"
            let isScalar = value.scalar != nil
            let isEmpty = value.mapping?.isEmpty ?? value.sequence?.isEmpty ?? false
            if isScalar || isEmpty || line.count <= ScenarioFormatter.widthMax { return [line + trailing] }
        }
        let (object, values) = Self.context(value, shape)
        switch value {
        case .mapping(let mapping):
            var inner = block(mapping, depth: depth + 1, indentation: indentation + 2, object, values)
            guard start.last == "-" else { return [start + trailing] + inner }
            // The first key follows the dash; its comments stand before it.
            let space = String(repeating: " ", count: indentation)
            var before: [String] = []
            while let first = inner.first, first.drop(while: { $0 == " " }).hasPrefix("#") {
                before.append(space + first.drop { $0 == " " })
                inner.removeFirst()
            }
            guard let first = inner.first else { return [start + trailing] }
            return before + ["\(start) \(first.dropFirst(indentation + 2))\(trailing)"] + inner.dropFirst()
        case .sequence(let sequence):
            return [start + trailing] + block(sequence, depth: depth + 1, indentation: indentation + 2, values)
        case .scalar, .alias: return ["\(start) \(flow(value, shape))\(trailing)"]
        }
    }

    /// Returns whether a value is written in braces or brackets. The parser does not report the style reliably.
    private func isInBraces(_ node: Node) -> Bool {
        guard let mark = node.mark, lines.indices.contains(mark.line - 1),
            lines[mark.line - 1].indices.contains(mark.column - 1)
        else { return false }
        return ["{", "["].contains(lines[mark.line - 1][mark.column - 1])
    }

    /// Returns whether an entry within a value has a comment.
    private func hasNotes(_ node: Node, depth: Int) -> Bool {
        switch node {
        case .mapping(let mapping):
            mapping.contains { key, value in
                !(notes[Self.position(key, depth: depth)]?.isEmpty ?? true) || hasNotes(value, depth: depth + 1)
            }
        case .sequence(let sequence):
            sequence.contains { item in
                !(notes[Self.position(item, depth: depth)]?.isEmpty ?? true) || hasNotes(item, depth: depth + 1)
            }
        case .scalar, .alias: false
        }
    }

    /// Returns a value on one line.
    private func flow(_ node: Node, _ shape: ScenarioFormat.Shape?) -> String {
        let (object, values) = Self.context(node, shape)
        switch node {
        case .scalar, .alias: return Self.text(node, isKey: false)
        case .sequence(let sequence): return "[\(sequence.map { flow($0, values) }.joined(separator: ", "))]"
        case .mapping(let mapping):
            if mapping.isEmpty { return "{}" }
            let parts = ordered(mapping, object, values).map { key, value, shape in
                "\(Self.text(key, isKey: true)): \(flow(value, shape))"
            }
            return "{ \(parts.joined(separator: ", ")) }"
        }
    }

    // MARK: Scalars

    private static func text(_ node: Node, isKey: Bool) -> String {
        guard let scalar = node.scalar else { return "" }
        let text = scalar.string
        if scalar.style == .plain || scalar.style == .any, !text.contains("\n") { return text }
        let isPrintable = !text.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F }
        if scalar.style == .singleQuoted, isPrintable, text.contains("\"") || text.contains("\\") {
            return "'\(text.replacing("'", with: "''"))'"
        }
        var out = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": out += "\\\""
            case "\\": out += "\\\\"
            case "\n": out += "\\n"
            case "\t": out += "\\t"
            case "\r": out += "\\r"
            case _ where scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value):
                let digits = String(scalar.value, radix: 16)
                out += "\\x" + (digits.count < 2 ? "0" : "") + digits
            // Line breaks of YAML 1.1, the byte order mark, and what YAML takes for control characters.
            case "\u{2028}", "\u{2029}", "\u{FEFF}", "\u{FFFE}", "\u{FFFF}":
                out += "\\u" + String(scalar.value, radix: 16)
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out + "\""
    }

    /// Returns the lines of a block scalar, the first of which has its indicator; `nil` if it is better quoted.
    private static func blockScalar(_ scalar: Node.Scalar, indentation: Int) -> [String]? {
        var text = scalar.string
        var chomping = "-"
        if text.hasSuffix("\n") {
            text.removeLast()
            chomping = ""
        }
        let space = String(repeating: " ", count: indentation)
        let paragraphs = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard let first = paragraphs.first, !first.isEmpty, first.first != " ", first.first != "\t",
            paragraphs.last?.isEmpty == false,
            !text.unicodeScalars.contains(where: {
                ($0.value < 0x20 && $0 != "\n") || $0.value == 0x7F || $0 == "\u{85}"
            })
        else { return nil }
        if scalar.style == .literal {
            return ["|\(chomping)"] + paragraphs.map { $0.isEmpty ? "" : space + $0 }
        }
        // Lines that begin with a space are not folded.
        guard !paragraphs.contains(where: { $0.first == " " || $0.first == "\t" }) else { return nil }
        var lines = [">\(chomping)"]
        for (index, paragraph) in paragraphs.enumerated() {
            if index > 0 { lines.append("") }
            if paragraph.isEmpty { continue }
            lines += wrapped(paragraph, width: ScenarioFormatter.widthMax - indentation).map { space + $0 }
        }
        return lines
    }

    /// Breaks a text at single spaces.
    private static func wrapped(_ text: Substring, width: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        var gap = ""
        // Several spaces in a row are not a place for a line break, because a break stands for one space.
        for part in text.split(separator: " ", omittingEmptySubsequences: false) {
            if part.isEmpty {
                gap += " "
                continue
            }
            if !line.isEmpty && gap.isEmpty && line.count + 1 + part.count > width {
                lines.append(line)
                line = String(part)
            } else {
                line += (line.isEmpty && lines.isEmpty && gap.isEmpty ? "" : line.isEmpty ? "" : " ") + gap + part
            }
            gap = ""
        }
        line += gap
        return lines + [line]
    }
}
