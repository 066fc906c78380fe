internal import NIOCore
internal import Wire

/// The HTTP messages of one direction of a connection, with the bytes of each part as received: bodies are forwarded
/// with their framing, chunks and trailers unchanged, after the parser has accepted them.
struct MessageStream: Sendable {
    private var parser: HTTPParser
    /// The bytes that are not part of a returned item.
    private var bytes = ByteBuffer()
    /// The offset of the first of these bytes in the stream.
    private var offset: Int64 = 0

    /// The returned bytes that stay at the front of the buffer before it is compacted.
    private static let readBytesKeptMax = 16 << 10

    init(_ side: HTTPParser.Side) { parser = HTTPParser(side, checksIncompleteHeads: true) }

    /// The framing of the current message's body.
    var framing: HTTPBodyFraming { parser.framing }

    /// The number of bytes received that are not part of a returned item.
    var bytesKept: Int { bytes.readableBytes }

    /// Whether a message has begun and has not ended.
    var isInsideMessage: Bool { parser.isInsideMessage }

    /// Whether the bytes that follow are not HTTP, after CONNECT or an upgrade.
    var isOpaque: Bool { parser.isOpaque }

    mutating func requestSent(method: String) { parser.requestSent(method: method) }

    mutating func received(_ received: ByteBuffer) {
        parser.received(received)
        if bytes.readableBytes == 0 {
            bytes = received
        } else {
            if bytes.readerIndex > Self.readBytesKeptMax { bytes.discardReadBytes() }
            bytes.writeImmutableBuffer(received)
        }
    }

    mutating func ended() { parser.streamEnded() }

    /// Returns the next part of a message with its bytes; `nil` if more bytes are needed.
    mutating func next() throws(HTTPError) -> (part: HTTPPart, bytes: ByteBuffer)? {
        guard let part = try parser.takePart() else { return nil }
        let end =
            switch part {
            case .requestHead(_, let range), .responseHead(_, let range, _), .body(_, let range),
                .trailers(_, let range), .opaque(_, let range):
                range.upperBound
            case .end(let offset): offset
            }
        let length = Int(end - offset)
        offset = end
        let slice = bytes.readSlice(length: length) ?? ByteBuffer()
        if bytes.readableBytes == 0 { bytes = ByteBuffer() }
        return (part, slice)
    }

    /// Takes the bytes after the last returned item. The stream has no further use.
    mutating func takeRemainder() -> ByteBuffer {
        defer { bytes = ByteBuffer() }
        return bytes
    }
}
