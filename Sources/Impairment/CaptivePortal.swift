internal import HTTPWire
internal import NIOCore

/// A network that responds to HTTP requests itself: status 200 and a sign-in page for every request.
struct CaptivePortal {
    private var parser = HTTPParser(.requests)
    private var head: HTTPRequestHead?

    /// The reaction to bytes of a client.
    enum Reaction {
        case respond(ByteBuffer, isLast: Bool)
        /// The bytes are not HTTP, as when a client begins with TLS.
        case close
    }

    static let page = """
        <!doctype html>
        <html lang="en">
        <meta charset="utf-8">
        <title>Sign in to this network</title>
        <h1>Sign in to this network</h1>
        <p>This page comes from Slowlane's condition <code>portal</code>. Your request has not reached its server.</p>
        </html>

        """

    /// Returns the reaction to bytes of a client's requests.
    mutating func receive(_ bytes: ByteBuffer) -> Reaction {
        parser.received(bytes)
        var responses = ByteBuffer()
        do throws(HTTPError) {
            while let part = try parser.takePart() {
                switch part {
                case .requestHead(let request, _): head = request
                case .end:
                    guard let request = head else { continue }
                    head = nil
                    try Self.respond(to: request, into: &responses)
                    if !request.keepsAlive { return .respond(responses, isLast: true) }
                case .opaque: return .close
                default: break
                }
            }
        } catch {
            return .close
        }
        return .respond(responses, isLast: false)
    }

    private static func respond(
        to request: HTTPRequestHead, into responses: inout ByteBuffer
    ) throws(HTTPError) {
        var headers = HTTPHeaders()
        headers.add("Content-Type", "text/html; charset=utf-8")
        headers.add("Content-Length", "\(page.utf8.count)")
        headers.add("Cache-Control", "no-store")
        if !request.keepsAlive { headers.add("Connection", "close") }
        try HTTPResponseHead(status: 200, reason: "OK", headers: headers).write(into: &responses)
        if request.method != "HEAD" { responses.writeString(page) }
    }
}
