public import Determinism

/// Delays and limits of repeated attempts.
public struct RetryPolicy: Hashable, Sendable {
    /// The delay after the first failure.
    public var first: Nanoseconds
    /// The longest delay. Delays double up to it; each is then reduced at random to between 50 % and 100 %.
    public var longest: Nanoseconds
    /// The interval between index fetches.
    public var poll: Nanoseconds
    /// Attempts per entry that end in a server error (500) before the entry is set aside.
    public var serverErrorsMax: Int

    /// Creates a policy.
    public init(
        first: Nanoseconds = .seconds(1), longest: Nanoseconds = .seconds(60), poll: Nanoseconds = .seconds(60),
        serverErrorsMax: Int = 5
    ) {
        self.first = first
        self.longest = longest
        self.poll = poll
        self.serverErrorsMax = serverErrorsMax
    }

    /// Returns the delay after a number of failures in a row.
    func delay(afterFailures failures: Int, random: inout RandomStream) -> Nanoseconds {
        var whole = first.count
        var doublings = failures - 1
        while doublings > 0 && whole < longest.count {
            whole *= 2
            doublings -= 1
        }
        whole = min(whole, longest.count)
        return Nanoseconds(whole - random.integer(below: whole / 2 + 1))
    }
}
