internal import ConfigFiles
internal import JSON
internal import LinkModel
internal import ProxyServer

/// A proxy as it was asked for, whether it runs or not.
struct ManagedProxy {
    let name: String
    /// As given until it runs, then the address that is bound.
    var listen: String
    var upstream: String
    var isEnabled = false
    /// The oldest first.
    var toxics: [StoredToxic] = []
    /// What runs while it is enabled.
    var running: Proxy?
    var link = LinkSetting.clear
    /// What a reset goes back to.
    let firstLink: LinkSetting
    /// How its clients learn that the upstream cannot be reached.
    let unreachableUpstream: UnreachableUpstream
    var seed: UInt64
    /// How often it has been started with this seed.
    var starts = 0
    /// What was counted by those that ran before.
    var past = Traffic()

    /// - Parameter link: The link it is made with. With none it is one of Toxiproxy's, and behaves as those do when the
    ///   upstream cannot be reached.
    init(name: String, listen: String, upstream: String, link: LinkSetting?, seed: UInt64) {
        self.name = name
        self.listen = listen
        self.upstream = upstream
        self.link = link ?? .clear
        firstLink = link ?? .clear
        unreachableUpstream = link == nil ? .close : .reset
        self.seed = seed
    }

    /// Each start has its own chance, which follows from the seed.
    var seedOfNextStart: UInt64 {
        if starts == 0 { return seed }
        var stream = RandomStream(seed: seed, "start/\(starts)")
        return stream.next()
    }

    /// Whether it is enabled and has its port: one that another process has taken meanwhile is tried for again.
    var isListening: Bool { isEnabled && running?.listenFailure == nil }

    /// As Toxiproxy shows it.
    var json: String {
        let ordered = toxics.filter { $0.stream == .up } + toxics.filter { $0.stream == .down }
        return JSONText.object([
            ("name", JSONText.string(name)), ("listen", JSONText.string(listen)),
            ("upstream", JSONText.string(upstream)), ("enabled", isListening ? "true" : "false"),
            ("toxics", JSONText.array(ordered.map(\.json))),
        ])
    }
}

/// What has been counted of a proxy.
struct Traffic: Hashable {
    var received = PerDirection(up: 0, down: 0)
    var sent = PerDirection(up: 0, down: 0)
    var lost = PerDirection(up: 0, down: 0)
    var retransmitted = PerDirection(up: 0, down: 0)
    var stalls = PerDirection(up: 0, down: 0)
    var accepted = 0
    var dialsFailed = 0

    init() {}

    init(_ status: ProxyStatus) {
        accepted = status.connectionsAccepted
        dialsFailed = status.dialsFailed
        received = status.link.bytesRead
        sent = status.link.bytesCarried
        stalls = status.link.readPauses
        for direction in Direction.allCases {
            let counters = status.link.counters[direction]
            lost[direction] = counters.packetsLost + counters.packetsDropped
            retransmitted[direction] = counters.retransmissions
        }
    }

    static func += (sum: inout Traffic, more: Traffic) {
        sum.accepted += more.accepted
        sum.dialsFailed += more.dialsFailed
        for direction in Direction.allCases {
            sum.received[direction] += more.received[direction]
            sum.sent[direction] += more.sent[direction]
            sum.lost[direction] += more.lost[direction]
            sum.retransmitted[direction] += more.retransmitted[direction]
            sum.stalls[direction] += more.stalls[direction]
        }
    }
}
