/// A language of texts: a tag of 2 to 35 lower-case ASCII letters, digits and `-` that begins with a letter, such as `de` (RFC
/// 5646).
enum FieldLanguage {
    /// The lengths of tags in bytes.
    static let bytes = 2...35

    /// Returns whether a text is a tag.
    static func isValid(_ text: String) -> Bool {
        func isLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) }
        guard bytes.contains(text.utf8.count), let first = text.utf8.first, isLetter(first) else { return false }
        return text.utf8.allSatisfy {
            isLetter($0) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == UInt8(ascii: "-")
        }
    }
}
