import LinkModel
import NIOCore
import TCPModel

@testable import Impairment

/// A driver of a ``SharedLink`` without sockets: carries actions out on paper, in virtual time.
struct VirtualSockets {
    /// A link cannot be copied; the sockets of a test are.
    final class Box {
        var link: SharedLink

        init(_ link: consuming SharedLink) { self.link = link }
    }

    let box: Box
    private(set) var now = Instant.start
    /// What each side of each connection has got, when, and how it ended.
    private(set) var ends: [FlowID: PerDirection<End>] = [:]
    /// Connections that are over.
    private(set) var over: Set<FlowID> = []
    /// Packets of the link, if they are recorded.
    private(set) var packets: [SharedLink.PacketReport] = []
    /// What became true of exchanges, in words.
    private(set) var reports: [String] = []

    struct End {
        var received: [UInt8] = []
        var times: [Nanoseconds] = []
        var gotFin = false
        var gotReset = false
        /// Closed both ways by a toxic.
        var isClosed = false
        /// Sizes of what was received, a piece each.
        var pieces: [Int] = []
        var flushes = 0
        var isPaused = false
        /// Whether the program behind the socket reads.
        var isRead = true
        var owesDrained = false
    }

    init(
        _ conditions: Conditions = .clear, limits: BufferLimits = BufferLimits(), watch: ExchangeWatch? = nil,
        isRecording: Bool = false, seed: UInt64 = 1
    ) {
        box = Box(SharedLink(conditions, seed: seed, limits: limits, watch: watch, isRecording: isRecording))
    }

    init(_ link: consuming SharedLink) { box = Box(link) }

    var isBehind: Bool { box.link.isBehind }

    /// How far the link has come.
    var linkTime: Instant { box.link.now }

    mutating func follow(_ timeline: Timeline) {
        box.link.follow(timeline, at: now)
        carryOut()
    }

    mutating func open(connected: Bool = true) -> FlowID {
        let id = box.link.open(at: now)
        ends[id] = PerDirection(up: End(), down: End())
        carryOut()
        if connected { tell(.connected, id) }
        return id
    }

    /// A connection comes to the link that has gone past it so far; its upstream is there.
    mutating func goOn(_ chance: ConnectionSeed, beginning: Instant) -> FlowID {
        let id = box.link.open(at: now, chance: chance, isEstablished: true, beginning: beginning)
        ends[id] = PerDirection(up: End(), down: End())
        carryOut()
        tell(.connected, id)
        return id
    }

    mutating func tell(_ input: Input, _ id: FlowID) {
        box.link.receive(input, on: id, at: now)
        carryOut()
    }

    mutating func send(_ bytes: [UInt8], from side: Side, _ id: FlowID) {
        tell(.bytes(ByteBuffer(bytes: bytes), from: side), id)
    }

    mutating func setConditions(_ conditions: Conditions) {
        box.link.setConditions(conditions, at: now)
        carryOut()
    }

    mutating func add(_ effect: Toxic.Effect, _ stream: Direction = .down, toxicity: Double = 1, name: String = "t") {
        box.link.add(Toxic(name: name, stream: stream, toxicity: toxicity, effect: effect), at: now)
        carryOut()
    }

    mutating func update(
        _ effect: Toxic.Effect, _ stream: Direction = .down, toxicity: Double = 1, name: String = "t"
    ) {
        box.link.update(Toxic(name: name, stream: stream, toxicity: toxicity, effect: effect), at: now)
        carryOut()
    }

    mutating func remove(_ name: String = "t") {
        box.link.removeToxic(name, at: now)
        carryOut()
    }

    mutating func wait(_ span: Nanoseconds) {
        now = now + span
        box.link.advance(to: now)
        carryOut()
    }

    /// The program behind a socket reads, or stops reading.
    mutating func setRead(_ isRead: Bool, _ side: Side, _ id: FlowID) {
        change(side, id) { $0.isRead = isRead }
        drain(side, id)
    }

    private mutating func drain(_ side: Side, _ id: FlowID) {
        guard end(side, id).isRead, end(side, id).owesDrained else { return }
        change(side, id) { $0.owesDrained = false }
        tell(.drained(side), id)
    }

    /// Advances to each due time until nothing is due; gives up after `steps`.
    mutating func runToQuiet(steps: Int = 1_000_000) {
        for _ in 0..<steps {
            guard let due = box.link.nextDue else { return }
            now = max(now, due)
            box.link.advance(to: now)
            carryOut()
        }
    }

    /// What `side` of a connection has got.
    func end(_ side: Side, _ id: FlowID) -> End { ends[id]?[side.sendDirection] ?? End() }

    private mutating func carryOut() {
        var drains: [(Side, FlowID)] = []
        var closed: [(Side, FlowID)] = []
        defer {
            for (side, id) in drains { drain(side, id) }
            for (side, id) in closed { tell(.gone(side), id) }
        }
        while let packet = box.link.takePacket() { packets.append(packet) }
        while let report = box.link.takeReport() { reports.append("\(report.event)") }
        while let order = box.link.takeAction() {
            precondition(!over.contains(order.flow), "an action after the end")
            switch order.action {
            case .write(let buffer, to: let side):
                change(side, order.flow) { end in
                    precondition(!end.gotFin && !end.gotReset && !end.isClosed, "bytes after the end of a stream")
                    precondition(!end.owesDrained, "bytes for a socket that must send others first")
                    end.received += buffer.readableBytesView
                    end.pieces.append(buffer.readableBytes)
                    end.times.append(order.time.sinceStart)
                }
            case .awaitDrain(let side):
                change(side, order.flow) { $0.owesDrained = true }
                drains.append((side, order.flow))
            case .closeOutput(let side):
                change(side, order.flow) { end in
                    precondition(!end.gotFin && !end.gotReset, "a second end of a stream")
                    end.gotFin = true
                }
            case .close(let side):
                change(side, order.flow) { $0.isClosed = true }
                // A socket that is closed tells so.
                closed.append((side, order.flow))
            case .flush(let side): change(side, order.flow) { $0.flushes += 1 }
            case .reset(let side), .resetAfterWrites(let side): change(side, order.flow) { $0.gotReset = true }
            case .pauseReading(let side): change(side, order.flow) { $0.isPaused = true }
            case .resumeReading(let side): change(side, order.flow) { $0.isPaused = false }
            case .ended: over.insert(order.flow)
            }
        }
    }

    private mutating func change(_ side: Side, _ id: FlowID, _ body: (inout End) -> Void) {
        body(&ends[id, default: PerDirection(up: End(), down: End())][side.sendDirection])
    }
}
