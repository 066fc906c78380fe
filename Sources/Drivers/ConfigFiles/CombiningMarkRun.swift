/// Detection of long runs of combining marks. Unicode string comparison, such as the YAML parser's check for duplicate
/// keys, takes time quadratic in the length of a run.
enum CombiningMarkRun {
    /// The maximum number of combining marks in a row. Languages use fewer than 10; the Stream-Safe Text Format (UAX
    /// #15, 13) allows 30.
    static let marksMax = 64

    /// The line breaks of YAML 1.1.
    private static let lineBreaks: Set<Unicode.Scalar> = ["\n", "\r", "\u{85}", "\u{2028}", "\u{2029}"]

    /// Returns the line and column, from 1, at which a run exceeds the limit; `nil` if none does. Marks written as
    /// escapes of a double-quoted scalar count, and a run continues after an escaped line break.
    static func location(in text: String) -> (line: Int, column: Int)? {
        var run = 0
        var line = 1
        var column = 0
        var scalars = text.unicodeScalars.makeIterator()
        var pending = scalars.next()
        func advance() {
            pending = scalars.next()
            column += 1
        }
        while let scalar = pending {
            advance()
            var decoded = scalar
            if scalar == "\n" {
                (line, column) = (line + 1, 0)
            } else if scalar == "\\", let escape = pending {
                if lineBreaks.contains(escape) {
                    // An escaped line break and the spaces after it are removed by the parser.
                    while let space = pending, space == " " || space == "\t" || lineBreaks.contains(space) {
                        advance()
                        if space == "\n" { (line, column) = (line + 1, 0) }
                    }
                    continue
                }
                let digits = escape == "u" ? 4 : escape == "U" ? 8 : 0
                if digits > 0 {
                    advance()
                    var value: UInt32 = 0
                    for _ in 0..<digits {
                        guard let digit = pending.flatMap({ Character($0).hexDigitValue }) else { break }
                        value = value << 4 | UInt32(digit)
                        advance()
                    }
                    decoded = Unicode.Scalar(value) ?? scalar
                }
            }
            // U+0300 is the first combining mark.
            run = decoded.value >= 0x300 && decoded.properties.canonicalCombiningClass != .notReordered ? run + 1 : 0
            if run > marksMax { return (line, column) }
        }
        return nil
    }
}
