internal import HTTPTypes
internal import HTTPWire
internal import NIOCore
internal import Synchronization

/// Writing responses, and the end of an exchange.
extension HTTPServerConnection {
    /// Completes a response head and decides whether the connection stays open.
    ///
    /// - Parameter length: The length of the body; `nil` if it is not known beforehand.
    /// - Returns: The framing and the value of `Connection`; `nil` if the connection is closed already.
    func prepare(
        _ response: inout HTTPResponse, length: Int?, for request: ValidatedRequest
    ) -> (framing: ResponseFraming, connection: String?)? {
        guard phase == .handling else { return nil }
        addDefaultHeaders(to: &response)
        discardBody()
        let framing = ResponseFraming(
            length: length, status: response.status.code, isHead: request.request.method == .head,
            acceptsChunked: request.acceptsChunked)
        // A client that has closed its side still gets the responses to requests that arrived before.
        var isKept = request.keepsAlive && (!inputHasEnded || parser.isInsideMessage) && framing != .close
        if case .unconsumed = body { isKept = false }
        keepsConnection = isKept
        return (framing, isKept ? (request.needsKeepAlive ? "keep-alive" : nil) : "close")
    }

    /// Writes part of a response. The connection is aborted if the client does not receive it in time.
    func write(_ bytes: ByteBuffer, isLast: Bool, _ continuation: CheckedContinuation<Bool, Never>?) {
        guard phase == .handling else {
            continuation?.resume(returning: false)
            return
        }
        let seconds = Double(bytes.readableBytes) / Double(max(1, limits.responseBytesPerSecondMin))
        setDeadline(seconds: limits.responseStallSecondsMax + seconds)
        pendingWrites += 1
        let written = channel.eventLoop.makePromise(of: Void.self)
        let connection = NIOLoopBound(self, eventLoop: channel.eventLoop)
        written.futureResult.whenComplete { result in
            switch result {
            case .success:
                connection.value.writeCompleted(isLast: isLast)
                continuation?.resume(returning: true)
            case .failure: continuation?.resume(returning: false)
            }
        }
        channel.writeAndFlush(bytes, promise: written)
    }

    private func writeCompleted(isLast: Bool) {
        pendingWrites -= 1
        precondition(pendingWrites >= 0, "more writes completed than were started")
        guard phase == .handling else { return }
        if pendingWrites == 0 { cancelDeadline() }
        slot.recordProgress()
        if isLast { finishExchange() }
    }

    /// Ends an exchange and goes on to the next request, or closes the connection.
    private func finishExchange() {
        task = nil
        request = nil
        reservation = nil
        guard keepsConnection else { return linger() }
        slot.isBusy.store(false, ordering: .relaxed)
        isFirstRequest = false
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
        processInput()
        readIfNeeded()
    }

    /// Sends FIN and drops further input for a while. Closing at once while the client still sends would reset the
    /// connection and could destroy the last response (RFC 9112, 9.6).
    private func linger() {
        failBodyRead(.malformed("the connection is closed"))
        guard phase != .closed else { return }
        phase = .lingering
        slot.isBusy.store(false, ordering: .relaxed)
        slot.isAuthenticated.store(false, ordering: .relaxed)
        guard !inputHasEnded else { return channel.close(promise: nil) }
        setDeadline(seconds: limits.lingerSecondsMax)
        channel.close(mode: .output, promise: nil)
        readIfNeeded()
    }
}
