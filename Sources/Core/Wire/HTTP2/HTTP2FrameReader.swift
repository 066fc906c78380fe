public import NIOCore

/// A reader of the frames in a stream of bytes, which may arrive in pieces of any size. The preface of a client is not
/// part of the stream.
///
/// After an error every call throws that error.
public struct HTTP2FrameReader: Sendable {
    /// The greatest payload of a frame: SETTINGS_MAX_FRAME_SIZE of the receiver.
    public private(set) var payloadBytesMax = HTTP2Frame.payloadBytesDefault
    private var buffer = ByteBuffer()
    /// The offset of the first byte in the buffer.
    private var offset: Int64
    private var block: Block?
    private var error: HTTP2Error?
    /// The frame that is being parsed, which is not part of ``block`` yet.
    private var current = ByteBuffer()

    /// A header block whose end has not been read.
    private struct Block {
        let kind: HTTP2Frame.Kind
        let flags: UInt8
        let stream: UInt32
        let start: Int64
        let prefix: ByteBuffer
        let payloadBytes: Int
        var bytes: ByteBuffer
        var content: ByteBuffer
        var continuations = 0
    }

    /// The greatest payload that is read, whatever a receiver permits: 1 MiB.
    public static let payloadBytesLimit = 1 << 20
    /// The greatest size of a header block in bytes.
    public static let blockBytesMax = 128 << 10
    /// The greatest number of CONTINUATION frames of a block; a flood of small or empty ones is an error.
    public static let continuationsMax = 64
    /// The bytes that have been read and stay at the front of the buffer.
    private static let readBytesKeptMax = 64 << 10

    /// Creates the reader of a stream.
    ///
    /// - Parameter offset: The offset of the first frame.
    public init(offset: Int64 = 0) { self.offset = offset }

    /// Permits larger frames: SETTINGS_MAX_FRAME_SIZE of the receiver. The limit is not lowered, because frames may be
    /// on their way.
    public mutating func permitPayload(bytes: UInt32) {
        payloadBytesMax = max(payloadBytesMax, min(Int(bytes), Self.payloadBytesLimit))
    }

    /// Reports bytes of the stream.
    public mutating func received(_ bytes: ByteBuffer) {
        if buffer.readableBytes == 0 { buffer = ByteBuffer() }
        if buffer.readerIndex > Self.readBytesKeptMax { buffer.discardReadBytes() }
        buffer.writeImmutableBuffer(bytes)
    }

    /// Bytes received that are not part of a returned frame.
    public var bytesKept: Int { buffer.readableBytes + (block?.bytes.readableBytes ?? 0) }

    /// Takes the bytes that are not part of a returned frame.
    public mutating func takeRest() -> ByteBuffer {
        var rest = block?.bytes ?? ByteBuffer()
        rest.writeImmutableBuffer(current)
        rest.writeImmutableBuffer(buffer)
        block = nil
        (current, buffer) = (ByteBuffer(), ByteBuffer())
        return rest
    }

    /// Returns the next frame; `nil` if more bytes are needed.
    public mutating func takeFrame() throws(HTTP2Error) -> HTTP2Frame? {
        if let error { throw error }
        do throws(HTTP2Error) {
            while let (header, bytes) = try readFrame() {
                current = bytes
                let frame = try parse(header, bytes)
                current = ByteBuffer()
                if let frame { return frame }
            }
            return nil
        } catch {
            self.error = error
            throw error
        }
    }

    private struct Header {
        let kind: HTTP2Frame.Kind?
        let flags: UInt8
        let stream: UInt32
        let length: Int
        let start: Int64
    }

    private func failure(_ code: HTTP2ErrorCode, _ reason: String, _ start: Int64) -> HTTP2Error {
        HTTP2Error(code: code, reason: reason, offset: start)
    }

    /// Takes a complete frame from the buffer.
    private mutating func readFrame() throws(HTTP2Error) -> (Header, ByteBuffer)? {
        guard
            let (high, low, type, flags, stream) = buffer.getMultipleIntegers(
                at: buffer.readerIndex, as: (UInt8, UInt16, UInt8, UInt8, UInt32).self)
        else { return nil }
        let length = Int(high) << 16 | Int(low)
        guard length <= payloadBytesMax else {
            throw failure(.frameSizeError, "a frame has \(length) bytes, more than \(payloadBytesMax)", offset)
        }
        let header = Header(
            kind: HTTP2Frame.Kind(rawValue: type), flags: flags, stream: stream & HTTP2Frame.streamMax, length: length,
            start: offset)
        if let block, header.kind != .continuation || header.stream != block.stream {
            throw failure(.protocolError, "a header block is interrupted by another frame", offset)
        }
        guard let bytes = buffer.readSlice(length: HTTP2Frame.headerBytes + length) else { return nil }
        offset += Int64(bytes.readableBytes)
        return (header, bytes)
    }

