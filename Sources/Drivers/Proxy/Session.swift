internal import ForwardProxy
internal import Impairment
internal import LinkModel
internal import NIOCore
internal import TCPModel
internal import Wire

/// One proxied connection: the client's socket, the upstream's socket, and its flow on the link.
///
/// Translates socket events into ``Impairment/SocketEvent`` and ``Impairment/SocketAction`` into calls on channels. The
/// conduit makes all decisions.
final class Session {
    let driver: LinkDriver
    private let dial: (Session) -> Void
    /// Called once, when the session has no socket left.
    var onEnd: () -> Void = {}
    private(set) var flow: FlowID?
    /// The flow, also after it has ended.
    private(set) var openedFlow: FlowID?
    /// The number of the connection; -1 before it has a flow.
    private(set) var number = -1
    /// The first cause of the end of the connection, if it came from outside.
    private(set) var endReason: ConnectionEndReason?
    /// Whether the link has closed or aborted a socket.
    private var wasReset = false
    /// The client's socket (`up`) and the upstream's (`down`).
    private var handlers: PerDirection<(any SessionSocket)?> = PerDirection(up: nil, down: nil)
    private var openChannels = 0
    /// The sockets of dials under way; the first that connects becomes the upstream's socket.
    private var dialling: [SocketHandler] = []
    /// The proxies of this process that the connection has passed through before this one.
    let passed: [LoopDetector.ProxyNumber]
    /// Records a dial from a local port if the upstream may be a proxy of this process.
    var recordDial: (_ localPort: Int) -> LoopDetector.Dial? = { _ in nil }
    private var recordedDials: [DialRecord] = []
    private var dialIsFinished = false
    private var hasEnded = false
    /// The time at which the client connected.
    let startedAt: NIODeadline
    /// Payload bytes read from the client (`up`) and from the upstream (`down`).
    private(set) var bytesRead: PerDirection<Int>
    /// The random seed of a connection from the fast path; `nil` for a new connection, which gets the next one of the
    /// link.
    let seed: ConnectionSeed?
    /// The connection's state on the fast path, until both its sockets have channels.
    private var detached: DetachedConnection?
    /// Directions whose sender must not be read when its channel becomes active.
    private var startsPaused = PerDirection(up: false, down: false)
    private var hasUnflushedWrites = false
    private(set) var isClosed = false
    /// The time at which a byte was last read or written.
    private var lastActivity = NIODeadline.now()
    /// The client's channel, to close it before it is active.
    private let clientChannel: (any Channel)?
    /// The connection's identity on the fast path.
    let relayID: ConnectionID?
    /// The client's address.
    let clientAddress: Endpoint?
    /// The destination that the client has named to a forward proxy, with its addresses.
    let target: ForwardTarget?
    /// The reason for which the dial has failed.
    private var dialFailure: ConnectFailure?
    /// The reason for which the target could not be connected.
    var connectFailure: ConnectFailure {
        if let dialFailure { return dialFailure }
        return driver.conditions.connectionPolicy == .open ? .connectionRefused : .unreachable
    }
    /// The reason for which the TLS handshake with one of the upstream's addresses has failed.
    var tlsFailure: TLSFailure?
    /// The destination of a tunnel that comes from the fast path, where its connection has been counted.
    var relayedDestination: Destination?
    /// The name that the client has sent at the beginning of TLS (SNI).
    private(set) var serverName: String?
    /// Whether the connection to the target has been established for the client.
    private(set) var isEstablished = false
    /// The session of the bytes of TLS, if this one has the bytes inside: its client and number are those of this one.
    private(set) weak var outside: Session?
    /// Returns what reads the client's first bytes in front of the upstream's socket; `nil` without interception.
    var makeGate: ((Session, SocketHandler) -> InterceptionGate)?
    private weak var gate: InterceptionGate?

    /// Creates the session of a new client.
    ///
    /// - Parameters:
    ///   - ownsChannel: Whether the session closes the client's channel; several sessions may share it.
    ///   - dial: Dials the upstream with a ``SocketHandler`` of the session in the channel's pipeline, or calls
    ///     ``upstreamFailed()``.
    convenience init(
        _ client: any Channel, on driver: LinkDriver, passed: [LoopDetector.ProxyNumber] = [],
        target: ForwardTarget? = nil, ownsChannel: Bool = true, dial: @escaping (Session) -> Void
    ) {
        self.init(
            new: ownsChannel ? client : nil, from: client.remoteAddress.map(Endpoint.init(_:)), on: driver,
            passed: passed, target: target, dial: dial)
    }

