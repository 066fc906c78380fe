import ForwardProxy
import NIOCore

/// The settings of the tests.
func settings(user: String? = nil, password: String = "secret") -> NegotiationSettings {
    NegotiationSettings(
        addresses: [
            Destination(host: "192.168.1.5", port: 9000), Destination(host: "127.0.0.1", port: 9000),
            Destination(host: "::1", port: 9000),
        ],
        credentials: user.flatMap { ProxyCredentials(user: $0, password: password) }, associates: true)
}

/// The steps of a negotiation, as text that does not depend on the pieces in which the bytes arrived.
struct Transcript: Equatable, CustomStringConvertible {
    var steps: [String] = []
    var established: [UInt8] = []
    var refused: [UInt8] = []
    var remainder: [UInt8] = []
    var isComplete = false

    var description: String { "\(steps) \(String(decoding: remainder, as: UTF8.self).debugDescription)" }

    /// Runs a negotiation with bytes in pieces.
    init(_ pieces: [some Collection<UInt8>], _ settings: NegotiationSettings = ForwardProxyTests.settings()) {
        var negotiation = Negotiation(settings)
        for piece in pieces {
            negotiation.received(ByteBuffer(bytes: piece))
            while let step = negotiation.next() {
                switch step {
                case .reply(let bytes): steps.append("reply " + Self.text(bytes))
                case .open(let destination):
                    steps.append("open \(destination)")
                    established = Array(negotiation.established().readableBytesView)
                    refused = Array(negotiation.failed(.connectionRefused).readableBytesView)
                    isComplete = true
                case .associate(let port):
                    steps.append("associate \(port)")
                    isComplete = true
                case .forwardRequests:
                    steps.append("forward")
                    isComplete = true
                case .refuse(let bytes):
                    steps.append("refuse " + Self.text(bytes))
                    isComplete = true
                }
            }
        }
        remainder = Array(negotiation.takeRemainder().readableBytesView)
    }

    /// The first line of an HTTP response, or the bytes in hexadecimal.
    static func text(_ bytes: ByteBuffer) -> String {
        let text = String(buffer: bytes)
        if text.hasPrefix("HTTP/") { return String(text.prefix { $0 != "\r\n" }) }
        return bytes.readableBytesView.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(separator: " ")
    }
}
