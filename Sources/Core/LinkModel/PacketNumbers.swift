/// A set of packet numbers; the first packet that enters a direction of a link is number 1.
public struct PacketNumbers: Hashable, Sendable, CustomStringConvertible {
    /// The ranges in ascending order, without overlap.
    private let ranges: [ClosedRange<Int>]

    /// The maximum number of ranges of a list.
    public static let rangesMax = 10_000
    /// The highest packet number.
    public static let numberMax = 1_000_000_000

    /// Creates a set from ranges in any order; `nil` if there are none or too many, or a number is not within 1 to
    /// ``numberMax``.
    public init?(_ ranges: [ClosedRange<Int>]) {
        guard !ranges.isEmpty, ranges.count <= PacketNumbers.rangesMax else { return nil }
        var merged: [ClosedRange<Int>] = []
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            guard range.lowerBound >= 1, range.upperBound <= PacketNumbers.numberMax else { return nil }
            if let last = merged.last, range.lowerBound <= last.upperBound + 1 {
                merged[merged.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
            } else {
                merged.append(range)
            }
        }
        self.ranges = merged
    }

    /// Returns whether the set contains a number.
    public func contains(_ number: Int) -> Bool {
        var low = 0
        var high = ranges.count
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound < number { low = middle + 1 } else { high = middle }
        }
        return low < ranges.count && ranges[low].contains(number)
    }

    public var description: String {
        ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }
            .joined(separator: ", ")
    }
}
