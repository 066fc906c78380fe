internal import CommandSupport
internal import Determinism
internal import PacketCapture
internal import Scenario

/// The exchanges of a run as a pcapng file for Wireshark and tshark.
///
/// A history has no packets. Each connection of a device is one TCP connection from the device to its proxy, and one from
/// the proxy to the server; a message is where its last byte was at its time, in segments of one size. So the file shows what
/// each end has got: a lost response is at the server, and not at the device. Losses and retransmissions on the link are not in
/// it. Bodies have the right length, and dots instead of texts.
struct CaptureReport {
    /// The payload of a segment in bytes.
    private static let segmentBytes = 1460
    /// The longest body in bytes; a longer one is cut.
    private static let bodyBytesMax = 1 << 20
    /// The port of the servers: HTTP for readers.
    private static let httpPort: UInt16 = 80

    /// A TCP connection of the file.
    private struct Stream {
        let client: IPv4PacketEncoder.Endpoint
        let server: IPv4PacketEncoder.Endpoint
        /// The next sequence numbers of the client and of the server.
        var next: (client: UInt32, server: UInt32)
        var isOpen = false
    }

    private struct Packet {
        let time: Int64
        let bytes: [UInt8]
        let isOutbound: Bool
        let comment: String?
    }

    /// A connection of a device or a writer.
    private struct Connection: Hashable {
        let actor: String
        /// The number; -1 if it is unknown.
        let number: Int
    }

    private let run: PlannedRun
    private let facts: RunFacts
    private var names: [(address: [UInt8], name: String)] = []
    private var actors: [String: UInt8] = [:]
    private var streams: [Connection: (device: Stream, server: Stream)] = [:]
    private var packets: [Packet] = []

    /// Returns the file.
    static func file(_ run: PlannedRun, _ facts: RunFacts) -> [UInt8] {
        var report = CaptureReport(run, facts)
        return report.file()
    }

    private init(_ run: PlannedRun, _ facts: RunFacts) {
        self.run = run
        self.facts = facts
        let all = run.scenario.devices.map(\.name) + run.scenario.writers.map(\.name)
        for (index, name) in all.enumerated() {
            let host = UInt8(clamping: index + 2)
            actors[name] = host
            names += [([10, 0, 0, host], name), ([10, 0, 1, host], "proxy-of-\(name)")]
        }
        names.append(([10, 0, 1, 1], "server"))
    }

    private mutating func file() -> [UInt8] {
        for (number, connection) in facts.connections.sorted(by: { $0.key < $1.key }) {
            let key = Connection(actor: connection.actor, number: number)
            add(key)
            guard var pair = streams[key] else { continue }
            addSegment(&pair.device, fromClient: true, 0x02, [], at: connection.start, "\(connection.actor) connects")
            pair.device.next.client &+= 1
            streams[key] = pair
        }
        for exchange in facts.exchanges { add(exchange) }
        for (number, connection) in facts.connections.sorted(by: { $0.key < $1.key }) {
            if let end = connection.end { close(Connection(actor: connection.actor, number: number), at: end) }
        }
        var bytes = PcapNG.header(application: "slowlane \(SlowlaneVersion.current)", interface: run.title)
        bytes += PcapNG.names(names)
        // The order of packets with equal times is that of their creation.
        for (_, packet) in packets.enumerated().sorted(by: {
            ($0.element.time, $0.offset) < ($1.element.time, $1.offset)
        }) {
            let start = Int64(HARReport.epochSeconds).multipliedSaturating(by: 1_000_000_000)
            bytes += PcapNG.packet(
                at: start.addingSaturating(packet.time), captured: packet.bytes, length: packet.bytes.count,
                isOutbound: packet.isOutbound, comment: packet.comment)
        }
        return bytes
    }

    private mutating func add(_ key: Connection) {
        guard let host = actors[key.actor], streams[key] == nil else { return }
        let port = UInt16(20_000 + (key.number + 1) % 40_000)
        let first = UInt32(truncatingIfNeeded: key.number &+ 1) &* 0x9E37_79B9
        let device = Stream(
            client: .init(address: [10, 0, 0, host], port: port),
            server: .init(address: [10, 0, 1, host], port: Self.httpPort), next: (first, first ^ 0x5555_0000))
        let server = Stream(
            client: .init(address: [10, 0, 1, host], port: port),
            server: .init(address: [10, 0, 1, 1], port: Self.httpPort), next: (first ^ 0x3333_0000, first ^ 0x7777_0000)
        )
        streams[key] = (device, server)
    }

    // MARK: Exchanges

