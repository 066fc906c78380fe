/// The seeds of an exploration: a first one and a number.
public struct SeedRange: Hashable, Sendable {
    /// The first seed.
    public let first: UInt64
    /// The number of seeds.
    public let count: UInt64

    /// The maximum number of seeds.
    public static let countMax: UInt64 = 1_000_000_000

    /// Creates a range; `nil` if it is empty, too long, or goes beyond the greatest seed.
    public init?(first: UInt64, count: UInt64) {
        guard (1...Self.countMax).contains(count), !first.addingReportingOverflow(count).overflow else {
            return nil
        }
        self.first = first
        self.count = count
    }

    /// Reads a range: `0..<200`, `1000+200`, or `200` for the seeds from 0. Returns `nil` if the text is no range.
    public init?(_ text: String) {
        let parts = text.split(separator: "..<", omittingEmptySubsequences: false)
        if parts.count == 2 {
            guard let first = UInt64(parts[0]), let end = UInt64(parts[1]), end > first else { return nil }
            self.init(first: first, count: end - first)
            return
        }
        let sum = text.split(separator: "+", omittingEmptySubsequences: false)
        guard let last = sum.last.flatMap({ UInt64($0) }), sum.count <= 2 else { return nil }
        guard sum.count == 2 else {
            self.init(first: 0, count: last)
            return
        }
        guard let first = UInt64(sum[0]) else { return nil }
        self.init(first: first, count: last)
    }

    /// Returns the range with another first seed; `nil` if it goes beyond the greatest seed.
    public func beginning(at first: UInt64) -> SeedRange? { SeedRange(first: first, count: count) }
}

extension SeedRange: CustomStringConvertible {
    public var description: String { "\(first)..<\(first + count)" }
}
