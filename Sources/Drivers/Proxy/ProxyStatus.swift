public import Determinism
internal import ForwardProxy
public import Impairment
public import LinkModel

/// The state of a proxy at one moment.
public struct ProxyStatus: Hashable, Sendable {
    /// Connections with at least one open socket.
    public var connectionsOpen = 0
    /// Connections accepted since the start.
    public var connectionsAccepted = 0
    /// Whether new connections wait because a limit on connections is reached.
    public var isFull = false
    /// Failed dials to the upstream.
    public var dialsFailed = 0
    /// The method by which SYNs of new connections are dropped; `nil` while they are not.
    public var synDropMethod: SYNDropMethod?
    /// The fault rules with their counts.
    public var faultRules: [FaultRuleStatus] = []
    /// Open connections to which the fault rules do not apply: they were opened on the link
    /// before the first rule was added.
    public var connectionsWithoutFaults = 0
    /// The TLS of the upstream; `nil` without TLS.
    public var upstreamTLS: UpstreamTLSStatus?
    /// The connections with TLS since the first rule about requests, whose requests are not visible, and the names that
    /// their clients have sent.
    public var opaqueTLS = OpaqueTLS()
    /// The interception of TLS; `nil` without it.
    public var interception: InterceptionStatus?
    /// The datagrams; `nil` for a proxy of TCP only.
    public var datagrams: DatagramStatus?
    /// The link.
    public var link: LinkStatus
}

/// The datagrams of a proxy at one moment.
public struct DatagramStatus: Hashable, Sendable {
    /// Sessions: clients whose last datagram is not older than the idle time.
    public var sessions = 0
    /// The counters since the start.
    public var counters = DatagramCounters()
    /// Datagrams that the kernel has not taken for sending.
    public var sendFailures = 0
    /// Clients' datagrams that the kernel has dropped because the receive buffer was full, as far as it reports them.
    public var bufferOverflows = 0
    /// Whether clients' datagrams get an ICMP port unreachable now.
    public var isRefusing = false

    /// Creates the status of a proxy without datagrams so far.
    public init() {}

    /// Datagrams that the proxy or the kernel has discarded, without those lost on the link.
    public var discarded: Int {
        counters.discarded.addingReportingOverflow(sendFailures).partialValue
            .addingReportingOverflow(bufferOverflows).partialValue
    }
}

/// The interception of TLS at one moment.
public struct InterceptionStatus: Hashable, Sendable {
    /// The connections whose client has completed a handshake with the proxy since the start.
    public internal(set) var connections = 0
    /// The hosts whose clients do not accept the certificates of the proxy, in the order in which that was seen: their
    /// connections pass as they are.
    public var pinnedHosts: [String] { pinned.hosts }
    /// The hosts in words, ``hostsNamedMax`` at most: "not intercepted, because their clients do not accept the certificate:
    /// api.test"; `nil` without any.
    public var text: String? {
        if pinnedHosts.isEmpty { return nil }
        let more = pinnedHosts.count > Self.hostsNamedMax ? ", ..." : ""
        return "not intercepted, because clients do not accept the certificate: "
            + pinnedHosts.prefix(Self.hostsNamedMax).joined(separator: ", ") + more
    }

    /// The greatest number of hosts in ``text``.
    public static let hostsNamedMax = 8

    var pinned = PinnedHosts()
}

/// Connections into which faults of requests cannot see.
public struct OpaqueTLS: Hashable, Sendable {
    /// Their number.
    public internal(set) var connections = 0
    /// The names of servers (SNI), in the order in which they were seen first; ``serverNamesMax`` of them at most.
    public internal(set) var serverNames: [String] = []

    /// The greatest number of names.
    public static let serverNamesMax = 8

    mutating func count(_ serverName: String?) {
        connections += 1
        guard let serverName, serverNames.count < Self.serverNamesMax, !serverNames.contains(serverName) else { return }
        serverNames.append(serverName)
    }

    /// The number and the names in words: "3 connections are TLS (api.test): faults of requests cannot see inside"; `nil`
    /// without any.
    public var text: String? {
        if connections == 0 { return nil }
        let names = serverNames.isEmpty ? "" : " (\(serverNames.joined(separator: ", ")))"
        return (connections == 1 ? "1 connection is TLS" : "\(connections) connections are TLS")
            + "\(names): faults of requests cannot see inside"
    }
}

/// The TLS of an upstream at one moment.
public struct UpstreamTLSStatus: Hashable, Sendable {
    /// Whether the certificate of the upstream is verified.
    public let isVerified: Bool
    /// The changes of messages since the start.
    public let rewritings: RewritingCounts
}

