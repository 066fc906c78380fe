import ForwardProxy
import NIOCore

/// A forwarder with the bytes that reach the client and the origins.
struct ForwarderScene {
    private(set) var forwarder: RequestForwarder
    /// The actions since the last call of ``takeEvents()``, without bytes.
    private var events: [String] = []
    /// The bytes to the client since the last call of ``takeReply()``.
    private var reply = ""
    /// The bytes to each origin since the last call of ``takeSent(_:)``.
    private var sent: [Int: String] = [:]
    /// Whether origins are connected at once.
    var connects = true

    init(_ settings: NegotiationSettings = ForwardProxyTests.settings()) { forwarder = RequestForwarder(settings) }

    mutating func client(_ text: String) {
        forwarder.receivedFromClient(ByteBuffer(string: text))
        drain()
    }

    mutating func origin(_ origin: Int, _ text: String) {
        forwarder.received(ByteBuffer(string: text), from: origin)
        drain()
    }

    mutating func change(_ change: (inout RequestForwarder) -> Void) {
        change(&forwarder)
        drain()
    }

    private mutating func drain() {
        while let action = forwarder.takeAction() {
            switch action {
            case .open(let origin, let destination):
                events.append("open \(origin) \(destination)")
                if connects { forwarder.established(origin) }
            case .send(let bytes, let origin): sent[origin, default: ""] += String(buffer: bytes)
            case .finishSending(let origin): events.append("FIN \(origin)")
            case .closeOrigin(let origin): events.append("close \(origin)")
            case .resetOrigin(let origin): events.append("RST \(origin)")
            case .reply(let bytes): reply += String(buffer: bytes)
            case .pauseClient: events.append("pause")
            case .resumeClient: events.append("resume")
            case .closeClient: events.append("FIN client")
            case .resetClient: events.append("RST client")
            }
        }
    }

    mutating func takeEvents() -> [String] {
        defer { events = [] }
        return events
    }

    mutating func takeReply() -> String {
        defer { reply = "" }
        return reply
    }

    mutating func takeSent(_ origin: Int) -> String { sent.removeValue(forKey: origin) ?? "" }
}
