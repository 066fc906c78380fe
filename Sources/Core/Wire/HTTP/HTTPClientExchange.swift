internal import Determinism
internal import HTTPTypes
internal import NIOCore

/// An exchange that has not ended.
struct HTTPClientExchange: Sendable {
    let method: String
    /// Whether the request allows the connection to be used again.
    let keepsAlive: Bool
    let pool: Int
    /// Whether the body of the response is reported in pieces.
    let isStreamed: Bool
    /// The end of the total time of a small exchange.
    let limit: Instant
    var writer: HTTPRequestWriter
    /// The connection and the progress on it; `nil` while the exchange waits for a connection.
    var transfer: (connection: HTTPConnectionID, progress: HTTPExchangeProgress)?
    var phase = HTTPClientError.Phase.notSent
    var interimCount = 0
    var head: HTTPResponseHead?
    var body: [UInt8] = []
    /// The number of bytes of the body that have arrived.
    var bodyCount = 0
    var trailers = HTTPFields()
    /// The bytes at the start of the response that have been compared with ``responsePrefix``.
    private var comparedCount = 0

    /// The first bytes of each HTTP/1.1 response.
    private static let responsePrefix = Array("HTTP/".utf8)
    /// The space for the head of a request; more is allocated if needed.
    private static let headBytesExpected = 512

    init(_ head: HTTPRequestHead, body: [UInt8], isStreamed: Bool, pool: Int, limit: Instant) {
        var bytes = ByteBuffer()
        bytes.reserveCapacity(Self.headBytesExpected)
        head.write(into: &bytes)
        writer = HTTPRequestWriter(head: bytes, body: body)
        method = head.method
        keepsAlive = head.keepsAlive
        self.pool = pool
        self.isStreamed = isStreamed
        self.limit = limit
    }

    /// The next time at which a timeout may expire.
    var deadline: Instant {
        guard let progress = transfer?.progress else { return limit }
        return progress.isLarge ? progress.deadline : min(progress.deadline, limit)
    }

    /// Whether the request alone makes the exchange large.
    func isLarge(_ timeouts: HTTPTimeouts) -> Bool { Int64(writer.byteCount) >= timeouts.largeExchangeBytes }

    /// Returns the timeout that has expired.
    mutating func timeout(at now: Instant) -> HTTPClientError.Timeout? {
        if limit <= now, transfer?.progress.isLarge != true { return .exchange }
        return transfer?.progress.timeout(at: now)
    }

    /// Returns whether bytes of the response, with those before them, may begin an HTTP/1.1 response.
    mutating func startsWithHTTP(_ bytes: ByteBuffer) -> Bool {
        for byte in bytes.readableBytesView.prefix(Self.responsePrefix.count - comparedCount) {
            guard byte == Self.responsePrefix[comparedCount] else { return false }
            comparedCount += 1
        }
        return true
    }
}
