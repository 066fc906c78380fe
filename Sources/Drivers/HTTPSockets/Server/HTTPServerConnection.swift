internal import Determinism
internal import HTTPTypes
internal import NIOCore
internal import Synchronization
internal import Wire

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The channel handler of one accepted connection: it drives an ``HTTPServerMachine`` and runs the handler task of each
/// request.
///
/// All of it runs on the channel's event loop. Handler tasks reach it through a ``ConnectionHandle``.
final class HTTPServerConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let limits: HTTPServer.Limits
    private let connections: ConnectionTable
    private let budget: BodyBudget
    private let respond: HTTPServer.Handler
    private let slot: ConnectionSlot
    private let channel: any Channel

    private var machine: HTTPServerMachine
    private var isRunning = false
    private var timer: (deadline: Instant, task: Scheduled<Void>)?

    /// The task of the request being handled.
    private var task: Task<Void, Never>?
    /// The budget share of the request being handled.
    private var reservation: BodyReservation?
    private var bodyReader: CheckedContinuation<Result<[UInt8], HTTPServer.BodyError>, Never>?
    private var partProducer: CheckedContinuation<Bool, Never>?

    init(
        _ channel: any Channel, _ limits: HTTPServer.Limits, _ defaultHeaders: HTTPFields,
        _ connections: ConnectionTable, _ budget: BodyBudget, _ respond: @escaping HTTPServer.Handler
    ) {
        self.channel = channel
        self.limits = limits
        self.connections = connections
        self.budget = budget
        self.respond = respond
        slot = ConnectionSlot(channel)
        machine = HTTPServerMachine(limits: limits.connection, defaultHeaders: defaultHeaders, at: Self.now)
    }

    private static var now: Instant { Instant(Nanoseconds(Int64(clamping: NIODeadline.now().uptimeNanoseconds))) }

    // MARK: Channel events

    func channelActive(context: ChannelHandlerContext) {
        if connections.admit(slot) { run() } else { run { $0.refuse(at: $1) } }
    }

    func channelInactive(context: ChannelHandlerContext) {
        connections.remove(slot)
        run { $0.connectionClosed(at: $1) }
        resumeProducer(false)
        task?.cancel()
        // The task keeps its reservation until it ends, because it may still hold the body.
        reservation = nil
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        run { $0.received(bytes, at: $1) }
    }

    func channelReadComplete(context: ChannelHandlerContext) { readIfNeeded() }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard let event = event as? ChannelEvent, event == .inputClosed else {
            return context.fireUserInboundEventTriggered(event)
        }
        run { $0.inputEnded(at: $1) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { channel.close(promise: nil) }

    // MARK: The handler's calls

    func readBody(bytesMax: Int?, _ continuation: CheckedContinuation<Result<[UInt8], HTTPServer.BodyError>, Never>) {
        precondition(bodyReader == nil, "a request body can be read once")
        bodyReader = continuation
        run { $0.readBody(bytesMax: bytesMax, at: $1) }
    }

    func send(_ head: HTTPResponse, _ body: HTTPServerResponseBody) { run { $0.respond(head, body, at: $1) } }

    /// Sends the head of a response with parts. The continuation returns whether the first part is wanted.
    func beginParts(
        _ head: HTTPResponse, _ body: HTTPServerResponseBody, _ continuation: CheckedContinuation<Bool, Never>
    ) {
        produce(continuation) { $0.respond(head, body, at: $1) }
    }

    /// Sends a part. The continuation returns whether the next part is wanted.
    func sendPart(_ part: String, _ continuation: CheckedContinuation<Bool, Never>) {
        produce(continuation) { $0.sendPart(part, at: $1) }
    }

    /// Sends a part of a body of known length. The continuation returns whether the next part is wanted.
    func sendBytes(_ part: [UInt8], _ continuation: CheckedContinuation<Bool, Never>) {
        produce(continuation) { $0.sendBytes(part, at: $1) }
    }

    func endParts() { run { $0.endParts(at: $1) } }

    func close() { run { $0.close(at: $1) } }

    func abort() { run { $0.abort(at: $1) } }

    // MARK: The machine

    /// Passes an input to the machine and executes its actions.
    private func run(_ input: (inout HTTPServerMachine, Instant) -> Void = { _, _ in }) {
        machine.unixTime = Int64(time(nil))
        input(&machine, Self.now)
        // A write may complete at once; the outer call then goes on with the next action.
        if isRunning { return }
        isRunning = true
        while let action = machine.takeAction() { execute(action) }
        isRunning = false
        updateTimer()
        readIfNeeded()
    }

    /// Passes an input to the machine; the continuation returns when the next part is wanted, or will never be.
    ///
    /// - Parameter input: Returns whether the machine will ask for a part.
    private func produce(
        _ continuation: CheckedContinuation<Bool, Never>, _ input: (inout HTTPServerMachine, Instant) -> Bool
    ) {
        partProducer = continuation
        var isWanted = false
        run { machine, now in isWanted = input(&machine, now) }
        if !isWanted { resumeProducer(false) }
    }

    private func resumeProducer(_ isWanted: Bool) {
        let continuation = partProducer
        partProducer = nil
        continuation?.resume(returning: isWanted)
    }

    private func execute(_ action: HTTPServerAction) {
        switch action {
        case .request(let request): handle(request)
        case .bodyGrew(let count):
            if reservation?.grow(by: count) != true { machine.failBody(.budgetExceeded, at: Self.now) }
        case .body(let result):
            let continuation = bodyReader
            bodyReader = nil
            continuation?.resume(returning: result)
        case .write(let bytes): write(bytes)
        case .producePart: resumeProducer(true)
        case .responseWritten: finishExchange()
        case .closeOutput:
            slot.isAuthenticated.store(false, ordering: .relaxed)
            channel.close(mode: .output, promise: nil)
        case .close: channel.close(promise: nil)
        case .abort: channel.abort()
        }
    }

    private func handle(_ request: HTTPServerRequest) {
        slot.recordProgress()
        slot.isBusy.store(true, ordering: .relaxed)
        let handle = ConnectionHandle(self, slot, channel.eventLoop)
        let exchange = HTTPServer.Exchange(request: request, limits: limits.connection, connection: handle)
        let respond = respond
        let reservation = BodyReservation(budget)
        self.reservation = reservation
        // The task ends by itself, or is cancelled when the connection closes.
        task = Task {
            let response = await respond(request.request, exchange)
            await handle.send(response)
            withExtendedLifetime(reservation) {}
        }
    }

    private func write(_ bytes: ByteBuffer) {
        let written = channel.eventLoop.makePromise(of: Void.self)
        let connection = NIOLoopBound(self, eventLoop: channel.eventLoop)
        let count = bytes.readableBytes
        written.futureResult.whenSuccess {
            connection.value.slot.recordProgress()
            connection.value.run { $0.written(count, at: $1) }
        }
        channel.writeAndFlush(bytes, promise: written)
    }

    private func finishExchange() {
        task = nil
        reservation = nil
        slot.isBusy.store(false, ordering: .relaxed)
        guard machine.hasBufferedInput, !slot.isAuthenticated.load(ordering: .relaxed) else { return }
        let pause = limits.pipeliningPause(connections: connections.count)
        if pause >= .milliseconds(1) { machine.pauseInput(until: Self.now + pause) }
    }

    // MARK: Reading and time

    /// Reads from the socket unless back-pressure applies.
    private func readIfNeeded() { if machine.wantsInput { channel.read() } }

    /// Schedules the timer for the machine's deadline. A pending timer that fires before it is kept.
    private func updateTimer() {
        guard let deadline = machine.nextDeadline else {
            if machine.isClosed { cancelTimer() }
            return
        }
        if let timer, timer.deadline <= deadline { return }
        cancelTimer()
        let connection = NIOLoopBound(self, eventLoop: channel.eventLoop)
        let time = NIODeadline.uptimeNanoseconds(UInt64(max(0, deadline.sinceStart.count)))
        let task = channel.eventLoop.scheduleTask(deadline: time) {
            connection.value.timer = nil
            connection.value.run { $0.advance(to: $1) }
        }
        timer = (deadline, task)
    }

    private func cancelTimer() {
        timer?.task.cancel()
        timer = nil
    }
}
