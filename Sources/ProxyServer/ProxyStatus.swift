internal import Impairment
public import LinkModel

/// Where a proxy stands at a moment.
public struct ProxyStatus: Hashable, Sendable {
    /// Connections with a socket open.
    public var connectionsOpen = 0
    /// Connections accepted since the start.
    public var connectionsAccepted = 0
    /// Whether new connections wait because as many are open as may be.
    public var isFull = false
    /// Dials that failed.
    public var dialsFailed = 0
    /// How new connections are kept from being answered, while nothing gets through; otherwise `nil`.
    public var silence: SilenceMethod?
    /// The link.
    public var link: LinkStatus
}

/// Where a link stands at a moment.
public struct LinkStatus: Hashable, Sendable {
    /// What holds for packets that enter now.
    public let conditions: Conditions
    /// Payload bytes handed to a socket since the start.
    public let bytesCarried: PerDirection<Int>
    /// Whether nothing gets through in a direction.
    public let isDead: PerDirection<Bool>
    /// Packets in the queue.
    public let queueDepth: PerDirection<Int>
    /// What has passed the link.
    public let counters: PerDirection<PipeCounters>
    /// Connections of which one socket is gone and the other has not heard of it.
    public let orphans: Int
    /// Payload bytes held in memory.
    public let bytesHeld: Int

    init(_ link: inout SharedLink) {
        conditions = link.conditions
        isDead = PerDirection(up: link.isDead(.up), down: link.isDead(.down))
        bytesCarried = link.bytesCarried
        queueDepth = PerDirection(up: link.queueDepth(.up), down: link.queueDepth(.down))
        counters = PerDirection(up: link.counters(.up), down: link.counters(.down))
        orphans = link.orphanCount
        bytesHeld = link.bytesHeld
    }

    /// Whether nothing gets through in at least one direction.
    public var isStalled: Bool { isDead.up || isDead.down }
}
