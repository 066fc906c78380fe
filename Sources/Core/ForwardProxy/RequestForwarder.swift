internal import DequeModule
public import NIOCore
internal import Wire

/// Forwards the requests in absolute form of one client connection to several origins, one request at a time.
///
/// A state machine without deadlines. Bytes are forwarded only after the parser has accepted them, so that origins and
/// clients never disagree with the proxy about the end of a message. Pipelined requests stay here until the response
/// before them is complete.
///
/// What an origin does with its connection reaches the client: a FIN or a RST in place of a response closes or aborts
/// the client's connection, and no request is sent twice. The proxy stands for a network, and a client must see what
/// the network does.
public struct RequestForwarder: Sendable {
    /// The number of a connection to an origin; it is used once.
    public typealias Origin = Int

    /// An instruction for the driver.
    public enum Action: Sendable {
        /// Connect the destination; report ``established(_:)`` or ``failed(_:_:)``.
        case open(Origin, Destination)
        /// Write bytes to the origin.
        case send(ByteBuffer, Origin)
        /// Close the sending side to the origin after all bytes (FIN).
        case finishSending(Origin)
        /// Close the connection to the origin; also one that is not established yet. Later events of it have no effect.
        case closeOrigin(Origin)
        /// Abort the connection to the origin (RST), because the client has aborted.
        case resetOrigin(Origin)
        /// Write bytes to the client.
        case reply(ByteBuffer)
        /// Pause reading from the client.
        case pauseClient
        /// Resume reading from the client.
        case resumeClient
        /// Close the sending side to the client after all bytes (FIN). After an upgrade the client may still send.
        case closeClient
        /// Abort the connection to the client (RST) after all bytes.
        case resetClient
    }

    /// A connection to an origin.
    struct Connection: Sendable {
        let number: Origin
        let destination: Destination
        var responses = MessageStream(.responses)
        var isEstablished = false
    }

    /// The request that is being forwarded, with its response.
    struct Exchange: Sendable {
        let origin: Origin
        let destination: Destination
        let method: String
        let version: HTTPVersion
        /// The head for the origin; `nil` for CONNECT.
        let head: ByteBuffer?
        let asksUpgrade: Bool
        /// Whether the client's connection stays open after the response, as far as is known.
        var keepsAlive: Bool
        var originKeepsAlive = false
        var requestHasEnded = false
        var responseHasBegun = false
    }

    enum State: Hashable, Sendable {
        case requests
        /// Bytes of any protocol, after CONNECT or 101.
        case tunnel(Origin, clientHasEnded: Bool, originHasEnded: Bool)
        case finished
    }

    let settings: NegotiationSettings
    var state = State.requests
    var requests = MessageStream(.requests)
    /// The connections in the order of their last use.
    var connections: [Connection] = []
    var exchange: Exchange?
    private var lastOrigin = 0
    private var clientHasClosed = false
    private var isPaused = false
    private var actions = Deque<Action>()

    /// The most connections to origins; the one that has been idle for the longest time is closed for another.
    public static let originsMax = 8
    /// The bytes of pipelined requests above which reading from the client pauses.
    public static let pipelinedBytesMax = 64 << 10

    /// Creates the forwarder of one client connection.
    public init(_ settings: NegotiationSettings) { self.settings = settings }

    /// Whether no action follows, whatever happens: when the last actions are done, the driver closes the connection.
    public var isFinished: Bool { state == .finished }

    /// The number of bytes of the client that the forwarder holds.
    public var bytesKept: Int { requests.bytesKept }

    /// Returns the next action.
    public mutating func takeAction() -> Action? { actions.popFirst() }

    // MARK: The client

    /// Reports bytes of the client.
    public mutating func receivedFromClient(_ bytes: ByteBuffer) {
        switch state {
        case .requests:
            requests.received(bytes)
            run()
        case .tunnel(let origin, false, _): perform(.send(bytes, origin))
        case .tunnel, .finished: break
        }
    }

    /// Reports that the client has closed its sending side (FIN). It still gets the responses to its requests.
    public mutating func clientClosed() {
        guard !clientHasClosed else { return }
        clientHasClosed = true
        switch state {
        case .requests:
            requests.ended()
            run()
        case .tunnel(let origin, _, let originHasEnded):
            perform(.finishSending(origin))
            endTunnel(origin, clientHasEnded: true, originHasEnded)
        case .finished: break
        }
    }

