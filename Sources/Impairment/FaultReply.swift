internal import HTTPWire
internal import NIOCore

/// A response that a fault sends to the client.
public struct FaultReply: Hashable, Sendable {
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

    /// The status code, 200 to 599.
    public var status: Int
    /// The reason phrase.
    public var reason: String
    /// The header fields. `Content-Length` is added if neither it nor `Transfer-Encoding` is among them.
    public var fields: [Field]
    /// The body, at most ``bodyBytesMax`` bytes. It is not sent in response to HEAD, or with status 204 or 304.
    public var body: [UInt8]

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
        guard (200...599).contains(status) else { return "the status of a reply must be 200 to 599" }
        guard body.count <= Self.bodyBytesMax else { return "the body of a reply must have at most 1 MiB" }
        do throws(HTTPError) {
            _ = try head
            return nil
        } catch {
            return "\(error)"
        }
    }

    private var head: HTTPResponseHead {
        get throws(HTTPError) {
            var lines = fields.map { (name: $0.name, value: $0.value) }
            let isFramed = lines.contains { Self.framingNames.contains($0.name.lowercased()) }
            if !isFramed && hasBody { lines.append((name: "Content-Length", value: "\(body.count)")) }
            return try HTTPResponseHead(status: status, reason: reason, fields: lines)
        }
    }

    private static let framingNames: Set<String> = ["content-length", "transfer-encoding"]

    private var hasBody: Bool { status != 204 && status != 304 }

    /// Returns the bytes of the response to a request with the given method; empty if it cannot be sent.
    func bytes(method: String) -> ByteBuffer {
        var bytes = ByteBuffer()
        guard let head = try? head else { return bytes }
        head.write(into: &bytes)
        if hasBody && method != "HEAD" { bytes.writeBytes(body) }
        return bytes
    }
}
