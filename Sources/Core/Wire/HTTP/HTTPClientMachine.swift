internal import DequeModule
public import Determinism
internal import HTTPTypes
public import NIOCore

/// The client side of HTTP/1.1 to one server: its connections, and the exchanges that use them or wait for one.
///
/// A state machine: events and the time are its inputs; ``takeAction()`` returns actions. A request is never sent
/// twice: the caller decides whether a failed request may be repeated, also after the failure of a reused connection.
///
/// A request is written in pieces of ``writeBytesMax`` bytes, at most two of which the kernel has not accepted; a
/// request of at most that size is one write. The driver reports accepted bytes with ``written(_:on:at:)``, in order
/// with the bytes received: a response to a request that was not accepted completely is early. An exchange ends with a
/// complete early response, and its connection is then closed.
public struct HTTPClientMachine: Sendable {
    /// The maximum number of bytes of a write.
    public static let writeBytesMax = 16 << 10

    /// The maximum number of interim responses (1xx) to a request. Each restarts the timeout, so an unlimited number of
    /// them would prevent the end of the exchange.
    private static let interimResponsesMax = 100

    private struct Connection: Sendable {
        enum State: Hashable, Sendable { case connecting, busy(HTTPExchangeID), idle }

        let pool: Int
        var state = State.connecting
        var parser = HTTPParser(.responses)
        /// The deadline while the connection is not busy.
        var deadline: Instant
        /// The number of exchanges that the connection has carried.
        var exchangeCount = 0

        var exchange: HTTPExchangeID? { if case .busy(let exchange) = state { exchange } else { nil } }
    }

    /// The connections and the waiting exchanges of one pool.
    private struct Pool: Sendable {
        /// Connections in the order in which they were opened.
        var connections: [HTTPConnectionID] = []
        /// Exchanges that wait for a connection, in the order of their starts.
        var waiting: Deque<Waiting> = []

        /// The earliest limit of a waiting exchange.
        var limit: Instant { waiting.first { $0.limit != .never }?.limit ?? .never }
    }

    private struct Waiting: Sendable {
        let id: HTTPExchangeID
        /// The end of the exchange's total time, ``Instant/never`` if it is large.
        let limit: Instant
    }

    private let host: String
    private let timeouts: HTTPTimeouts
    private let connectionsMax: Int
    private let waitingMax: Int
    private let bodyMax: Int
    private var pools: [Int: Pool] = [:]
    private var connections: [HTTPConnectionID: Connection] = [:]
    private var exchanges: [HTTPExchangeID: HTTPClientExchange] = [:]
    private var actions: Deque<HTTPClientAction> = []
    private var nextConnection = 0
    private var nextExchange = 0

    /// Creates a machine without connections.
    ///
    /// - Parameters:
    ///   - host: The value of the `Host` field.
    ///   - connectionsMax: The maximum number of connections of a pool.
    ///   - waitingMax: The maximum number of exchanges of a pool that wait for a connection.
    ///   - bodyMax: The maximum number of bytes of a response's body.
    public init(
        host: String, timeouts: HTTPTimeouts = HTTPTimeouts(), connectionsMax: Int = 1, waitingMax: Int = 1_000,
        bodyMax: Int = 16 << 20
    ) {
        self.host = host
        self.timeouts = timeouts
        self.connectionsMax = max(1, connectionsMax)
        self.waitingMax = max(1, waitingMax)
        self.bodyMax = bodyMax
    }

    // MARK: Time and actions

    /// The time at which ``advance(to:)`` must be called next.
    public var nextDeadline: Instant? {
        var next = Instant.never
        for connection in connections.values {
            let deadline = connection.exchange.map { exchanges[$0]?.deadline ?? .never }
            next = min(next, deadline ?? connection.deadline)
        }
        for pool in pools.values { next = min(next, pool.limit) }
        return next == .never ? nil : next
    }

    /// The number of pools that have connections or waiting exchanges.
    var poolCount: Int { pools.count }

    private func deadline(of id: HTTPConnectionID) -> Instant {
        guard let exchange = connections[id]?.exchange else { return connections[id]?.deadline ?? .never }
        return exchanges[exchange]?.deadline ?? .never
    }