    /// Reports that the client has aborted the connection (RST).
    public mutating func clientGone() {
        let active: Origin? = if case .tunnel(let origin, _, _) = state { origin } else { exchange?.origin }
        finish(except: active)
        if let active { perform(.resetOrigin(active)) }
    }

    // MARK: Origins

    /// Reports that an origin is connected.
    public mutating func established(_ origin: Origin) {
        guard let index = index(of: origin), !connections[index].isEstablished else { return }
        connections[index].isEstablished = true
        guard let exchange, exchange.origin == origin else { return }
        if let head = exchange.head {
            perform(.send(head, origin))
            run()
        } else {
            perform(.reply(Negotiation.connectEstablished))
            beginTunnel(origin)
        }
    }

    /// Reports that an origin cannot be connected.
    public mutating func failed(_ origin: Origin, _ failure: ConnectFailure) {
        guard let index = index(of: origin), !connections[index].isEstablished else { return }
        connections.remove(at: index)
        guard let exchange, exchange.origin == origin else { return }
        let keepsAlive = exchange.keepsAlive && exchange.requestHasEnded
        let response = failure.response(
            for: exchange.destination, closes: !keepsAlive, omitsBody: exchange.method == "HEAD")
        guard keepsAlive else { return refuse(response) }
        perform(.reply(response.bytes))
        self.exchange = nil
        run()
    }

    /// Reports bytes of an origin.
    public mutating func received(_ bytes: ByteBuffer, from origin: Origin) {
        if case .tunnel(origin, _, let originHasEnded) = state {
            if !originHasEnded { perform(.reply(bytes)) }
            return
        }
        guard let index = index(of: origin) else { return }
        guard exchange?.origin == origin else { return forget(index) }
        connections[index].responses.received(bytes)
        takeResponse(origin)
    }

    /// Reports that an origin has closed its sending side (FIN).
    public mutating func finished(_ origin: Origin) {
        if case .tunnel(origin, let clientHasEnded, let originHasEnded) = state {
            if originHasEnded { return }
            perform(.closeClient)
            return endTunnel(origin, clientHasEnded: clientHasEnded, true)
        }
        guard let index = index(of: origin) else { return }
        guard exchange?.origin == origin else { return forget(index) }
        connections[index].responses.ended()
        takeResponse(origin)
        // A response without its end, or none.
        if exchange?.origin == origin { close() } else if let index = self.index(of: origin) { forget(index) }
    }

    /// Reports that an origin has aborted the connection (RST).
    public mutating func reset(_ origin: Origin) {
        guard let index = index(of: origin) else { return }
        let isActive = if case .tunnel(origin, _, _) = state { true } else { exchange?.origin == origin }
        connections.remove(at: index)
        if isActive { abort() }
    }

    // MARK: Requests

    /// Takes requests until one is under way.
    private mutating func run() {
        while state == .requests {
            guard let exchange else {
                guard let (part, _) = takeRequestPart() else { break }
                if case .requestHead(let head, _) = part { begin(head) }
                continue
            }
            guard !exchange.requestHasEnded, isEstablished(exchange.origin), let (part, bytes) = takeRequestPart()
            else {
                break
            }
            if bytes.readableBytes > 0 { perform(.send(bytes, exchange.origin)) }
            if case .end = part { self.exchange?.requestHasEnded = true }
        }
        if state == .requests, exchange == nil, clientHasClosed { close() }
        let isBlocked = exchange.map { $0.requestHasEnded || !isEstablished($0.origin) } ?? false
        setPaused(state == .requests && isBlocked && requests.bytesKept > Self.pipelinedBytesMax)
    }

    private mutating func setPaused(_ paused: Bool) {
        guard paused != isPaused else { return }
        isPaused = paused
        perform(paused ? .pauseClient : .resumeClient)
    }

    private mutating func takeRequestPart() -> (part: HTTPPart, bytes: ByteBuffer)? {
        do throws(HTTPError) {
            return try requests.next()
        } catch {
            requestFailed(error)
            return nil
        }
    }

    private mutating func requestFailed(_ error: HTTPError) {
        if error == .endedEarly, let origin = exchange?.origin {
            // The origin sees what the client did, and may still respond.
            exchange?.requestHasEnded = true
            exchange?.keepsAlive = false
            perform(.finishSending(origin))
        } else if error == .endedEarly {
            close()
        } else if exchange?.responseHasBegun == true {
            abort()
        } else {
            refuse(ProxyResponse(requestError: error))
        }
    }