    private mutating func add(_ exchange: RunExchange) {
        let key = Connection(actor: exchange.actor, number: exchange.connection ?? -1)
        add(key)
        guard var (device, server) = streams[key] else { return }
        let request = Self.request(exchange)
        var remark = "exchange \(exchange.number): \(exchange.title)"
        if exchange.attempt > 1 { remark += ", attempt \(exchange.attempt)" }
        if let link = exchange.link { remark += ", \(link)" }
        // The SYN of a numbered connection was written at its own time.
        open(&device, at: exchange.sent, hasSYN: exchange.connection.map { facts.connections[$0] != nil } ?? false)
        addMessage(&device, fromClient: true, request, at: exchange.sent, remark)
        if let arrived = exchange.arrived {
            open(&server, at: arrived, hasSYN: false)
            addMessage(&server, fromClient: true, request, at: arrived, remark)
        }
        if let responded = exchange.responded, let status = exchange.serverStatus {
            let response = Self.response(status, bytes: exchange.responseBytes)
            addMessage(&server, fromClient: false, response, at: responded, remark)
        }
        if let received = exchange.received, let status = exchange.status {
            let bytes = status == exchange.serverStatus ? exchange.responseBytes : 0
            addMessage(&device, fromClient: false, Self.response(status, bytes: bytes), at: received, remark)
        }
        if let failed = exchange.failed, device.isOpen {
            addSegment(&device, fromClient: true, 0x14, [], at: failed, "\(remark): \(exchange.outcome)")
            device.isOpen = false
        }
        streams[key] = (device, server)
    }

    private static func request(_ exchange: RunExchange) -> [UInt8] {
        var head = "\(exchange.method) \(exchange.target) HTTP/1.1\r\nHost: notes.invalid\r\n"
        head += "Slowlane-Exchange: \(exchange.number)\r\n"
        let hasBody = exchange.requestBytes > 0 || exchange.method == "PUT" || exchange.method == "POST"
        return message(head, bytes: exchange.requestBytes, hasBody: hasBody)
    }

    private static func response(_ status: Int, bytes: Int) -> [UInt8] {
        let hasBody = status != 204 && status != 304 && status >= 200
        return message("HTTP/1.1 \(status) \r\n", bytes: hasBody ? bytes : 0, hasBody: hasBody)
    }

    private static func message(_ head: String, bytes: Int, hasBody: Bool) -> [UInt8] {
        let count = min(max(0, bytes), bodyBytesMax)
        var head = head
        if count < bytes { head += "Slowlane-Body-Bytes: \(bytes)\r\n" }
        if hasBody { head += "Content-Type: application/octet-stream\r\nContent-Length: \(count)\r\n" }
        return Array((head + "\r\n").utf8) + [UInt8](repeating: UInt8(ascii: "."), count: count)
    }

    // MARK: Segments

    /// Completes the handshake of a connection that is not open.
    private mutating func open(_ stream: inout Stream, at time: Nanoseconds, hasSYN: Bool) {
        guard !stream.isOpen else { return }
        if !hasSYN {
            addSegment(&stream, fromClient: true, 0x02, [], at: time, nil)
            stream.next.client &+= 1
        }
        addSegment(&stream, fromClient: false, 0x12, [], at: time, nil)
        stream.next.server &+= 1
        addSegment(&stream, fromClient: true, 0x10, [], at: time, nil)
        stream.isOpen = true
    }

    private mutating func close(_ key: Connection, at time: Nanoseconds) {
        guard var (device, server) = streams[key] else { return }
        for isDevice in [true, false] {
            var stream = isDevice ? device : server
            guard stream.isOpen else { continue }
            addSegment(&stream, fromClient: true, 0x11, [], at: time, nil)
            stream.next.client &+= 1
            addSegment(&stream, fromClient: false, 0x11, [], at: time, nil)
            stream.next.server &+= 1
            addSegment(&stream, fromClient: true, 0x10, [], at: time, nil)
            stream.isOpen = false
            if isDevice { device = stream } else { server = stream }
        }
        streams[key] = (device, server)
    }

    private mutating func addMessage(
        _ stream: inout Stream, fromClient: Bool, _ bytes: [UInt8], at time: Nanoseconds, _ comment: String
    ) {
        var rest = bytes[...]
        var isFirst = true
        while !rest.isEmpty {
            let payload = Array(rest.prefix(Self.segmentBytes))
            rest = rest.dropFirst(payload.count)
            let flags: UInt8 = rest.isEmpty ? 0x18 : 0x10
            addSegment(&stream, fromClient: fromClient, flags, payload, at: time, isFirst ? comment : nil)
            isFirst = false
        }
    }

    private mutating func addSegment(
        _ stream: inout Stream, fromClient: Bool, _ flags: UInt8, _ payload: [UInt8], at time: Nanoseconds,
        _ comment: String?
    ) {
        let (source, destination) = fromClient ? (stream.client, stream.server) : (stream.server, stream.client)
        let sequence = fromClient ? stream.next.client : stream.next.server
        let acknowledged = fromClient ? stream.next.server : stream.next.client
        let bytes = IPv4PacketEncoder.segment(
            from: source, to: destination, flags: flags, sequence: sequence, acknowledgment: acknowledged, payload)
        let count = UInt32(truncatingIfNeeded: payload.count)
        if fromClient { stream.next.client &+= count } else { stream.next.server &+= count }
        packets.append(Packet(time: time.count, bytes: bytes, isOutbound: fromClient, comment: comment))
    }
}