/// The numbers of changed messages between clients that speak HTTP and an upstream that speaks HTTPS.
public struct RewritingCounts: Hashable, Sendable {
    /// Requests with another `Host`.
    public internal(set) var hosts = 0
    /// Responses with another `Location`.
    public internal(set) var locations = 0
    /// Cookies without the attributes Domain or Secure.
    public internal(set) var cookies = 0
}

/// The identity of one connection of a proxy. It changes when the connection moves between the fast path and the link.
public struct ConnectionID: Hashable, Sendable {
    /// The component that carries the connection.
    enum Carrier: Hashable, Sendable {
        /// The flow of the link with a number.
        case link(FlowID, number: Int)
        case relay(RelayToken)
        /// The session of datagrams.
        case datagrams(FlowID)
    }

    let carrier: Carrier
}

/// The state of one connection at one moment.
public struct ConnectionStatus: Hashable, Sendable {
    /// The identity, for ``Proxy/closeConnection(_:abortively:)``.
    public let id: ConnectionID
    /// The number of connections before this one since the start, or since the seed was last set.
    public let number: Int
    /// The client's address.
    public let client: Endpoint?
    /// The name of the server that a client of TLS has sent (SNI); `nil` without TLS, without a name, or on the fast path.
    public let serverName: String?
    /// Time since the connection was accepted.
    public let age: Nanoseconds
    /// Payload bytes read from the sender's socket in each direction.
    public let bytesRead: PerDirection<Int>
    /// Payload bytes held in memory.
    public let bytesHeld: PerDirection<Int>
    /// Whether it is a session of datagrams.
    public internal(set) var isDatagrams = false
}

/// The state of a link at one moment.
public struct LinkStatus: Hashable, Sendable {
    /// The conditions for packets that enter the link now.
    public let conditions: Conditions
    /// Payload bytes read from sockets since the start.
    public private(set) var bytesRead: PerDirection<Int>
    /// The number of times that reading from a sender was paused (back-pressure) since the start.
    public private(set) var readPauses: PerDirection<Int>
    /// Payload bytes written to sockets since the start.
    public private(set) var bytesCarried: PerDirection<Int>
    /// Whether no packets pass in a direction (an outage or 100 % loss).
    public let hasOutage: PerDirection<Bool>
    /// Packets in the queue.
    public let queueDepth: PerDirection<Int>
    /// The queues.
    public let queue: PerDirection<QueueState>
    /// The mean of the smoothed round trips of open connections on the link; `nil` without a sample.
    public let smoothedRoundTrip: Nanoseconds?
    /// Packet counters since the start.
    public let counters: PerDirection<PipeCounters>
    /// The position of the timeline; `nil` if none is running.
    public var timeline: TimelineRun.Position?
    /// Orphaned connections: one socket is gone, and its RST has not reached the other one.
    public let orphans: Int
    /// Payload bytes held in memory.
    public private(set) var bytesHeld: Int

    /// The number of connections whose round trips ``smoothedRoundTrip`` contains at most.
    private static let roundTripConnectionsMax = 64

    init(_ link: inout SharedLink) {
        conditions = link.conditions
        timeline = link.timelinePosition
        hasOutage = PerDirection(up: link.hasOutage(.up), down: link.hasOutage(.down))
        bytesRead = link.bytesRead
        readPauses = link.readPauses
        bytesCarried = link.bytesCarried
        queueDepth = PerDirection(up: link.queueDepth(.up), down: link.queueDepth(.down))
        queue = PerDirection(up: link.queueState(.up), down: link.queueState(.down))
        smoothedRoundTrip = link.smoothedRoundTrip(connectionsMax: Self.roundTripConnectionsMax)
        counters = PerDirection(up: link.counters(.up), down: link.counters(.down))
        orphans = link.orphanCount
        bytesHeld = link.bytesHeld
    }

    /// The part that ``add(_:)`` adds.
    var traffic: RelayedTraffic {
        var traffic = RelayedTraffic()
        (traffic.bytesRead, traffic.bytesCarried) = (bytesRead, bytesCarried)
        (traffic.readPauses, traffic.bytesHeld) = (readPauses, bytesHeld)
        return traffic
    }

    /// Adds the traffic of the fast path or of another link.
    mutating func add(_ traffic: RelayedTraffic) {
        bytesHeld += traffic.bytesHeld
        for direction in Direction.allCases {
            bytesRead[direction] += traffic.bytesRead[direction]
            bytesCarried[direction] += traffic.bytesCarried[direction]
            readPauses[direction] += traffic.readPauses[direction]
        }
    }

    /// Whether no packets pass in at least one direction.
    public var hasAnyOutage: Bool { hasOutage.up || hasOutage.down }
}
