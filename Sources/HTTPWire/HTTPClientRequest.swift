/// A request with its body. The machine adds `Host` and `Content-Length`.
public struct HTTPClientRequest: Sendable {
    /// The method.
    public var method: String
    /// The path and query.
    public var target: String
    /// Further header fields.
    public var headers: HTTPHeaders
    /// The body.
    public var body: [UInt8]

    /// Creates a request.
    public init(method: String, target: String, headers: HTTPHeaders = HTTPHeaders(), body: [UInt8] = []) {
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
    }
}
