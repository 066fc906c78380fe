internal import Client
internal import NIOCore
internal import NIOPosix
internal import Wire
internal import Worlds

/// Requests to a server, each on a connection of its own.
struct HTTPCall: Sendable {
    let host: String
    let port: Int
    /// The value of `Authorization`.
    let authorization: String

    /// The time limit of a request.
    var timeout = TimeAmount.seconds(30)

    /// The server has closed the connection without a complete response.
    struct NoResponseError: Error, CustomStringConvertible {
        let description = "the server closed the connection without a response"
    }

    /// Sends a request and returns the response.
    func execute(_ content: SyncRequestContent) async throws -> SyncResponse {
        let fields = RawRequest.fields(of: content, host: "\(host):\(port)", authorization: authorization)
        var request = ByteBuffer()
        try HTTPRequestHead(method: content.method, target: content.target, fields: fields).write(into: &request)
        request.writeBytes(content.body)
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connectTimeout(timeout)
            .connect(host: host, port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        let timer = channel.channel.eventLoop.scheduleTask(in: timeout) { channel.channel.close(promise: nil) }
        defer { timer.cancel() }
        return try await channel.executeThenClose { inbound, outbound in
            try await outbound.write(request)
            var reader = ResponseReader(method: content.method)
            for try await bytes in inbound {
                if let response = try reader.received(bytes) { return response }
            }
            if let response = try reader.streamEnded() { return response }
            throw NoResponseError()
        }
    }
}

/// The response to one request, assembled from its parts.
private struct ResponseReader {
    private var parser = HTTPParser(.responses)
    private var head: HTTPResponseHead?
    private var body: [UInt8] = []

    init(method: String) { parser.requestSent(method: method) }

    mutating func received(_ bytes: ByteBuffer) throws -> SyncResponse? {
        parser.received(bytes)
        return try response()
    }

    mutating func streamEnded() throws -> SyncResponse? {
        parser.streamEnded()
        return try response()
    }

    private mutating func response() throws -> SyncResponse? {
        while let part = try parser.takePart() {
            switch part {
            case .responseHead(let head, _, isInterim: false): self.head = head
            case .body(let bytes, _): body.append(contentsOf: bytes.readableBytesView)
            case .end:
                if let head {
                    return SyncResponse(status: head.status, headers: head.fieldLines, body: body)
                }
            default: break
            }
        }
        return nil
    }
}
