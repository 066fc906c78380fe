internal import DequeModule
internal import Determinism
internal import LinkModel
internal import NIOCore
internal import Wire

/// The streams of one HTTP/2 connection, and the faults injected into them.
///
/// A part of ``ExchangeTracker``, which gives it the bytes after the client's preface. Complete frames pass unchanged.
/// A fault acts at the entries: it withholds, discards or shortens frames of its stream, and adds frames of its own.
///
/// - **Header blocks** pass unchanged until a fault changes their sequence. From then on the blocks of that direction are
///   written without a compression table (``Wire/HTTP2Frame/block(_:_:_:prefix:endsStream:)``).
/// - **Flow control** stays end to end. The sender of discarded DATA gets its credit back. The client's credit for DATA
///   of a fault's response is withheld from the server, which has not sent it.
/// - **Identifiers** are those of the client, until a delayed request is overtaken by a later one: a server rejects new
///   streams with lower identifiers, so the request and all later ones get greater ones.
struct StreamTracker {
    typealias Action = ExchangeTracker.Action

    /// The end of the connection by a fault, at an offset of the bytes written in a direction.
    struct End {
        let action: Action
        let point: FaultPoint
        let direction: Direction
        let offset: Int64
    }

    /// The PING of faults on a connection. They are numbered from 1.
    struct Pings {
        /// The exchange and the rule of the latest fault.
        var exchange: ExchangeID
        var rule: Int
        var sent: UInt32 = 0
        /// The number of PING that the client has acknowledged, and the last one of them.
        var acknowledged: UInt32 = 0
        var last: UInt32 = 0
    }

    var actions = Deque<Action>()
    var now: Instant
    /// The streams by the client's identifiers. Streams that no fault has touched are removed at their ends.
    var streams: [UInt32: TrackedStream] = [:]
    /// Streams that have ended and that a fault has touched, oldest first.
    var retired = Deque<UInt32>()
    /// The streams with a gate that opens with time, in order.
    var timed: [UInt32] = []
    /// The streams with a ``TrackedStream/reply``, oldest first.
    var replying: [UInt32] = []
    /// The streams whose requests wait for the driver's decision, in order.
    var undecided: [UInt32] = []
    /// The bytes of the heads of requests that have not been reported, and of samples of bodies.
    var (headBytes, sampleBytes) = (0, 0)
    var lastClientStream: UInt32 = 0
    var lastServerStream: UInt32 = 0
    /// The client's identifiers of streams that have another one on the server's side.
    var clientIDs: [UInt32: UInt32] = [:]
    /// Whether a stream has another identifier on the server's side.
    var isShifted = false
    /// The last stream of a GOAWAY that a fault has sent to the client.
    var goAwayLast: UInt32?

    var readers: PerDirection<HTTP2FrameReader>
    var decoders = PerDirection(up: HTTP2HeaderDecoder(), down: HTTP2HeaderDecoder())
    /// Whether header blocks are written anew.
    var rewrites = PerDirection(up: false, down: false)
    /// The offsets of header blocks that wait, in order.
    var heldBlocks = PerDirection(up: [Int64](), down: [Int64]())
    /// What has been read of the client's preface that follows an upgrade of HTTP/1.1; `nil` if it has been read.
    var preface: ByteBuffer?
    /// DATA of the server that waits for the client's window; later frames of the server wait behind it.
    var blockedDown: HTTP2Frame?

    /// The client's window for the connection.
    var window: Int64 = 65_535
    /// The client's initial window of a stream.
    var initialWindow: Int64 = 65_535
    /// The credit of the client for DATA that the server has not sent.
    var windowDebt: Int64 = 0
    /// The SETTINGS sent to the client, those that it has acknowledged, and the numbers of those that a fault has sent.
    var (settingsSent, settingsAcknowledged) = (Int64(0), Int64(0))
    var ownSettings = Deque<Int64>()
    /// Whether a fault discards the client's PING.
    var ignoresPings = false
    /// The PING of faults.
    var pings: Pings?
    /// Whether faults withhold WINDOW_UPDATE of the connection from the senders of both directions.
    var blocksConnectionWindow = PerDirection(up: false, down: false)
    /// Whether a fault has truncated a header block, so that nothing can follow it.
    var isTruncated = PerDirection(up: false, down: false)

