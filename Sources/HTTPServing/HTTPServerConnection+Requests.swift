internal import HTTPTypes
internal import HTTPWire
internal import NIOCore
internal import Synchronization

/// Request heads and bodies.
extension HTTPServerConnection {
    /// Processes parsed input as far as the phase allows.
    func processInput() {
        do throws(HTTPError) {
            while true {
                switch phase {
                case .idle, .head:
                    guard let part = try parser.takePart() else {
                        if inputHasEnded { return channel.close(promise: nil) }
                        if phase == .idle && parser.isInsideMessage {
                            phase = .head
                            // The deadline of the first head runs from the connection's start.
                            if !isFirstRequest { setDeadline(seconds: limits.headSecondsMax) }
                        }
                        return
                    }
                    if case .requestHead(let head, _) = part { handle(head) }
                case .handling:
                    guard isReadingBody, let part = try parser.takePart() else { return }
                    receiveBodyPart(part)
                case .lingering, .closed: return
                }
            }
        } catch {
            if phase == .handling {
                failBodyRead(.malformed("\(error)"))
            } else {
                reject(ValidatedRequest.status(of: error))
            }
        }
    }

    /// Starts the handler of a request.
    private func handle(_ head: HTTPRequestHead) {
        cancelDeadline()
        slot.recordProgress()
        slot.isBusy.store(true, ordering: .relaxed)
        phase = .handling
        body = .unread
        let declaredBytes: Int?
        switch parser.framing {
        case .length(let length): declaredBytes = Int(clamping: length)
        case .chunked: declaredBytes = nil
        case .none, .untilClose: declaredBytes = 0
        }
        do throws(ValidatedRequest.ValidationError) {
            let validated = try ValidatedRequest(head, parser.framing, nonASCIIBytesMax: limits.nonASCIIBytesMax)
            if declaredBytes == 0 { discardBody() }
            request = validated
            let handle = ConnectionHandle(self, slot, channel.eventLoop)
            let exchange = HTTPServer.Exchange(declaredBodyBytes: declaredBytes, limits: limits, connection: handle)
            let respond = respond
            let reservation = BodyReservation(budget)
            self.reservation = reservation
            // The task ends by itself, or is cancelled when the connection closes.
            task = Task {
                let response = await respond(validated.request, exchange)
                await handle.send(response, to: validated)
                withExtendedLifetime(reservation) {}
            }
        } catch {
            reject(error.status)
        }
    }

    // MARK: Bodies

    func readBody(
        bytesMax: Int, _ continuation: CheckedContinuation<Result<[UInt8], HTTPServer.BodyError>, Never>
    ) {
        guard phase == .handling else {
            continuation.resume(returning: .failure(.malformed("the connection was closed")))
            return
        }
        guard case .unread = body else { preconditionFailure("a request body can be read once") }
        body = .reading(BodyRead(bytesMax: bytesMax, continuation: continuation))
        if request?.expectsContinue == true, !inputHasEnded {
            channel.writeAndFlush(ByteBuffer(string: "HTTP/1.1 100 Continue\r\n\r\n"), promise: nil)
        }
        startBodyWindow()
        processInput()
        readIfNeeded()
    }

    private func receiveBodyPart(_ part: HTTPPart) {
        guard case .reading(var read) = body else { preconditionFailure("no body is being read") }
        switch part {
        case .body(let bytes, _):
            guard read.bytes.count + bytes.readableBytes <= read.bytesMax else { return failBodyRead(.tooLarge) }
            guard reservation?.grow(by: bytes.readableBytes) == true else { return failBodyRead(.budgetExceeded) }
            // Leaves the array uniquely referenced, so that the append does not copy it.
            body = .unconsumed
            read.bytes += bytes.readableBytesView
            body = .reading(read)
        case .end:
            cancelDeadline()
            body = .done
            read.continuation.resume(returning: .success(read.bytes))
        default: break
        }
    }

    /// Starts a window in which the body must arrive at the minimum rate.
    func startBodyWindow() {
        guard case .reading(var read) = body else { preconditionFailure("no body is being read") }
        read.bytesBeforeWindow = read.bytes.count
        body = .reading(read)
        setDeadline(seconds: limits.bodyWindowSeconds)
    }

    /// Ends a read of the body, if there is one, with an error.
    func failBodyRead(_ error: HTTPServer.BodyError) {
        guard case .reading(let read) = body else { return }
        cancelDeadline()
        body = .unconsumed
        read.continuation.resume(returning: .failure(error))
    }

    /// Discards the bytes of an unread body that have arrived.
    func discardBody() {
        guard case .unread = body else { return }
        body = .unconsumed
        while let part = try? parser.takePart() {
            if case .end = part {
                body = .done
                return
            }
        }
    }
}
