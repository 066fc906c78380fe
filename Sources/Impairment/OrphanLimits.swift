public import LinkModel

/// How long a connection lasts of which one socket is gone while the other has not heard of it, as when the RST is lost, and
/// how many such there may be.
///
/// The defaults are Linux's: `tcp_orphan_retries` 0 stands for 8 time-outs, some 100 s from the shortest on, and
/// `tcp_max_orphans`. Over the limit the oldest goes first.
public struct OrphanLimits: Hashable, Sendable {
    /// How long.
    public var timeMax: Nanoseconds
    /// How many.
    public var countMax: Int

    /// Creates limits.
    public init(timeMax: Nanoseconds = .seconds(100), countMax: Int = 8192) {
        self.timeMax = timeMax
        self.countMax = countMax
    }
}