    /// Frames for the client that wait for the server's SETTINGS, which must be the first frame.
    var beforeServerSettings = Deque<ByteBuffer>()
    var serverHasBegun = false
    /// Frames that have entered the link, and are passed on together: short frames cost more each than in one piece.
    var passing = PerDirection(up: ByteBuffer(), down: ByteBuffer())
    /// The bytes that have entered the link, and those that have been written, the preface included.
    var entered: PerDirection<Int64>
    var written: PerDirection<Int64>
    /// Events that are reported when the bytes before them have been written.
    var marks = PerDirection<Deque<(offset: Int64, event: ExchangeEvent)>>(up: [], down: [])
    var bytesHeld = PerDirection(up: 0, down: 0)
    /// The bytes of faults that have entered the link, counted from zero again when the first of them have been written, up
    /// to an offset.
    var faultBytes = PerDirection(up: (count: 0, until: Int64(0)), down: (count: 0, until: Int64(0)))
    /// A time at which a gate may open.
    private(set) var nextDeadline: Instant?

    /// Whether a fault has fired, so that the bytes may differ from those of the peers.
    var hasFired = false
    /// Whether frames have overtaken frames of other streams, which waited for a decision or a fault.
    private(set) var hasReordered = false
    /// The end of the connection by a fault, until it has been executed.
    var end: End?
    /// The reason why the connection cannot be tracked any more.
    var failure: String?

    /// The bytes of frames that are passed on together.
    static let passingBytesMax = 8 << 10
    /// The maximum number of open streams.
    static let streamsMax = 10_000
    /// The maximum number of ended streams whose state is kept.
    static let retiredMax = 4_096
    /// The maximum number of frames for the client that wait for the server's SETTINGS.
    static let waitingFramesMax = 4_096
    /// The maximum number of bytes of the heads of requests that have not been read to their ends.
    static let headBytesMax = 8 << 20
    /// The maximum number of bytes of the samples of bodies.
    static let sampleBytesMax = 1 << 20
    /// The bytes of a request, and of all requests, that wait for a decision at most. They must be below the windows, or
    /// their sender would wait, too.
    static let (undecidedBytesMax, allUndecidedBytesMax) = (16 << 10, 32 << 10)
    /// The maximum number of bytes of frames of faults that a peer has not read.
    static let faultBytesMax = 4 << 20
    /// The bytes of a direction in the link from which on responses of faults wait.
    static let replyBytesInLinkMax = Int64(256 << 10)
    /// The maximum number of SETTINGS of faults that the client has not acknowledged.
    static let ownSettingsMax = 4_096
    /// The maximum number of PING of faults on a stream.
    static let pingsMax = 100

    /// Creates the tracker of a connection whose client's preface has been read.
    init(entered: PerDirection<Int64>, written: PerDirection<Int64>, at now: Instant) {
        self.now = now
        (self.entered, self.written) = (entered, written)
        readers = PerDirection(
            up: HTTP2FrameReader(offset: Int64(HTTP2Frame.preface.count)), down: HTTP2FrameReader())
    }

    // MARK: Inputs

    /// Reports bytes read from a socket.
    mutating func received(
        _ bytes: ByteBuffer, _ direction: Direction, _ registry: inout ExchangeRegistry, at time: Instant
    ) {
        now = max(now, time)
        // Nothing beyond the end of the connection has an effect.
        if end != nil || failure != nil { return }
        var bytes = bytes
        if direction == .up, preface != nil {
            guard let rest = takePreface(bytes) else { return }
            bytes = rest
        }
        readers[direction].received(bytes)
        process(direction, &registry)
        if direction == .up { resumeDown(&registry) }
    }

