internal import LinkModel
internal import NIOCore
internal import Wire

/// A captive portal, which responds to every HTTP request with status 200 and a sign-in page.
struct CaptivePortal {
    private var parser = HTTPParser(.requests)
    private var head: HTTPRequestHead?
    /// The first bytes, while they may be the preface of HTTP/2.
    private var opening: ByteBuffer? = ByteBuffer()
    private var streams: PortalStreams?
    /// Whether a response has closed the connection; bytes after its request are discarded.
    private(set) var hasClosed = false

    static let page = """
        <!doctype html>
        <html lang="en">
        <meta charset="utf-8">
        <title>Sign in to this network</title>
        <h1>Sign in to this network</h1>
        <p>This page comes from Slowlane's condition <code>portal</code>. Your request has not reached its server.</p>
        </html>

        """

    /// Executes an action for the server's socket. Returns the events of that socket.
    ///
    /// - Parameter mayRespond: Whether responses fit into the connection's buffer share. Otherwise the connection is
    ///   closed, since the client does not read.
    mutating func process(_ action: SocketAction, mayRespond: Bool) -> [SocketEvent] {
        switch action {
        case .write(let bytes, to: _): mayRespond ? respond(to: bytes) : [.gone(.server)]
        case .awaitDrain: [.drained(.server)]
        case .closeOutput: [.inputClosed(.server)]
        case .close: [.gone(.server)]
        case .reset, .resetAfterWrites, .flush, .established, .pauseReading, .resumeReading, .ended: []
        }
    }

    /// Responds to the requests in the client's bytes. Bytes that are not HTTP close the connection, as when a client
    /// begins with TLS.
    private mutating func respond(to bytes: ByteBuffer) -> [SocketEvent] {
        if hasClosed { return [] }
        var bytes = bytes
        if var first = opening {
            first.writeImmutableBuffer(bytes)
            let preface = HTTP2Frame.preface.prefix(first.readableBytes)
            let mayBeHTTP2 = first.readableBytesView.starts(with: preface)
            opening = mayBeHTTP2 && preface.count < HTTP2Frame.preface.count ? first : nil
            if opening != nil { return [] }
            if mayBeHTTP2 {
                first.moveReaderIndex(forwardBy: preface.count)
                streams = PortalStreams()
            }
            bytes = first
        }
        if streams != nil {
            let frames = streams?.respond(to: bytes) ?? ByteBuffer()
            if streams?.hasFailed == true { return [.gone(.server)] }
            return frames.readableBytes > 0 ? [.bytes(frames, from: .server)] : []
        }
        parser.received(bytes)
        var responses = ByteBuffer()
        do throws(HTTPError) {
            while let part = try parser.takePart() {
                switch part {
                case .requestHead(let request, _): head = request
                case .end:
                    guard let request = head else { continue }
                    head = nil
                    let response = FaultResponse.portal.response(to: FaultResponse.Recipient(request))
                    responses.writeImmutableBuffer(response.bytes)
                    if !response.keepsAlive {
                        hasClosed = true
                        return [.bytes(responses, from: .server), .inputClosed(.server)]
                    }
                case .opaque: return [.gone(.server)]
                default: break
                }
            }
        } catch {
            return [.gone(.server)]
        }
        return responses.readableBytes > 0 ? [.bytes(responses, from: .server)] : []
    }
}
