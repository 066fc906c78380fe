/// The framing of a message body (RFC 9112, 6.3).
public enum HTTPBodyFraming: Hashable, Sendable {
    /// There is no body.
    case none
    /// The body has this number of bytes.
    case length(Int64)
    /// The body is chunked.
    case chunked
    /// The body lasts until the connection closes.
    case untilClose
}