    private init(
        new clientChannel: (any Channel)?, from clientAddress: Endpoint?, on driver: LinkDriver,
        passed: [LoopDetector.ProxyNumber], target: ForwardTarget?, dial: @escaping (Session) -> Void
    ) {
        self.clientChannel = clientChannel
        self.clientAddress = clientAddress
        self.passed = passed
        self.driver = driver
        self.dial = dial
        startedAt = .now()
        bytesRead = PerDirection(up: 0, down: 0)
        seed = nil
        relayID = nil
        self.target = target
    }

    /// Creates the session of the bytes inside a client's TLS.
    ///
    /// - Parameters:
    ///   - outside: The session of the bytes of TLS.
    ///   - dial: See ``init(_:on:passed:target:ownsChannel:dial:)``.
    convenience init(inside outside: Session, on driver: LinkDriver, dial: @escaping (Session) -> Void) {
        self.init(
            new: nil, from: outside.clientAddress, on: driver, passed: outside.passed, target: nil, dial: dial)
        self.outside = outside
    }

    /// Creates the session of a connection from the fast path. ``resume()`` opens its flow, and ``attach(_:)`` its
    /// channels.
    init(resuming detached: DetachedConnection, on driver: LinkDriver, dial: @escaping (Session) -> Void) {
        clientChannel = nil
        target = nil
        passed = detached.proxiesPassed
        recordedDials = detached.dialRecords
        self.driver = driver
        self.dial = dial
        self.detached = detached
        startedAt = detached.status.startedAt
        bytesRead = detached.status.bytesRead
        seed = ConnectionSeed(number: detached.status.number, seed: detached.seed)
        clientAddress = detached.status.client.map(Endpoint.init(_:))
        relayID = ConnectionID(carrier: .relay(detached.status.token))
        dialIsFinished = detached.server != nil
    }

    /// Whether the connection comes from the fast path, which has forwarded bytes of it.
    var startsMidStream: Bool { detached?.status.hasForwardedBytes ?? false }

    /// Opens the flow of a connection from the fast path.
    func resume() {
        if let detached { lastActivity = detached.status.lastActive }
        flow = driver.open(self)
        if dialIsFinished { receive(.connected) }
        driver.start()
    }

    /// Opens the channels of a connection from the fast path, the upstream's first. Neither is read before both are
    /// active.
    ///
    /// - Parameter openChannel: Opens a channel for a socket, with the handler in its pipeline.
    func attach(_ openChannel: (SocketHandler, Side, CInt) -> Void) {
        guard let detached else { return }
        for (side, socket) in [(Side.server, detached.server), (.client, detached.client)] {
            let descriptor = socket?.take() ?? -1
            guard descriptor >= 0 else { continue }
            let finWasSent = detached.isFinished[side.opposite.sendDirection]
            openChannel(SocketHandler(side, of: self, finWasSent: finWasSent), side, descriptor)
        }
    }

    /// Records the flow that the driver has opened.
    func opened(_ flow: FlowID, number: Int) {
        openedFlow = flow
        self.number = number
    }

    /// The client's port.
    var clientPort: UInt16 { UInt16(truncatingIfNeeded: clientAddress?.port ?? 0) }

    // MARK: Events of the sockets

    /// Handles the client's channel becoming active: opens the flow and dials the upstream.
    func clientConnected(_ handler: any SessionSocket) {
        handlers.up = handler
        openChannels += 1
        if detached != nil { return socketAttached(handler) }
        // A connection from the fast path may have ended before its channel became active.
        if isClosed || seed != nil { return handler.close() }
        let id = driver.open(self)
        flow = id
        if driver.needsUpstream(id) {
            dial(self)
        } else {
            dialIsFinished = true
        }
        driver.start()
    }

    /// Handles a channel of a connection from the fast path becoming active. Once both are, the bytes that the fast
    /// path had read enter the link first.
    private func socketAttached(_ handler: any SessionSocket) {
        if flow == nil || isClosed { return handler.close() }
        handler.pauseReading()
        let isComplete = handlers.up != nil && (handlers.down != nil || detached?.server == nil)
        guard let detached, isComplete else { return }
        self.detached = nil
        for direction in Direction.allCases where detached.pending[direction].readableBytes > 0 {
            if let flow { driver.receive(.bytes(detached.pending[direction], from: direction.sender), on: flow) }
        }
        for direction in Direction.allCases where !startsPaused[direction] { resumeReading(direction.sender) }
        if detached.server == nil { dial(self) }
        driver.flush()
    }

    /// Handles the start of a dial to one of the upstream's addresses.
    func upstreamDialStarted(_ handler: SocketHandler) {
        dialling.append(handler)
        if flow == nil { handler.close() }
    }

    /// Handles a dial that is bound to `localPort` and about to connect.
    func upstreamWillConnect(from localPort: Int) {
        if let dial = recordDial(localPort) { recordedDials.append(dial) }
    }

