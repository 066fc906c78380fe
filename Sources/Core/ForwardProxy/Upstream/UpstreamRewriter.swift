internal import DequeModule
internal import HTTPTypes
public import NIOCore
internal import Wire

/// The HTTP messages between a client that speaks HTTP and an upstream that speaks HTTPS, changed so that both sides
/// agree about names: `Host` of requests, and `Location` and the cookies of responses.
///
/// A state machine without deadlines. Only heads change, and only those that have such a field: every other byte passes as
/// it is, and so do all bytes of a direction from the first one that is not HTTP/1.x, and those after an upgrade.
public struct UpstreamRewriter: Sendable {
    /// An instruction for the driver.
    public enum Action: Sendable {
        /// Write bytes to the upstream.
        case send(ByteBuffer)
        /// Write bytes to the client.
        case reply(ByteBuffer)
        /// Log a change.
        case rewrote(UpstreamRewriting)
        /// Log that the bytes of a direction pass unchanged from now on, with the reason.
        case passesUnchanged(String)
    }

    private let upstream: OriginAuthority
    private let rewrites: Bool
    private var requests = MessageStream(.requests)
    private var responses = MessageStream(.responses)
    /// Whether the bytes of a direction are not parsed.
    private var requestsPass = false
    private var responsesPass = false
    /// The hosts of requests without a final response, as the client has named them.
    private var hosts = Deque<String?>()
    /// Whether the current request asks for another protocol.
    private var asksSwitch = false
    /// Whether the client's bytes wait for the response to that request.
    private var isAwaitingSwitch = false
    private var actions = Deque<Action>()

    /// The most requests without a response; beyond it the bytes pass unchanged.
    public static let exchangesMax = 1024
    /// The most bytes that wait for the response to an upgrade; beyond it they pass unchanged.
    public static let bytesAwaitingSwitchMax = 64 << 10

    /// Creates the rewriter of one connection.
    ///
    /// - Parameter rewrites: Whether heads are changed; otherwise the messages are only followed.
    public init(_ upstream: OriginAuthority, rewrites: Bool = true) {
        self.upstream = upstream
        self.rewrites = rewrites
    }

    /// Returns the next action.
    public mutating func takeAction() -> Action? { actions.popFirst() }

    /// Whether the upstream may end its stream here without cutting a message short.
    public var isBetweenResponses: Bool { !responsesPass && !responses.isInsideMessage }

    // MARK: Inputs

    /// Reports bytes of the client.
    public mutating func receivedFromClient(_ bytes: ByteBuffer) {
        if requestsPass { return perform(.send(bytes)) }
        requests.received(bytes)
        takeRequests()
        if isAwaitingSwitch, requests.bytesKept > Self.bytesAwaitingSwitchMax {
            passRequests("more than \(Self.bytesAwaitingSwitchMax) bytes before the response to an upgrade")
        }
    }

    /// Reports the end of the client's stream: a message that is not complete passes as it is.
    public mutating func clientFinished() { if !requestsPass { passRequests(nil) } }

    /// Reports bytes of the upstream.
    public mutating func receivedFromUpstream(_ bytes: ByteBuffer) {
        if responsesPass { return perform(.reply(bytes)) }
        responses.received(bytes)
        takeResponses()
    }

    /// Reports the end of the upstream's stream: a message that is not complete passes as it is.
    public mutating func upstreamFinished() { if !responsesPass { passResponses(nil) } }

    private mutating func perform(_ action: Action) {
        switch action {
        case .send(let bytes) where bytes.readableBytes == 0, .reply(let bytes) where bytes.readableBytes == 0: break
        default: actions.append(action)
        }
    }

    private mutating func passRequests(_ reason: String?) {
        requestsPass = true
        isAwaitingSwitch = false
        if let reason { perform(.passesUnchanged("requests: \(reason)")) }
        perform(.send(requests.takeRemainder()))
    }

    private mutating func passResponses(_ reason: String?) {
        responsesPass = true
        if let reason { perform(.passesUnchanged("responses: \(reason)")) }
        perform(.reply(responses.takeRemainder()))
    }

    // MARK: Requests

    private mutating func takeRequests() {
        while !requestsPass, !isAwaitingSwitch {
            do throws(HTTPError) {
                guard let (part, bytes) = try requests.next() else { return }
                if case .requestHead(let head, _) = part { forward(head, bytes) } else { perform(.send(bytes)) }
                if case .end = part, asksSwitch { (asksSwitch, isAwaitingSwitch) = (false, true) }
            } catch {
                passRequests("\(error)")
            }
        }
    }

    private mutating func forward(_ head: HTTPRequestHead, _ bytes: ByteBuffer) {
        asksSwitch = head.method == "CONNECT" || head.fields.isListed("upgrade", in: .connection)
        let host = head.hosts.count == 1 ? head.hosts[0] : nil
        hosts.append(host)
        responses.requestSent(method: head.method)
        let name = upstream.description
        if rewrites, let host, host != name,
            let index = head.fields.firstIndex(where: { $0.name == UpstreamRewriting.hostName })
        {
            var fields = head.fields
            fields[index] = HTTPField(name: fields[index].name, value: name)
            var changed = ByteBuffer()
            head.with(target: head.target, fields).write(into: &changed)
            perform(.rewrote(.host(host, name)))
            perform(.send(changed))
        } else {
            perform(.send(bytes))
        }
        if hosts.count > Self.exchangesMax {
            passRequests("more than \(Self.exchangesMax) requests without a response")
            passResponses("more than \(Self.exchangesMax) requests without a response")
        }
    }

    // MARK: Responses

    private mutating func takeResponses() {
        while !responsesPass {
            do throws(HTTPError) {
                guard let (part, bytes) = try responses.next() else { return }
                switch part {
                case .responseHead(let head, _, isInterim: false): forward(head, bytes)
                default: perform(.reply(bytes))
                }
            } catch {
                passResponses("\(error)")
                // Which response belongs to a later upgrade is unknown.
                if isAwaitingSwitch { passRequests("the response is not HTTP/1.x") }
            }
        }
    }

    private mutating func forward(_ head: HTTPResponseHead, _ bytes: ByteBuffer) {
        let host = hosts.popFirst() ?? nil
        let (fields, rewritings) =
            rewrites ? UpstreamRewriting.fields(of: head, from: upstream, clientHost: host) : (head.fields, [])
        if rewritings.isEmpty {
            perform(.reply(bytes))
        } else {
            var changed = ByteBuffer()
            head.with(fields).write(into: &changed)
            for rewriting in rewritings { perform(.rewrote(rewriting)) }
            perform(.reply(changed))
        }
        if responses.isOpaque {
            passRequests(nil)
            passResponses(nil)
        } else if hosts.isEmpty {
            // The response may precede the end of the request.
            (asksSwitch, isAwaitingSwitch) = (false, false)
            takeRequests()
        }
    }
}
