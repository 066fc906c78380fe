public import NIOCore
internal import Wire

/// The first bytes of a client: detects the protocol, reads the request for a destination, writes the replies.
///
/// A state machine without deadlines. The first byte is the version of SOCKS, or else belongs to an HTTP request.
public struct Negotiation: Sendable {
    /// What the driver does next.
    public enum Step: Sendable {
        /// Write these bytes; the negotiation goes on.
        case reply(ByteBuffer)
        /// Connect the destination. Write ``Negotiation/established()`` or ``Negotiation/failed(_:)``; after a failure,
        /// close the connection. Bytes of the client that arrive meanwhile stay in the negotiation.
        case open(Destination)
        /// The client of SOCKS 5 wants to exchange datagrams, from this port or, if it is 0, from any one (UDP ASSOCIATE). Write
        /// ``Negotiation/associated(at:port:)`` or ``Negotiation/failed(_:)``. The association ends with the connection.
        case associate(port: Int)
        /// The client sends requests in absolute form: give ``Negotiation/takeRemainder()`` and all later bytes to a
        /// ``RequestForwarder``.
        case forwardRequests
        /// Write these bytes and close the connection.
        case refuse(ByteBuffer)
    }

    enum State: Hashable, Sendable {
        case start, socks4, socks5Methods, socks5Credentials, socks5Request, http
        /// The last step was returned.
        case opened(Opened)
        case forwarding, refused
    }

    /// The protocol and the destination of ``Step/open(_:)``.
    enum Opened: Hashable, Sendable { case socks4(Destination), socks5(Destination), connect(Destination), association }

    /// The settings.
    public let settings: NegotiationSettings
    var state = State.start
    /// The bytes that are not read yet; in HTTP, `requests` has them.
    var bytes = ByteBuffer()
    private var requests = MessageStream(.requests)
    /// The requests that were answered with 407.
    private var challenges = 0

    /// The number of bytes above which the driver stops reading from the client until the connection is established.
    public static let bytesKeptMax = 128 << 10
    /// The number of responses 407 on one connection; the last one closes it.
    static let challengesMax = 3

    /// Creates the negotiation of a new client.
    public init(_ settings: NegotiationSettings) { self.settings = settings }

    /// The number of bytes that the negotiation holds. The driver stops reading while it exceeds
    /// ``bytesKeptMax`` (back-pressure).
    public var bytesKept: Int { bytes.readableBytes + requests.bytesKept }

    /// Reports bytes of the client.
    public mutating func received(_ bytes: ByteBuffer) {
        switch state {
        case .http: requests.received(bytes)
        case .refused: break
        default:
            // A read of a few bytes may come in a buffer of kilobytes; the copy is as long as the bytes.
            self.bytes.writeImmutableBuffer(bytes)
        }
    }

    /// Returns the next step; `nil` if more bytes are needed, or after a step that ends the negotiation.
    public mutating func next() -> Step? {
        while true {
            switch state {
            case .start:
                switch bytes.getInteger(at: bytes.readerIndex, as: UInt8.self) {
                case nil: return nil
                case 4: state = .socks4
                case 5: state = .socks5Methods
                default:
                    state = .http
                    requests.received(bytes)
                    bytes = ByteBuffer()
                }
            case .socks4: return nextOfSOCKS4()
            case .socks5Methods: return nextMethods()
            case .socks5Credentials: return nextCredentials()
            case .socks5Request: return nextOfSOCKS5()
            case .http: return nextOfHTTP()
            case .opened, .forwarding, .refused: return nil
            }
        }
    }

    /// Returns the reply when the destination is connected.
    public func established() -> ByteBuffer {
        switch state {
        case .opened(.socks4): Self.socks4Reply(Self.socks4Granted)
        case .opened(.socks5): Self.socks5Reply(0)
        case .opened(.connect): Self.connectEstablished
        default: ByteBuffer()
        }
    }

    /// Returns the reply to a client that may send datagrams to an address of the proxy.
    public func associated(at address: IPAddress, port: Int) -> ByteBuffer {
        Self.socks5Reply(0, address: address, port: port)
    }

    /// Returns the reply when the destination cannot be connected. The driver closes the connection after it.
    public func failed(_ failure: ConnectFailure) -> ByteBuffer {
        switch state {
        case .opened(.socks4): Self.socks4Reply(Self.socks4Rejected)
        case .opened(.socks5), .opened(.association): Self.socks5Reply(failure.socks5Code)
        case .opened(.connect(let destination)): failure.response(for: destination, closes: true).bytes
        default: ByteBuffer()
        }
    }

    /// Takes the bytes after the negotiation; with ``Step/forwardRequests`` the requests from the first byte on.
    public mutating func takeRemainder() -> ByteBuffer {
        defer { bytes = ByteBuffer() }
        return bytes
    }

    // MARK: HTTP

    /// The response to CONNECT. 2xx has neither Content-Length nor Transfer-Encoding (RFC 9110, 9.3.6).
    static let connectEstablished = ByteBuffer(string: "HTTP/1.1 200 Connection established\r\n\r\n")

    private mutating func nextOfHTTP() -> Step? {
        do throws(HTTPError) {
            while let (part, received) = try requests.next() {
                // The end of a request that was answered with 407.
                guard case .requestHead(let head, _) = part else { continue }
                return step(head, received)
            }
            return nil
        } catch {
            return refuse(ProxyResponse(requestError: error).bytes)
        }
    }

    private mutating func step(_ head: HTTPRequestHead, _ received: ByteBuffer) -> Step? {
        let framing = requests.framing
        let target: RequestTarget
        do throws(ProxyResponse) {
            target = try RequestTarget(head, framing, settings)
        } catch {
            return refuse(error.bytes)
        }
        if case .local(let path) = target { return refuse(LocalPages.response(path: path, head, settings).bytes) }
        guard settings.permits(head) else {
            challenges += 1
            // The client may repeat the request on this connection, unless a body of unknown use would come first.
            let closes = challenges >= Self.challengesMax || framing != .none || !HopByHop.keepsAlive(head)
            let response = ProxyResponse.credentialsRequired(closes: closes, omitsBody: head.method == "HEAD").bytes
            return closes ? refuse(response) : .reply(response)
        }
        if case .tunnel(let destination) = target {
            bytes = requests.takeRemainder()
            return open(.connect(destination), destination)
        }
        bytes = received
        bytes.writeImmutableBuffer(requests.takeRemainder())
        state = .forwarding
        return .forwardRequests
    }

    // MARK: Ends

    mutating func open(_ opened: Opened, _ destination: Destination) -> Step {
        state = .opened(opened)
        return .open(destination)
    }

    mutating func refuse(_ reply: ByteBuffer) -> Step {
        state = .refused
        bytes = ByteBuffer()
        _ = requests.takeRemainder()
        return .refuse(reply)
    }
}
