public import Determinism

/// The limits on orphaned connections: one socket is gone, and its RST has not reached the other one, for example
/// because it was lost.
///
/// The defaults are Linux's: `tcp_max_orphans`, and `tcp_orphan_retries` 0, which stands for 8 retransmission timeouts:
/// some 100 s with the shortest RTO. Beyond the limit the oldest orphan is aborted first.
public struct OrphanLimits: Hashable, Sendable {
    /// The lifetime of an orphan.
    public var timeMax: Nanoseconds
    /// The number of orphans.
    public var countMax: Int

    /// Creates limits.
    public init(timeMax: Nanoseconds = .seconds(100), countMax: Int = 8192) {
        self.timeMax = timeMax
        self.countMax = countMax
    }
}
