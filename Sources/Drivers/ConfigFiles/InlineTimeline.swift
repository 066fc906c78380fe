/// The YAML of a timeline written inline, as `0s: 3g, 20s: 100-loss` or without spaces as `0s:3g,20s:100-loss`.
///
/// YAML needs braces around a flow mapping and a space after the colon of a plain key; both are added here, and
/// positions of errors are mapped back to the original text.
struct InlineTimeline {
    /// The YAML text.
    let yaml: String

    private struct Position: Comparable {
        let line: Int
        let column: Int

        static func < (left: Position, right: Position) -> Bool {
            (left.line, left.column) < (right.line, right.column)
        }
    }

    private let linesBefore: Int
    /// The positions of added spaces in ``yaml``, in order.
    private let spaces: [Position]

    init(_ text: String) {
        let isBraced = text.utf8.first { $0 > UInt8(ascii: " ") } == UInt8(ascii: "{")
        linesBefore = isBraced ? 0 : 1
        var out = String.UnicodeScalarView()
        if !isBraced { out.append(contentsOf: "{\n".unicodeScalars) }
        var spaces: [Position] = []
        var line = 1 + linesBefore
        var column = 1
        /// The length of the plain key at the current position; `nil` outside of keys.
        var keyLength: Int? = 0
        var hasKeyEnded = false
        var quote: Unicode.Scalar?
        var isEscaped = false
        /// The last scalar that is not whitespace.
        var last: Unicode.Scalar = "{"
        var needsSpace = false

        for scalar in text.unicodeScalars {
            if needsSpace {
                needsSpace = false
                if !scalar.properties.isWhitespace {
                    out.append(" ")
                    spaces.append(Position(line: line, column: column))
                    column += 1
                }
            }
            out.append(scalar)
            (line, column) = scalar == "\n" ? (line + 1, 1) : (line, column + 1)
            if let open = quote {
                if isEscaped {
                    isEscaped = false
                } else if scalar == "\\" && open == "\"" {
                    isEscaped = true
                } else if scalar == open {
                    quote = nil
                }
                continue
            }
            switch scalar {
            case "{", "[", ",":
                keyLength = 0
                hasKeyEnded = false
            case "\"", "'":
                if ["{", "[", ",", ":"].contains(last) { quote = scalar }
                keyLength = nil
            case ":":
                needsSpace = keyLength ?? 0 > 0
                keyLength = nil
            case _ where scalar.properties.isWhitespace: hasKeyEnded = keyLength ?? 0 > 0
            case "a"..."z", "A"..."Z", "0"..."9", ".", "-", "_":
                keyLength = hasKeyEnded ? nil : keyLength.map { $0 + 1 }
            default: keyLength = nil
            }
            if !scalar.properties.isWhitespace { last = scalar }
        }
        if !isBraced { out.append(contentsOf: "\n}".unicodeScalars) }
        yaml = String(out)
        self.spaces = spaces
    }

    /// Returns whether a text is an inline timeline: it begins with a brace, or with a time and a colon.
    static func isInline(_ text: String) -> Bool {
        let text = text.drop { $0 == " " || $0 == "\n" }
        guard let first = text.first else { return false }
        if first == "{" { return true }
        guard first.isASCII, first.isNumber else { return false }
        let rest = text.drop { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == ".") }
        return rest.drop { $0 == " " }.first == ":"
    }

    /// Returns the position in the original text of a position in ``yaml``, both from 1.
    func originalPosition(line: Int, column: Int) -> (line: Int, column: Int) {
        let added = count(before: Position(line: line, column: column)) - count(before: Position(line: line, column: 0))
        return (max(1, line - linesBefore), max(1, column - added))
    }

    /// Returns the number of added spaces before a position.
    private func count(before position: Position) -> Int {
        var low = 0
        var high = spaces.count
        while low < high {
            let middle = (low + high) / 2
            if spaces[middle] < position { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
