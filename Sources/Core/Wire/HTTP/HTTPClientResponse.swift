public import HTTPTypes

/// A whole response.
public struct HTTPClientResponse: Sendable {
    /// The head.
    public let head: HTTPResponseHead
    /// The body.
    public let body: [UInt8]
    /// The trailer fields of a chunked body.
    public let trailers: HTTPFields
}
