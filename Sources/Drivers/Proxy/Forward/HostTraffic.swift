public import ForwardProxy
public import LinkModel

/// The connections of a forward proxy to one destination since its start.
public struct HostTraffic: Hashable, Sendable {
    /// The host and port that clients have named; `nil` for all destinations beyond ``destinationsMax``.
    public var destination: Destination?
    /// The name that a client of TLS has last sent (SNI); `nil` without TLS or without a name, and for connections of which
    /// the link has not seen the beginning.
    public var serverName: String?
    /// Connections that were established, the open ones included.
    public var connections: Int
    /// Connections that could not be established.
    public var connectionsFailed: Int
    /// Payload bytes read from the sender's socket in each direction by connections that have ended.
    public var bytes: PerDirection<Int>

    init(
        destination: Destination?, connections: Int = 0, connectionsFailed: Int = 0,
        bytes: PerDirection<Int> = PerDirection(up: 0, down: 0)
    ) {
        self.destination = destination
        self.connections = connections
        self.connectionsFailed = connectionsFailed
        self.bytes = bytes
    }

    /// The number of destinations that are counted one by one.
    public static let destinationsMax = 1_000
}

/// The counters of a forward proxy's destinations.
struct HostTrafficTable {
    /// Rows by host and port; keys are bytes, because comparing strings would normalise them.
    private var indices: [[UInt8]: Int] = [:]
    private(set) var rows: [HostTraffic] = []
    private var others = HostTraffic(destination: nil)

    /// Changes the counters of a destination.
    mutating func change(_ destination: Destination, _ body: (inout HostTraffic) -> Void) {
        let key = Array("\(destination.host):\(destination.port)".utf8)
        if let index = indices[key] { return body(&rows[index]) }
        guard rows.count < HostTraffic.destinationsMax else { return body(&others) }
        indices[key] = rows.count
        var row = HostTraffic(destination: destination)
        body(&row)
        rows.append(row)
    }

    /// All counters, in the order in which the destinations were first named.
    var all: [HostTraffic] { others == HostTraffic(destination: nil) ? rows : rows + [others] }
}
