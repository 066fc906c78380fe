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
    /// The link.
    public var link: LinkStatus
}

/// Where a link stands at a moment.
public struct LinkStatus: Hashable, Sendable {
    /// What holds for packets that enter now.
    public let conditions: Conditions
    /// Payload bytes handed to a socket since the start.
    public let bytesCarried: PerDirection<Int>
    /// Packets in the queue.
    public let queueDepth: PerDirection<Int>
    /// Connections that wait for a place in the queue, or for the link to heal.
    public let waiting: PerDirection<Int>
    /// Payload bytes held in memory.
    public let bytesHeld: Int

    init(_ link: inout SharedLink) {
        conditions = link.conditions
        bytesCarried = link.bytesCarried
        queueDepth = PerDirection(up: link.queueDepth(.up), down: link.queueDepth(.down))
        waiting = PerDirection(up: link.waitingCount(.up), down: link.waitingCount(.down))
        bytesHeld = link.bytesHeld
    }

    /// Whether nothing gets through in at least one direction.
    public var isStalled: Bool { conditions.up.loss == .all || conditions.down.loss == .all }
}
