public import HTTPTypes
public import NIOCore

/// A part of a message with its offsets, which count from the first byte of the stream.
public enum HTTPPart: Sendable {
    /// The head of a request, including its empty line.
    case requestHead(HTTPRequestHead, Range<Int64>)
    /// The head of a response. An interim one (1xx except 101) is followed by another head and has no end of its own.
    case responseHead(HTTPResponseHead, Range<Int64>, isInterim: Bool)
    /// Bytes of the body, without the framing of chunks.
    case body(ByteBuffer, Range<Int64>)
    /// The trailer fields after the last chunk, if there are any.
    case trailers(HTTPFields, Range<Int64>)
    /// The end of the message: the offset after its last byte.
    case end(Int64)
    /// Bytes after an upgrade or a CONNECT, which are not HTTP.
    case opaque(ByteBuffer, Range<Int64>)
}
