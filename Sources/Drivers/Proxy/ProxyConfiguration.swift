public import Determinism
internal import ForwardProxy
public import HTTPSockets
public import Impairment
public import LinkModel
public import NIOCore
public import TCPModel

/// The transport protocols that a proxy forwards.
public struct ForwardedProtocols: OptionSet, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: Int

    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Connections.
    public static let tcp = ForwardedProtocols(rawValue: 1)
    /// Datagrams.
    public static let udp = ForwardedProtocols(rawValue: 2)

    /// Parses `tcp`, `udp` or `tcp,udp`; returns `nil` for any other text.
    public init?(_ text: String) {
        switch text {
        case "tcp": self = .tcp
        case "udp": self = .udp
        case "tcp,udp", "udp,tcp": self = [.tcp, .udp]
        default: return nil
        }
    }

    public var description: String {
        [(Self.tcp, "tcp"), (.udp, "udp")].filter { contains($0.0) }.map(\.1).joined(separator: ",")
    }
}

/// The settings of a proxy.
public struct ProxyConfiguration: Sendable {
    /// The listening address.
    public var listen: Endpoint
    /// The upstream's address; unused by a forward proxy.
    public var upstream: Endpoint
    /// The TLS of the connections to the upstream; `nil` for none. ``upstream`` is its ``UpstreamTLS/endpoint`` then.
    public var upstreamTLS: UpstreamTLS?
    /// The interception of TLS connections; `nil` for none. Not for a proxy whose upstream has TLS of its own.
    public var interception: Interception?
    /// The settings of a forward proxy, whose clients name the destination of each connection; `nil` for a proxy of one
    /// upstream.
    public var forward: ForwardSettings?
    /// The protocols that the proxy forwards, on one port.
    public var protocols: ForwardedProtocols = .tcp
    /// The limits on sessions of datagrams.
    public var datagrams = DatagramLimits()
    /// The initial conditions.
    public var conditions: Conditions
    /// The maximum number of open connections; further ones wait in the kernel's backlog.
    public var connectionsMax: Int
    /// The time limit of a dial to the upstream, with the lookup of its name and all of its addresses.
    public var connectTimeout: TimeAmount
    /// The limits on bytes held in memory.
    public var buffers: BufferLimits
    /// The keep-alive settings of the sockets on both sides.
    public var keepAlive = KeepAlive()
    /// The limits on orphaned connections, which have one socket left.
    public var orphans = OrphanLimits()
    /// The random seed. With the same seed, the same packets of the same connections are lost.
    public var seed: UInt64 = 1
    /// The TCP stack of the clients on the modelled link.
    public var clientStack = StackPreset.linux
    /// The TCP stack of the server on the modelled link.
    public var serverStack = StackPreset.linux
    /// The name from which the link's random streams are derived.
    public var linkName = "link"
    /// A timeline that starts with the proxy and replaces ``conditions``.
    public var timeline: Timeline?
    /// The absolute start of ``timeline``; `nil` if it starts with the proxy.
    public var timelineStart: TimelineStart?
    /// The method of dropping SYNs of new connections during an outage; `nil` selects the best available one.
    public var synDropMethod: SYNDropMethod?
    /// The tracking of HTTP exchanges, and the faults to inject into them; `nil` disables tracking.
    public var exchangeTracking: ExchangeTracking?
    /// Called on the proxy's event loop for each event of an exchange; must not block.
    public var onExchange: (@Sendable (ExchangeEvent) -> Void)?

    /// Called on the proxy's event loop for each event of an exchange, with the port of the client; must not block.
    /// Returns the fault to inject into the exchange whose request has just been read; ``FaultPoint/beforeRequest`` is
    /// ahead of it only if requests await decisions (`ExchangeTracking.awaitsDecisions`).
    public var exchangeController: (@Sendable (ExchangeEvent, _ clientPort: Int) -> ExchangeFault?)?

    /// Called on the proxy's event loop if a byte that leaves the link differs from the one that entered it, with the
    /// direction and the number of bytes of the connection before; must not block. Connections with a fault of
    /// ``exchangeController`` or a captive portal are left out. Disables the fast path.
    public var onBytesChanged: (@Sendable (Direction, _ offset: Int) -> Void)?

    /// The initial fault rules; those that cannot be used (``Impairment/FaultRule/problem``) are left out.
    /// ``Proxy/addFaultRule(_:)`` adds further ones.
    public var faultRules: [FaultRule] = []

    /// The initial toxics.
    public var toxics: [Toxic] = []
    /// Whether the upstream's name is looked up for each connection, instead of at the start and then periodically.
    public var resolvesPerConnection = false
    /// The way in which a client is disconnected if the upstream cannot be reached; unused by a forward proxy.
    public var unreachableUpstream = UnreachableUpstream.reset

    /// The time without a byte after which a stopping proxy takes a connection for idle whose protocol is unknown: longer
    /// than the gaps in a transfer that TCP's retransmissions and a distant peer cause.
    var idleTimeMin = TimeAmount.seconds(1)

    /// The name servers of a forward proxy, in place of those of the system.
    var resolver: ResolverConfiguration?

    /// Whether connections without conditions may use the fast path, on systems that have it.
    var allowsFastPath = true

    /// The upstream as the user has named it.
    var upstreamText: String { upstreamTLS?.url ?? "\(upstream)" }

    /// Whether nothing observes the link, and no bytes are changed. Connections may use the fast path only then.
    var isUnobserved: Bool {
        upstreamTLS == nil && interception == nil && exchangeTracking == nil && onExchange == nil
            && exchangeController == nil && onPacket == nil && onLateness == nil && onBytesChanged == nil
    }

    /// The default of ``connectionsMax``.
    public static let connectionsMaxDefault = 10_000

    /// Returns how many connections all proxies of a process can have within a limit on open files; 0 if none.
    public static func connectionsMax(withOpenFiles files: Int) -> Int { FileBudget.connectionsMax(files: files) }

    /// The lowest limit on open files with which a proxy can have a connection.
    public static var openFilesMin: Int { FileBudget.filesMin() }

    /// The default of ``connectTimeout``.
    public static let connectTimeoutDefault = TimeAmount.seconds(10)

    /// Called on the proxy's event loop for each packet on the modelled link; must not block. Disables the fast path.
    public var onPacket: (@Sendable (PacketEvent) -> Void)?

    /// Called on the proxy's event loop with the time between a write's modelled time and the write; must not block.
    /// Disables the fast path.
    public var onLateness: (@Sendable (Nanoseconds) -> Void)?

    /// Creates a configuration.
    public init(
        listen: Endpoint, upstream: Endpoint, conditions: Conditions = .clear,
        connectionsMax: Int = ProxyConfiguration.connectionsMaxDefault,
        connectTimeout: TimeAmount = ProxyConfiguration.connectTimeoutDefault,
        buffers: BufferLimits = BufferLimits()
    ) {
        self.listen = listen
        self.upstream = upstream
        self.conditions = conditions
        self.connectionsMax = connectionsMax
        self.connectTimeout = connectTimeout
        self.buffers = buffers
    }
}
