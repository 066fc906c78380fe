public import HTTPTypes

/// The reason why bytes are not HTTP/1.1, or why a message cannot be serialised.
public enum HTTPError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The start line is neither a request line nor a status line.
    case badStartLine
    /// The version is neither HTTP/1.0 nor HTTP/1.1.
    case badVersion
    /// A field line is malformed: no colon, a space before it, a control character, a folded line (obs-fold).
    case badHeader
    /// A line ends without CR.
    case badLineEnd
    /// The body length is malformed or contradictory.
    case badLength
    /// A transfer coding is not chunked, or is not the last one.
    case unknownCoding
    /// A chunk's size or end is malformed, or the framing is many times larger than the body.
    case badChunk
    /// A limit of ``HTTPLimits`` is exceeded; the value names the limited part.
    case tooLarge(String)
    /// The stream has ended inside a message.
    case endedEarly
    /// A response without a request.
    case unexpectedResponse
    /// A part of a message contains characters that must not be sent; the value names the part.
    case unwritable(String)

    public var description: String {
        switch self {
        case .badStartLine: "malformed start line"
        case .badVersion: "the version is not HTTP/1.0 or HTTP/1.1"
        case .badHeader: "malformed header line"
        case .badLineEnd: "a line ends without CR LF"
        case .badLength: "malformed or contradictory body length"
        case .unknownCoding: "unsupported transfer coding (only chunked is supported)"
        case .badChunk: "malformed chunk"
        case .tooLarge(let part): "\(part) exceeds its limit"
        case .endedEarly: "the stream ended inside a message"
        case .unexpectedResponse: "a response without a request"
        case .unwritable(let part): "the \(part) contains characters that must not be sent"
        }
    }

    /// The status of the response to bytes that are not an HTTP request.
    public var status: HTTPResponse.Status {
        switch self {
        case .unknownCoding: .notImplemented
        case .badVersion: .httpVersionNotSupported
        default: .badRequest
        }
    }
}