    /// Checks a frame. Returns nothing for a part of a header block that continues.
    private mutating func parse(_ header: Header, _ bytes: ByteBuffer) throws(HTTP2Error) -> HTTP2Frame? {
        var content = bytes
        content.moveReaderIndex(forwardBy: HTTP2Frame.headerBytes)
        if let size = Self.sizes[header.kind], header.length != size {
            throw failure(
                .frameSizeError, "a frame of type \(header.kind?.rawValue ?? 0) needs \(size) bytes", header.start)
        }
        switch header.kind {
        case .data, .headers, .priority, .resetStream, .pushPromise, .continuation:
            if header.stream == 0 { throw failure(.protocolError, "a frame of a stream has no stream", header.start) }
        case .settings, .ping, .goAway:
            if header.stream != 0 {
                throw failure(.protocolError, "a frame of the connection has a stream", header.start)
            }
        case .windowUpdate, nil: break
        }
        switch header.kind {
        case .settings where header.length % 6 != 0 || (header.flags & HTTP2Frame.Flag.ack != 0 && header.length > 0):
            throw failure(.frameSizeError, "SETTINGS with \(header.length) bytes", header.start)
        case .goAway where header.length < 8:
            throw failure(.frameSizeError, "GOAWAY with \(header.length) bytes", header.start)
        case .data, .headers, .pushPromise: try removePadding(header, &content)
        case .continuation: return try continueBlock(header, bytes, content)
        default: break
        }
        guard header.kind == .headers || header.kind == .pushPromise, let kind = header.kind else {
            return HTTP2Frame(
                kind: header.kind, flags: header.flags, stream: header.stream, bytes: bytes,
                range: header.start..<offset, content: content, prefix: ByteBuffer(), payloadBytes: header.length)
        }
        let prefixBytes = kind == .pushPromise ? 4 : header.flags & HTTP2Frame.Flag.priority != 0 ? 5 : 0
        guard let prefix = content.readSlice(length: prefixBytes) else {
            throw failure(.frameSizeError, "a frame is too short for its flags", header.start)
        }
        try checkBlock(content.readableBytes, header)
        block = Block(
            kind: kind, flags: header.flags, stream: header.stream, start: header.start, prefix: prefix,
            payloadBytes: header.length, bytes: bytes, content: content)
        return endBlock(header)
    }

    private static let sizes: [HTTP2Frame.Kind?: Int] = [.priority: 5, .resetStream: 4, .ping: 8, .windowUpdate: 4]

    private func removePadding(_ header: Header, _ content: inout ByteBuffer) throws(HTTP2Error) {
        guard header.flags & HTTP2Frame.Flag.padded != 0 else { return }
        guard let padding = content.readInteger(as: UInt8.self), Int(padding) <= content.readableBytes else {
            throw failure(.protocolError, "the padding is longer than the frame", header.start)
        }
        content.moveWriterIndex(to: content.writerIndex - Int(padding))
    }

    private mutating func continueBlock(
        _ header: Header, _ bytes: ByteBuffer, _ content: ByteBuffer
    ) throws(HTTP2Error) -> HTTP2Frame? {
        guard let count = block?.continuations else {
            throw failure(.protocolError, "CONTINUATION without a header block", header.start)
        }
        if count >= Self.continuationsMax {
            throw failure(
                .enhanceYourCalm, "a header block has more than \(Self.continuationsMax) CONTINUATION frames",
                header.start)
        }
        try checkBlock((block?.content.readableBytes ?? 0) + content.readableBytes, header)
        block?.continuations += 1
        block?.bytes.writeImmutableBuffer(bytes)
        block?.content.writeImmutableBuffer(content)
        return endBlock(header)
    }

    private func checkBlock(_ count: Int, _ header: Header) throws(HTTP2Error) {
        if count <= Self.blockBytesMax { return }
        throw failure(.enhanceYourCalm, "a header block has more than \(Self.blockBytesMax) bytes", header.start)
    }

    private mutating func endBlock(_ header: Header) -> HTTP2Frame? {
        guard let block, header.flags & HTTP2Frame.Flag.endHeaders != 0 else { return nil }
        self.block = nil
        return HTTP2Frame(
            kind: block.kind, flags: block.flags, stream: block.stream, bytes: block.bytes, range: block.start..<offset,
            content: block.content, prefix: block.prefix, payloadBytes: block.payloadBytes)
    }
}
