public import Determinism

/// The lifetime and the number of orphaned connections: one socket is gone and the RST that reports it has not reached the
/// other one, for example because it was lost.
///
/// The defaults are Linux's: `tcp_orphan_retries` 0 stands for 8 time-outs, some 100 s from the shortest on, and
/// `tcp_max_orphans`. Beyond the limit the oldest orphan is aborted first.
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
