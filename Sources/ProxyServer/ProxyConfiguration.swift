public import Impairment
public import LinkModel
public import NIOCore
public import TCPModel

/// What a proxy is to do.
public struct ProxyConfiguration: Sendable {
    /// Where clients connect.
    public var listen: Endpoint
    /// Where their connections go.
    public var upstream: Endpoint
    /// What holds at the start.
    public var conditions: Conditions
    /// How many connections may be open at once; further ones wait in the kernel's backlog.
    public var connectionsMax: Int
    /// How long a dial to the upstream may take, with the lookup of its name and all of its addresses.
    public var connectTimeout: TimeAmount
    /// What may be held in memory.
    public var buffers: BufferLimits
    /// When silent connections are probed, on both sides.
    public var keepAlive = KeepAlive()
    /// How long a connection lasts that has lost one of its sockets, and how many such there may be.
    public var orphans = OrphanLimits()
    /// Where all chance comes from: the same seed loses the same packets of the same connections.
    public var seed: UInt64 = 1
    /// How the clients' kernels behave on the modelled link.
    public var clientStack = StackPreset.linux
    /// How the server's does.
    public var serverStack = StackPreset.linux
    /// What the link's streams of chance are called.
    public var linkName = "link"
    /// What the conditions follow from the start, instead of ``conditions``.
    public var timeline: Timeline?
    /// How new connections are kept from being answered while nothing gets through; `nil` is the best way there is.
    public var silence: SilenceMethod?
    /// How exchanges are followed, and which faults are done to them; `nil` is not at all.
    public var watch: ExchangeTracking?
    /// Told on the proxy's event loop what becomes true of exchanges; must not block.
    public var onExchange: (@Sendable (ExchangeEvent) -> Void)?

    /// What is done to the bytes of every connection from the start.
    public var toxics: [Toxic] = []
    /// Whether the upstream's name is looked up for each connection anew, and not at the start.
    public var resolvesEachTime = false
    /// How a client learns that the upstream cannot be reached.
    public var unreachableUpstream = UnreachableUpstream.reset

    /// Whether connections go past the model, and past SwiftNIO, while nothing is in force, where the machine can do that.
    var mayGoStraight = true

    /// Whether nobody wants to be told what happens on the link.
    var isUnwatched: Bool { watch == nil && onExchange == nil && onPacket == nil && onLateness == nil }

    /// Connections of one proxy unless said otherwise.
    public static let connectionsMaxDefault = 10_000
    /// How long a dial may take unless said otherwise.
    public static let connectTimeoutDefault = TimeAmount.seconds(10)

    /// Told on the proxy's event loop of every packet on the modelled link; must not block. Then nothing goes past the model.
    public var onPacket: (@Sendable (CarriedPacket) -> Void)?

    /// Told on the proxy's event loop how late bytes have been handed to a socket, against their modelled time; must not
    /// block.
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

/// How a client learns that the upstream cannot be reached.
public enum UnreachableUpstream: Hashable, Sendable {
    /// By a RST, as from a port where nobody listens. It may overtake the client's `connect()`, which then fails.
    case reset
    /// By a FIN, as from Toxiproxy: `connect()` succeeds, and the first read returns the end of the stream.
    case close
}

/// A host and a port: `127.0.0.1:8000`, `[::1]:8000`, `localhost:8000`, `:8000`, `8000`.
public struct Endpoint: Hashable, Sendable, CustomStringConvertible {
    /// A name or a numeric address, without brackets.
    public let host: String
    /// The port, 0 to 65535.
    public let port: Int

    /// Pairs a host and a port.
    public init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    init(_ address: SocketAddress) {
        self.init(host: address.ipAddress ?? "", port: address.port ?? 0)
    }

    /// Reads a host and a port; without a host it is the loopback, 127.0.0.1. `nil` if it is neither.
    public init?(_ text: String) {
        let host: Substring
        let portText: Substring
        if text.hasPrefix("[") {
            guard let close = text.firstIndex(of: "]") else { return nil }
            host = text[text.index(after: text.startIndex)..<close]
            let rest = text[text.index(after: close)...]
            guard rest.hasPrefix(":"), !host.isEmpty else { return nil }
            portText = rest.dropFirst()
        } else if let colon = text.lastIndex(of: ":") {
            host = text[..<colon]
            portText = text[text.index(after: colon)...]
            if host.contains(":") { return nil }
        } else {
            host = ""
            portText = Substring(text)
        }
        guard !portText.isEmpty, portText.allSatisfy({ $0.isASCII && $0.isNumber }), let port = Int(portText),
            port <= 65535, !host.contains(where: { $0.isWhitespace || $0 == "/" || $0 == "\0" })
        else { return nil }
        self.init(host: host.isEmpty ? "127.0.0.1" : String(host), port: port)
    }

    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
