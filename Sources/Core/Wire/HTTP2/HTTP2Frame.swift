public import NIOCore

/// A frame (RFC 9113, section 4.1). A header block in several frames, HEADERS or PUSH_PROMISE with CONTINUATION, is one
/// value.
public struct HTTP2Frame: Hashable, Sendable {
    /// The types of RFC 9113; other types are extensions.
    public enum Kind: UInt8, Sendable {
        case data, headers, priority, resetStream, settings, pushPromise, ping, goAway, windowUpdate, continuation
    }

    /// The parameters of SETTINGS that a proxy must know.
    public enum Setting {
        public static let headerTableSize: UInt16 = 1
        public static let maxConcurrentStreams: UInt16 = 3
        public static let initialWindowSize: UInt16 = 4
        public static let maxFrameSize: UInt16 = 5
    }

    /// The flags of RFC 9113.
    public enum Flag {
        public static let endStream: UInt8 = 0x1
        public static let ack: UInt8 = 0x1
        public static let endHeaders: UInt8 = 0x4
        public static let padded: UInt8 = 0x8
        public static let priority: UInt8 = 0x20
    }

    /// The first bytes of a client (RFC 9113, section 3.4).
    public static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
    /// Bytes of a frame's header.
    public static let headerBytes = 9
    /// The greatest payload that every peer accepts.
    public static let payloadBytesDefault = 16_384
    /// The greatest identifier of a stream, and the greatest window.
    public static let streamMax: UInt32 = 0x7FFF_FFFF

    /// The type; `nil` for an extension.
    public let kind: Kind?
    /// The flags of the first frame.
    public let flags: UInt8
    /// The identifier of the stream; 0 is the connection.
    public let stream: UInt32
    /// The bytes of the frame, and of its CONTINUATION frames, as they were read.
    public let bytes: ByteBuffer
    /// The offsets of the bytes in the stream.
    public let range: Range<Int64>
    /// The payload without padding. For HEADERS and PUSH_PROMISE, the header block.
    public let content: ByteBuffer
    /// What precedes the header block: the priority of HEADERS, the promised stream of PUSH_PROMISE.
    public let prefix: ByteBuffer
    /// The bytes of the first frame's payload, padding included: for DATA, those that count for flow control.
    public let payloadBytes: Int

    /// Whether the frame is the last one of its sender's side of the stream.
    public var endsStream: Bool { (kind == .data || kind == .headers) && flags & Flag.endStream != 0 }

    /// Whether the frame acknowledges SETTINGS or PING.
    public var isAcknowledgement: Bool { (kind == .settings || kind == .ping) && flags & Flag.ack != 0 }

    /// The first 32 bits of the content: the code of RST_STREAM, the increment of WINDOW_UPDATE, the last stream of
    /// GOAWAY. The reserved bit of the latter two is 0.
    public var number: UInt32 {
        let value = content.getInteger(at: content.readerIndex, as: UInt32.self) ?? 0
        return kind == .resetStream ? value : value & Self.streamMax
    }

    /// The parameters of SETTINGS, in order.
    public var settings: [(id: UInt16, value: UInt32)] {
        guard kind == .settings else { return [] }
        var rest = content
        var settings: [(UInt16, UInt32)] = []
        while let (id, value) = rest.readMultipleIntegers(as: (UInt16, UInt32).self) { settings.append((id, value)) }
        return settings
    }

    // MARK: Serialisation

    /// Returns the bytes of a frame.
    public static func bytes(_ kind: Kind, flags: UInt8 = 0, stream: UInt32, _ payload: ByteBuffer) -> ByteBuffer {
        var frame = ByteBuffer()
        frame.reserveCapacity(headerBytes + payload.readableBytes)
        frame.writeInteger(UInt8(truncatingIfNeeded: payload.readableBytes >> 16))
        frame.writeInteger(UInt16(truncatingIfNeeded: payload.readableBytes))
        frame.writeMultipleIntegers(kind.rawValue, flags, stream & streamMax)
        frame.writeImmutableBuffer(payload)
        return frame
    }

    /// Returns the bytes of DATA without padding.
    public static func data(_ stream: UInt32, _ content: ByteBuffer, endsStream: Bool) -> ByteBuffer {
        bytes(.data, flags: endsStream ? Flag.endStream : 0, stream: stream, content)
    }

    /// Returns the bytes of a frame whose payload is one number: RST_STREAM or WINDOW_UPDATE.
    public static func number(_ kind: Kind, _ stream: UInt32, _ value: UInt32) -> ByteBuffer {
        bytes(kind, stream: stream, ByteBuffer(integer: value))
    }

    /// Returns the bytes of SETTINGS.
    public static func settings(_ settings: [(id: UInt16, value: UInt32)]) -> ByteBuffer {
        var payload = ByteBuffer()
        for (id, value) in settings { payload.writeMultipleIntegers(id, value) }
        return bytes(.settings, stream: 0, payload)
    }

    /// Returns the bytes of GOAWAY.
    public static func goAway(last: UInt32, _ code: HTTP2ErrorCode) -> ByteBuffer {
        var payload = ByteBuffer()
        payload.writeMultipleIntegers(last, code.rawValue)
        return bytes(.goAway, stream: 0, payload)
    }

    /// Returns the bytes of HEADERS or PUSH_PROMISE with a header block, in as many frames as every peer accepts.
    public static func block(
        _ kind: Kind, _ stream: UInt32, _ fields: [HTTP2Field], prefix: ByteBuffer = ByteBuffer(), endsStream: Bool
    ) -> ByteBuffer {
        var rest = HTTP2Field.encode(fields)
        var payload = prefix
        payload.writeImmutableBuffer(rest.readSlice(upTo: payloadBytesDefault - prefix.readableBytes))
        var flags = endsStream ? Flag.endStream : 0
        if kind == .headers, prefix.readableBytes > 0 { flags |= Flag.priority }
        if rest.readableBytes == 0 { flags |= Flag.endHeaders }
        var frames = bytes(kind, flags: flags, stream: stream, payload)
        while rest.readableBytes > 0 {
            let piece = rest.readSlice(upTo: payloadBytesDefault)
            let isLast = rest.readableBytes == 0
            frames.writeImmutableBuffer(
                bytes(.continuation, flags: isLast ? Flag.endHeaders : 0, stream: stream, piece))
        }
        return frames
    }

    /// Returns the bytes of HEADERS with half of a header block, without END_HEADERS.
    public static func truncatedBlock(_ stream: UInt32, _ fields: [HTTP2Field]) -> ByteBuffer {
        var block = HTTP2Field.encode(fields)
        return bytes(.headers, stream: stream, block.readSlice(upTo: min(block.readableBytes / 2, payloadBytesDefault)))
    }

    /// Returns the bytes of the frame on another stream. CONTINUATION frames are written with the same identifier.
    public func bytes(on other: UInt32) -> ByteBuffer {
        var copy = bytes
        var start = copy.readerIndex
        while let (high, low) = copy.getMultipleIntegers(at: start, as: (UInt8, UInt16).self) {
            copy.setInteger(other, at: start + 5)
            start += Self.headerBytes + (Int(high) << 16 | Int(low))
        }
        return copy
    }
}

extension ByteBuffer {
    /// Reads up to a number of bytes, at least 0.
    mutating func readSlice(upTo count: Int) -> ByteBuffer {
        readSlice(length: min(count, readableBytes)) ?? ByteBuffer()
    }
}
