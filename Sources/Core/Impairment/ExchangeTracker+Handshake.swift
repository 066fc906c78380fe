internal import Determinism
internal import LinkModel
internal import NIOCore
internal import Wire

/// The handshake of a connection whose first byte is that of TLS: its exchanges cannot be tracked, and faults of
/// handshakes apply to it.
extension ExchangeTracker {
    /// The type of the record with which TLS begins (RFC 8446, 5.1).
    private static let firstByteOfTLS: UInt8 = 22

    /// Begins to read a handshake if the first bytes of the client are those of TLS.
    mutating func beginHandshake(with bytes: ByteBuffer, _ registry: inout ExchangeRegistry) {
        let isFirst = consumed.up == 0 && withheld.up.count == 0 && messageEnd.up == 0
        guard isFirst, bytes.readableBytesView.first == Self.firstByteOfTLS else { return }
        handshake = TrackedHandshake()
        stopTracking(ExchangeEvent.tlsReason, &registry)
    }

    /// Reports bytes that have entered the link.
    mutating func readHandshake(_ bytes: ByteBuffer, _ direction: Direction, _ registry: inout ExchangeRegistry) {
        guard handshake != nil else { return }
        if direction == .down {
            handshake?.receivedFromServer(bytes)
        } else if let hello = handshake?.receivedFromClient(bytes) {
            report(.tls(hello))
            handshake?.fault = registry.matchHandshake(of: hello.serverName)
        }
        endHandshakeIfObsolete()
    }

    private mutating func endHandshakeIfObsolete() { if handshake?.isObsolete == true { handshake = nil } }

    /// Returns the number of bytes that may be written before the point of the handshake's fault.
    func handshakeAllowance(_ direction: Direction) -> Int64 {
        guard let trigger = handshake?.trigger, trigger.direction == direction else { return .max }
        return max(0, trigger.offset - written[direction])
    }

    /// Fires the fault of the handshake if its point has been reached.
    mutating func fireHandshake(_ registry: inout ExchangeRegistry) {
        guard hold == nil, !isEnded, let trigger = handshake?.trigger, let (fault, point) = handshake?.fault,
            trigger.offset <= written[trigger.direction]
        else { return }
        let name = handshake?.serverName
        handshake = nil
        firedPointName = point.rawValue
        registry.recordFired(fault)
        report(
            .handshakeFault(rule: fault.rule, point: point, serverName: name, offset: written[trigger.direction]))
        execute(fault, stalling: [.down])
    }

    /// Removes the fault of a rule.
    mutating func removeHandshakeFault(of rule: Int) {
        guard handshake?.fault?.fault.rule == rule else { return }
        handshake?.fault = nil
        endHandshakeIfObsolete()
    }
}