    /// Closes the sockets of all dials under way except `connected`.
    private func cancelDials(except connected: SocketHandler? = nil) {
        let others = dialling.filter { $0 !== connected }
        dialling = []
        for handler in others { handler.discard() }
    }

    /// Handles the upstream's channel becoming active.
    func upstreamConnected(_ handler: SocketHandler) {
        if handlers.down != nil { return handler.discard() }
        cancelDials(except: handler)
        handlers.down = handler
        openChannels += 1
        if detached != nil { return socketAttached(handler) }
        if let makeGate {
            let gate = makeGate(self, handler)
            (self.gate, handlers.down) = (gate, gate)
        }
        dialIsFinished = true
        if flow == nil || isClosed {
            handler.reset()
        } else {
            receive(.connected)
            driver.flush()
        }
    }

    /// Whether the connection still needs the dial.
    var needsUpstream: Bool { flow != nil && !isClosed }

    /// Handles the failure of all dials. Returns whether the connection still needed one.
    func upstreamFailed(_ failure: ConnectFailure = .connectionRefused) -> Bool {
        cancelDials()
        dialFailure = failure
        dialIsFinished = true
        let wasNeeded = needsUpstream
        if endReason == nil, wasNeeded { endReason = .unreachable }
        if let flow { driver.upstreamFailed(flow) }
        driver.flush()
        endIfNoSocketIsLeft()
        return wasNeeded
    }

    /// Handles that the upstream could not be connected by TLS, or has refused the connection before its first byte: a
    /// stand-in takes its place, which responds to a request with the reason. Returns whether the connection still needed
    /// the upstream.
    ///
    /// - Parameter sent: The bytes that the upstream has got.
    func upstreamFailed(_ upstream: FailedUpstream, sent: ByteBuffer = ByteBuffer()) -> Bool {
        guard needsUpstream else { return handlers.down == nil && upstreamFailed() }
        cancelDials()
        dialIsFinished = true
        if endReason == nil { endReason = .unreachable }
        let socket = FailedUpstreamSocket(self, upstream)
        if let handler = handlers.down {
            handlers.down = socket
            (handler as? SocketHandler)?.discard()
            socket.write(sent)
            // The socket that is gone does not report it.
            socket.awaitDrain()
        } else {
            handlers.down = socket
            openChannels += 1
            receive(.connected)
        }
        driver.flush()
        return true
    }

    /// Replaces the upstream's socket by another one, whose end is reported in its place.
    func replaceUpstream(with socket: any SessionSocket) {
        gate = nil
        handlers.down = socket
    }

    /// Whether all bytes of the upstream have been written to the client's socket.
    var hasDelivered: Bool { flow.map { driver.link.bytesHeld($0, .down) == 0 } ?? false }

    /// Whether the link carries bytes of the connection.
    var isCarrying: Bool {
        flow.map { driver.link.bytesHeld($0, .up) > 0 || driver.link.bytesHeld($0, .down) > 0 } ?? false
    }

    /// Records the cause of the end of the connection, unless there is one already.
    func recordEnd(_ reason: ConnectionEndReason) { if endReason == nil { endReason = reason } }

    /// Whether the proxy has work left from an earlier turn.
    var hasBacklog: Bool { driver.hasBacklog }

    /// Defers a socket's read until the backlog is processed.
    func deferRead(of handler: any SessionSocket) { driver.deferRead(of: handler) }

    /// Passes an event of one of the sockets to the link.
    func receive(_ event: SocketEvent) {
        switch event {
        case .bytes(let buffer, from: let side):
            bytesRead[side.sendDirection] += buffer.readableBytes
            lastActivity = .now()
        case .inputClosed(let side) where endReason == nil:
            endReason = side == .client ? .clientClosed : .serverClosed
        case .gone(let side) where endReason == nil && !wasReset:
            endReason = side == .client ? .clientReset : .serverReset
        case .connected, .inputClosed, .gone, .drained: break
        }
        if let gate, event.isFromServer { gate.serverHasSent() }
        guard let flow else { return }
        driver.receive(event, on: flow)
        // The conduit is gone when the session ends.
        if serverName == nil, case .bytes(_, from: .client) = event, bytesRead.up <= ClientHelloReader.helloBytesMax {
            serverName = driver.link.clientHello(of: flow)?.serverName
        }
    }

    /// Handles the end of a read cycle of one socket.
    func readCompleted() { driver.flush() }

    /// Handles one of the channels becoming inactive.
    func channelClosed(_ side: Side) {
        openChannels -= 1
        precondition(openChannels >= 0, "a channel of a session was closed twice")
        handlers[side.sendDirection] = nil
        driver.flush()
        endIfNoSocketIsLeft()
    }

