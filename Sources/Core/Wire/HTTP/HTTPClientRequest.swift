/// A request with its body. The machine adds `Host` and `Content-Length`.
public struct HTTPClientRequest: Sendable {
    /// The method.
    public var method: String
    /// The path and query.
    public var target: String
    /// Further header fields.
    public var fields: [(name: String, value: String)]
    /// The body.
    public var body: [UInt8]
    /// Whether the body of the response is reported in pieces as it arrives (``HTTPClientAction/piece(_:_:_:)``); that of the
    /// result is then empty. A part of it survives the failure of the exchange.
    public var isStreamed: Bool

    /// Creates a request.
    public init(
        method: String, target: String, fields: [(name: String, value: String)] = [], body: [UInt8] = [],
        isStreamed: Bool = false
    ) {
        self.method = method
        self.target = target
        self.fields = fields
        self.body = body
        self.isStreamed = isStreamed
    }
}
