public import Determinism

/// The distribution of one transfer's times over many trials.
public struct TrialSummary: Sendable {
    /// The 50th and 95th percentile and the maximum of some times.
    public struct Times: Hashable, Sendable {
        public let p50: Nanoseconds
        public let p95: Nanoseconds
        public let max: Nanoseconds

        /// Creates the percentiles of times, each the smallest time that at least so many percent of the times do not
        /// exceed (nearest rank); `nil` without times.
        init?(_ times: [Nanoseconds]) {
            guard let last = times.max() else { return nil }
            let sorted = times.sorted()
            func percentile(_ percent: Int) -> Nanoseconds {
                // At most 1 000 000 trials.
                sorted[Swift.max(0, (sorted.count * percent + 99) / 100 - 1)]
            }
            (p50, p95, max) = (percentile(50), percentile(95), last)
        }
    }

    /// The transfer.
    public let transfer: Transfer
    private var firstBytes: [Nanoseconds] = []
    private var totals: [Nanoseconds] = []
    private var resumes: [Nanoseconds] = []
    /// The number of trials.
    public private(set) var trials = 0
    /// The number of trials that failed.
    public private(set) var failures = 0

    public init(of transfer: Transfer) { self.transfer = transfer }

    /// Adds the result of a trial of the transfer.
    public mutating func add(_ result: TrialResult) {
        trials += 1
        if result.failure != nil { return failures += 1 }
        if let time = result.firstByte { firstBytes.append(time) }
        if let time = result.total ?? result.connect { totals.append(time) }
        if let time = result.resume { resumes.append(time) }
    }

    /// The times from the request to the first byte of the response.
    public var firstByte: Times? { Times(firstBytes) }
    /// The times from `connect()` to the last byte, or to its return if nothing is transferred.
    public var total: Times? { Times(totals) }
    /// The times from the end of the outage to the first new byte.
    public var resume: Times? { Times(resumes) }
}
