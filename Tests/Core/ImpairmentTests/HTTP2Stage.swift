import Determinism
import LinkModel
import NIOCore
import NIOHPACK
import Wire

@testable import Impairment

/// A client and a server of HTTP/2 at the ends of a link in virtual time. Their header blocks use compression tables.
struct HTTP2Stage {
    var sockets: VirtualSockets
    let id: FlowID
    private var encoders = PerDirection(
        up: HPACKEncoder(allocator: ByteBufferAllocator()), down: HPACKEncoder(allocator: ByteBufferAllocator()))
    /// All bytes that the peers have sent.
    private(set) var sent = PerDirection(up: [UInt8](), down: [UInt8]())

    static let settings = Array(HTTP2Frame.settings([(HTTP2Frame.Setting.initialWindowSize, 65_535)]).readableBytesView)
    static let acknowledgement = Array(
        HTTP2Frame.bytes(.settings, flags: HTTP2Frame.Flag.ack, stream: 0, ByteBuffer()).readableBytesView)

    /// Opens a connection; both peers have sent their SETTINGS.
    ///
    /// - Parameter begins: Whether the client begins with the preface.
    init(
        _ rules: [FaultRule], conditions: Conditions = .clear, limits: BufferLimits = BufferLimits(),
        tracking: ExchangeTracking? = nil, begins: Bool = true, sendsSettings: Bool = true, seed: UInt64 = 1
    ) {
        sockets = VirtualSockets(
            conditions, limits: limits,
            exchangeTracking: tracking ?? (rules.isEmpty ? nil : ExchangeTracking(rules: rules)), seed: seed)
        id = sockets.open()
        if !begins { return }
        send(HTTP2Frame.preface + Self.settings, from: .client)
        guard sendsSettings else { return }
        send(Self.settings + Self.acknowledgement, from: .server)
        send(Self.acknowledgement, from: .client)
    }

    mutating func send(_ bytes: [UInt8], from side: Side) {
        sent[side.sendDirection] += bytes
        sockets.send(bytes, from: side, id)
    }

    /// Sends a header block that refers to the sender's table.
    mutating func headers(
        _ stream: UInt32, _ fields: [(String, String)], endsStream: Bool = false, from side: Side
    ) {
        var block = ByteBuffer()
        try? encoders[side.sendDirection].encode(headers: HPACKHeaders(fields), to: &block)
        let flags = HTTP2Frame.Flag.endHeaders | (endsStream ? HTTP2Frame.Flag.endStream : 0)
        let frame = HTTP2Frame.bytes(.headers, flags: flags, stream: stream, block)
        send(Array(frame.readableBytesView), from: side)
    }

    mutating func request(
        _ stream: UInt32, _ path: String, _ method: String = "POST", length: Int? = nil, endsStream: Bool = false
    ) {
        let fields = [
            (":method", method), (":scheme", "http"), (":authority", "h"), (":path", path), ("x-client", "stage"),
        ]
        headers(
            stream, fields + (length.map { [("content-length", "\($0)")] } ?? []), endsStream: endsStream, from: .client
        )
    }

    mutating func response(_ stream: UInt32, _ status: Int = 200, endsStream: Bool = false) {
        headers(stream, [(":status", "\(status)"), ("x-server", "stage")], endsStream: endsStream, from: .server)
    }

    mutating func data(_ stream: UInt32, _ count: Int, endsStream: Bool = false, from side: Side) {
        let content = ByteBuffer(repeating: UInt8(ascii: side == .client ? "a" : "r"), count: count)
        send(Array(HTTP2Frame.data(stream, content, endsStream: endsStream).readableBytesView), from: side)
    }

    mutating func number(_ kind: HTTP2Frame.Kind, _ stream: UInt32, _ value: UInt32, from side: Side) {
        send(Array(HTTP2Frame.number(kind, stream, value).readableBytesView), from: side)
    }

    // MARK: What has arrived

    /// A frame, with the fields of its header block.
    struct Arrived: Hashable {
        let frame: HTTP2Frame
        let fields: [HTTP2Field]

        /// The frame in short: `H`, `D4`, `D4.` with END_STREAM, `R8` for RST_STREAM, `W4` for WINDOW_UPDATE.
        var text: String {
            let end = frame.endsStream ? "." : ""
            return switch frame.kind {
            case .headers: "H\(fields.first { $0.name == ":status" }?.value ?? "")\(end)"
            case .data: "D\(frame.content.readableBytes)\(end)"
            case .resetStream: "R\(frame.number)"
            case .windowUpdate: "W\(frame.number)"
            case .goAway: "G\(frame.number)"
            case .settings: frame.isAcknowledgement ? "A" : "S"
            case .ping: "P"
            default: "?"
            }
        }
    }

    /// The frames that a peer has received. Traps if they are not the frames of HTTP/2.
    func arrived(_ side: Side) -> [Arrived] {
        var bytes = sockets.socket(side, id).received
        if side == .server { bytes = Array(bytes.dropFirst(HTTP2Frame.preface.count)) }
        var reader = HTTP2FrameReader()
        var decoder = HTTP2HeaderDecoder()
        reader.received(ByteBuffer(bytes: bytes))
        var frames: [Arrived] = []
        do {
            while let frame = try reader.takeFrame() {
                let hasBlock = frame.kind == .headers || frame.kind == .pushPromise
                frames.append(Arrived(frame: frame, fields: hasBlock ? try decoder.decode(frame) : []))
            }
        } catch {
            preconditionFailure("\(side) has received bytes that are not HTTP/2: \(error)")
        }
        return frames
    }

    /// The frames of a stream that a peer has received, in short; without WINDOW_UPDATE.
    func text(_ stream: UInt32, _ side: Side) -> String {
        arrived(side).filter { $0.frame.stream == stream && $0.frame.kind != .windowUpdate }.map(\.text)
            .joined(separator: " ")
    }

    /// The credit for a stream, or for the connection, that a peer has received.
    func credit(_ stream: UInt32, _ side: Side) -> Int {
        arrived(side).filter { $0.frame.kind == .windowUpdate && $0.frame.stream == stream }
            .reduce(0) { $0 + Int($1.frame.number) }
    }

    /// The events of exchanges, as text.
    var events: [String] { sockets.allExchangeEvents.map { "\($0.event)" } }
}
