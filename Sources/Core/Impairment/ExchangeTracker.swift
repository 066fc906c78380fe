internal import DequeModule
internal import Determinism
internal import LinkModel
internal import NIOCore
internal import Wire

/// The exchanges of one connection, tracked by the offsets of their bytes at the entries and exits of both streams, and
/// the faults injected into them.
///
///     client -> [ entry: bytes read from the client  ... exit: bytes written to the server ] -> server
///     client <- [ exit: bytes written to the client ... entry: bytes read from the server  ] <- server
///
/// A state machine: bytes read and written and the ends of both streams are its inputs, each with the time;
/// ``takeAction()`` returns events, the bytes that may enter the link, and the ends that faults require. At the exits,
/// ``allowance(_:at:)`` limits the bytes that may be written. While a fault holds the connection, bytes wait at the
/// entries without being parsed, and nothing leaves at the exits.
struct ExchangeTracker {
    /// An output.
    enum Action {
        /// An event to be reported.
        case report(ExchangeEvent)
        /// Bytes that may enter the link.
        case pass(ByteBuffer, Direction)
        /// The end of a sender's stream, after all of its bytes.
        case end(Direction, StreamEnd)
        /// A fault aborts the connection at a point.
        case abort(FaultPoint, FaultSide?)
        /// A fault closes the connection at a point.
        case close(FaultPoint, FaultSide?)
        /// Bytes may leave the link that had to wait.
        case deliver(Direction)
    }

    /// The end of a sender's stream.
    enum StreamEnd {
        /// A FIN.
        case finished
        /// The socket is gone.
        case gone
    }

    /// The request that is being read.
    struct Request {
        let id: ExchangeID
        let head: HTTPRequestHead
        /// The offset of its first byte at the entry.
        let start: Int64
        /// The first bytes of the body.
        var sample: [UInt8] = []
        var bodyBytes: Int64 = 0
        /// The end of the request at the entry, once it has been read.
        var end: Int64?
        /// Decision state of the faults of this request: the driver has been asked, and the driver has decided.
        var isAwaitingDecision = false
        var isDecided = false
        /// Whether the rules have been applied.
        var isMatched = false
        /// Whether its bytes wait at the entry until the rules have been applied.
        var isWithheld = false
        /// Whether a fault discards its bytes at the entry.
        var isDropped = false
        /// Whether the first bytes of its body are kept, for its subject and its event.
        var needsSample = false
    }

    /// A fault that holds the connection.
    struct Hold {
        let fault: ExchangeFault
        let deadline: Instant
        let isReport: Bool
    }

    /// A fault that delivers a message slowly.
    struct Throttle {
        let fault: ExchangeFault
        let exchange: ExchangeID
        let bytesPerSecond: Int64
        /// The offset at the exit of the first byte that is delayed, once it is known.
        var start: Int64?
        /// The earliest time of the next write.
        var nextWrite = Instant.start
        /// Whether bytes wait for that time.
        var isWaiting = false

        /// Bytes per write: those of 10 ms.
        var pieceBytes: Int64 { max(1, bytesPerSecond / 100) }

        func time(of bytes: Int64) -> Nanoseconds {
            Nanoseconds(bytes.scaledSaturating(by: 1_000_000_000, over: bytesPerSecond))
        }
    }

    var actions = Deque<Action>()
    var now = Instant.start
    /// The bytes that may wait at an entry for the end of a message.
    var share = Int.max
    var requests = ExchangeTracker.requestParser
    var responses = ExchangeTracker.responseParser
    /// Whether messages are parsed: the bytes are HTTP, and no protocol switch has taken place.
    var isTracking = true
    /// Whether parsing of requests waits for the response to a CONNECT or an upgrade.
    var isAwaitingSwitch = false
    var request: Request?
    /// Whether the head that is being read may enter the link before it is complete, because it exceeded the memory
    /// limit or its stream has ended.
    var mayHeadPass = false
    /// Exchanges whose response has not been delivered or not been read, in order.
    var exchanges = Deque<TrackedExchange>()
    /// Indices of the first exchange whose request has not been delivered, whose response has not been read from the
    /// server, whose response has not entered the link, and whose response has not been delivered.
    var (requestCursor, responseCursor, entryCursor, deliveryCursor) = (0, 0, 0, 0)
    /// The ends of the last complete messages at the entries; interim responses count.
    var messageEnd = PerDirection(up: Int64(0), down: Int64(0))
    var responseBodyBytes: Int64 = 0
    /// The beginning of the body of the response that is being read, if it is to be reported.
    var responseSample: [UInt8]?
    var responseStatus = 0