    /// Takes the next action.
    public mutating func takeAction() -> HTTPClientAction? { actions.popFirst() }

    // MARK: Inputs

    /// Starts an exchange. A malformed request, or one too many in the pool, fails at once.
    ///
    /// - Parameter pool: A number that separates exchanges: a connection carries exchanges of one pool only, and no
    ///   exchange waits for one of another pool.
    public mutating func start(_ request: HTTPClientRequest, pool: Int = 0, at now: Instant) -> HTTPExchangeID {
        let id = HTTPExchangeID(number: nextExchange)
        nextExchange += 1
        let head: HTTPRequestHead
        do throws(HTTPError) {
            head = try self.head(of: request)
        } catch {
            actions.append(.finished(id, .failure(HTTPClientError(.malformed(error), .notSent))))
            return id
        }
        guard pools[pool]?.waiting.count ?? 0 < waitingMax else {
            actions.append(.finished(id, .failure(HTTPClientError(.tooManyWaiting, .notSent))))
            return id
        }
        let exchange = HTTPClientExchange(
            head, body: request.body, isStreamed: request.isStreamed, pool: pool, limit: now + timeouts.exchange)
        pools[pool, default: Pool()].waiting.append(
            Waiting(id: id, limit: exchange.isLarge(timeouts) ? .never : exchange.limit))
        exchanges[id] = exchange
        dispatch(pool, at: now)
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
        fail(id, .cancelled, at: now)
    }

    /// Reports an established connection.
    public mutating func connected(_ id: HTTPConnectionID, at now: Instant) {
        guard isKnown(id), let connection = connections[id] else { return }
        assert(connection.state == .connecting, "the connection is established already")
        guard connection.state == .connecting else { return }
        idle(id, at: now)
        dispatch(connection.pool, at: now)
    }

    /// Reports a connection that could not be established; the oldest exchange that waits in its pool fails with it.
    public mutating func connectFailed(_ id: HTTPConnectionID, reason: HTTPConnectError, at now: Instant) {
        guard isKnown(id), let connection = connections[id] else { return }
        assert(connection.state == .connecting, "the connection is established already")
        guard connection.state == .connecting else { return }
        remove(id)
        failOldest(in: connection.pool, .connect(reason), at: now)
    }

    /// Reports bytes of a request that the kernel has accepted. They may be a part of a write, or more than one write.
    public mutating func written(_ count: Int, on id: HTTPConnectionID, at now: Instant) {
        guard isKnown(id), count != 0, let connection = connections[id] else { return }
        let isKnownWrite =
            connection.exchange.flatMap { id in
                exchanges.change(id) { exchange in
                    guard exchange.writer.recordAccepted(count) else { return false }
                    exchange.transfer?.progress.recordAccepted(count, at: now)
                    return true
                }
            } ?? false
        guard isKnownWrite, let exchange = connection.exchange else {
            return assertionFailure("more bytes accepted than written")
        }
        writePieces(of: exchange, on: id)
    }

    /// Reports bytes that were received.
    public mutating func received(_ bytes: ByteBuffer, on id: HTTPConnectionID, at now: Instant) {
        guard isKnown(id), bytes.readableBytes > 0, let state = connections[id]?.state else { return }
        guard case .busy(let exchange) = state else {
            assert(state == .idle, "bytes before the connection is established")
            // Unsolicited bytes.
            return close(id, isAbortive: true)
        }
        let isHTTP = exchanges.change(exchange) { exchange in
            exchange.transfer?.progress.recordReceived(bytes.readableBytes, at: now)
            exchange.phase = .responding
            return exchange.startsWithHTTP(bytes)
        }
        guard isHTTP == true else { return fail(exchange, .notHTTP, at: now) }
        connections.change(id) { $0.parser.received(bytes) }
        read(id, exchange, at: now)
    }