    /// Reports that time has passed.
    mutating func advance(to time: Instant, _ registry: inout ExchangeRegistry) {
        now = max(now, time)
        for id in timed {
            for direction in Direction.allCases {
                switch streams[id]?[direction].gate {
                case .hold(let deadline) where deadline <= now: open(id, direction, &registry)
                case .throttle: continueThrottle(id, direction, &registry)
                default: break
                }
            }
        }
        updateTimed()
        resumeDown(&registry)
        nextDeadline = nil
        for id in timed {
            for direction in Direction.allCases {
                switch streams[id]?[direction].gate {
                case .hold(let time): schedule(time)
                case .throttle(let throttle) where streams[id]?[direction].held.isEmpty == false:
                    schedule(throttle.nextWrite)
                default: break
                }
            }
        }
    }

    /// Requires a call of ``advance(to:_:)`` at a time.
    mutating func schedule(_ time: Instant) { nextDeadline = min(nextDeadline ?? .never, time) }

    /// Reports the bytes written to the receiver so far.
    mutating func wrote(_ direction: Direction, total: Int64) {
        written[direction] = total
        while let mark = marks[direction].first, mark.offset <= total {
            marks[direction].removeFirst()
            actions.append(.report(mark.event))
        }
        if direction == .down, !replying.isEmpty { sendReplies() }
    }

    /// Reports the end of the connection.
    mutating func connectionEnded() {
        for id in streams.keys.sorted() {
            miss(id)
            interrupt(id)
            if streams[id]?.awaitsResponse == true { reportResponse(id) }
        }
        streams = [:]
        guard let pings else { return }
        actions.append(
            .report(.pings(pings.exchange, rule: pings.rule, acknowledged: pings.acknowledged, sent: pings.sent)))
    }

    /// Removes the faults of a rule, and opens the gates that they have closed for a time.
    mutating func removeFaults(of rule: Int?, _ registry: inout ExchangeRegistry, at time: Instant) {
        now = max(now, time)
        for id in streams.keys.sorted() {
            if let fault = streams[id]?.fault, rule == nil || fault.rule == rule { streams[id]?.fault = nil }
            guard let rule else { continue }
            for direction in Direction.allCases where streams[id]?[direction].gateRule == rule {
                if streams[id]?[direction].discards == false { open(id, direction, &registry) }
            }
        }
        updateTimed()
    }

    /// Lets go of everything that waits.
    mutating func drop() {
        for id in streams.keys {
            streams[id]?.up.held = []
            streams[id]?.down.held = []
            streams[id]?.reply = nil
        }
        (timed, replying, undecided, blockedDown, bytesHeld) = ([], [], [], nil, PerDirection(up: 0, down: 0))
        heldBlocks = PerDirection(up: [], down: [])
        nextDeadline = nil
    }

    // MARK: State

    /// Returns the bytes that wait for a fault or for the client's window.
    func bytesWaiting(_ direction: Direction) -> Int {
        bytesHeld[direction]
            + (direction == .down && blockedDown != nil
                ? (blockedDown?.bytes.readableBytes ?? 0) + readers.down.bytesKept : 0)
    }

    var bytesKept: Int {
        readers.up.bytesKept + readers.down.bytesKept + headBytes + sampleBytes + (preface?.readableBytes ?? 0)
    }

    /// Returns the bytes that may be written before the end of the connection by a fault.
    func allowance(_ direction: Direction) -> Int64 {
        guard let end, end.direction == direction else { return .max }
        return max(0, end.offset - written[direction])
    }

    /// Whether the end of a sender's stream must wait for frames before it.
    func mustEndWait(_ direction: Direction) -> Bool {
        bytesHeld[direction] > 0 || (direction == .down && blockedDown != nil)
    }

    /// Whether a request has no response that may still arrive.
    var hasOpenStream: Bool {
        streams.values.contains {
            $0.exchange != nil && (!$0.isOver || $0.isTunnel && !($0.up.hasEnded && $0.down.hasEnded))
                && (!$0.down.discards || $0.reply != nil)
        }
    }

