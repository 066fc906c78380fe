/// A line typed on a terminal: bytes in, lines out. The keys are those of readline: cursor keys, history, Tab, and control
/// characters.
struct LineEditor {
    /// What the driver does after a byte, besides showing ``typed``.
    enum Action: Hashable {
        /// Execute a line.
        case line(InputLine)
        /// Show the words that Tab could complete.
        case words([String])
        /// Ring: the key has no effect.
        case bell
    }

    /// The maximum number of lines in the history.
    static let historyMax = 200
    /// The longest sequence of bytes of a key.
    private static let sequenceBytesMax = 16
    private static let escape: UInt8 = 0x1B

    /// The line.
    private(set) var typed = TypedText()
    private var history: [String] = []
    /// The line of the history that is shown; the end is the line that was typed.
    private var position = 0
    private var draft = TypedText()
    /// The bytes of an incomplete key: an escape sequence, or a character of UTF-8.
    private var pending: [UInt8] = []
    /// Returns the words that can stand at the end of a text, in place of its last word.
    private let words: (String) -> [String]

    /// Creates an editor of an empty line.
    ///
    /// - Parameter words: Returns the words that can stand at the end of a text, in place of its last word.
    init(words: @escaping (String) -> [String] = { _ in [] }) { self.words = words }

    /// Adds a byte.
    mutating func receive(_ byte: UInt8) -> Action? {
        if pending.first == Self.escape { return receiveSequence(byte) }
        if byte >= 0x80 { return receiveCharacter(byte) }
        // A character of which bytes are missing is dropped.
        pending = []
        switch byte {
        case 0x20..<0x7F: return insert(Unicode.Scalar(byte))
        case 0x09: return completeWord()
        case 0x0A, 0x0D: return finish()
        case 0x1B: pending = [byte]
        case 0x7F, 0x08: return delete(from: typed.cursor - 1, to: typed.cursor)
        case Self.control("A"): typed.cursor = 0
        case Self.control("B"): return move(to: typed.cursor - 1)
        case Self.control("D"): return delete(from: typed.cursor, to: typed.cursor + 1)
        case Self.control("E"): typed.cursor = typed.characters.count
        case Self.control("F"): return move(to: typed.cursor + 1)
        case Self.control("K"): return delete(from: typed.cursor, to: typed.characters.count)
        case Self.control("N"): return recall(position + 1)
        case Self.control("P"): return recall(position - 1)
        case Self.control("U"): return delete(from: 0, to: typed.cursor)
        case Self.control("W"): return delete(from: startOfWord, to: typed.cursor)
        default: break
        }
        return nil
    }

    private static func control(_ letter: Unicode.Scalar) -> UInt8 { UInt8(letter.value) & 0x1F }

    /// Adds a byte of an escape sequence (ECMA-48, section 5.4, and the application mode of cursor keys).
    private mutating func receiveSequence(_ byte: UInt8) -> Action? {
        pending.append(byte)
        if byte == Self.escape {
            pending = [byte]
            return nil
        }
        let isOpen =
            pending.count == 2
            ? byte == UInt8(ascii: "[") || byte == UInt8(ascii: "O")
            : (0x20..<0x40).contains(byte) && pending.count < Self.sequenceBytesMax
        if isOpen { return nil }
        let sequence = String(decoding: pending.dropFirst(), as: UTF8.self)
        pending = []
        switch sequence {
        case "[A", "OA": return recall(position - 1)
        case "[B", "OB": return recall(position + 1)
        case "[C", "OC": return move(to: typed.cursor + 1)
        case "[D", "OD": return move(to: typed.cursor - 1)
        case "[H", "OH", "[1~", "[7~": typed.cursor = 0
        case "[F", "OF", "[4~", "[8~": typed.cursor = typed.characters.count
        case "[3~": return delete(from: typed.cursor, to: typed.cursor + 1)
        case "b", "[1;5D": return move(to: startOfWord)
        case "f", "[1;5C": return move(to: endOfWord)
        default: break
        }
        return nil
    }

