internal import Determinism

/// Upper bounds of a metric's statistics.
public struct Threshold: Hashable, Sendable {
    /// A measured quantity.
    public enum Metric: String, CaseIterable, Hashable, Sendable {
        /// The time from an action to its effect on the screen.
        case saveToScreen = "save-to-screen"
        /// The time from an action to the server's response to it.
        case saveToSynced = "save-to-synced"
        /// The number of requests with one change.
        case attemptsPerWrite = "attempts-per-write"

        /// Whether the metric is a time; otherwise it is a number.
        public var isTime: Bool { self != .attemptsPerWrite }
    }

    /// A statistic of a metric.
    public enum Statistic: String, CaseIterable, Hashable, Sendable { case p50, p90, p95, p99, max }

    /// The bound of a statistic.
    public struct Bound: Hashable, Sendable {
        /// The statistic.
        public var statistic: Statistic
        /// The greatest allowed value: nanoseconds of a time, or a number.
        public var max: Int64

        /// Creates a bound.
        public init(_ statistic: Statistic, max: Int64) {
            self.statistic = statistic
            self.max = max
        }
    }

    /// The metric.
    public var metric: Metric
    /// The bounds, in the order of the statistics.
    public var bounds: [Bound]

    /// Creates bounds of a metric.
    public init(_ metric: Metric, _ bounds: [Bound]) {
        self.metric = metric
        self.bounds = bounds
    }
}

extension Threshold: CustomStringConvertible {
    public var description: String {
        let parts = bounds.map { bound in
            "\(bound.statistic.rawValue) \(metric.isTime ? TimeFormat.duration(Nanoseconds(bound.max)) : "\(bound.max)")"
        }
        return "\(metric.rawValue) \(parts.joined(separator: ", "))"
    }
}
