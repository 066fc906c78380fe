/// A rule of a running link, with its counts.
public struct FaultRuleStatus: Hashable, Sendable {
    /// The number of the rule on its link, from 0. Numbers are not used again.
    public let number: Int
    /// The rule.
    public let rule: FaultRule
    /// The requests that the rule has matched.
    public internal(set) var matched = 0
    /// The matching requests to which the rule has applied. A fault may not fire although the rule applies: another
    /// rule precedes it, the connection ends, or the exchange does not reach the point.
    public internal(set) var applied = 0
    /// The faults that have fired.
    public internal(set) var fired = 0

    /// Adds the counts of the rule on another link.
    public mutating func addCounts(of other: FaultRuleStatus) {
        matched += other.matched
        applied += other.applied
        fired += other.fired
    }

    /// Whether the rule has fired as often as its `times` expects.
    public var isSatisfied: Bool { fired >= rule.times.lowerBound }
}

/// An error of adding a rule: the rule cannot be used.
public struct FaultRuleError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reason.
    public let reason: String

    /// Creates an error.
    public init(reason: String) { self.reason = reason }

    public var description: String { "cannot add the fault rule: \(reason)" }
}