    private func endIfNoSocketIsLeft() {
        // A lookup or dial that is no longer needed does not keep the session open.
        if openChannels == 0 && !hasEnded && (dialIsFinished || flow == nil || isClosed) {
            hasEnded = true
            onEnd()
        }
    }

    /// Whether the slot of the connection is released with the session.
    var holdsSlot = true

    // MARK: Actions of the conduit

    /// Executes an action. Returns whether the session must be flushed because of it.
    func execute(_ action: SocketAction) -> Bool {
        // The sockets are being closed; what the link does because of that must not change how.
        if isClosed { guard case .ended = action else { return false } }
        switch action {
        case .write(let buffer, to: let side):
            lastActivity = .now()
            handlers[side.sendDirection]?.write(buffer)
            defer { hasUnflushedWrites = true }
            return !hasUnflushedWrites
        case .awaitDrain(let side):
            handlers[side.sendDirection]?.awaitDrain()
        case .closeOutput(let side):
            handlers[side.sendDirection]?.closeOutput()
        case .close(let side):
            wasReset = true
            handlers[side.sendDirection]?.closeAfterWrites()
        case .flush(let side):
            handlers[side.sendDirection]?.flush()
        case .reset(let side):
            wasReset = true
            // The kernel may have completed a dial whose event has not been delivered yet.
            if side == .server, handlers.down == nil { for handler in dialling { handler.reset() } }
            handlers[side.sendDirection]?.reset()
            if handlers[side.sendDirection] == nil { detachedSocket(side)?.reset() }
        case .resetAfterWrites(let side):
            wasReset = true
            if let handler = handlers[side.sendDirection] {
                handler.resetAfterWrites()
            } else {
                return execute(.reset(side))
            }
        case .established:
            isEstablished = true
            handlers.up?.established()
        case .pauseReading(let side):
            startsPaused[side.sendDirection] = true
            handlers[side.sendDirection]?.pauseReading()
        case .resumeReading(let side):
            startsPaused[side.sendDirection] = false
            if detached == nil { resumeReading(side) }
        case .ended:
            flow = nil
            cancelDials()
            // Sockets without a channel are closed with a FIN, unless they have been reset.
            detached = nil
            endIfNoSocketIsLeft()
        }
        return false
    }

    private func resumeReading(_ side: Side) {
        handlers[side.sendDirection]?.resumeReading()
    }

    private func detachedSocket(_ side: Side) -> OwnedSocket? {
        side == .client ? detached?.client : detached?.server
    }

    /// Flushes both sockets.
    func flush() {
        hasUnflushedWrites = false
        handlers.up?.flush()
        handlers.down?.flush()
    }

    /// Bytes written to the session's channels and not yet sent to the kernel.
    private var bytesUnsent: Int { (handlers.up?.bytesUnsent ?? 0) + (handlers.down?.bytesUnsent ?? 0) }

    /// Returns the traffic that the connection may still carry.
    ///
    /// - Parameter idleTimeMin: The time without a byte after which a connection counts as idle if its protocol is unknown.
    func remainingTraffic(at now: NIODeadline, idleTimeMin: TimeAmount) -> RemainingTraffic {
        if bytesUnsent > 0 || detached != nil { return .pending }
        guard let flow else { return .none }
        var traffic = driver.remainingTraffic(of: flow)
        #if TLS
        if traffic == .unknown, let intercepted = handlers.down as? InterceptionSocket {
            // The requests are known inside of TLS.
            traffic = intercepted.remainingTraffic(at: now, idleTimeMin: idleTimeMin)
        }
        #endif
        guard traffic == .none || traffic == .unknown else { return traffic }
        if handlers.up?.hasUnreadBytes == true || handlers.down?.hasUnreadBytes == true { return .pending }
        // The server may have sent bytes before the proxy learns that the dial is established.
        let isUnknown = traffic == .unknown || !dialIsFinished
        return isUnknown && now - lastActivity < idleTimeMin ? .pending : .none
    }

    /// Closes both sockets now.
    ///
    /// - Parameter abortively: Whether to send a RST instead of a FIN, so that a truncated stream does not appear
    ///   complete.
    func close(abortively: Bool) {
        isClosed = true
        cancelDials()
        if abortively { for socket in [detached?.client, detached?.server] { socket?.reset() } }
        detached = nil
        if handlers.up == nil && openChannels == 0 { clientChannel?.close(promise: nil) }
        for handler in [handlers.up, handlers.down] {
            if abortively { handler?.reset() } else { handler?.close() }
        }
        if openChannels == 0 {
            flow = nil
            endIfNoSocketIsLeft()
        }
    }
}
