internal import HTTPTypes
internal import HTTPWire
internal import NIOCore
internal import Synchronization

/// The channel handler of one accepted connection: it reads a request, starts its handler task, writes the response,
/// and only then reads the next request.
///
/// All of it runs on the channel's event loop. Handler tasks reach it through a ``ConnectionHandle``.
///
///     idle --first byte--> head --complete--> handling --response written--> idle
///       \                    \                     \
///        +--------------------+---------------------+--> lingering --> closed
final class HTTPServerConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    enum Phase {
        /// No byte of the next request has arrived.
        case idle
        /// Part of a request head has arrived.
        case head
        case handling
        /// The last response is written; further input is dropped.
        case lingering
        case closed
    }

    enum Body {
        /// The handler has not asked for the body.
        case unread
        case reading(BodyRead)
        /// The whole body has been taken from the input.
        case done
        /// Part of the body was not read, so the connection cannot be reused.
        case unconsumed
    }

    /// A read of a request body in progress.
    struct BodyRead {
        let bytesMax: Int
        let continuation: CheckedContinuation<Result<[UInt8], HTTPServer.BodyError>, Never>
        var bytes: [UInt8] = []
        /// The number of bytes at the start of the current rate window.
        var bytesBeforeWindow = 0
    }

    let limits: HTTPServer.Limits
    private let defaultHeaders: HTTPFields
    let slots: ConnectionSlots
    let budget: BodyBudget
    let respond: HTTPServer.Handler
    let slot: ConnectionSlot
    let channel: any Channel

    var parser: HTTPParser
    var phase = Phase.idle
    /// Whether the connection has not yet carried a response.
    var isFirstRequest = true
    /// Whether the client has closed its side (FIN).
    var inputHasEnded = false
    private var bytesDropped = 0
    /// The one pending deadline: of the head, the body, the write, the idle time or the linger time.
    private var deadline: Scheduled<Void>?

    /// The end of the pause before a pipelined request; `nil` without a pause.
    var resumption: Scheduled<Void>?

    /// The request being handled.
    var request: ValidatedRequest?
    var body = Body.done
    /// The task of the request being handled.
    var task: Task<Void, Never>?
    /// The budget share of the request being handled.
    var reservation: BodyReservation?

    var pendingWrites = 0
    /// Whether the connection stays open after the response being written.
    var keepsConnection = false

    init(
        _ channel: any Channel, _ limits: HTTPServer.Limits, _ defaultHeaders: HTTPFields, _ slots: ConnectionSlots,
        _ budget: BodyBudget, _ respond: @escaping HTTPServer.Handler
    ) {
        self.channel = channel
        self.limits = limits
        self.defaultHeaders = defaultHeaders
        self.slots = slots
        self.budget = budget
        self.respond = respond
        slot = ConnectionSlot(channel)
        var wire = HTTPLimits.standard
        wire.startLine = limits.headerBytesMax / 2
        wire.headers = limits.headerBytesMax - wire.startLine
        wire.headerCount = limits.headerLinesMax
        parser = HTTPParser(.requests, limits: wire)
    }

    // MARK: Channel events

    func channelActive(context: ChannelHandlerContext) {
        guard slots.admit(slot) else {
            phase = .closed
            let channel = channel
            channel.writeAndFlush(errorResponse(.serviceUnavailable)).whenComplete { _ in channel.close(promise: nil) }
            return
        }
        setDeadline(seconds: limits.headSecondsMax)
        context.read()
    }

    func channelInactive(context: ChannelHandlerContext) {
        slots.remove(slot)
        cancelDeadline()
        resumption?.cancel()
        phase = .closed
        failBodyRead(.malformed("the connection was closed"))
        task?.cancel()
        // The task keeps its reservation until it ends, because it may still hold the body.
        reservation = nil
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        switch phase {
        case .closed: return
        case .lingering:
            bytesDropped += bytes.readableBytes
            if bytesDropped > limits.lingerBytesMax { channel.abort() }
            return
        case .handling, .idle, .head: break
        }
        parser.received(bytes)
        if parser.bytesKept > inputBytesMax, !isReadingBody { return channel.abort() }
        if resumption == nil { processInput() }
    }

    /// The maximum input that the parser buffers while no body is being read. Back-pressure bounds it to a head and one
    /// read, except after a FIN: NIO then reads everything that the kernel holds.
    private var inputBytesMax: Int { limits.headerBytesMax + 4 * limits.readBytesMax }

    var isReadingBody: Bool { if case .reading = body { true } else { false } }

    func channelReadComplete(context: ChannelHandlerContext) { readIfNeeded() }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard let event = event as? ChannelEvent, event == .inputClosed else {
            return context.fireUserInboundEventTriggered(event)
        }
        inputHasEnded = true
        parser.streamEnded()
        if resumption != nil { return }
        switch phase {
        // A client that closes within a head or between two requests expects no response.
        case .idle, .head, .lingering: channel.close(promise: nil)
        case .handling: processInput()
        case .closed: break
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { channel.close(promise: nil) }

    /// Reads from the socket unless back-pressure applies.
    func readIfNeeded() {
        if resumption != nil { return }
        switch phase {
        case .idle, .head, .lingering: channel.read()
        case .handling: if case .reading = body { channel.read() }
        case .closed: break
        }
    }

    // MARK: Deadlines

    func setDeadline(seconds: Double) {
        cancelDeadline()
        let connection = NIOLoopBound(self, eventLoop: channel.eventLoop)
        deadline = channel.eventLoop.scheduleTask(in: .nanoseconds(Int64(seconds * 1e9))) {
            connection.value.deadlineExpired()
        }
    }

    func cancelDeadline() { deadline?.cancel() }

    private func deadlineExpired() {
        switch phase {
        case .idle: channel.close(promise: nil)
        case .head: reject(.requestTimeout)
        case .handling:
            guard case .reading(let read) = body else { return channel.abort() }
            let least = limits.bodyWindowSeconds * Double(limits.bodyBytesPerSecondMin)
            if Double(read.bytes.count - read.bytesBeforeWindow) >= least {
                startBodyWindow()
            } else {
                failBodyRead(.tooSlow)
            }
        // The kernel may still hold part of the response; a RST would truncate it.
        case .lingering: channel.close(promise: nil)
        case .closed: break
        }
    }

    // MARK: Closing

    /// Closes the connection without a response.
    func close() { channel.close(promise: nil) }

    /// Aborts the connection (RST), so that a truncated response cannot pass for a complete one.
    func abort() { channel.abort() }

    // MARK: Responses of the server itself

    /// Sends a response without calling the handler, and closes the connection.
    func reject(_ status: HTTPResponse.Status) {
        phase = .handling
        keepsConnection = false
        write(errorResponse(status), isLast: true, nil)
    }

    private func errorResponse(_ status: HTTPResponse.Status) -> ByteBuffer {
        var buffer = ByteBuffer()
        var response = HTTPResponse(status: status)
        addDefaultHeaders(to: &response)
        ResponseEncoder.write(response, .length(0), connection: "close", into: &buffer)
        return buffer
    }

    func addDefaultHeaders(to response: inout HTTPResponse) {
        for field in defaultHeaders where !response.headerFields.contains(field.name) {
            response.headerFields.append(field)
        }
    }
}
