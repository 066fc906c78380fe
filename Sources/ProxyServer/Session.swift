internal import Impairment
internal import LinkModel
internal import NIOCore

/// One proxied connection as sockets: the client's channel, the upstream's, and the link loop between them.
///
/// Translates in both directions and decides nothing: what the sockets report becomes an ``Impairment/Input``,
/// what the conduit asks for becomes a call on a channel.
final class Session {
    private let loop: LinkLoop
    private let dial: (Session) -> Void
    /// Called once, when no socket of the session is left.
    var onEnd: () -> Void = {}
    private var flow: FlowID?
    private var ends: PerDirection<SocketEnd?> = PerDirection(up: nil, down: nil)
    private var openChannels = 0
    /// The upstream's socket while the dial is under way.
    private var dialling: SocketEnd?
    private var hasDialled = false
    private var hasEnded = false
    /// When its client connected.
    let startedAt = NIODeadline.now()
    /// Payload bytes that have been read from the client and from the server.
    private(set) var bytesRead = PerDirection(up: 0, down: 0)
    private var hasUnflushed = false
    private var isStopped = false
    private var isClosed = false
    /// The client's channel before it is active.
    private let client: any Channel

    /// - Parameter dial: Opens a socket to the upstream, with a ``SocketEnd`` of the session in its pipeline, or
    ///   calls ``upstreamFailed()``.
    init(_ client: any Channel, on loop: LinkLoop, dial: @escaping (Session) -> Void) {
        self.client = client
        self.loop = loop
        self.dial = dial
    }

    /// Where the client calls from.
    var clientAddress: SocketAddress? { client.remoteAddress }

    /// The port that the client calls from.
    var clientPort: UInt16 { UInt16(truncatingIfNeeded: client.remoteAddress?.port ?? 0) }

    // MARK: From the sockets

    /// The client's channel is up: the connection begins.
    func clientIsActive(_ end: SocketEnd) {
        ends.up = end
        openChannels += 1
        if isClosed { return end.close() }
        let id = loop.open(self)
        flow = id
        if loop.wantsUpstream(id) {
            dial(self)
        } else {
            hasDialled = true
        }
        loop.begin()
    }

    /// The dial to the upstream has begun, or goes on to the next of its addresses.
    func upstreamIsDialling(_ end: SocketEnd) {
        dialling = end
        if flow == nil { end.close() }
    }

    /// The upstream has answered.
    func upstreamIsActive(_ end: SocketEnd) {
        dialling = nil
        ends.down = end
        openChannels += 1
        hasDialled = true
        if flow == nil || isClosed {
            end.reset()
        } else {
            report(.connected)
            loop.flush()
        }
    }

    /// Whether the dial still matters to anybody.
    var awaitsUpstream: Bool { flow != nil && !isClosed }

    /// The upstream cannot be had. Gives whether anybody still waited for it.
    func upstreamFailed() -> Bool {
        dialling = nil
        hasDialled = true
        let wasAwaited = awaitsUpstream
        report(.gone(.server))
        loop.flush()
        endIfNothingIsLeft()
        return wasAwaited
    }

    /// Takes a fact about one of the sockets.
    func report(_ input: Input) {
        if case .bytes(let buffer, from: let side) = input { bytesRead[side.sends] += buffer.readableBytes }
        if let flow { loop.receive(input, on: flow) }
    }

    /// A read cycle of one socket is over.
    func readCycleIsOver() { loop.flush() }

    /// One of the channels is no more.
    func channelIsInactive(_ side: Side) {
        openChannels -= 1
        ends[side.sends] = nil
        loop.flush()
        endIfNothingIsLeft()
    }

    private func endIfNothingIsLeft() {
        // A look-up or a dial that nobody waits for any more holds nothing up.
        if openChannels == 0 && !hasEnded && (hasDialled || flow == nil || isClosed) {
            hasEnded = true
            onEnd()
        }
    }

    // MARK: From the conduit

    /// Does what the conduit asks for; `true` if the session must be flushed.
    func carryOut(_ action: Action) -> Bool {
        switch action {
        case .write(let buffer, to: let side):
            ends[side.sends]?.write(buffer)
            defer { hasUnflushed = true }
            return !hasUnflushed
        case .awaitDrain(let side):
            ends[side.sends]?.awaitDrain()
        case .closeOutput(let side):
            ends[side.sends]?.closeOutput()
        case .close(let side):
            ends[side.sends]?.closeAfterWrites()
        case .flush(let side):
            ends[side.sends]?.flush()
        case .reset(let side):
            // The kernel may have connected already, and told nobody yet.
            (ends[side.sends] ?? (side == .server ? dialling : nil))?.reset()
        case .pauseReading(let side):
            ends[side.sends]?.pauseReading()
        case .resumeReading(let side):
            if !isStopped { ends[side.sends]?.resumeReading() }
        case .ended:
            flow = nil
            dialling?.close()
            endIfNothingIsLeft()
        }
        return false
    }

    /// Sends what has been written to either socket.
    func flush() {
        hasUnflushed = false
        ends.up?.flush()
        ends.down?.flush()
    }

    /// Reads no more from either socket, whatever the conduit asks for later.
    func stopReading() {
        isStopped = true
        ends.up?.pauseReading()
        ends.down?.pauseReading()
    }

    /// Bytes that a socket has been given and not sent.
    var bytesUnsent: Int { (ends.up?.bytesUnsent ?? 0) + (ends.down?.bytesUnsent ?? 0) }

    /// Closes both sockets now: with a FIN, or with a RST if something on its way is dropped by it and `tellsLoss` says so, so
    /// that nobody takes what has arrived for the whole.
    func close(tellsLoss: Bool = true) {
        isClosed = true
        let isCut = tellsLoss && (bytesUnsent > 0 || flow.map { loop.bytesHeld($0) > 0 } ?? false)
        dialling?.close()
        if ends.up == nil && openChannels == 0 { client.close(promise: nil) }
        for end in [ends.up, ends.down] {
            if isCut { end?.reset() } else { end?.close() }
        }
        if openChannels == 0 {
            flow = nil
            endIfNothingIsLeft()
        }
    }
}
