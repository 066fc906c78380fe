/// Delays between attempts: exponential, with a limit, reduced at random.
public struct Backoff: Hashable, Sendable {
    /// The delay after the first failure.
    public var first: Nanoseconds
    /// The longest delay. Delays double up to it; each is then reduced at random to between 50 % and 100 %.
    public var longest: Nanoseconds
    /// Whether delays are reduced at random.
    public var hasJitter: Bool

    /// Creates delays.
    public init(first: Nanoseconds, longest: Nanoseconds, hasJitter: Bool = true) {
        self.first = first
        self.longest = longest
        self.hasJitter = hasJitter
    }

    /// Returns the delay after a number of failures in a row.
    public func delay(afterFailures failures: Int, random: inout RandomStream) -> Nanoseconds {
        var whole = max(1, first.count)
        var doublings = failures - 1
        while doublings > 0 && whole < longest.count {
            whole = whole.multipliedSaturating(by: 2)
            doublings -= 1
        }
        whole = min(whole, max(1, longest.count))
        return Nanoseconds(hasJitter ? whole - random.integer(below: whole / 2 + 1) : whole)
    }
}
