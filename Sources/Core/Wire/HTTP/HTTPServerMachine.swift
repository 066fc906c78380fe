public import Determinism
public import HTTPTypes
public import NIOCore

/// The server side of one HTTP/1.1 connection: it reads a request, passes it to its driver, writes the response, and
/// only then reads the next request.
///
/// A state machine: received bytes, written bytes, the handler's decisions and the time are its inputs;
/// ``takeAction()`` returns actions. After each input the driver takes all actions, and then uses ``nextDeadline`` and
/// ``wantsInput``. Input is parsed while actions are taken.
///
///     idle --first byte--> head --complete--> handling --response written--> idle
///       \                    \                     \
///        +--------------------+---------------------+--> lingering --> closed
public struct HTTPServerMachine: Sendable {
    enum Phase: Sendable {
        /// No byte of the next request has arrived.
        case idle
        /// Part of a request head has arrived.
        case head
        case handling
        /// The last response is written; further input is dropped.
        case lingering
        /// The connection was not admitted; its only response is being written.
        case refused
        case closed
    }

    enum Body: Sendable {
        /// The handler has not asked for the body.
        case unread
        case reading(bytesMax: Int)
        /// The whole body has been taken from the input.
        case done
        /// Part of the body was not read, so the connection cannot be reused.
        case unconsumed
    }

    /// What follows the bytes that have been passed to the driver.
    enum Output: Sendable {
        /// There is no response yet.
        case none
        /// The rest of a text.
        case text(Substring.UTF8View)
        /// Parts, which the handler produces.
        case parts(HTTPResponseFraming)
        /// Parts with this number of bytes in total.
        case bytes(left: Int)
        /// Nothing: the response is complete.
        case complete
    }

    /// The limits.
    public let limits: HTTPServerLimits
    let defaultHeaders: HTTPFields
    /// The wall-clock time for `Date`, in seconds since 1970. The driver keeps it up to date; `nil` omits the field, as
    /// RFC 9110 requires from a server without a clock.
    public var unixTime: Int64?

    var parser: HTTPParser
    var phase = Phase.idle
    var actions: [HTTPServerAction] = []
    /// The time of the last input.
    var now: Instant
    /// The deadline of the head, the body's window, the write, the idle time or the linger time.
    var deadline: Instant?
    /// The end of the pause before a pipelined request; `nil` without a pause.
    var resumption: Instant?
    /// Whether the connection has not yet carried a response.
    var isFirstRequest = true
    /// Whether the client has closed its side (FIN).
    var inputHasEnded = false
    var bytesDropped = 0

    /// The request being handled.
    var request: HTTPServerRequest?
    var body = Body.done
    var bodyBytes: [UInt8] = []
    /// The number of bytes of the body at the start of the current rate window.
    var bodyBytesBeforeWindow = 0

    var output = Output.none
    /// The number of bytes passed to the driver and not yet reported as written.
    var bytesPending = 0
    /// Whether the connection stays open after the response being written.
    var keepsConnection = false

    /// The maximum size of one write of a text. Each write has its own deadline.
    static let writeBytesMax = 64 << 10

    /// Creates the machine of a connection that has just been accepted.
    ///
    /// - Parameter defaultHeaders: Header fields added to every response that lacks them, including responses to
    ///   malformed requests.
    public init(limits: HTTPServerLimits = HTTPServerLimits(), defaultHeaders: HTTPFields = [:], at now: Instant) {
        self.limits = limits
        self.defaultHeaders = defaultHeaders
        self.now = now
        parser = HTTPParser(.requests, limits: limits.parserLimits)
        deadline = now + HTTPServerLimits.span(limits.headSecondsMax)
    }

    // MARK: Outputs

    /// Takes the next action; `nil` if another input is needed.
    public mutating func takeAction() -> HTTPServerAction? {
        if actions.isEmpty { processInput() }
        return actions.isEmpty ? nil : actions.removeFirst()
    }

