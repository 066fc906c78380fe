/// A JSON parser (RFC 8259) with time and memory linear in the number of bytes.
///
/// Foundation's decoder takes minutes for some inputs of 60 KiB when the type of values is unknown, and drops U+FEFF at
/// the start of a string.
struct JSONParser {
    /// The maximum nesting depth, which bounds the recursion.
    static let depthMax = 64

    private let bytes: [UInt8]
    private var position = 0

    private init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Returns the value of the whole text; `nil` if it is not JSON.
    static func parse(_ bytes: [UInt8]) -> JSONValue? {
        var parser = JSONParser(bytes)
        guard let value = parser.value(depth: 0) else { return nil }
        parser.skipSpace()
        return parser.position == bytes.count ? value : nil
    }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        position += 1
        return true
    }

    private mutating func take(word: StaticString) -> Bool {
        let end = position + word.utf8CodeUnitCount
        guard end <= bytes.count,
            bytes[position..<end].elementsEqual(
                UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
        else { return false }
        position = end
        return true
    }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { position += 1 }
    }

    private mutating func value(depth: Int) -> JSONValue? {
        skipSpace()
        switch next {
        case UInt8(ascii: "{"): return depth < JSONParser.depthMax ? object(depth: depth + 1) : nil
        case UInt8(ascii: "["): return depth < JSONParser.depthMax ? array(depth: depth + 1) : nil
        case UInt8(ascii: "\""):
            switch string() {
            case .text(let text)?: return .text(text)
            case .unpairedSurrogate?: return .unrepresentable
            case nil: return nil
            }
        case UInt8(ascii: "t"): return take(word: "true") ? .bool(true) : nil
        case UInt8(ascii: "f"): return take(word: "false") ? .bool(false) : nil
        case UInt8(ascii: "n"): return take(word: "null") ? .null : nil
        default: return number()
        }
    }

    private mutating func object(depth: Int) -> JSONValue? {
        position += 1
        var members = JSONObject()
        skipSpace()
        if take(UInt8(ascii: "}")) { return .object(members) }
        while true {
            skipSpace()
            guard next == UInt8(ascii: "\""), case .text(let name)? = string() else { return nil }
            skipSpace()
            guard take(UInt8(ascii: ":")), let value = value(depth: depth) else { return nil }
            // The last value of a repeated name wins.
            members[name] = value
            skipSpace()
            if take(UInt8(ascii: "}")) { return .object(members) }
            guard take(UInt8(ascii: ",")) else { return nil }
        }
    }

    private mutating func array(depth: Int) -> JSONValue? {
        position += 1
        var values: [JSONValue] = []
        skipSpace()
        if take(UInt8(ascii: "]")) { return .array(values) }
        while true {
            guard let value = value(depth: depth) else { return nil }
            values.append(value)
            skipSpace()
            if take(UInt8(ascii: "]")) { return .array(values) }
            guard take(UInt8(ascii: ",")) else { return nil }
        }
    }

    private enum Text {
        case text(String)
        /// A string with an unpaired surrogate: valid JSON, but not Unicode text.
        case unpairedSurrogate
    }

    private mutating func string() -> Text? {
        position += 1
        var copy: [UInt8] = []
        var hasUnpairedSurrogate = false
        var isASCII = true
        var begin = position
        while true {
            // Plain characters are the rule, so that the loop over them has no more than it needs.
            let (end, isPlainASCII) = plainEnd
            position = end
            isASCII = isASCII && isPlainASCII
            guard let byte = next else { return nil }
            switch byte {
            case UInt8(ascii: "\""):
                let piece = bytes[begin..<position]
                position += 1
                // Most strings have neither escape sequences nor other characters, and need no copy.
                if copy.isEmpty && isASCII && !hasUnpairedSurrogate {
                    return .text(String(decoding: piece, as: UTF8.self))
                }
                copy += piece
                // JSON text is UTF-8 (RFC 8259, 8.1).
                guard let text = String(validating: copy, as: UTF8.self) else { return nil }
                return hasUnpairedSurrogate ? .unpairedSurrogate : .text(text)
            case UInt8(ascii: "\\"):
                copy += bytes[begin..<position]
                position += 1
                guard let scalar = escape() else { return nil }
                if let scalar { copy += Array(String(scalar).utf8) } else { hasUnpairedSurrogate = true }
                begin = position
            default: return nil
            }
        }
    }

    /// The position of the next quotation mark, backslash or control character, and whether all characters before are
    /// ASCII.
    private var plainEnd: (end: Int, isASCII: Bool) {
        bytes.withUnsafeBufferPointer { bytes in
            var index = position
            var all: UInt8 = 0
            // Eight characters at a time, as long as all are plain ASCII.
            while index + 8 <= bytes.count, JSONText.isPlainASCII(bytes, at: index) { index += 8 }
            while index < bytes.count {
                let byte = bytes[index]
                if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte < 0x20 { break }
                all |= byte
                index += 1
            }
            return (index, all < 0x80)
        }
    }

    /// Returns the scalar of an escape sequence, `.some(nil)` for an unpaired surrogate; `nil` if the sequence is
    /// invalid.
    private mutating func escape() -> UnicodeScalar?? {
        guard let byte = next else { return nil }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return UnicodeScalar(byte)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"):
            guard let unit = unit() else { return nil }
            guard UTF16.isLeadSurrogate(unit) else { return .some(UnicodeScalar(unit)) }
            let back = position
            guard take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) else {
                position = back
                return .some(nil)
            }
            guard let second = self.unit() else { return nil }
            guard UTF16.isTrailSurrogate(second) else {
                position = back
                return .some(nil)
            }
            return .some(UnicodeScalar(0x10000 + (UInt32(unit) - 0xD800) << 10 + (UInt32(second) - 0xDC00)))
        default: return nil
        }
    }

    /// Returns the UTF-16 code unit of four hexadecimal digits.
    private mutating func unit() -> UInt16? {
        guard position + 4 <= bytes.count else { return nil }
        var value: UInt16 = 0
        for byte in bytes[position..<position + 4] {
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
            default: return nil
            }
            value = value << 4 | UInt16(digit)
        }
        position += 4
        return value
    }

    private mutating func number() -> JSONValue? {
        let begin = position
        _ = take(UInt8(ascii: "-"))
        guard let first = next, isDigit(first) else { return nil }
        position += 1
        if first != UInt8(ascii: "0") { skipDigits() }
        var isWhole = true
        if take(UInt8(ascii: ".")) {
            isWhole = false
            guard skipDigits() else { return nil }
        }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            isWhole = false
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            guard skipDigits() else { return nil }
        }
        let text = String(decoding: bytes[begin..<position], as: UTF8.self)
        if isWhole, let number = Int64(text) { return .integer(number) }
        guard let number = Double(text), number.isFinite else { return .unrepresentable }
        // 1.0 and 1e3 are integers too.
        return Int64(exactly: number).map { .integer($0) } ?? .number(number)
    }

    private func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    /// Skips digits; returns whether there was one.
    @discardableResult
    private mutating func skipDigits() -> Bool {
        let begin = position
        while let byte = next, isDigit(byte) { position += 1 }
        return position > begin
    }
}
