internal import Client
internal import NIOCore
internal import Wire

/// A request past the client's queue, on a connection of its own, and the parser of its response.
struct RawExchange {
    /// The bytes of the request.
    let bytes: ByteBuffer
    private var parser = HTTPParser(.responses)

    /// Creates a request.
    init(_ content: SyncRequestContent, authorization: String) throws {
        var bytes = ByteBuffer()
        let fields = RawRequest.fields(of: content, host: Server.host, authorization: authorization)
        try HTTPRequestHead(method: content.method, target: content.target, fields: fields).write(into: &bytes)
        bytes.writeBytes(content.body)
        self.bytes = bytes
        parser.requestSent(method: content.method)
    }

    /// Processes bytes of the response. Returns whether the response is complete, or is not HTTP.
    mutating func received(_ bytes: ByteBuffer) -> Bool {
        parser.received(bytes)
        do {
            while let part = try parser.takePart() {
                if case .end = part { return true }
            }
            return false
        } catch {
            return true
        }
    }
}
