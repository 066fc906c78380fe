public import Determinism
internal import HTTPTypes
internal import NIOCore

/// Request heads and bodies.
extension HTTPServerMachine {
    /// Parses buffered input until there is an action.
    mutating func processInput() {
        do throws(HTTPError) {
            while actions.isEmpty, resumption == nil {
                switch phase {
                case .idle, .head:
                    guard let part = try parser.takePart() else { return waitForHead() }
                    if case .requestHead(let head, _) = part { begin(head) }
                case .handling:
                    guard case .reading(let bytesMax) = body else {
                        if parser.bytesKept > limits.inputBytesMax { end(.abort) }
                        return
                    }
                    guard let part = try parser.takePart() else { return }
                    receive(part, bytesMax)
                case .lingering:
                    if inputHasEnded { end(.close) }
                    return
                case .refused, .closed: return
                }
            }
        } catch {
            if phase == .handling {
                failBodyRead(.malformed("\(error)"))
            } else if error == .endedEarly {
                // A client that closes within a head expects no response.
                end(.close)
            } else {
                reject(error.status)
            }
        }
    }

    private mutating func waitForHead() {
        if inputHasEnded { return end(.close) }
        guard phase == .idle, parser.isInsideMessage else { return }
        phase = .head
        // The deadline of the first head runs from the connection's start.
        if !isFirstRequest { setDeadline(seconds: limits.headSecondsMax) }
    }

    private mutating func begin(_ head: HTTPRequestHead) {
        deadline = nil
        phase = .handling
        body = .unread
        do throws(HTTPServerRequest.ValidationError) {
            let request = try HTTPServerRequest(head, parser.framing, nonASCIIBytesMax: limits.nonASCIIBytesMax)
            if request.declaredBodyBytes == 0 { discardBody() }
            self.request = request
            actions.append(.request(request))
        } catch {
            reject(error.status)
        }
    }

    // MARK: Bodies

    /// Starts to read the body of the request; ``HTTPServerAction/body(_:)`` returns it. A body is read once.
    ///
    /// - Parameter bytesMax: A limit below ``HTTPServerLimits/bodyBytesMax``.
    public mutating func readBody(bytesMax: Int? = nil, at time: Instant) {
        record(time)
        guard phase == .handling, let request else {
            actions.append(.body(.failure(.malformed("the connection was closed"))))
            return
        }
        if let result = request.bodyKnownFromHead(bytesMax: bytesMax, limits) {
            actions.append(.body(result))
            return
        }
        guard case .unread = body else { preconditionFailure("a request body can be read once") }
        body = .reading(bytesMax: limits.bodyBytesMax(atMost: bytesMax))
        bodyBytes = []
        if request.expectsContinue, !inputHasEnded { write(ByteBuffer(string: "HTTP/1.1 100 Continue\r\n\r\n")) }
        startBodyWindow()
    }

    /// Ends the reading of the body, if there is one, with an error.
    public mutating func failBody(_ error: HTTPServerBodyError, at time: Instant) {
        record(time)
        failBodyRead(error)
    }

    private mutating func receive(_ part: HTTPPart, _ bytesMax: Int) {
        switch part {
        case .body(let bytes, _):
            guard bodyBytes.count + bytes.readableBytes <= bytesMax else { return failBodyRead(.tooLarge) }
            bodyBytes += bytes.readableBytesView
            actions.append(.bodyGrew(bytes.readableBytes))
        case .end:
            deadline = nil
            body = .done
            actions.append(.body(.success(bodyBytes)))
            bodyBytes = []
        default: break
        }
    }

    /// Starts a window in which the body must arrive at the minimum rate.
    mutating func startBodyWindow() {
        bodyBytesBeforeWindow = bodyBytes.count
        setDeadline(seconds: limits.bodyWindowSeconds)
    }

    mutating func failBodyRead(_ error: HTTPServerBodyError) {
        guard isReadingBody else { return }
        deadline = nil
        body = .unconsumed
        bodyBytes = []
        actions.append(.body(.failure(error)))
    }

    /// Ends the reading of the body, if there is one, because the connection ends.
    mutating func endBodyRead() { failBodyRead(.malformed("the connection was closed")) }

    /// Discards the bytes of an unread body that have arrived.
    mutating func discardBody() {
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
