/// Why bytes are not HTTP/1.1, or a message cannot be written.
public enum HTTPError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The first line is neither a request's nor an answer's.
    case badStartLine
    /// The version is none of HTTP/1.0 and HTTP/1.1.
    case badVersion
    /// A header line is not one: no colon, a space before it, a control character, a line that goes on (obs-fold).
    case badHeader
    /// A line ends without CR.
    case badLineEnd
    /// The lengths of the body contradict each other, or are none.
    case badLength
    /// A transfer coding that is not chunked, or not last.
    case unknownCoding
    /// A chunk's length or end is wrong, or the framing is many times larger than the body.
    case badChunk
    /// A limit of ``HTTPLimits`` is exceeded: which.
    case tooLarge(String)
    /// The stream has ended inside a message.
    case endedEarly
    /// An answer to no request.
    case unexpectedAnswer
    /// A part of a message holds what must not be written: which.
    case unwritable(String)

    public var description: String {
        switch self {
        case .badStartLine: "the first line is not HTTP's"
        case .badVersion: "the version is not HTTP/1.0 or 1.1"
        case .badHeader: "a header line is malformed"
        case .badLineEnd: "a line ends without CR LF"
        case .badLength: "the body's length is contradictory or malformed"
        case .unknownCoding: "a transfer coding other than chunked"
        case .badChunk: "a chunk is malformed"
        case .tooLarge(let what): "\(what) exceeds its limit"
        case .endedEarly: "the stream ended inside a message"
        case .unexpectedAnswer: "an answer without a request"
        case .unwritable(let what): "the \(what) holds characters that must not be sent"
        }
    }
}

/// How large the parts of a message may be.
public struct HTTPLimits: Hashable, Sendable {
    /// Bytes of the first line.
    public var startLine = 8 << 10
    /// Bytes of all header lines.
    public var headers = 64 << 10
    /// Header lines.
    public var headerCount = 200
    /// Bytes of a chunk's first line.
    public var chunkLine = 256
    /// Bytes of the trailers.
    public var trailers = 16 << 10
    /// Bytes of the body; `nil` is any number.
    public var body: Int64?

    /// The limits above.
    public static let standard = HTTPLimits()

    /// Creates limits.
    public init() {}
}
