internal import LinkModel
internal import NIOCore
internal import Wire

/// The handshake of TLS of one connection, as far as faults need it.
struct TrackedHandshake {
    /// The offset at which a fault fires.
    struct Trigger {
        let direction: Direction
        let offset: Int64
    }

    private(set) var reader = ClientHelloReader()
    /// The fault whose point has not been reached, with the rule's point and name of the server.
    var fault: (fault: ExchangeFault, point: HandshakePoint)?
    private(set) var serverName: String?
    private var helloEnd: Int64 = 0
    /// The first bytes of the server's stream, up to the length of its first record.
    private var serverHead: [UInt8] = []

    private static let recordHeadBytes = 5

    /// Reports bytes of the client. Returns the ClientHello when it is complete.
    mutating func receivedFromClient(_ bytes: ByteBuffer) -> ClientHello? {
        guard reader.state == .incomplete else { return nil }
        reader.received(bytes)
        guard case .hello(let hello, let end) = reader.state else { return nil }
        serverName = hello.serverName
        helloEnd = end
        return hello
    }

    /// Reports bytes of the server.
    mutating func receivedFromServer(_ bytes: ByteBuffer) {
        guard serverHead.count < Self.recordHeadBytes else { return }
        serverHead += bytes.readableBytesView.prefix(Self.recordHeadBytes - serverHead.count)
    }

    /// The offset of the fault's point; `nil` while it is not known, or without a fault.
    var trigger: Trigger? {
        guard let (fault, point) = fault else { return nil }
        switch point {
        case .afterClientHello: return Trigger(direction: .up, offset: helloEnd)
        case .midStream: return Trigger(direction: .down, offset: fault.bytes ?? 0)
        case .midServerHello, .afterServerHello:
            guard serverHead.count == Self.recordHeadBytes else { return nil }
            let size = Int64(serverHead[3]) << 8 | Int64(serverHead[4])
            let before = Int64(Self.recordHeadBytes)
            return Trigger(direction: .down, offset: before + (point == .midServerHello ? size / 2 : size))
        }
    }

    /// Whether nothing more of the handshake is needed.
    var isObsolete: Bool { reader.state != .incomplete && fault == nil }
}
