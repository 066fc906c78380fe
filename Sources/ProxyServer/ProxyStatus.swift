internal import Impairment
public import LinkModel
internal import SpliceRelay

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

/// Names one connection of a proxy for as long as it is where it is.
public struct ConnectionID: Hashable, Sendable {
    /// What carries it.
    enum Place: Hashable, Sendable {
        case link(FlowID)
        case relay(RelayToken)
    }

    let place: Place
}

/// Where one connection stands at a moment.
public struct ConnectionStatus: Hashable, Sendable {
    /// Its name, for ``Proxy/cut(_:byReset:)``.
    public let id: ConnectionID
    /// How many connections there had been before it since the start, or since the last change of the seed.
    public let number: Int
    /// Where the client calls from.
    public let client: Endpoint?
    /// How long it has been there.
    public let age: Nanoseconds
    /// Payload bytes read from its sockets.
    public let bytesRead: PerDirection<Int>
    /// Payload bytes held in memory.
    public let bytesHeld: PerDirection<Int>
}

/// Where a link stands at a moment.
public struct LinkStatus: Hashable, Sendable {
    /// What holds for packets that enter now.
    public let conditions: Conditions
    /// Payload bytes read from a socket since the start.
    public private(set) var bytesRead: PerDirection<Int>
    /// How often a sender had to wait since the start.
    public private(set) var stalls: PerDirection<Int>
    /// Payload bytes handed to a socket since the start.
    public private(set) var bytesCarried: PerDirection<Int>
    /// Whether nothing gets through in a direction.
    public let isDead: PerDirection<Bool>
    /// Packets in the queue.
    public let queueDepth: PerDirection<Int>
    /// What has passed the link.
    public let counters: PerDirection<PipeCounters>
    /// Connections of which one socket is gone and the other has not heard of it.
    public let orphans: Int
    /// Payload bytes held in memory.
    public private(set) var bytesHeld: Int

    init(_ link: inout SharedLink) {
        conditions = link.conditions
        isDead = PerDirection(up: link.hasOutage(.up), down: link.hasOutage(.down))
        bytesRead = link.bytesRead
        stalls = link.readPauses
        bytesCarried = link.bytesCarried
        queueDepth = PerDirection(up: link.queueDepth(.up), down: link.queueDepth(.down))
        counters = PerDirection(up: link.counters(.up), down: link.counters(.down))
        orphans = link.orphanCount
        bytesHeld = link.bytesHeld
    }

    /// Adds what went past the model.
    mutating func add(_ traffic: RelayedTraffic) {
        bytesHeld += traffic.bytesHeld
        for direction in Direction.allCases {
            bytesRead[direction] += traffic.bytesRead[direction]
            bytesCarried[direction] += traffic.bytesCarried[direction]
            stalls[direction] += traffic.readPauses[direction]
        }
    }

    /// Whether nothing gets through in at least one direction.
    public var isStalled: Bool { isDead.up || isDead.down }
}
