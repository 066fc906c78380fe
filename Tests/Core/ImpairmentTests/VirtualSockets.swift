import Determinism
import LinkModel
import NIOCore
import TCPModel

@testable import Impairment

/// A driver of a ``SharedLink`` in virtual time, which records the actions instead of executing them on sockets.
struct VirtualSockets {
    /// A reference to the link: unlike the other parts of a test's sockets, a link cannot be copied.
    final class Box {
        var link: SharedLink

        init(_ link: consuming SharedLink) { self.link = link }
    }

    let box: Box
    private(set) var now = Instant.start
    /// The sockets of each connection, by the direction in which they send.
    private(set) var sockets: [FlowID: PerDirection<Socket>] = [:]
    /// The times at which connections were reported as established.
    private(set) var established: [FlowID: Instant] = [:]
    /// Connections that have ended.
    private(set) var ended: Set<FlowID> = []
    /// Packets of the link, if they are recorded.
    private(set) var packets: [SharedLink.CapturedPacket] = []
    /// Events of exchanges, as text: requests, commits, deliveries, interruptions, faults without their points.
    private(set) var exchangeEvents: [String] = []
    /// All events of exchanges with their modelled times.
    private(set) var allExchangeEvents: [SharedLink.TimedExchangeEvent] = []

    /// Returns the fault to inject into an exchange whose request has been reported.
    var decide: ((ExchangeEvent) -> FaultRule?)?

    struct Socket {
        var received: [UInt8] = []
        var times: [Nanoseconds] = []
        var gotFin = false
        var gotReset = false
        /// Closed in both directions by a toxic.
        var isClosed = false
        /// The sizes of the pieces received.
        var pieces: [Int] = []
        var flushes = 0
        var isPaused = false
        /// Whether the application reads from the socket.
        var isRead = true
        var owesDrained = false
    }

    init(
        _ conditions: Conditions = .clear, limits: BufferLimits = BufferLimits(),
        exchangeTracking: ExchangeTracking? = nil, observation: SharedLink.Observation = [], seed: UInt64 = 1
    ) {
        box = Box(
            SharedLink(
                conditions, seed: seed, limits: limits, exchangeTracking: exchangeTracking, observation: observation))
    }

    init(_ link: consuming SharedLink) { box = Box(link) }

    var isBehind: Bool { box.link.isBehind }

    /// The time of the link, which is behind the driver's if a call stopped at its event limit.
    var linkTime: Instant { box.link.now }

    mutating func startTimeline(_ timeline: Timeline) {
        box.link.startTimeline(timeline, at: now)
        execute()
    }

    mutating func open(
        connected: Bool = true, reportsEstablishment: Bool = false, looksUpName: Bool = true
    ) -> FlowID {
        let id = box.link.open(at: now, reportsEstablishment: reportsEstablishment, looksUpName: looksUpName)
        sockets[id] = PerDirection(up: Socket(), down: Socket())
        execute()
        if connected { report(.connected, id) }
        return id
    }

    /// Opens a connection that comes from the fast path; its upstream is connected.
    mutating func openEstablished(
        _ seed: ConnectionSeed, openedAt: Instant, isMidStream: Bool = true
    ) -> FlowID {
        let id = box.link.open(
            at: now, seed: seed, isEstablished: true, openedAt: openedAt, isMidStream: isMidStream)
        sockets[id] = PerDirection(up: Socket(), down: Socket())
        execute()
        report(.connected, id)
        return id
    }

    mutating func report(_ event: SocketEvent, _ id: FlowID) {
        box.link.receive(event, on: id, at: now)
        execute()
    }

    mutating func send(_ bytes: [UInt8], from side: Side, _ id: FlowID) {
        report(.bytes(ByteBuffer(bytes: bytes), from: side), id)
    }

    mutating func setConditions(_ conditions: Conditions) {
        box.link.setConditions(conditions, at: now)
        execute()
    }

    mutating func add(_ effect: Toxic.Effect, _ stream: Direction = .down, toxicity: Double = 1, name: String = "t") {
        box.link.add(Toxic(name: name, stream: stream, toxicity: toxicity, effect: effect), at: now)
        execute()
    }

    mutating func update(
        _ effect: Toxic.Effect, _ stream: Direction = .down, toxicity: Double = 1, name: String = "t"
    ) {
        box.link.update(Toxic(name: name, stream: stream, toxicity: toxicity, effect: effect), at: now)
        execute()
    }