    /// Parsed bytes that may not enter the link yet, and bytes that wait behind them without having been parsed.
    var withheld = PerDirection(up: ByteQueue(), down: ByteQueue())
    var unparsed = PerDirection(up: ByteQueue(), down: ByteQueue())
    var waitingEnds = PerDirection<StreamEnd?>(up: nil, down: nil)
    /// The first bytes of both streams while they may be those of HTTP/2; `nil` once that is known.
    var opening: PerDirection<ByteBuffer>? = PerDirection(up: ByteBuffer(), down: ByteBuffer())
    /// The streams, if the connection is HTTP/2; otherwise empty, because most connections have none, and they take a
    /// kilobyte. The state of HTTP/1.1 stays as it was created.
    var streams: [StreamTracker] = []
    /// Bytes that have left ``withheld``: those that entered the link or were dropped.
    var consumed = PerDirection(up: Int64(0), down: Int64(0))
    /// Bytes that have entered the link, and those that have been written.
    var entered = PerDirection(up: Int64(0), down: Int64(0))
    var written = PerDirection(up: Int64(0), down: Int64(0))

    /// Exchanges with a fault that has not fired.
    var faultCount = 0
    /// Exchanges with a ``TrackedExchange/turn``.
    var turnCount = 0
    var hold: Hold?
    var throttles = PerDirection<[Throttle]>(up: [], down: [])
    /// The offsets at the exits after which bytes are discarded.
    var discardsFrom = PerDirection<Int64?>(up: nil, down: nil)
    /// The exchange whose reply ends the stream to the client: the rest of its request is read, and nothing after it.
    var lastExchange: ExchangeID?
    /// Whether that reply has been sent, and the end of the stream with it.
    var hasClosed = false
    /// Whether the sender's FIN or RST is not delivered.
    var withholdsEnd = PerDirection(up: false, down: false)
    /// Whether a fault has ended the connection. Bytes that are read are dropped.
    var isEnded = false
    /// Whether that end has not been executed.
    var isEnding = false
    /// The handshake of TLS, while it is read or a fault waits for its point.
    var handshake: TrackedHandshake?
    /// The searches for the texts of rules, and the faults that wait for their points.
    var text = TrackedText()
    /// The name of the point of the fault of a handshake or of a text that has fired.
    var firedPointName: String?
    /// The time of the timer that the link has set.
    var timer: Instant?

    static var requestParser: HTTPParser { HTTPParser(.requests, checksIncompleteHeads: true) }
    static var responseParser: HTTPParser { HTTPParser(.responses, checksIncompleteHeads: true) }

    /// The maximum number of requests without a response; beyond it the connection is not tracked.
    static let exchangesMax = 1024
    /// The maximum number of bytes that wait for the response to a CONNECT or an upgrade; beyond it the connection is
    /// not tracked.
    static let bytesAwaitingSwitchMax = 64 << 10

    /// The number of bytes held: those not parsed yet, the sample of the request being read, and those that may not
    /// enter the link.
    var bytesKept: Int {
        requests.bytesKept + responses.bytesKept + (request?.sample.count ?? 0)
            + (responseSample?.count ?? 0) + bytesWaiting(.up) + bytesWaiting(.down)
            + (streams.isEmpty ? 0 : streams[0].bytesKept)
    }

    /// Returns the bytes that wait at an entry.
    func bytesWaiting(_ direction: Direction) -> Int {
        withheld[direction].count + unparsed[direction].count + (opening?[direction].readableBytes ?? 0)
            + (streams.isEmpty ? 0 : streams[0].bytesWaiting(direction))
    }

    /// Returns the next output.
    mutating func takeAction() -> Action? { actions.popFirst() }

    mutating func report(_ event: ExchangeEvent) { actions.append(.report(event)) }

    // MARK: Inputs

    /// Reports bytes read from a socket.
    ///
    /// - Parameter share: The bytes that may wait at the entry for the end of a message.
    mutating func received(
        _ bytes: ByteBuffer, _ direction: Direction, _ registry: inout ExchangeRegistry, at time: Instant,
        share: Int = .max
    ) {
        now = max(now, time)
        self.share = share
        if isEnded { return }
        if hold != nil || unparsed[direction].count > 0 { return unparsed[direction].append(bytes) }
        process(bytes, direction, &registry)
    }

    /// Reports the end of a sender's stream.
    mutating func ended(
        _ direction: Direction, _ end: StreamEnd, _ registry: inout ExchangeRegistry, at time: Instant
    ) {
        now = max(now, time)
        if mustEndWait(direction) || unparsed[direction].count > 0 {
            if waitingEnds[direction] == nil { waitingEnds[direction] = end }
            return
        }
        finish(direction, end, &registry)
    }

