internal import NIOCore
internal import Wire

/// A response that a fault sends to the client.
public struct FaultResponse: Hashable, Sendable {
    /// A header field.
    public struct Field: Hashable, Sendable {
        /// The name.
        public var name: String
        /// The value.
        public var value: String

        /// Creates a field.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The status code, one of ``statuses``.
    public var status: Int
    /// The reason phrase; the standard one of the status if it is empty.
    public var reason: String
    /// The header fields. `Content-Length` is added if neither it nor `Transfer-Encoding` is among them, and
    /// `Connection` if the request needs it. With `Connection: close` the connection is closed after the response.
    public var fields: [Field]
    /// The body, at most ``bodyBytesMax`` bytes. It is not sent in response to HEAD, or with status 204 or 304.
    public var body: [UInt8]

    /// The possible status codes.
    public static let statuses = 200...599
    /// The greatest size of a body, 1 MiB.
    public static let bodyBytesMax = 1 << 20

    /// Creates a response.
    public init(status: Int, reason: String = "", fields: [Field] = [], body: [UInt8] = []) {
        self.status = status
        self.reason = reason
        self.fields = fields
        self.body = body
    }

    /// The reason why the response cannot be sent; `nil` if it can.
    public var problem: String? {
        guard Self.statuses.contains(status) else { return "the status of a response must be 200 to 599" }
        guard body.count <= Self.bodyBytesMax else { return "the body of a response must have at most 1 MiB" }
        do throws(HTTPError) {
            _ = try head(for: nil)
            return nil
        } catch {
            return "\(error)"
        }
    }

    /// The properties of a request on which the response to it depends.
    struct Recipient {
        let method: String
        let version: HTTPVersion
        let keepsAlive: Bool

        init(_ request: HTTPRequestHead) {
            (method, version, keepsAlive) = (request.method, request.version, request.keepsAlive)
        }
    }

    private func head(for recipient: Recipient?) throws(HTTPError) -> HTTPResponseHead {
        var lines = fields.map { (name: $0.name, value: $0.value) }
        let isFramed = lines.contains { Self.framingNames.contains($0.name.lowercased()) }
        if !isFramed && hasBody { lines.append((name: "Content-Length", value: "\(body.count)")) }
        let reason = reason.isEmpty ? HTTPResponseHead.standardReason(of: status) : reason
        let head = try HTTPResponseHead(status: status, reason: reason, fields: lines)
        guard let recipient, head.keepsAlive, let option = Self.connectionOption(for: recipient) else { return head }
        lines.append((name: "Connection", value: option))
        return try HTTPResponseHead(status: status, reason: reason, fields: lines)
    }

    /// Returns the connection option that tells the client whether the connection is kept (RFC 9112, 9.3); `nil` if the
    /// client assumes it.
    private static func connectionOption(for recipient: Recipient) -> String? {
        if !recipient.keepsAlive { return "close" }
        return recipient.version < .http11 ? "keep-alive" : nil
    }

    private static let framingNames: Set<String> = ["content-length", "transfer-encoding"]

    private var hasBody: Bool { status != 204 && status != 304 }

    /// Returns whether the connection is kept after the response to a request.
    func keepsConnection(of recipient: Recipient) -> Bool { (try? head(for: recipient))?.keepsAlive ?? false }

    /// Returns the bytes of the response to a request, which are empty if it cannot be sent, and whether the connection
    /// is kept after it.
    func response(to recipient: Recipient) -> (bytes: ByteBuffer, keepsAlive: Bool) {
        var bytes = ByteBuffer()
        guard let head = try? head(for: recipient) else { return (bytes, false) }
        head.write(into: &bytes)
        if hasBody && recipient.method != "HEAD" { bytes.writeBytes(body) }
        return (bytes, head.keepsAlive)
    }
}
