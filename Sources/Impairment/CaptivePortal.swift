internal import HTTPWire
internal import NIOCore

/// A network that answers HTTP itself: whatever is asked, status 200 and a page of its own.
struct CaptivePortal {
    private var parser = HTTPParser(.requests)
    private var head: HTTPRequestHead?

    /// What it says to bytes of a client.
    enum Answer {
        case bytes(ByteBuffer, isLast: Bool)
        /// They are no HTTP, as when a client begins with TLS.
        case hangsUp
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

    /// Takes bytes of a client's requests.
    mutating func take(_ bytes: ByteBuffer) -> Answer {
        parser.append(bytes)
        var answers = ByteBuffer()
        do throws(HTTPError) {
            while let part = try parser.next() {
                switch part {
                case .requestHead(let request, _): head = request
                case .end:
                    guard let request = head else { continue }
                    head = nil
                    try Self.answer(request, into: &answers)
                    if !request.keepsAlive { return .bytes(answers, isLast: true) }
                case .opaque: return .hangsUp
                default: break
                }
            }
        } catch {
            return .hangsUp
        }
        return .bytes(answers, isLast: false)
    }

    private static func answer(_ request: HTTPRequestHead, into answers: inout ByteBuffer) throws(HTTPError) {
        var headers = HTTPHeaders()
        headers.add("Content-Type", "text/html; charset=utf-8")
        headers.add("Content-Length", "\(page.utf8.count)")
        headers.add("Cache-Control", "no-store")
        if !request.keepsAlive { headers.add("Connection", "close") }
        try HTTPResponseHead(status: 200, reason: "OK", headers: headers).write(into: &answers)
        if request.method != "HEAD" { answers.writeString(page) }
    }
}
