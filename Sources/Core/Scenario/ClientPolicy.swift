public import Determinism

/// The delays and limits that a client publishes. The default values are those of the reference policy.
public struct ClientPolicy: Hashable, Sendable {
    /// The delay after the first failure.
    public var firstDelay: Nanoseconds
    /// The longest delay.
    public var longestDelay: Nanoseconds
    /// The interval between index fetches; `nil` if the client does not poll.
    public var poll: Nanoseconds?
    /// The longest delay of the first attempt after an interface has come up, or after a probe has succeeded.
    public var recoveryDelay: Nanoseconds
    /// Whether the client sends on interfaces whose data are charged.
    public var usesMeteredInterfaces: Bool

    /// Creates a policy.
    public init(
        firstDelay: Nanoseconds = .seconds(1), longestDelay: Nanoseconds = .seconds(60),
        poll: Nanoseconds? = nil, recoveryDelay: Nanoseconds = .seconds(5), usesMeteredInterfaces: Bool = true
    ) {
        self.firstDelay = firstDelay
        self.longestDelay = longestDelay
        self.poll = poll
        self.recoveryDelay = recoveryDelay
        self.usesMeteredInterfaces = usesMeteredInterfaces
    }

    /// The number of doublings from the first to the longest delay.
    private var doublings: Int {
        var delay = max(1, firstDelay.count)
        var count = 0
        while delay < longestDelay.count {
            delay = delay.multipliedSaturating(by: 2)
            count += 1
        }
        return count
    }

    /// Returns the number of attempts of the whole queue that are allowed in one outage of D seconds:
    /// 2 + ceil(log2(cap / base)) + ceil(D / (cap / 2)).
    public func attemptsMax(inOutage duration: Nanoseconds) -> Int {
        let half = max(1, longestDelay.count / 2)
        let (count, remainder) = max(0, duration.count).quotientAndRemainder(dividingBy: half)
        return 2 + doublings + Int(clamping: count) + (remainder > 0 ? 1 : 0)
    }

    /// Returns the number of attempts allowed in one down phase of a flap, besides one for each change: 2 in up to
    /// twice the first delay, one more for each doubling of that length, and never more than in an outage.
    public func attemptsMax(inDownPhase duration: Nanoseconds) -> Int {
        var allowed = 2
        var length = max(1, firstDelay.count.multipliedSaturating(by: 2))
        while length < duration.count && allowed < 64 {
            length = length.multipliedSaturating(by: 2)
            allowed += 1
        }
        let half = max(1, longestDelay.count / 2)
        return min(allowed + Int(clamping: max(0, duration.count) / half), attemptsMax(inOutage: duration))
    }
}