    /// The time at which ``advance(to:)`` must be called next.
    public var nextDeadline: Instant? { [deadline, resumption].compactMap(\.self).min() }

    /// Whether the driver reads from the connection. It does not while back-pressure applies.
    public var wantsInput: Bool {
        if resumption != nil { return false }
        switch phase {
        case .idle, .head, .lingering: return true
        case .handling: return isReadingBody
        case .refused, .closed: return false
        }
    }

    /// Whether a request is being handled or its response is being written.
    public var isHandling: Bool { phase == .handling }

    /// Whether the connection is closed: no further write or close follows.
    public var isClosed: Bool { phase == .closed }

    /// Whether input after the current request has arrived.
    public var hasBufferedInput: Bool { parser.isInsideMessage }

    var isReadingBody: Bool { if case .reading = body { true } else { false } }

    // MARK: The connection

    /// Refuses the connection: the only response is 503, and input is ignored.
    public mutating func refuse(at time: Instant) {
        record(time)
        phase = .refused
        deadline = nil
        write(errorResponse(.serviceUnavailable))
    }

    /// Reports received bytes, at most ``HTTPServerLimits/readBytesMax`` at a time.
    public mutating func received(_ bytes: ByteBuffer, at time: Instant) {
        record(time)
        switch phase {
        case .refused, .closed: return
        case .lingering:
            bytesDropped += bytes.readableBytes
            if bytesDropped > limits.lingerBytesMax { end(.abort) }
        case .idle, .head, .handling: parser.received(bytes)
        }
    }

    /// Reports that the client has closed its side (FIN). It still gets the responses to the requests it has sent.
    public mutating func inputEnded(at time: Instant) {
        record(time)
        inputHasEnded = true
        parser.streamEnded()
    }

    /// Reports that the connection is closed in both directions, by either side.
    public mutating func connectionClosed(at time: Instant) {
        record(time)
        // Nothing can be written any more, but a handler may still wait for its body.
        actions.removeAll { if case .body = $0 { false } else { true } }
        endBodyRead()
        phase = .closed
        deadline = nil
        resumption = nil
    }

    /// Runs everything that is due.
    public mutating func advance(to time: Instant) {
        record(time)
        if let resumption, resumption <= now { self.resumption = nil }
        guard let deadline, deadline <= now else { return }
        self.deadline = nil
        switch phase {
        // A client that has sent nothing expects no response.
        case .idle: end(.close)
        case .head: reject(.requestTimeout)
        case .handling:
            guard isReadingBody else { return end(.abort) }
            if limits.isFastEnough(bytesInWindow: bodyBytes.count - bodyBytesBeforeWindow) {
                startBodyWindow()
            } else {
                failBodyRead(.tooSlow)
            }
        // The kernel may still hold part of the response; a RST would truncate it.
        case .lingering: end(.close)
        case .refused, .closed: break
        }
    }

    /// Delays the next request until a time. A driver that limits pipelining calls this after
    /// ``HTTPServerAction/responseWritten``.
    public mutating func pauseInput(until time: Instant) {
        if phase == .idle { resumption = time }
    }

    /// Closes the connection without a response.
    public mutating func close(at time: Instant) {
        record(time)
        end(.close)
    }

    /// Aborts the connection with a RST, so that a truncated response cannot pass for a complete one.
    public mutating func abort(at time: Instant) {
        record(time)
        end(.abort)
    }

    // MARK: Internals

    /// Records the time of an input. Time does not go back.
    mutating func record(_ time: Instant) { now = max(now, time) }

    mutating func setDeadline(seconds: Double) { deadline = now + HTTPServerLimits.span(seconds) }

    /// Closes or aborts the connection.
    mutating func end(_ action: HTTPServerAction) {
        guard phase != .closed else { return }
        endBodyRead()
        phase = .closed
        deadline = nil
        resumption = nil
        actions.append(action)
    }
}