    /// Reports a connection that was closed by its peer, or has failed. Bytes that arrived before are reported first:
    /// a server may send its response and reset the connection while the request is still being written.
    public mutating func closed(_ id: HTTPConnectionID, how: HTTPCloseReason, at now: Instant) {
        guard isKnown(id) else { return }
        if how == .fin, let exchange = connections[id]?.exchange {
            // The end of the stream may be the end of the response.
            connections.change(id) { $0.parser.streamEnded() }
            read(id, exchange, hasEnded: true, at: now)
        }
        guard let connection = connections[id] else { return }
        remove(id)
        switch connection.state {
        case .connecting: failOldest(in: connection.pool, .connect(.other("closed")), at: now)
        case .busy(let exchange): fail(exchange, .closedByPeer(how), on: connection, at: now)
        case .idle: break
        }
    }

    /// Ends exchanges and connections whose deadlines have passed.
    public mutating func advance(to now: Instant) {
        for number in pools.keys.sorted() {
            guard let pool = pools[number], pool.limit <= now else { continue }
            for entry in pool.waiting where entry.limit <= now { fail(entry.id, .timedOut(.exchange), at: now) }
        }
        for id in connections.keys.filter({ deadline(of: $0) <= now }).sorted() {
            guard let connection = connections[id], deadline(of: id) <= now else { continue }
            switch connection.state {
            case .connecting:
                close(id, isAbortive: true)
                failOldest(in: connection.pool, .timedOut(.connect), at: now)
            case .idle: close(id, isAbortive: false)
            case .busy(let exchange):
                if let timeout = exchanges[exchange]?.timeout(at: now) { fail(exchange, .timedOut(timeout), at: now) }
            }
        }
    }

    // MARK: Requests

    /// Assigns the waiting exchanges of a pool to idle connections, and opens connections up to the maximum.
    private mutating func dispatch(_ number: Int, at now: Instant) {
        for id in pools[number]?.connections ?? [] where connections[id]?.state == .idle {
            guard let next = pools[number]?.waiting.popFirst() else { return }
            assign(next.id, to: id, at: now)
        }
        let opened = pools[number]?.connections ?? []
        let connecting = opened.count { connections[$0]?.state == .connecting }
        let wanted = (pools[number]?.waiting.count ?? 0) - connecting
        for _ in 0..<max(0, min(wanted, connectionsMax - opened.count)) {
            let id = HTTPConnectionID(number: nextConnection)
            nextConnection += 1
            connections[id] = Connection(pool: number, deadline: now + timeouts.connect)
            pools[number]?.connections.append(id)
            actions.append(.connect(id))
        }
    }

    private mutating func assign(_ id: HTTPExchangeID, to connection: HTTPConnectionID, at now: Instant) {
        let timeouts = timeouts
        let method = exchanges.change(id) { exchange in
            exchange.transfer = (
                connection,
                HTTPExchangeProgress(requestBytes: exchange.writer.byteCount, timeouts: timeouts, at: now)
            )
            exchange.phase = .sent
            return exchange.method
        }
        guard let method else { return }
        connections.change(connection) { connection in
            connection.state = .busy(id)
            connection.exchangeCount += 1
            connection.parser.requestSent(method: method)
        }
        writePieces(of: id, on: connection)
    }

    private mutating func writePieces(of id: HTTPExchangeID, on connection: HTTPConnectionID) {
        while let piece = exchanges.change(id, { $0.writer.takePiece() }) ?? nil {
            actions.append(.write(connection, piece))
        }
    }

    // MARK: Responses

