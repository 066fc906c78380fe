/// A revision of a note: a number that grows with each accepted write, and a random part. Only the whole is compared.
public struct Revision: Hashable, Sendable, CustomStringConvertible {
    /// How many writes there have been.
    public let number: Int
    /// What makes it unlike the same number elsewhere.
    public let suffix: String

    /// A longer text is no revision.
    public static let lengthMax = 255

    /// Creates a revision from its parts.
    public init(number: Int, suffix: String) {
        self.number = number
        self.suffix = suffix
    }

    /// Reads `12-0f3a...`; `nil` if it is not a positive number, a dash and something.
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
