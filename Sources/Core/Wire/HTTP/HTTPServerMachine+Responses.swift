public import Determinism
public import HTTPTypes
internal import NIOCore

/// Writing responses, and the end of an exchange.
extension HTTPServerMachine {
    /// Sends the response to the request; ignored if the connection is closed.
    ///
    /// - Returns: Whether parts of the body are wanted. They are not if the response has no body (HEAD, 204, 304), or
    ///   its body has no parts.
    @discardableResult
    public mutating func respond(
        _ head: HTTPResponse, _ content: HTTPServerResponseBody, at time: Instant
    ) -> Bool {
        record(time)
        guard phase == .handling, let request, case .none = output else { return false }
        let isHead = request.request.method == .head
        let length: Int? =
            switch content {
            case .text(let text): text.utf8.count
            case .omitted(let length): isHead ? length : 0
            case .bytes(let length): length
            case .parts: nil
            }
        if isReadingBody { body = .unconsumed }
        discardBody()
        let framing = HTTPResponseFraming(
            length: length, status: head.status.code, isHead: isHead, acceptsChunked: request.acceptsChunked)
        // A client that has closed its side still gets the responses to requests that arrived before.
        keepsConnection = request.keepsAlive && (!inputHasEnded || parser.isInsideMessage) && framing != .close
        if case .unconsumed = body { keepsConnection = false }
        var buffer = encode(
            head, framing, connection: keepsConnection ? (request.needsKeepAlive ? "keep-alive" : nil) : "close")
        switch (framing, content) {
        case (.none, _), (_, .omitted): output = .complete
        case (_, .parts): output = .parts(framing)
        case (_, .bytes(let length)): output = length > 0 ? .bytes(left: length) : .complete
        case (_, .text(let text)): fill(&buffer, from: text.utf8[...])
        }
        send(buffer)
        return wantsParts
    }

    /// Whether the body of the response being sent has further parts.
    private var wantsParts: Bool {
        guard phase == .handling else { return false }
        switch output {
        case .parts, .bytes: return true
        case .none, .text, .complete: return false
        }
    }

    /// Sends a part of the response's body; ignored if the connection is closed.
    ///
    /// - Returns: Whether further parts are wanted.
    @discardableResult
    public mutating func sendPart(_ part: String, at time: Instant) -> Bool {
        record(time)
        guard phase == .handling, case .parts(let framing) = output else { return false }
        var buffer = ByteBuffer()
        HTTPResponseEncoder.write(part, framing, into: &buffer)
        send(buffer)
        return wantsParts
    }

    /// Sends a part of a body of known length; ignored if the connection is closed.
    ///
    /// - Returns: Whether further parts are wanted.
    @discardableResult
    public mutating func sendBytes(_ part: [UInt8], at time: Instant) -> Bool {
        record(time)
        guard phase == .handling, case .bytes(let left) = output else { return false }
        guard part.count <= left else {
            end(.abort)
            return false
        }
        output = part.count < left ? .bytes(left: left - part.count) : .complete
        send(ByteBuffer(bytes: part))
        return wantsParts
    }

    /// Ends the parts of the response's body; ignored if the connection is closed.
    public mutating func endParts(at time: Instant) {
        record(time)
        guard phase == .handling else { return }
        // A FIN would mark a truncated body as complete.
        if case .bytes = output { return end(.abort) }
        guard case .parts(let framing) = output else { return }
        var buffer = ByteBuffer()
        HTTPResponseEncoder.writeEnd(framing, into: &buffer)
        output = .complete
        send(buffer)
    }

    /// Reports bytes accepted for sending.
    public mutating func written(_ count: Int, at time: Instant) {
        record(time)
        guard count <= bytesPending else { return assertionFailure("more bytes accepted than written") }
        bytesPending -= count
        if bytesPending == 0 { outputDrained() }
    }

    // MARK: Responses of the server itself

    /// Sends a response without calling the handler, and closes the connection.
    mutating func reject(_ status: HTTPResponse.Status) {
        phase = .handling
        keepsConnection = false
        output = .complete
        send(errorResponse(status))
    }

    func errorResponse(_ status: HTTPResponse.Status) -> ByteBuffer {
        encode(HTTPResponse(status: status), .length(0), connection: "close")
    }

    private func encode(_ head: HTTPResponse, _ framing: HTTPResponseFraming, connection: String?) -> ByteBuffer {
        var head = head
        for field in defaultHeaders where !head.headerFields.contains(field.name) { head.headerFields.append(field) }
        var buffer = ByteBuffer()
        HTTPResponseEncoder.write(head, framing, connection: connection, unixTime: unixTime, into: &buffer)
        return buffer
    }

    // MARK: Writing

    mutating func write(_ bytes: ByteBuffer) {
        bytesPending += bytes.readableBytes
        actions.append(.write(bytes))
    }

    /// Writes part of a response, which the client must receive in time.
    private mutating func send(_ bytes: ByteBuffer) {
        guard bytes.readableBytes > 0 else {
            if bytesPending == 0 { outputDrained() }
            return
        }
        deadline = now + limits.writeTimeout(bytes: bytes.readableBytes)
        write(bytes)
    }

    /// Appends as much of a text as fits into one write.
    private mutating func fill(_ buffer: inout ByteBuffer, from text: Substring.UTF8View) {
        buffer.writeBytes(text.prefix(Self.writeBytesMax))
        let rest = text.dropFirst(Self.writeBytesMax)
        output = rest.isEmpty ? .complete : .text(rest)
    }

    /// Continues after everything was accepted for sending.
    private mutating func outputDrained() {
        if phase == .refused { return end(.close) }
        guard phase == .handling else { return }
        switch output {
        case .none: break
        case .text(let rest):
            var buffer = ByteBuffer()
            fill(&buffer, from: rest)
            send(buffer)
        case .parts, .bytes:
            deadline = nil
            actions.append(.producePart)
        case .complete: finishExchange()
        }
    }

    private mutating func finishExchange() {
        request = nil
        output = .none
        actions.append(.responseWritten)
        guard keepsConnection else { return linger() }
        isFirstRequest = false
        phase = .idle
        setDeadline(seconds: limits.idleSecondsMax)
    }

    /// Sends FIN and drops further input for a while. Closing at once while the client still sends would reset the
    /// connection and could destroy the last response (RFC 9112, 9.6).
    private mutating func linger() {
        guard !inputHasEnded else { return end(.close) }
        phase = .lingering
        setDeadline(seconds: limits.lingerSecondsMax)
        actions.append(.closeOutput)
    }
}
