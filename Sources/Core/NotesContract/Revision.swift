/// A revision of a note: a number that grows with each accepted write, and a random suffix. Both parts are compared.
public struct Revision: Hashable, Sendable, CustomStringConvertible {
    /// The number of writes.
    public let number: Int
    /// A random text that distinguishes revisions with the same number.
    public let suffix: String

    /// The longest revision in bytes.
    public static let lengthMax = 255

    /// Creates a revision from its parts.
    public init(number: Int, suffix: String) {
        self.number = number
        self.suffix = suffix
    }

    /// Parses `12-0f3a...`; `nil` if the text is not a positive number, a dash and a suffix.
    public init?(_ text: String) {
        guard text.utf8.count <= Revision.lengthMax, let dash = text.firstIndex(of: "-") else { return nil }
        let digits = text[..<dash]
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (48...57).contains($0) }), let number = Int(digits), number > 0
        else { return nil }
        let suffix = text[text.index(after: dash)...]
        guard !suffix.isEmpty else { return nil }
        self.init(number: number, suffix: String(suffix))
    }

    public var description: String { "\(number)-\(suffix)" }
}