    private mutating func begin(_ head: HTTPRequestHead) {
        let framing = requests.framing
        let target: RequestTarget
        do throws(ProxyResponse) {
            target = try RequestTarget(head, framing, settings)
        } catch {
            return refuse(error)
        }
        let destination: Destination
        var forwarded: ByteBuffer?
        switch target {
        case .local(let path): return refuse(LocalPages.response(path: path, head, settings))
        case .tunnel(let tunneled): destination = tunneled
        case .forward(let origin, let path, let host):
            destination = origin
            forwarded = HopByHop.request(head, target: path, host: host)
        }
        // Credentials are those of a request, not of the connection (RFC 9110, 11.7).
        guard settings.permits(head) else {
            return refuse(.credentialsRequired(closes: true, omitsBody: head.method == "HEAD"))
        }
        if forwarded != nil, HopByHop.forwardsMax(head) == 0 { return refuse(.lastRecipient(head.method)) }
        let origin = connect(destination, isReusable: forwarded != nil)
        exchange = Exchange(
            origin: origin, destination: destination, method: head.method, version: head.version, head: forwarded,
            asksUpgrade: HopByHop.asksUpgrade(head), keepsAlive: HopByHop.keepsAlive(head))
        if framing == .none {
            // The end of a request without a body needs no further bytes.
            _ = takeRequestPart()
            exchange?.requestHasEnded = true
        }
        guard let forwarded, let index = index(of: origin) else { return }
        connections[index].responses.requestSent(method: head.method)
        if connections[index].isEstablished { perform(.send(forwarded, origin)) }
    }

    /// Returns a connection to a destination: an idle one, which becomes the newest, or a new one.
    private mutating func connect(_ destination: Destination, isReusable: Bool) -> Origin {
        if isReusable, let index = connections.firstIndex(where: { $0.destination == destination }) {
            connections.append(connections.remove(at: index))
            return connections[connections.count - 1].number
        }
        if connections.count == Self.originsMax { forget(0) }
        lastOrigin += 1
        connections.append(Connection(number: lastOrigin, destination: destination))
        perform(.open(lastOrigin, destination))
        return lastOrigin
    }

    // MARK: Connections

    func index(of origin: Origin) -> Int? { connections.firstIndex { $0.number == origin } }

    private func isEstablished(_ origin: Origin) -> Bool {
        index(of: origin).map { connections[$0].isEstablished } ?? false
    }

    private mutating func forget(_ index: Int) {
        perform(.closeOrigin(connections.remove(at: index).number))
    }

    mutating func perform(_ action: Action) { actions.append(action) }

    /// Ends the exchange whose response is complete.
    mutating func endExchange() {
        guard let exchange else { return }
        guard exchange.keepsAlive else { return close() }
        self.exchange = nil
        // Bytes after the response would be taken for the next one.
        if let index = index(of: exchange.origin),
            !exchange.originKeepsAlive || connections[index].responses.bytesKept > 0
        {
            forget(index)
        }
        run()
    }

    // MARK: Tunnels

    mutating func beginTunnel(_ origin: Origin) {
        exchange = nil
        for connection in connections where connection.number != origin { perform(.closeOrigin(connection.number)) }
        connections.removeAll { $0.number != origin }
        let bytes = requests.takeRemainder()
        if bytes.readableBytes > 0 { perform(.send(bytes, origin)) }
        state = .tunnel(origin, clientHasEnded: clientHasClosed, originHasEnded: false)
        if clientHasClosed { perform(.finishSending(origin)) }
        setPaused(false)
    }

    private mutating func endTunnel(_ origin: Origin, clientHasEnded: Bool, _ originHasEnded: Bool) {
        state = .tunnel(origin, clientHasEnded: clientHasEnded, originHasEnded: originHasEnded)
        if clientHasEnded && originHasEnded { finish() }
    }

    // MARK: Ends

    mutating func refuse(_ response: ProxyResponse) {
        perform(.reply(response.bytes))
        close()
    }

    /// Closes the client's connection and all others.
    private mutating func close() {
        perform(.closeClient)
        finish()
    }

    /// Aborts the client's connection, and closes all others.
    mutating func abort() {
        perform(.resetClient)
        finish()
    }

    private mutating func finish(except origin: Origin? = nil) {
        for connection in connections where connection.number != origin { perform(.closeOrigin(connection.number)) }
        connections = []
        exchange = nil
        _ = requests.takeRemainder()
        state = .finished
    }
}
