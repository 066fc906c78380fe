public import Determinism
internal import HTTPTypes
internal import LinkModel
public import NIOCore

/// The client side of HTTP/1.1 to one server: its connections, and the exchanges that use them or wait for one.
///
/// A state machine: events and the time are its inputs; ``takeAction()`` returns actions. A request is never sent
/// twice: the caller decides whether a failed request may be repeated, also after the failure of a reused connection.
public struct HTTPClientMachine: Sendable {
    private struct Connection: Sendable {
        enum State: Sendable { case connecting, busy, idle }

        var state = State.connecting
        var parser = HTTPParser(.responses)
        var exchange: HTTPExchangeID?
        /// The deadline of the current state.
        var deadline: Instant
        /// The number of exchanges that the connection has carried.
        var exchangeCount = 0
    }

    private struct Exchange: Sendable {
        let requestHead: HTTPRequestHead
        let bytes: ByteBuffer
        let deadline: Instant
        var connection: HTTPConnectionID?
        var head: HTTPResponseHead?
        var body: [UInt8] = []
        var trailers = HTTPFields()
        var phase = HTTPClientError.Phase.notSent
    }

    private let host: String
    private let timeouts: HTTPTimeouts
    private let connectionsMax: Int
    private let bodyMax: Int
    private var connections: [HTTPConnectionID: Connection] = [:]
    private var exchanges: [HTTPExchangeID: Exchange] = [:]
    /// Exchanges that wait for a connection, in order.
    private var waiting: [HTTPExchangeID] = []
    private var actions: [HTTPClientAction] = []
    private var nextConnection = 0
    private var nextExchange = 0

    /// Creates a machine without connections.
    ///
    /// - Parameters:
    ///   - host: The value of the `Host` field.
    ///   - connectionsMax: The maximum number of connections.
    ///   - bodyMax: The maximum number of bytes of a response's body.
    public init(
        host: String, timeouts: HTTPTimeouts = HTTPTimeouts(), connectionsMax: Int = 2, bodyMax: Int = 16 << 20
    ) {
        self.host = host
        self.timeouts = timeouts
        self.connectionsMax = max(1, connectionsMax)
        self.bodyMax = bodyMax
    }

    // MARK: Time and actions

    /// The time at which ``advance(to:)`` must be called next.
    public var nextDeadline: Instant? {
        let ends = exchanges.values.map(\.deadline)
        let states = connections.values.map(\.deadline)
        return (ends + states).min().flatMap { $0 == .never ? nil : $0 }
    }

    /// Takes the next action.
    public mutating func takeAction() -> HTTPClientAction? { actions.isEmpty ? nil : actions.removeFirst() }

    // MARK: Inputs

    /// Starts an exchange. A malformed request fails at once.
    public mutating func start(_ request: HTTPClientRequest, lane: Int = 0, at now: Instant) -> HTTPExchangeID {
        let id = HTTPExchangeID(number: nextExchange)
        nextExchange += 1
        let requestHead: HTTPRequestHead
        do throws(HTTPError) {
            requestHead = try head(of: request)
        } catch {
            actions.append(.finished(id, .failure(HTTPClientError(.malformed(error), .notSent))))
            return id
        }
        var bytes = ByteBuffer()
        requestHead.write(into: &bytes)
        bytes.writeBytes(request.body)
        exchanges[id] = Exchange(requestHead: requestHead, bytes: bytes, deadline: now + timeouts.exchange)
        waiting.append(id)
        dispatch(at: now)
        return id
    }

    private func head(of request: HTTPClientRequest) throws(HTTPError) -> HTTPRequestHead {
        var fields = [(name: "Host", value: host)] + request.fields
        if !request.body.isEmpty || ["POST", "PUT", "PATCH"].contains(request.method) {
            fields.append(("Content-Length", "\(request.body.count)"))
        }
        return try HTTPRequestHead(method: request.method, target: request.target, fields: fields)
    }

    /// Cancels an exchange; one that has ended is ignored.
    public mutating func cancel(_ id: HTTPExchangeID, at now: Instant) {
        guard exchanges[id] != nil else { return }
        fail(id, .cancelled, at: now)
    }

    /// Reports an established connection.
    public mutating func connected(_ id: HTTPConnectionID, at now: Instant) {
        guard connections[id]?.state == .connecting else { return }
        connections[id]?.state = .idle
        connections[id]?.deadline = now + timeouts.idleConnection
        dispatch(at: now)
    }

    /// Reports a connection that could not be established; the oldest waiting exchange fails with it.
    public mutating func connectFailed(_ id: HTTPConnectionID, reason: HTTPConnectError, at now: Instant) {
        guard connections[id]?.state == .connecting else { return }
        connections[id] = nil
        if let first = waiting.first { fail(first, .connect(reason), at: now) }
        dispatch(at: now)
    }

    /// Reports bytes that were received.
    public mutating func received(_ bytes: ByteBuffer, on id: HTTPConnectionID, at now: Instant) {
        guard let exchange = connections[id]?.exchange else {
            // Unsolicited bytes.
            if connections[id] != nil { close(id, isAbortive: true) }
            return
        }
        connections[id]?.deadline = now + timeouts.idle
        exchanges[exchange]?.phase = .responding
        connections[id]?.parser.received(bytes)
        read(id, exchange, at: now)
    }

    /// Reports that the kernel has accepted bytes of a connection.
    public mutating func written(_ count: Int, on id: HTTPConnectionID, at now: Instant) {}

