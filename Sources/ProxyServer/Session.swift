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
    private var hasUnflushed = false
    private var isStopped = false

    /// - Parameter dial: Opens a socket to the upstream, with a ``SocketEnd`` of this session in its pipeline, or
    ///   calls ``upstreamFailed()``.
    init(on loop: LinkLoop, dial: @escaping (Session) -> Void) {
        self.loop = loop
        self.dial = dial
    }

    // MARK: From the sockets

    /// The client's channel is up: the connection begins.
    func clientIsActive(_ end: SocketEnd) {
        ends.up = end
        openChannels += 1
        flow = loop.open(self)
        dial(self)
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
        if flow == nil {
            end.reset()
        } else {
            report(.connected)
            loop.flush()
        }
    }

    /// The upstream cannot be had. Gives whether anybody still waited for it.
    func upstreamFailed() -> Bool {
        dialling = nil
        hasDialled = true
        let wasAwaited = flow != nil
        report(.gone(.server))
        loop.flush()
        endIfNothingIsLeft()
        return wasAwaited
    }

    /// Takes a fact about one of the sockets.
    func report(_ input: Input) {
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
        if openChannels == 0 && hasDialled { onEnd() }
    }

    // MARK: From the conduit

    /// Does what the conduit asks for; `true` if the session must be flushed.
    func carryOut(_ action: Action) -> Bool {
        switch action {
        case .write(let buffer, to: let side):
            ends[side.sends]?.write(buffer)
            defer { hasUnflushed = true }
            return !hasUnflushed
        case .closeOutput(let side):
            ends[side.sends]?.closeOutput()
        case .reset(let side):
            ends[side.sends]?.reset()
        case .pauseReading(let side):
            ends[side.sends]?.pauseReading()
        case .resumeReading(let side):
            if !isStopped { ends[side.sends]?.resumeReading() }
        case .ended:
            flow = nil
            dialling?.close()
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

    /// Closes both sockets now, in order if that is possible.
    func close() {
        flow = nil
        dialling?.close()
        ends.up?.close()
        ends.down?.close()
    }
}
