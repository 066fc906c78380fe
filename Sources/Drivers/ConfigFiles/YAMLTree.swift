/// A YAML document to be written: scalars, lists and mappings, in braces or as blocks.
indirect enum YAMLTree {
    /// A text; it is quoted if YAML or the reader would take the plain text for something else.
    case text(String)
    /// A word that needs no quotes, such as a number or a time.
    case word(String)
    /// A paragraph in the style `>`, broken at spaces.
    case paragraph(String)
    /// A list; in brackets if `isFlow` and the line has room.
    case list([YAMLTree], isFlow: Bool)
    /// A mapping; in braces if `isFlow` and the line has room.
    case mapping([Entry], isFlow: Bool)

    /// An entry of a mapping.
    struct Entry {
        let key: YAMLTree
        let value: YAMLTree
    }

    /// Returns the lines of a document, with an empty line before the keys in `separated`.
    func document(separated: Set<String>) -> [String] {
        guard case .mapping(let entries, _) = self else { return [flow] }
        var lines: [String] = []
        for entry in entries {
            let key = entry.key.flow
            if separated.contains(key) && !lines.isEmpty { lines.append("") }
            lines += Self.lines("\(key):", entry.value, indentation: 0)
        }
        return lines
    }

    /// A text that the reader does not read as it is written: one with U+0000, with U+FEFF at the beginning, or with more
    /// combining marks in a row than it allows.
    var unreadableText: String? {
        switch self {
        case .text(let text), .paragraph(let text):
            text.unicodeScalars.first == "\u{FEFF}" || text.unicodeScalars.contains("\u{0}")
                || CombiningMarkRun.location(in: text) != nil ? text : nil
        case .word: nil
        case .list(let items, _): items.lazy.compactMap(\.unreadableText).first
        case .mapping(let entries, _):
            entries.lazy.compactMap { $0.key.unreadableText ?? $0.value.unreadableText }.first
        }
    }

    // MARK: Lines

    /// Returns the lines of an entry that begins with `start`: a key with its colon, or a dash.
    private static func lines(_ start: String, _ value: YAMLTree, indentation: Int) -> [String] {
        switch value {
        case .text, .word: return ["\(start) \(value.flow)"]
        case .paragraph(let text): return paragraph(start, text, indentation: indentation)
        case .list(let items, let isFlow):
            if fits(start, value, isFlow || items.isEmpty) { return ["\(start) \(value.flow)"] }
            let space = String(repeating: " ", count: indentation + 2)
            return [start] + items.flatMap { lines("\(space)-", $0, indentation: indentation + 2) }
        case .mapping(let entries, let isFlow):
            if fits(start, value, isFlow || entries.isEmpty) { return ["\(start) \(value.flow)"] }
            let space = String(repeating: " ", count: indentation + 2)
            let inner = entries.flatMap { lines("\(space)\($0.key.flow):", $0.value, indentation: indentation + 2) }
            guard start.last == "-", let first = inner.first else { return [start] + inner }
            // The first key follows the dash.
            return ["\(start) \(first.dropFirst(indentation + 2))"] + inner.dropFirst()
        }
    }

    private static func fits(_ start: String, _ value: YAMLTree, _ isFlow: Bool) -> Bool {
        isFlow && start.count + 1 + value.flow.count <= ScenarioFormatter.widthMax
    }

    /// Returns a folded block scalar, or a quoted text where folding would change it.
    private static func paragraph(_ start: String, _ text: String, indentation: Int) -> [String] {
        let chomping = text.hasSuffix("\n") ? "" : "-"
        let content = text.hasSuffix("\n") ? String(text.dropLast()) : text
        let words = content.split(separator: " ", omittingEmptySubsequences: false)
        let isSimple = !content.isEmpty && words.allSatisfy { !$0.isEmpty && $0.unicodeScalars.allSatisfy(isPrintable) }
        let space = String(repeating: " ", count: indentation + 2)
        guard isSimple else { return ["\(start) \(YAMLTree.text(text).flow)"] }
        var lines: [String] = []
        var line = space
        for word in words {
            if line.count > space.count, line.count + 1 + word.count > ScenarioFormatter.widthMax {
                lines.append(line)
                line = space
            }
            line += (line.count > space.count ? " " : "") + word
        }
        return ["\(start) >\(chomping)"] + lines + [line]
    }

    // MARK: One line

    /// The value on one line.
    var flow: String {
        switch self {
        case .text(let text), .paragraph(let text): return Self.isPlain(text) ? text : Self.quoted(text)
        case .word(let word): return word
        case .list(let items, _): return "[\(items.map(\.flow).joined(separator: ", "))]"
        case .mapping(let entries, _):
            if entries.isEmpty { return "{}" }
            return "{ \(entries.map { "\($0.key.flow): \($0.value.flow)" }.joined(separator: ", ")) }"
        }
    }

    private static let reserved: Set<String> = [
        "", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", ".inf", ".nan", "any",
    ]

    /// Whether a text means itself without quotes, within braces too: letters first, then letters, digits and some
    /// signs, and single spaces.
    static func isPlain(_ text: String) -> Bool {
        guard let first = text.unicodeScalars.first, first.properties.isAlphabetic, text.last != " ",
            text.utf8.count <= 200, !reserved.contains(text.lowercased())
        else { return false }
        return text.unicodeScalars.allSatisfy { scalar in
            scalar.properties.isAlphabetic && isPrintable(scalar)
                || "0123456789 -_./+'()".unicodeScalars.contains(scalar)
        }
    }

    private static func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x20...0x7E, 0xA0...0x2027, 0x202A...0xD7FF, 0xE000...0xFEFE, 0xFF00...0xFFFD: true
        default: scalar.value >= 0x10000
        }
    }

    private static func quoted(_ text: String) -> String {
        var out = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": out += "\\\""
            case "\\": out += "\\\\"
            default: append(scalar, to: &out)
            }
        }
        return out + "\""
    }

    /// Returns the line of a comment. Line breaks, which would end the comment, and characters that YAML does not allow
    /// are escaped.
    static func comment(_ text: String) -> String {
        var out = text.isEmpty ? "#" : "# "
        for scalar in text.unicodeScalars { append(scalar, to: &out) }
        return out
    }

    private static func append(_ scalar: Unicode.Scalar, to out: inout String) {
        switch scalar {
        case "\n": out += "\\n"
        case "\t": out += "\\t"
        case "\r": out += "\\r"
        case _ where !isPrintable(scalar):
            let digits = String(scalar.value, radix: 16)
            let width = scalar.value < 0x100 ? 2 : 4
            out += (width == 2 ? "\\x" : "\\u") + String(repeating: "0", count: width - digits.utf8.count) + digits
        default: out.unicodeScalars.append(scalar)
        }
    }
}