    /// Takes the bytes of frames that are not complete.
    mutating func takeRest(_ direction: Direction) -> ByteBuffer {
        var rest = direction == .up ? preface.take() ?? ByteBuffer() : ByteBuffer()
        rest.writeImmutableBuffer(readers[direction].takeRest())
        return rest
    }

    /// Takes the end of the connection if the bytes before it have been written.
    mutating func takeEnd() -> End? {
        guard let end, written[end.direction] >= end.offset else { return nil }
        self.end = nil
        return end
    }

    // MARK: Processing

    private mutating func process(_ direction: Direction, _ registry: inout ExchangeRegistry) {
        while failure == nil, end == nil, direction == .up || blockedDown == nil {
            let frame: HTTP2Frame
            do throws(HTTP2Error) {
                guard let next = try readers[direction].takeFrame() else { return }
                frame = next
            } catch {
                return fail("\(error)")
            }
            let (held, passed) = (bytesHeld[direction], entered[direction])
            do throws(HTTP2Error) {
                if direction == .up { try processUp(frame, &registry) } else { try processDown(frame, &registry) }
            } catch {
                if !hasFired { emit(frame.bytes, direction) }
                return fail("\(error)")
            }
            if held > 0, entered[direction] > passed { hasReordered = true }
        }
    }

    /// Records that the frames of a stream have passed. Frames of others may have waited longer.
    mutating func passedHeld() { if bytesHeld.up > 0 { hasReordered = true } }

    mutating func fail(_ reason: String) {
        if failure != nil { return }
        for id in streams.keys.sorted() { miss(id) }
        failure = reason
    }

    /// Reads the client's preface, which follows an upgrade. Returns the bytes after it, once it has been read.
    private mutating func takePreface(_ bytes: ByteBuffer) -> ByteBuffer? {
        preface?.writeImmutableBuffer(bytes)
        guard var rest = preface else { return nil }
        guard rest.readableBytesView.starts(with: HTTP2Frame.preface.prefix(rest.readableBytes)) else {
            fail("HTTP/2: the client's preface does not follow the upgrade")
            return nil
        }
        guard let first = rest.readSlice(length: HTTP2Frame.preface.count) else { return nil }
        preface = nil
        emit(first, .up)
        return rest
    }

    /// Continues with the server's frames that have waited for the client's window.
    private mutating func resumeDown(_ registry: inout ExchangeRegistry) {
        sendReplies()
        guard let frame = blockedDown, windowDebt == 0 || Int64(frame.payloadBytes) <= window else { return }
        blockedDown = nil
        takeData(frame, .down, &registry)
        process(.down, &registry)
    }

    /// Removes a stream that has ended. The state of a stream that a fault has touched is kept for late frames.
    mutating func removeIfEnded(_ id: UInt32) {
        guard let stream = streams[id], stream.up.hasEnded, stream.down.hasEnded, stream.isIdle, !stream.isRetired
        else { return }
        miss(id)
        releaseHead(id)
        releaseSample(id, .down)
        // Late frames do not wait.
        timed.removeAll { $0 == id }
        for direction in Direction.allCases where !stream[direction].discards { streams[id]?[direction].gate = .open }
        if !stream.isTouched && !isShifted { return streams[id] = nil }
        streams[id]?.isRetired = true
        retired.append(id)
        if retired.count > Self.retiredMax, let oldest = retired.popFirst() {
            interrupt(oldest)
            if let server = streams[oldest]?.serverID { clientIDs[server] = nil }
            streams[oldest] = nil
        }
    }

    mutating func updateTimed() {
        timed = timed.filter { id in
            Direction.allCases.contains { direction in
                switch streams[id]?[direction].gate {
                case .hold, .throttle: true
                default: false
                }
            }
        }
    }

    /// Reports the end of an exchange without a complete response.
    mutating func interrupt(_ id: UInt32) {
        guard let exchange = streams[id]?.exchange, streams[id]?.isOver == false else { return }
        streams[id]?.isOver = true
        actions.append(.report(.interrupted(exchange)))
    }
}