    /// Reports that time has passed: ends a hold that is due.
    mutating func advance(to time: Instant, _ registry: inout ExchangeRegistry) {
        now = max(now, time)
        if !streams.isEmpty {
            let now = now
            streams[0].advance(to: now, &registry)
            takeStreamActions()
            return finishWaiting(&registry)
        }
        if let hold, hold.deadline <= now { resume(&registry) }
        for direction in Direction.allCases where throttles[direction].first?.isWaiting == true {
            throttles[direction][0].isWaiting = false
            actions.append(.deliver(direction))
        }
    }

    /// Sets the timer to the next deadline, and returns it, unless the timer is not later.
    mutating func takeNewTimer() -> Instant? {
        guard let deadline = nextDeadline else { return nil }
        if let timer, timer <= deadline { return nil }
        timer = deadline
        return deadline
    }

    /// The time at which ``advance(to:_:)`` must be called next.
    var nextDeadline: Instant? {
        if !streams.isEmpty { return streams[0].nextDeadline }
        if let hold { return hold.deadline }
        var deadline: Instant?
        for direction in Direction.allCases {
            guard let throttle = throttles[direction].first, throttle.isWaiting else { continue }
            deadline = min(deadline ?? .never, throttle.nextWrite)
        }
        return deadline
    }

    /// Reports the end of the connection.
    mutating func connectionEnded() {
        if !streams.isEmpty {
            streams[0].connectionEnded()
            takeStreamActions()
        }
        for exchange in exchanges where !exchange.isDelivered {
            if let fault = exchange.fault {
                report(.faultMissed(exchange.id, rule: fault.rule, point: fault.point))
            }
            report(.interrupted(exchange.id))
        }
        exchanges = []
    }

    // MARK: Entries

    func canParse(_ direction: Direction) -> Bool {
        isTracking && hold == nil && !isEnded && discardsFrom[direction] == nil
    }

    mutating func process(_ bytes: ByteBuffer, _ direction: Direction, _ registry: inout ExchangeRegistry) {
        if isEnded || discardsFrom[direction] != nil { return }
        if opening != nil { return processOpening(bytes, direction, &registry) }
        if !streams.isEmpty { return processStreams(bytes, direction, &registry) }
        if isTracking, direction == .up { beginHandshake(with: bytes, &registry) }
        if !isTracking {
            entered[direction] += Int64(bytes.readableBytes)
            actions.append(.pass(bytes, direction))
            return readHandshake(bytes, direction, &registry)
        }
        withheld[direction].append(bytes)
        if direction == .up { requests.received(bytes) } else { responses.received(bytes) }
        parse(&registry)
        limitWithheld(&registry)
    }

    /// Parses what has been read, and passes on what may enter the link.
    mutating func parse(_ registry: inout ExchangeRegistry) {
        parseRequests(&registry)
        parseResponses(&registry)
        release(registry)
        reportDeliveredResponses()
        if faultCount > 0 { fireReached(&registry) }
        removeDelivered()
    }

    /// Ends a hold: bytes that wait at the exits leave, and those at the entries are processed.
    mutating func resume(_ registry: inout ExchangeRegistry) {
        hold = nil
        actions.append(.deliver(.up))
        actions.append(.deliver(.down))
        if discardsFrom.down == nil { pass(.down, to: messageEnd.down) }
        takeTurns()
        while hold == nil && !isEnded {
            parse(&registry)
            guard hold == nil else { return }
            if let piece = unparsed.up.takePiece(atMost: .max) {
                process(piece, .up, &registry)
            } else if let piece = unparsed.down.takePiece(atMost: .max) {
                process(piece, .down, &registry)
            } else {
                break
            }
        }
        finishWaiting(&registry)
    }

    /// Returns whether the end of a sender's stream must wait: for a hold, or for the decision on a request.
    private func mustEndWait(_ direction: Direction) -> Bool {
        hold != nil || (direction == .up && request?.isAwaitingDecision == true)
            || (!streams.isEmpty && streams[0].mustEndWait(direction))
    }

    /// Passes on the ends of streams that have waited.
    mutating func finishWaiting(_ registry: inout ExchangeRegistry) {
        for direction in Direction.allCases where !mustEndWait(direction) {
            guard let end = waitingEnds[direction] else { continue }
            waitingEnds[direction] = nil
            finish(direction, end, &registry)
        }
    }

    private mutating func finish(
        _ direction: Direction, _ end: StreamEnd, _ registry: inout ExchangeRegistry
    ) {
        if opening != nil { endOpening(isHTTP2: false, &registry) }
        if !streams.isEmpty {
            passIncompleteFrame(direction)
        } else if isTracking && !isEnded {
            if case .finished = end, direction == .down {
                responses.streamEnded()
                parse(&registry)
            }
            if hold == nil { releaseIncomplete(direction, &registry) }
        }
        if mustEndWait(direction) {
            waitingEnds[direction] = end
        } else {
            actions.append(.end(direction, end))
        }
    }