    private mutating func read(
        _ id: HTTPConnectionID, _ exchange: HTTPExchangeID, hasEnded: Bool = false, at now: Instant
    ) {
        do throws(HTTPError) {
            while let part = try takePart(of: id) {
                switch part {
                case .responseHead(_, _, isInterim: true):
                    let count = exchanges.change(exchange) { exchange in
                        exchange.interimCount += 1
                        return exchange.interimCount
                    }
                    if count ?? 0 > Self.interimResponsesMax {
                        return fail(exchange, .malformed(.tooLarge("the number of interim responses")), at: now)
                    }
                case .responseHead(let head, _, isInterim: false):
                    // No request asks for an upgrade.
                    if head.status == 101 { return fail(exchange, .malformed(.unexpectedResponse), at: now) }
                    let framing = connections[id]?.parser.framing
                    exchanges.change(exchange) { exchange in
                        exchange.head = head
                        if case .length(let count)? = framing {
                            exchange.transfer?.progress.recordLength(count, at: now)
                        }
                    }
                case .body(let bytes, _):
                    guard bytes.readableBytes <= bodyMax - (exchanges[exchange]?.bodyCount ?? 0) else {
                        return fail(exchange, .bodyTooLarge, at: now)
                    }
                    let streamed = exchanges.change(exchange) { exchange -> HTTPResponseHead? in
                        exchange.bodyCount += bytes.readableBytes
                        if exchange.isStreamed, let head = exchange.head { return head }
                        exchange.body.append(contentsOf: bytes.readableBytesView)
                        return nil
                    }
                    if let head = streamed ?? nil { actions.append(.piece(exchange, head, bytes)) }
                case .trailers(let trailers, _): exchanges.change(exchange) { $0.trailers = trailers }
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
        let isAccepted = exchange.writer.isAccepted
        if head.keepsAlive && exchange.keepsAlive && isClean && isAccepted && !hasEnded {
            idle(id, at: now)
        } else {
            // The rest of a request that has its response would only delay other requests in the send buffer.
            close(id, isAbortive: !isAccepted)
        }
        dispatch(exchange.pool, at: now)
    }

    // MARK: Failures

    /// Ends an exchange with an error, and aborts its connection.
    ///
    /// - Parameter closed: The connection of the exchange if it was closed.
    private mutating func fail(
        _ id: HTTPExchangeID, _ reason: HTTPClientError.Reason, on closed: Connection? = nil, at now: Instant
    ) {
        guard let exchange = exchanges.removeValue(forKey: id) else { return }
        var error = HTTPClientError(reason, exchange.phase)
        if let connection = exchange.transfer?.connection {
            error.wasReused = (closed ?? connections[connection]).map { $0.exchangeCount > 1 } ?? false
            close(connection, isAbortive: true)
        } else if let index = pools[exchange.pool]?.waiting.firstIndex(where: { $0.id == id }) {
            pools[exchange.pool]?.waiting.remove(at: index)
            removeIfEmpty(exchange.pool)
        }
        actions.append(.finished(id, .failure(error)))
        dispatch(exchange.pool, at: now)
    }

    private mutating func failOldest(in pool: Int, _ reason: HTTPClientError.Reason, at now: Instant) {
        if let oldest = pools[pool]?.waiting.first { fail(oldest.id, reason, at: now) }
    }

    // MARK: Connections

    /// Returns whether the machine has opened the connection; it may have closed it since.
    private func isKnown(_ id: HTTPConnectionID) -> Bool {
        assert(id.number < nextConnection, "a connection that was never opened")
        return id.number < nextConnection
    }

    private mutating func idle(_ id: HTTPConnectionID, at now: Instant) {
        let deadline = now + timeouts.idleConnection
        connections.change(id) { ($0.state, $0.deadline) = (.idle, deadline) }
    }

    private mutating func takePart(of id: HTTPConnectionID) throws(HTTPError) -> HTTPPart? {
        guard let index = connections.index(forKey: id) else { return nil }
        return try connections.values[index].parser.takePart()
    }

    private mutating func close(_ id: HTTPConnectionID, isAbortive: Bool) {
        guard connections[id] != nil else { return }
        remove(id)
        actions.append(.close(id, isAbortive: isAbortive))
    }

    private mutating func remove(_ id: HTTPConnectionID) {
        guard let pool = connections.removeValue(forKey: id)?.pool else { return }
        pools[pool]?.connections.removeAll { $0 == id }
        removeIfEmpty(pool)
    }

    private mutating func removeIfEmpty(_ pool: Int) {
        if pools[pool]?.connections.isEmpty == true, pools[pool]?.waiting.isEmpty == true { pools[pool] = nil }
    }
}

extension Dictionary {
    /// Changes the value of a key in place, which a subscript would move out and back; `nil` if there is none.
    @discardableResult @inline(__always)
    fileprivate mutating func change<Result>(_ key: Key, _ body: (inout Value) -> Result) -> Result? {
        index(forKey: key).map { body(&values[$0]) }
    }
}