    /// Reports a connection that was closed by its peer, or has failed.
    public mutating func closed(_ id: HTTPConnectionID, how: HTTPCloseReason, at now: Instant) {
        guard let connection = connections[id] else { return }
        if let exchange = connection.exchange, how == .fin {
            // The end of the stream may be the end of the response.
            connections[id]?.parser.streamEnded()
            read(id, exchange, hasEnded: true, at: now)
        }
        guard let connection = connections.removeValue(forKey: id) else { return }
        if let exchange = connection.exchange {
            exchanges[exchange]?.connection = nil
            fail(exchange, .closedByPeer(how), wasReused: connection.exchangeCount > 1, at: now)
        } else if connection.state == .connecting, let first = waiting.first {
            fail(first, .connect(.other("closed")), at: now)
        }
        dispatch(at: now)
    }

    /// Ends exchanges and connections whose deadlines have passed.
    public mutating func advance(to now: Instant) {
        for id in exchanges.keys.sorted() where exchanges[id].map({ $0.deadline <= now }) ?? false {
            fail(id, .timedOut(.exchange), at: now)
        }
        for id in connections.keys.sorted() {
            guard let connection = connections[id], connection.deadline <= now else { continue }
            switch connection.state {
            case .connecting:
                close(id, isAbortive: true)
                if let first = waiting.first { fail(first, .timedOut(.connect), at: now) }
            case .idle: close(id, isAbortive: false)
            case .busy:
                guard let exchange = connection.exchange else { continue }
                let hasBegun = exchanges[exchange]?.phase == .responding
                fail(exchange, .timedOut(hasBegun ? .idle : .firstByte), at: now)
            }
        }
        dispatch(at: now)
    }

    // MARK: Internals

    /// Assigns waiting exchanges to idle connections, and opens connections up to the maximum.
    private mutating func dispatch(at now: Instant) {
        for id in connections.keys.sorted() where connections[id]?.state == .idle && !waiting.isEmpty {
            let exchange = waiting.removeFirst()
            connections[id]?.state = .busy
            connections[id]?.exchange = exchange
            connections[id]?.exchangeCount += 1
            connections[id]?.deadline = now + timeouts.firstByte
            connections[id]?.parser.requestSent(method: exchanges[exchange]?.requestHead.method ?? "")
            exchanges[exchange]?.connection = id
            exchanges[exchange]?.phase = .sent
            if let bytes = exchanges[exchange]?.bytes { actions.append(.write(id, bytes)) }
        }
        let connecting = connections.values.count { $0.state == .connecting }
        var wanted = waiting.count - connecting
        while wanted > 0, connections.count < connectionsMax {
            let id = HTTPConnectionID(number: nextConnection)
            nextConnection += 1
            connections[id] = Connection(deadline: now + timeouts.connect)
            actions.append(.connect(id))
            wanted -= 1
        }
    }

    private mutating func read(
        _ id: HTTPConnectionID, _ exchange: HTTPExchangeID, hasEnded: Bool = false, at now: Instant
    ) {
        do throws(HTTPError) {
            while let part = try connections[id]?.parser.takePart() {
                switch part {
                case .responseHead(let head, _, let isInterim): if !isInterim { exchanges[exchange]?.head = head }
                case .body(let bytes, _):
                    exchanges[exchange]?.body.append(contentsOf: bytes.readableBytesView)
                    if exchanges[exchange]?.body.count ?? 0 > bodyMax {
                        return fail(exchange, .bodyTooLarge, at: now)
                    }
                case .trailers(let trailers, _): exchanges[exchange]?.trailers = trailers
                case .end: return succeed(id, exchange, hasEnded: hasEnded, at: now)
                case .opaque: return fail(exchange, .malformed(.unexpectedResponse), at: now)
                case .requestHead: break
                }
            }
        } catch {
            // An early end of the stream is reported as a close, with its reason.
            if error != .endedEarly { fail(exchange, .malformed(error), at: now) }
        }
    }

    private mutating func succeed(
        _ id: HTTPConnectionID, _ exchangeID: HTTPExchangeID, hasEnded: Bool, at now: Instant
    ) {
        guard let exchange = exchanges.removeValue(forKey: exchangeID), let head = exchange.head else { return }
        actions.append(
            .finished(
                exchangeID,
                .success(HTTPClientResponse(head: head, body: exchange.body, trailers: exchange.trailers))))
        let isClean = connections[id].map { !$0.parser.isInsideMessage && $0.parser.framing != .untilClose } ?? false
        if head.keepsAlive && exchange.requestHead.keepsAlive && isClean && !hasEnded {
            connections[id]?.state = .idle
            connections[id]?.exchange = nil
            connections[id]?.deadline = now + timeouts.idleConnection
        } else {
            close(id, isAbortive: false)
        }
        dispatch(at: now)
    }

    private mutating func fail(
        _ id: HTTPExchangeID, _ reason: HTTPClientError.Reason, wasReused: Bool? = nil, at now: Instant
    ) {
        guard let exchange = exchanges.removeValue(forKey: id) else { return }
        waiting.removeAll { $0 == id }
        var failure = HTTPClientError(reason, exchange.phase)
        if let connection = exchange.connection {
            failure.wasReused = connections[connection].map { $0.exchangeCount > 1 } ?? false
            close(connection, isAbortive: true)
        }
        if let wasReused { failure.wasReused = wasReused }
        actions.append(.finished(id, .failure(failure)))
        dispatch(at: now)
    }

    private mutating func close(_ id: HTTPConnectionID, isAbortive: Bool) {
        guard connections.removeValue(forKey: id) != nil else { return }
        actions.append(.close(id, isAbortive: isAbortive))
    }
}