    /// Gives up withholding the message that is being read, which will not be complete.
    private mutating func releaseIncomplete(_ direction: Direction, _ registry: inout ExchangeRegistry) {
        if direction == .up {
            if request?.isWithheld == true { match(&registry) } else if request == nil { mayHeadPass = true }
        } else if let index = withheldResponse, withheld.down.count > 0 || exchanges[index].responseIsCut {
            if exchanges[index].responseIsCut { fire(index, &registry) } else { miss(index) }
        }
        release(registry)
    }

    /// Limits the bytes that wait for the end of a message to the stream's share.
    mutating func limitWithheld(_ registry: inout ExchangeRegistry) {
        if hold != nil { return }
        if withheld.up.count >= share { releaseIncomplete(.up, &registry) }
        if withheld.down.count >= share, let index = withheldResponse {
            if exchanges[index].fault?.action.discardsResponse == true {
                exchanges[index].responseIsCut = true
            } else {
                miss(index)
            }
            release(registry)
        }
    }

    /// Passes on the bytes that may enter the link.
    mutating func release(_ registry: ExchangeRegistry) {
        if hold != nil || isEnded { return }
        if discardsFrom.up != nil || request?.isDropped == true {
            drop(.up, to: discardsFrom.up == nil ? request?.end ?? .max : .max)
        } else if let request, request.isWithheld {
            pass(.up, to: request.start)
        } else if request == nil, isTracking, registry.withholdsRequests, !isAwaitingSwitch, !mayHeadPass {
            pass(.up, to: messageEnd.up)
        } else {
            pass(.up, to: .max)
        }
        if discardsFrom.down != nil {
            drop(.down, to: .max)
        } else if let index = withheldResponse {
            pass(.down, to: messageEnd.down)
            if exchanges[index].responseIsCut { drop(.down, to: .max) }
        } else if isTracking, let index = nextResponse, exchanges[index].isReplied {
            pass(.down, to: messageEnd.down)
            drop(.down, to: .max)
        } else {
            pass(.down, to: .max)
        }
    }

    /// Passes bytes into the link, up to an offset at the entry.
    mutating func pass(_ direction: Direction, to offset: Int64) {
        if direction == .down && hasClosed { return drop(.down, to: offset) }
        while consumed[direction] < offset,
            let piece = withheld[direction].takePiece(atMost: Int(clamping: offset - consumed[direction]))
        {
            consumed[direction] += Int64(piece.readableBytes)
            entered[direction] += Int64(piece.readableBytes)
            actions.append(.pass(piece, direction))
        }
    }

    /// Drops bytes at the entry, up to an offset.
    mutating func drop(_ direction: Direction, to offset: Int64) {
        while consumed[direction] < offset,
            let piece = withheld[direction].takePiece(atMost: Int(clamping: offset - consumed[direction]))
        {
            consumed[direction] += Int64(piece.readableBytes)
        }
    }

    /// Returns the offset at the exit of a byte at the entry that has not left ``withheld``, or has just left it.
    func exitOffset(_ offset: Int64, _ direction: Direction) -> Int64 {
        offset - consumed[direction] + entered[direction]
    }

    /// Stops tracking: all bytes pass unchanged, unless a reply has ended the stream to the client.
    mutating func stopTracking(_ reason: String, _ registry: inout ExchangeRegistry) {
        if let index = withheldResponse, exchanges[index].fault?.action.discardsResponse == true,
            exchanges[index].responseIsCut || consumed.down + Int64(withheld.down.count) > messageEnd.down
        {
            // The response has no end that the tracker can find: the bytes that the fault withholds pass, and the fault fires.
            pass(.down, to: messageEnd.down)
            fire(index, &registry)
        }
        for index in exchanges.indices where exchanges[index].fault != nil { miss(index) }
        if hasClosed {
            stopReadingRequests()
            discardsFrom.down = entered.down
        }
        if !isEnded, discardsFrom.down == nil, exchanges.contains(where: { $0.isReplied }) {
            // The discarded response has an unknown end, so the connection cannot be used again.
            end(.abort(.beforeResponse, nil), at: .beforeResponse)
        }
        isTracking = false
        exchanges = []
        (requestCursor, responseCursor, entryCursor, deliveryCursor, turnCount) = (0, 0, 0, 0, 0)
        throttles = PerDirection(up: [], down: [])
        request = nil
        responseSample = nil
        requests = ExchangeTracker.requestParser
        responses = ExchangeTracker.responseParser
        report(.notHTTP(reason))
        release(registry)
    }
}
