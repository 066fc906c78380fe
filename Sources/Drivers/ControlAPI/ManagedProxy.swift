internal import ConfigFiles
internal import Determinism
internal import HTTPSockets
internal import Impairment
internal import LinkModel
internal import Proxy
internal import Wire

/// A proxy of the registry: its settings and, while it is enabled, the running proxy.
struct ManagedProxy {
    let name: String
    /// The text of the request until the first start, then the bound address.
    var listen: String
    var upstream: String
    var isEnabled = false
    /// The toxics, in the order in which they were added.
    var toxics: [StoredToxic] = []
    /// The faults, in the order in which they were added.
    var faults: [StoredFault] = []
    /// The outage that is independent of the link.
    var outage = PerDirection(up: false, down: false)
    /// The position at which the timeline of the link is paused; `nil` if it is not paused.
    var pausedTimeline: TimelineRun.Position?
    /// The time at which the initial link returns, in nanoseconds since 1970; `nil` means never.
    var resetAt: Int64?
    /// The time since which the proxy is impaired, in nanoseconds since 1970; `nil` if it is not.
    var impairedSince: Int64?
    /// Whether the proxy was started elsewhere, and is stopped there.
    var isAdopted = false
    /// The running proxy; `nil` while the proxy is disabled.
    var running: Proxy?
    var link = LinkSetting.passThrough
    /// The TLS of the upstream; `nil` without TLS.
    var tls: UpstreamTLS?
    /// The interception of TLS; `nil` for none.
    var interception: InterceptionRequest?
    /// The authority of ``interception`` since the first start.
    var authority: CertificateAuthority?
    /// The protocols that the proxy forwards.
    var protocols = ForwardedProtocols.tcp
    /// The settings of a forward proxy; `nil` for a proxy of one upstream.
    var forward: ForwardSettings?
    /// The settings whose rules `POST /reset` restores.
    var initialForward: ForwardSettings?
    /// The link that `POST /reset` restores.
    var initialLink: LinkSetting
    /// The way client connections are closed if the upstream is unreachable.
    let unreachableUpstream: UnreachableUpstream
    var seed: UInt64
    /// The number of starts with this seed.
    var startCount = 0
    /// The counters before the last start.
    var earlierTraffic = TrafficCounters()

    /// - Parameter link: The initial link. Without one, the proxy behaves as Toxiproxy's proxies do when the upstream
    ///   is unreachable.
    init(
        name: String, listen: String, upstream: String, link: LinkSetting?, seed: UInt64,
        forward: ForwardSettings? = nil
    ) {
        self.name = name
        self.listen = listen
        self.upstream = upstream
        self.link = link ?? .passThrough
        initialLink = link ?? .passThrough
        unreachableUpstream = link == nil ? .close : .reset
        self.seed = seed
        self.forward = forward
        initialForward = forward
    }

    /// The seed of the next start; each start has its own, derived from ``seed``.
    var nextStartSeed: UInt64 {
        if startCount == 0 { return seed }
        var stream = RandomStream(seed: seed, "start/\(startCount)")
        return stream.next()
    }

    /// The seed of the last start.
    var lastStartSeed: UInt64 {
        var earlier = self
        earlier.startCount = max(0, startCount - 1)
        return earlier.nextStartSeed
    }

    /// Whether anything impairs the proxy: its link, an outage, toxics, faults or rules.
    var isImpaired: Bool {
        if forward?.hasImpairment == true || outage.up || outage.down || !toxics.isEmpty || !faults.isEmpty {
            return true
        }
        switch link {
        case .constant(let conditions, _): return !conditions.isClear || conditions.connectionPolicy != .open
        case .timeline: return true
        }
    }

    /// Whether the proxy is enabled and holds its port. After a `offline` link another process may hold it.
    var isListening: Bool { isEnabled && running?.listenFailure == nil }

    /// The toxics in the order of responses: upstream ones first, each stream's in the order in which they were added.
    var orderedToxics: [StoredToxic] { toxics.filter { $0.stream == .up } + toxics.filter { $0.stream == .down } }

    /// The proxy in Toxiproxy's format; a forward proxy also has `forward`, and one of datagrams `protocol`.
    var json: String {
        var members = [
            ("name", JSONText.string(name)), ("listen", JSONText.string(listen)),
            ("upstream", JSONText.string(upstream)), ("enabled", isListening ? "true" : "false"),
            ("toxics", JSONText.array(orderedToxics.map(\.json))),
        ]
        if forward != nil { members.append(("forward", "true")) }
        if protocols != .tcp { members.append(("protocol", JSONText.string("\(protocols)"))) }
        return JSONText.object(members)
    }
}

/// The counters of a proxy.
struct TrafficCounters: Hashable {
    var bytesReceived = PerDirection(up: 0, down: 0)
    var bytesSent = PerDirection(up: 0, down: 0)
    var packetsLost = PerDirection(up: 0, down: 0)
    var retransmissions = PerDirection(up: 0, down: 0)
    var readPauses = PerDirection(up: 0, down: 0)
    var connectionsAccepted = 0
    var dialsFailed = 0
    var sessionsOpened = 0
    var datagramsReceived = PerDirection(up: 0, down: 0)
    var datagramsSent = PerDirection(up: 0, down: 0)
    /// Datagrams that the proxy or the kernel has discarded, without those lost on the link.
    var datagramsDiscarded = 0

    init() {}

    init(_ status: ProxyStatus) {
        connectionsAccepted = status.connectionsAccepted
        dialsFailed = status.dialsFailed
        bytesReceived = status.link.bytesRead
        bytesSent = status.link.bytesCarried
        readPauses = status.link.readPauses
        if let datagrams = status.datagrams {
            sessionsOpened = datagrams.counters.sessionsOpened
            datagramsReceived = datagrams.counters.received
            datagramsSent = datagrams.counters.sent
            datagramsDiscarded = datagrams.discarded
        }
        for direction in Direction.allCases {
            let counters = status.link.counters[direction]
            packetsLost[direction] = counters.packetsLost + counters.packetsDropped
            retransmissions[direction] = counters.retransmissions
        }
    }

    static func += (sum: inout TrafficCounters, more: TrafficCounters) {
        sum.connectionsAccepted += more.connectionsAccepted
        sum.dialsFailed += more.dialsFailed
        sum.sessionsOpened += more.sessionsOpened
        sum.datagramsDiscarded += more.datagramsDiscarded
        for direction in Direction.allCases {
            sum.bytesReceived[direction] += more.bytesReceived[direction]
            sum.bytesSent[direction] += more.bytesSent[direction]
            sum.packetsLost[direction] += more.packetsLost[direction]
            sum.retransmissions[direction] += more.retransmissions[direction]
            sum.readPauses[direction] += more.readPauses[direction]
            sum.datagramsReceived[direction] += more.datagramsReceived[direction]
            sum.datagramsSent[direction] += more.datagramsSent[direction]
        }
    }
}
