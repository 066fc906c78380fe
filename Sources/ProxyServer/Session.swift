internal import Impairment
internal import LinkModel
internal import NIOCore
internal import TCPModel

/// One proxied connection as sockets: the client's channel, the upstream's, and the link loop between them.
///
/// Translates in both directions and decides nothing: what the sockets report becomes an ``Impairment/SocketEvent``,
/// what the conduit asks for becomes a call on a channel.
final class Session {
    private let loop: LinkLoop
    private let dial: (Session) -> Void
    /// Called once, when no socket of the session is left.
    var onEnd: () -> Void = {}
    private(set) var flow: FlowID?
    private var ends: PerDirection<SocketEnd?> = PerDirection(up: nil, down: nil)
    private var openChannels = 0
    /// The upstream's sockets while the dial is under way; the first that answers is taken.
    private var dialling: [SocketEnd] = []
    /// The proxies of this process that the connection has passed, if it comes from one.
    let passed: [LoopDetector.ProxyNumber]
    /// Records the dial if it may lead to a proxy of this process, under a port of ours.
    var recordDial: (_ localPort: Int) -> LoopDetector.Dial? = { _ in nil }
    private var recordedDials: [DialRecord] = []
    private var hasDialled = false
    private var hasEnded = false
    /// When its client connected.
    let startedAt: NIODeadline
    /// Payload bytes that have been read from the client and from the server.
    private(set) var bytesRead: PerDirection<Int>
    /// What its chance goes by, if that is settled.
    let chance: ConnectionSeed?
    /// What it was at the relay, until both its sockets are here.
    private var past: DetachedConnection?
    /// Which sockets are not to be read when they come.
    private var arrivesPaused = PerDirection(up: false, down: false)
    private var hasUnflushed = false
    private var isStopped = false
    private var isClosed = false
    /// The client's channel before it is active.
    private let client: (any Channel)?
    /// What it was called at the relay.
    let formerID: ConnectionID?
    /// Where the client calls from.
    let clientAddress: Endpoint?

    /// - Parameter dial: Opens a socket to the upstream, with a ``SocketEnd`` of the session in its pipeline, or
    ///   calls ``upstreamFailed()``.
    init(
        _ client: any Channel, on loop: LinkLoop, passed: [LoopDetector.ProxyNumber] = [],
        dial: @escaping (Session) -> Void
    ) {
        self.client = client
        self.passed = passed
        self.loop = loop
        self.dial = dial
        startedAt = .now()
        bytesRead = PerDirection(up: 0, down: 0)
        chance = nil
        formerID = nil
        clientAddress = client.remoteAddress.map(Endpoint.init(_:))
    }

    /// Goes on with a connection that the relay has carried. It is on the link when this returns; its sockets come later, by
    /// ``attach(_:)``.
    init(goingOnFrom past: DetachedConnection, on loop: LinkLoop, dial: @escaping (Session) -> Void) {
        client = nil
        passed = past.proxiesPassed
        recordedDials = past.dialRecords
        self.loop = loop
        self.dial = dial
        self.past = past
        startedAt = past.status.startedAt
        bytesRead = past.status.bytesRead
        chance = ConnectionSeed(number: past.status.number, seed: past.seed)
        clientAddress = past.status.client
        formerID = past.status.id
        hasDialled = past.server != nil
    }

    /// Enters the link, with what is known of the upstream.
    func goOn() {
        flow = loop.open(self)
        if hasDialled { report(.connected) }
        loop.begin()
    }

    /// Hands the sockets of a connection that goes on to `wrap`, the upstream's first; nothing is read of them before both are
    /// here.
    ///
    /// - Parameter wrap: Makes a channel of a socket, with a ``SocketEnd`` in its pipeline.
    func attach(_ wrap: (SocketEnd, Side, CInt) -> Void) {
        guard let past else { return }
        for (side, socket) in [(Side.server, past.server), (.client, past.client)] {
            let descriptor = socket?.take() ?? -1
            guard descriptor >= 0 else { continue }
            wrap(SocketEnd(side, of: self, hadFinished: past.isFinished[side.opposite.sendDirection]), side, descriptor)
        }
    }

    /// The port that the client calls from.
    var clientPort: UInt16 { UInt16(truncatingIfNeeded: clientAddress?.port ?? 0) }

    // MARK: From the sockets

    /// The client's channel is up: the connection begins.
    func clientIsActive(_ end: SocketEnd) {
        ends.up = end
        openChannels += 1
        if past != nil { return hasArrived(end) }
        // One that goes on may have ended meanwhile.
        if isClosed || chance != nil { return end.close() }
        let id = loop.open(self)
        flow = id
        if loop.wantsUpstream(id) {
            dial(self)
        } else {
            hasDialled = true
        }
        loop.begin()
    }

