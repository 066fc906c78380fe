/// Long runs of combining marks, on which whatever compares texts by Unicode's rules takes time quadratic in their length:
/// `String`, and so the YAML reader's search for keys that are given twice.
enum MarkRun {
    /// Combining marks in a row. Writing needs fewer than ten; Unicode's Stream-Safe Text Format (UAX #15, 13) allows 30.
    static let marksMax = 64

    /// Those of YAML 1.1.
    private static let lineBreaks: Set<Unicode.Scalar> = ["\n", "\r", "\u{85}", "\u{2028}", "\u{2029}"]

    /// Where a run begins to be too long, with lines and columns from 1; `nil` if none is. Marks that are written as escapes
    /// of a double-quoted scalar count, and so do runs that go on after an escaped line break.
    static func place(in text: String) -> (line: Int, column: Int)? {
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
            var meant = scalar
            if scalar == "\n" {
                (line, column) = (line + 1, 0)
            } else if scalar == "\\", let escape = pending {
                if lineBreaks.contains(escape) {
                    // The line break and the spaces after it stand for nothing.
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
                    meant = Unicode.Scalar(value) ?? scalar
                }
            }
            // Before U+0300 there is no mark.
            run = meant.value >= 0x300 && meant.properties.canonicalCombiningClass != .notReordered ? run + 1 : 0
            if run > marksMax { return (line, column) }
        }
        return nil
    }
}