    mutating func remove(_ name: String = "t") {
        box.link.removeToxic(name, at: now)
        execute()
    }

    mutating func setObservation(_ observation: SharedLink.Observation) {
        box.link.setObservation(observation, at: now)
        execute()
    }

    mutating func wait(_ span: Nanoseconds) {
        now = now + span
        box.link.advance(to: now)
        execute()
    }

    /// Starts or stops the application's reading from a socket.
    mutating func setRead(_ isRead: Bool, _ side: Side, _ id: FlowID) {
        change(side, id) { $0.isRead = isRead }
        drain(side, id)
    }

    private mutating func drain(_ side: Side, _ id: FlowID) {
        guard socket(side, id).isRead, socket(side, id).owesDrained else { return }
        change(side, id) { $0.owesDrained = false }
        report(.drained(side), id)
    }

    /// Advances to each deadline until there is none, at most `steps` times.
    mutating func runToQuiet(steps: Int = 1_000_000) {
        for _ in 0..<steps {
            guard let deadline = box.link.nextDeadline else { return }
            now = max(now, deadline)
            box.link.advance(to: now)
            execute()
        }
    }

    /// The socket at `side` of a connection.
    func socket(_ side: Side, _ id: FlowID) -> Socket { sockets[id]?[side.sendDirection] ?? Socket() }

    private mutating func execute() {
        var drains: [(Side, FlowID)] = []
        var closed: [(Side, FlowID)] = []
        defer {
            for (side, id) in drains { drain(side, id) }
            for (side, id) in closed { report(.gone(side), id) }
        }
        while let packet = box.link.takePacket() { packets.append(packet) }
        while let event = box.link.takeExchangeEvent() {
            allExchangeEvents.append(event)
            decide(on: event)
            switch event.event {
            case .requestStarted, .requestRead, .responseStarted, .responseSampled, .faultMissed, .protocolSwitched:
                break
            case .faultInjected(let id, let rule, _, _):
                exchangeEvents.append("\(id.number) fault of rule \(rule)")
            default: exchangeEvents.append("\(event.event)")
            }
        }
        while let action = box.link.takeAction() {
            precondition(!ended.contains(action.flow), "an action after the end")
            switch action.action {
            case .write(let buffer, to: let side):
                change(side, action.flow) { socket in
                    precondition(
                        !socket.gotFin && !socket.gotReset && !socket.isClosed, "bytes after the end of a stream")
                    precondition(!socket.owesDrained, "bytes for a socket that must send other bytes first")
                    socket.received += buffer.readableBytesView
                    socket.pieces.append(buffer.readableBytes)
                    socket.times.append(action.time.sinceStart)
                }
            case .awaitDrain(let side):
                change(side, action.flow) { $0.owesDrained = true }
                drains.append((side, action.flow))
            case .closeOutput(let side):
                change(side, action.flow) { socket in
                    precondition(!socket.gotFin && !socket.gotReset, "a second end of a stream")
                    socket.gotFin = true
                }
            case .close(let side):
                change(side, action.flow) { $0.isClosed = true }
                // A socket reports that it has been closed.
                closed.append((side, action.flow))
            case .flush(let side): change(side, action.flow) { $0.flushes += 1 }
            case .reset(let side), .resetAfterWrites(let side): change(side, action.flow) { $0.gotReset = true }
            case .pauseReading(let side): change(side, action.flow) { $0.isPaused = true }
            case .resumeReading(let side): change(side, action.flow) { $0.isPaused = false }
            case .established: established[action.flow] = action.time
            case .ended: ended.insert(action.flow)
            }
        }
    }

    private func decide(on event: SharedLink.TimedExchangeEvent) {
        guard case .requested(let id, _, body: _, subject: _) = event.event else { return }
        if let fault = decide?(event.event), let point = fault.point {
            let fault = ExchangeFault(rule: 0, point: point, action: fault.action, bytes: fault.bytes, side: fault.side)
            box.link.injectFault(fault, into: id, of: event.flow, at: now)
        }
        box.link.admitRequest(id, of: event.flow, at: now)
    }

    private mutating func change(_ side: Side, _ id: FlowID, _ body: (inout Socket) -> Void) {
        body(&sockets[id, default: PerDirection(up: Socket(), down: Socket())][side.sendDirection])
    }
}