    /// One of the sockets of a connection that goes on is here. With both, what had been read of them before comes first.
    private func hasArrived(_ end: SocketEnd) {
        if flow == nil || isClosed { return end.close() }
        end.pauseReading()
        let isWhole = ends.up != nil && (ends.down != nil || past?.server == nil)
        guard let past, isWhole else { return }
        self.past = nil
        for direction in Direction.allCases where past.pending[direction].readableBytes > 0 {
            if let flow { loop.receive(.bytes(past.pending[direction], from: direction.sender), on: flow) }
        }
        for direction in Direction.allCases where !arrivesPaused[direction] { resumeReading(direction.sender) }
        if past.server == nil { dial(self) }
        loop.flush()
    }

    /// A dial to one of the upstream's addresses has begun.
    func upstreamIsDialling(_ end: SocketEnd) {
        dialling.append(end)
        if flow == nil { end.close() }
    }

    /// A dial is about to connect from a port that has been bound for it.
    func upstreamWillConnect(from localPort: Int) {
        if let dial = recordDial(localPort) { recordedDials.append(dial) }
    }

    /// Closes the dials that are under way, but for the one that has been answered.
    private func stopDialling(but answered: SocketEnd? = nil) {
        let others = dialling.filter { $0 !== answered }
        dialling = []
        for end in others { end.discard() }
    }

    /// The upstream has answered.
    func upstreamIsActive(_ end: SocketEnd) {
        if ends.down != nil { return end.discard() }
        stopDialling(but: end)
        ends.down = end
        openChannels += 1
        if past != nil { return hasArrived(end) }
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
        stopDialling()
        hasDialled = true
        let wasAwaited = awaitsUpstream
        if let flow { loop.upstreamFailed(flow) }
        loop.flush()
        endIfNothingIsLeft()
        return wasAwaited
    }

    /// Whether the proxy has work left from an earlier turn.
    var isBehind: Bool { loop.isBehind }

    /// Has a socket read once the proxy has caught up.
    func readLater(_ end: SocketEnd) { loop.readLater(end) }

    /// Takes a fact about one of the sockets.
    func report(_ input: Input) {
        if case .bytes(let buffer, from: let side) = input { bytesRead[side.sendDirection] += buffer.readableBytes }
        if let flow { loop.receive(input, on: flow) }
    }

    /// A read cycle of one socket is over.
    func readCycleIsOver() { loop.flush() }

    /// One of the channels is no more.
    func channelIsInactive(_ side: Side) {
        openChannels -= 1
        ends[side.sendDirection] = nil
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
    func carryOut(_ action: SocketAction) -> Bool {
        switch action {
        case .write(let buffer, to: let side):
            ends[side.sendDirection]?.write(buffer)
            defer { hasUnflushed = true }
            return !hasUnflushed
        case .awaitDrain(let side):
            ends[side.sendDirection]?.awaitDrain()
        case .closeOutput(let side):
            ends[side.sendDirection]?.closeOutput()
        case .close(let side):
            ends[side.sendDirection]?.closeAfterWrites()
        case .flush(let side):
            ends[side.sendDirection]?.flush()
        case .reset(let side):
            // The kernel may have connected already, and told nobody yet.
            if side == .server, ends.down == nil { for end in dialling { end.reset() } }
            ends[side.sendDirection]?.reset()
            if ends[side.sendDirection] == nil { pastSocket(side)?.reset() }
        case .resetAfterWrites(let side):
            if let end = ends[side.sendDirection] { end.resetAfterWrites() } else { return carryOut(.reset(side)) }
        case .pauseReading(let side):
            arrivesPaused[side.sendDirection] = true
            ends[side.sendDirection]?.pauseReading()
        case .resumeReading(let side):
            arrivesPaused[side.sendDirection] = false
            if past == nil { resumeReading(side) }
        case .ended:
            flow = nil
            stopDialling()
            // What has not come is closed with a FIN, if it has not been reset.
            past = nil
            endIfNothingIsLeft()
        }
        return false
    }

    private func resumeReading(_ side: Side) {
        if !isStopped { ends[side.sendDirection]?.resumeReading() }
    }

    private func pastSocket(_ side: Side) -> OwnedSocket? { side == .client ? past?.client : past?.server }

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
        stopDialling()
        past = nil
        if ends.up == nil && openChannels == 0 { client?.close(promise: nil) }
        for end in [ends.up, ends.down] {
            if isCut { end?.reset() } else { end?.close() }
        }
        if openChannels == 0 {
            flow = nil
            endIfNothingIsLeft()
        }
    }
}
