internal import HTTPTypes
internal import HTTPWire
internal import NIOCore
internal import Synchronization

/// One accepted connection: reads a request, has it handled, writes its response, and only then reads the next.
///
/// Everything runs on the channel's loop; handlers reach it through a ``ConnectionHandle``.
///
///     idle --first byte--> head --whole--> handling --response written--> idle
///       \                    \                  \
///        +--------------------+------------------+--> lingering --> closed
final class HostConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer
    typealias Respond = @Sendable (HTTPRequest, HTTPServer.Exchange) async -> HTTPServer.Answer

    private enum Phase {
        /// Nothing of a request has come.
        case idle
        /// A part of its head has come.
        case head
        case handling
        /// The last response is written; what still comes is dropped.
        case lingering
        case closed
    }

    private let limits: HTTPServer.Limits
    private let fields: HTTPFields
    private let slots: ConnectionSlots
    private let budget: BodyBudget
    private let respond: Respond
    private let slot: ConnectionSlot
    private let channel: any Channel

    private var parser: HTTPParser
    private var phase = Phase.idle
    /// Whether no request has been answered yet.
    private var isFresh = true
    private var inputHasEnded = false
    private var bytesDropped = 0
    /// The only deadline there is at a time: of the head, the body or the piece that is written.
    private var deadline: Scheduled<Void>?

    /// The end of a pause before a request that was sent before its turn.
    private var resumption: Scheduled<Void>?

    /// The request that is being handled.
    private var head: CheckedHead?
    private var body = Body.done
    private var task: Task<Void, Never>?

    private enum Body {
        /// Not asked for yet.
        case unread
        case reading(Reading)
        /// Read to its end.
        case done
        /// Given up before its end: the connection cannot be used again.
        case abandoned
    }

    private struct Reading {
        let bytesMax: Int
        let continuation: CheckedContinuation<Result<[UInt8], HTTPServer.BodyFailure>, Never>
        var bytes: [UInt8] = []
        /// How many had come when the window began.
        var bytesBefore = 0
    }

    /// The budget claim of the body of the request that is being handled.
    private var claim: BodyClaim?

    init(
        _ channel: any Channel, _ limits: HTTPServer.Limits, _ fields: HTTPFields, _ slots: ConnectionSlots,
        _ budget: BodyBudget, _ respond: @escaping Respond
    ) {
        self.channel = channel
        self.limits = limits
        self.fields = fields
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

    // MARK: The channel

    func channelActive(context: ChannelHandlerContext) {
        guard slots.admit(slot) else {
            phase = .closed
            let channel = channel
            channel.writeAndFlush(refusal(.serviceUnavailable)).whenComplete { _ in channel.close(promise: nil) }
            return
        }
        setDeadline(seconds: limits.headSecondsMax)
        context.read()
    }

    func channelInactive(context: ChannelHandlerContext) {
        slots.remove(slot)
        deadline?.cancel()
        resumption?.cancel()
        phase = .closed
        fail(.broken("the connection was closed"))
        task?.cancel()
        // The task may still hold the body, and keeps the claim until it ends.
        claim = nil
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
        if parser.bytesKept > keptBytesMax, !isReadingBody { return channel.abort() }
        if resumption == nil { advance() }
    }

    /// Bytes that the parser may keep while no body is being read. After a FIN, NIO reads all that the kernel has, whatever
    /// back-pressure there is; without one, a head and one more read are kept at most.
    private var keptBytesMax: Int { limits.headerBytesMax + 4 * limits.readBytesMax }

    private var isReadingBody: Bool { if case .reading = body { true } else { false } }

    func channelReadComplete(context: ChannelHandlerContext) { readIfWanted() }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard let event = event as? ChannelEvent, event == .inputClosed else {
            return context.fireUserInboundEventTriggered(event)
        }
        inputHasEnded = true
        parser.streamEnded()
        if resumption != nil { return }
        switch phase {
        // Whoever has closed in the middle of a head, or between two requests, waits for nothing.
        case .idle, .head, .lingering: channel.close(promise: nil)
        case .handling: advance()
        case .closed: break
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { channel.close(promise: nil) }

    private func readIfWanted() {
        if resumption != nil { return }
        switch phase {
        case .idle, .head, .lingering: channel.read()
        case .handling: if case .reading = body { channel.read() }
        case .closed: break
        }
    }

    // MARK: Reading

    /// Takes what the parser has, as far as it is wanted.
    private func advance() {
        do throws(HTTPError) {
            while true {
                switch phase {
                case .idle, .head:
                    guard let part = try parser.takePart() else {
                        if inputHasEnded { return channel.close(promise: nil) }
                        if phase == .idle && parser.isInsideMessage {
                            phase = .head
                            // From the start of a connection the same deadline holds.
                            if !isFresh { setDeadline(seconds: limits.headSecondsMax) }
                        }
                        return
                    }
                    if case .requestHead(let head, _) = part { begin(head) }
                case .handling:
                    guard case .reading(var reading) = body else { return }
                    guard let part = try parser.takePart() else { return }
                    switch part {
                    case .body(let piece, _):
                        guard reading.bytes.count + piece.readableBytes <= reading.bytesMax else {
                            fail(.tooLarge)
                            return
                        }
                        guard claim?.take(piece.readableBytes) == true else {
                            fail(.tooManyAtOnce)
                            return
                        }
                        // So that the bytes have one owner and are not copied.
                        body = .abandoned
                        reading.bytes += piece.readableBytesView
                        body = .reading(reading)
                    case .end:
                        deadline?.cancel()
                        body = .done
                        reading.continuation.resume(returning: .success(reading.bytes))
                    default: break
                    }
                case .lingering, .closed: return
                }
            }
        } catch {
            if phase == .handling {
                fail(.broken("\(error)"))
            } else {
                refuse(CheckedHead.status(of: error))
            }
        }
    }

    /// Has a request handled.
    private func begin(_ head: HTTPRequestHead) {
        deadline?.cancel()
        slot.recordProgress()
        slot.isBusy.store(true, ordering: .relaxed)
        phase = .handling
        body = .unread
        let declared: Int?
        switch parser.framing {
        case .length(let length): declared = Int(clamping: length)
        case .chunked: declared = nil
        case .none, .untilClose: declared = 0
        }
        do throws(CheckedHead.Refusal) {
            let checked = try CheckedHead(head, parser.framing, nonASCIIBytesMax: limits.nonASCIIBytesMax)
            if declared == 0 { drainBody() }
            self.head = checked
            let handle = ConnectionHandle(self, slot, channel.eventLoop)
            let exchange = HTTPServer.Exchange(declaredBodyBytes: declared, limits: limits, connection: handle)
            let respond = respond
            let limits = limits
            let claim = BodyClaim(budget)
            self.claim = claim
            // Ends by itself, or is cancelled when the connection ends.
            task = Task {
                let answer = await respond(checked.request, exchange)
                await handle.deliver(answer, to: checked, limits)
                withExtendedLifetime(claim) {}
            }
        } catch {
            refuse(error.status)
        }
    }

    /// Takes what has come of the body without waiting for more.
    private func drainBody() {
        guard case .unread = body else { return }
        body = .abandoned
        while let part = try? parser.takePart() {
            if case .end = part {
                body = .done
                return
            }
        }
    }

    func readBody(
        bytesMax: Int, _ continuation: CheckedContinuation<Result<[UInt8], HTTPServer.BodyFailure>, Never>
    ) {
        guard phase == .handling, case .unread = body else {
            continuation.resume(returning: .failure(.broken("the body is not there any more")))
            return
        }
        body = .reading(Reading(bytesMax: bytesMax, continuation: continuation))
        if head?.expectsContinue == true, !inputHasEnded {
            channel.writeAndFlush(ByteBuffer(string: "HTTP/1.1 100 Continue\r\n\r\n"), promise: nil)
        }
        startBodyWindow()
        advance()
        readIfWanted()
    }

    /// Expects as many bytes within the next window as the least rate makes.
    private func startBodyWindow() {
        guard case .reading(var reading) = body else { return }
        reading.bytesBefore = reading.bytes.count
        body = .reading(reading)
        setDeadline(seconds: limits.bodyWindowSeconds)
    }

    private func fail(_ failure: HTTPServer.BodyFailure) {
        guard case .reading(let reading) = body else { return }
        deadline?.cancel()
        body = .abandoned
        reading.continuation.resume(returning: .failure(failure))
    }

    // MARK: Deadlines

    private func setDeadline(seconds: Double) {
        deadline?.cancel()
        let connection = NIOLoopBound(self, eventLoop: channel.eventLoop)
        deadline = channel.eventLoop.scheduleTask(in: .nanoseconds(Int64(seconds * 1e9))) {
            connection.value.deadlinePassed()
        }
    }

    private func deadlinePassed() {
        switch phase {
        case .idle: channel.close(promise: nil)
        case .head: refuse(.requestTimeout)
        case .handling:
            guard case .reading(let reading) = body else { return channel.abort() }
            let least = limits.bodyWindowSeconds * Double(limits.bodyBytesPerSecondMin)
            if Double(reading.bytes.count - reading.bytesBefore) >= least {
                startBodyWindow()
            } else {
                fail(.tooSlow)
            }
        // A slow reader may not have taken the whole response from the kernel yet; a RST would truncate it.
        case .lingering: channel.close(promise: nil)
        case .closed: break
        }
    }

    // MARK: Writing

    /// Answers what is not for a handler, and closes.
    private func refuse(_ status: HTTPResponse.Status) {
        phase = .handling
        keepsConnection = false
        write(refusal(status), isLast: true, nil)
    }

    private func refusal(_ status: HTTPResponse.Status) -> ByteBuffer {
        var buffer = ByteBuffer()
        var response = HTTPResponse(status: status)
        addFields(to: &response)
        ResponseEncoder.write(response, .length(0), connection: "close", into: &buffer)
        return buffer
    }

    private func addFields(to response: inout HTTPResponse) {
        for field in fields where !response.headerFields.contains(field.name) { response.headerFields.append(field) }
    }

    /// Says how a response is framed, and whether the connection is kept after it; `nil` if it is closed already.
    func frame(_ response: inout HTTPResponse, length: Int?, for head: CheckedHead) -> (ResponseFraming, String?)? {
        guard phase == .handling else { return nil }
        addFields(to: &response)
        drainBody()
        let framing = ResponseFraming(
            length: length, status: response.status.code, isHead: head.request.method == .head,
            takesChunks: head.takesChunks)
        // Whoever has closed its side may still wait for answers to requests that came before.
        var isKept = head.keepsAlive && (!inputHasEnded || parser.isInsideMessage) && framing != .close
        if case .abandoned = body { isKept = false }
        keepsConnection = isKept
        return (framing, isKept ? (head.saysKeepAlive ? "keep-alive" : nil) : "close")
    }

    private var writesPending = 0

    /// Whether the response that is being written leaves the connection open.
    private var keepsConnection = false

    /// Writes bytes of a response; too slow a reader is cut off.
    func write(_ bytes: ByteBuffer, isLast: Bool, _ continuation: CheckedContinuation<Bool, Never>?) {
        guard phase == .handling else {
            continuation?.resume(returning: false)
            return
        }
        let seconds = Double(bytes.readableBytes) / Double(max(1, limits.readersBytesPerSecondMin))
        setDeadline(seconds: limits.readersPauseSecondsMax + seconds)
        writesPending += 1
        let written = channel.eventLoop.makePromise(of: Void.self)
        let connection = NIOLoopBound(self, eventLoop: channel.eventLoop)
        written.futureResult.whenComplete { result in
            if case .success = result { connection.value.hasWritten(isLast: isLast) }
            switch result {
            case .success: continuation?.resume(returning: true)
            case .failure: continuation?.resume(returning: false)
            }
        }
        channel.writeAndFlush(bytes, promise: written)
    }

    private func hasWritten(isLast: Bool) {
        writesPending -= 1
        guard phase == .handling else { return }
        if writesPending == 0 { deadline?.cancel() }
        slot.recordProgress()
        if isLast { finish() }
    }

    /// The response has been written: on to the next request.
    private func finish() {
        task = nil
        head = nil
        claim = nil
        guard keepsConnection else { return linger() }
        slot.isBusy.store(false, ordering: .relaxed)
        isFresh = false
        phase = .idle
        setDeadline(seconds: limits.idleSecondsMax)
        guard parser.isInsideMessage, !slot.isAuthenticated.load(ordering: .relaxed) else { return resume() }
        let pause = TimeAmount.nanoseconds(
            Int64(slots.count) * 1_000_000_000 / Int64(max(1, limits.pipelinedPerSecondMax)))
        if pause < .milliseconds(1) { return resume() }
        let connection = NIOLoopBound(self, eventLoop: channel.eventLoop)
        resumption = channel.eventLoop.scheduleTask(in: pause) { connection.value.resume() }
    }

    private func resume() {
        resumption = nil
        advance()
        readIfWanted()
    }

    /// Ends the connection such that the client sees the last response: a close while it still sends would be a reset.
    private func linger() {
        fail(.broken("the connection is closed"))
        guard phase != .closed else { return }
        phase = .lingering
        slot.isBusy.store(false, ordering: .relaxed)
        slot.isAuthenticated.store(false, ordering: .relaxed)
        guard !inputHasEnded else { return channel.close(promise: nil) }
        setDeadline(seconds: limits.lingerSecondsMax)
        channel.close(mode: .output, promise: nil)
        readIfWanted()
    }

    /// Closes without an answer.
    func cut() { channel.close(promise: nil) }

    /// Closes by RST, so that the part of a response that was written does not look whole.
    func abort() { channel.abort() }
}

/// A connection as the tasks of its handlers reach it.
struct ConnectionHandle: Sendable {
    private let connection: NIOLoopBound<HostConnection>
    private let loop: any EventLoop
    let slot: ConnectionSlot

    init(_ connection: HostConnection, _ slot: ConnectionSlot, _ loop: any EventLoop) {
        self.connection = NIOLoopBound(connection, eventLoop: loop)
        self.slot = slot
        self.loop = loop
    }

    func readBody(bytesMax: Int) async -> Result<[UInt8], HTTPServer.BodyFailure> {
        await withCheckedContinuation { continuation in
            loop.execute { connection.value.readBody(bytesMax: bytesMax, continuation) }
        }
    }

    /// Texts are written in pieces of this many bytes, each of which has its own deadline.
    private static let pieceBytes = 64 << 10

    /// Writes a response.
    func deliver(_ answer: HTTPServer.Answer, to head: CheckedHead, _ limits: HTTPServer.Limits) async {
        switch answer.body {
        case .closed: loop.execute { connection.value.cut() }
        case .length(let length):
            let isHead = head.request.method == .head
            _ = await begin(answer.head, length: isHead ? length : 0, to: head, text: "", isWhole: true)
        case .text(let text):
            let first = text.utf8.count <= Self.pieceBytes ? text : ""
            let isWhole = first.utf8.count == text.utf8.count || head.request.method == .head
            guard
                let framing = await begin(
                    answer.head, length: text.utf8.count, to: head, text: isWhole ? first : "", isWhole: isWhole),
                case .length = framing, !isWhole
            else { return }
            var rest = text.utf8[...]
            while !rest.isEmpty {
                let piece = ByteBuffer(bytes: rest.prefix(Self.pieceBytes))
                rest = rest.dropFirst(Self.pieceBytes)
                guard await write(piece, isLast: rest.isEmpty) else { return }
            }
        case .pieces(let next):
            guard let framing = await begin(answer.head, length: nil, to: head, text: "", isWhole: false) else {
                return
            }
            if case .none = framing { return }
            do {
                while !Task.isCancelled {
                    var buffer = ByteBuffer()
                    guard let piece = try await next() else {
                        ResponseEncoder.writeEnd(framing, into: &buffer)
                        _ = await write(buffer, isLast: true)
                        return
                    }
                    ResponseEncoder.write(piece, framing, into: &buffer)
                    guard await write(buffer, isLast: false) else { return }
                }
            } catch {
                // A FIN would end a close-delimited body as if it were whole.
                loop.execute { connection.value.abort() }
            }
        }
    }

    /// Writes a head, with the body if that is short. The response is complete then if it is `isWhole` or has no body: a response
    /// to HEAD, 204 and 304.
    ///
    /// - Returns: How the body is framed; `nil` if the connection is closed.
    private func begin(
        _ response: HTTPResponse, length: Int?, to head: CheckedHead, text: String, isWhole: Bool
    ) async -> ResponseFraming? {
        await withCheckedContinuation { continuation in
            loop.execute {
                var response = response
                let connection = connection.value
                guard let (framing, word) = connection.frame(&response, length: length, for: head) else {
                    return continuation.resume(returning: nil)
                }
                var buffer = ByteBuffer()
                ResponseEncoder.write(response, framing, connection: word, into: &buffer)
                if case .length = framing { buffer.writeString(text) }
                let hasNoBody = if case .none = framing { true } else { false }
                connection.write(buffer, isLast: isWhole || hasNoBody, nil)
                continuation.resume(returning: framing)
            }
        }
    }

    private func write(_ bytes: ByteBuffer, isLast: Bool) async -> Bool {
        await withCheckedContinuation { continuation in
            loop.execute { connection.value.write(bytes, isLast: isLast, continuation) }
        }
    }
}