    /// Adds a byte of a character of UTF-8 that has several.
    private mutating func receiveCharacter(_ byte: UInt8) -> Action? {
        if byte & 0xC0 == 0xC0 { pending = [] }
        pending.append(byte)
        let count = pending[0] >= 0xF0 ? 4 : pending[0] >= 0xE0 ? 3 : pending[0] >= 0xC0 ? 2 : 1
        guard pending.count >= count else { return nil }
        defer { pending = [] }
        guard let text = String(validating: pending, as: UTF8.self), let scalar = text.unicodeScalars.first,
            scalar.properties.generalCategory != .control
        else { return .bell }
        return insert(scalar)
    }

    private mutating func insert(_ scalar: Unicode.Scalar) -> Action? {
        let byteCount = typed.characters.reduce(0) { $0 + $1.utf8.count }
        guard byteCount + scalar.utf8.count <= InputReader.lineBytesMax else { return .bell }
        if typed.cursor > 0 {
            // A combining mark belongs to the character before it.
            let joined = String(typed.characters[typed.cursor - 1]) + String(scalar)
            if joined.count == 1 {
                typed.characters[typed.cursor - 1] = Character(joined)
                return nil
            }
        }
        typed.characters.insert(Character(scalar), at: typed.cursor)
        typed.cursor += 1
        return nil
    }

    private mutating func move(to target: Int) -> Action? {
        guard (0...typed.characters.count).contains(target) else { return .bell }
        typed.cursor = target
        return nil
    }

    private mutating func delete(from start: Int, to end: Int) -> Action? {
        guard start >= 0, end <= typed.characters.count else { return .bell }
        typed.characters.removeSubrange(start..<end)
        typed.cursor = start
        return nil
    }

    private var startOfWord: Int {
        let rest = typed.characters[..<typed.cursor]
        let end = rest.lastIndex { !$0.isWhitespace } ?? 0
        return rest[..<end].lastIndex { $0.isWhitespace }.map { $0 + 1 } ?? 0
    }

    private var endOfWord: Int {
        let rest = typed.characters[typed.cursor...]
        let start = rest.firstIndex { !$0.isWhitespace } ?? rest.endIndex
        return rest[start...].firstIndex { $0.isWhitespace } ?? rest.endIndex
    }

    private mutating func recall(_ target: Int) -> Action? {
        guard (0...history.count).contains(target) else { return .bell }
        if position == history.count { draft = typed }
        position = target
        let characters = target < history.count ? Array(history[target]) : draft.characters
        typed = TypedText(characters: characters, cursor: characters.count)
        return nil
    }

    private mutating func finish() -> Action? {
        let line = InputLine(Array(String(typed.characters).utf8))
        (typed, draft) = (TypedText(), TypedText())
        if case .command(let text)? = line, text != history.last {
            history = (history + [text]).suffix(Self.historyMax)
        }
        position = history.count
        return line.map { .line($0) }
    }

    private mutating func completeWord() -> Action? {
        let text = typed.beforeCursor
        let word =
            text.split(omittingEmptySubsequences: false, whereSeparator: \.isWhitespace).last.map(String.init) ?? ""
        let matches = words(text).filter { $0.lowercased().hasPrefix(word.lowercased()) }
        guard let first = matches.first else { return .bell }
        var common = matches.reduce(first) { common, match in
            String(zip(common, match).prefix { $0 == $1 }.map(\.0))
        }
        if matches.count == 1 { common += " " }
        guard common.count > word.count else { return .words(matches) }
        _ = delete(from: typed.cursor - word.count, to: typed.cursor)
        // The space may be there already.
        if common.last == " ", typed.cursor < typed.characters.count, typed.characters[typed.cursor] == " " {
            common.removeLast()
        }
        typed.characters.insert(contentsOf: common, at: typed.cursor)
        typed.cursor += common.count
        return nil
    }
}
