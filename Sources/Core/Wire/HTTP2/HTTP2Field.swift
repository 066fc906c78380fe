internal import NIOCore
internal import NIOHPACK

/// A field of a header block: a header field, a trailer field or a pseudo-header field such as `:path`.
public struct HTTP2Field: Hashable, Sendable {
    /// The name, in lower case.
    public let name: String
    /// The value.
    public let value: String
    /// Whether a proxy must not put the field into a compression table (RFC 7541, section 7.1.3).
    public let isNeverIndexed: Bool

    /// Creates a field.
    public init(_ name: String, _ value: String, isNeverIndexed: Bool = false) {
        self.name = name
        self.value = value
        self.isNeverIndexed = isNeverIndexed
    }

    /// Returns a header block that refers to no table, and empties the dynamic table of its reader.
    ///
    /// The block begins with a size update to 0, so that it is valid whatever blocks its reader has received, and
    /// whatever size the reader permits; the fields are literals. A sequence of such blocks needs no state.
    static func encode(_ fields: [HTTP2Field]) -> ByteBuffer {
        var block = ByteBuffer()
        block.writeInteger(UInt8(0x20))
        for field in fields {
            block.writeInteger(field.isNeverIndexed ? UInt8(0x10) : 0)
            for text in [field.name, field.value] {
                write(text.utf8.count, into: &block)
                block.writeString(text)
            }
        }
        return block
    }

    /// Writes the length of a string without Huffman code: an integer with a prefix of 7 bits (RFC 7541, section 5.1).
    private static func write(_ length: Int, into block: inout ByteBuffer) {
        if length < 127 { return _ = block.writeInteger(UInt8(length)) }
        block.writeInteger(UInt8(127))
        var rest = length - 127
        while rest >= 128 {
            block.writeInteger(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        block.writeInteger(UInt8(rest))
    }
}

/// The decoder of the header blocks of one direction. It must decode every block of the direction, in order.
public struct HTTP2HeaderDecoder: Sendable {
    private var decoder: HPACKDecoder

    /// The greatest dynamic table that a peer may use, in bytes of RFC 7541, section 4.1.
    public static let tableBytesMax = 64 << 10
    /// The greatest header list, in bytes of RFC 7541, section 4.1.
    public static let listBytesMax = 128 << 10

    /// Creates the decoder of a new connection.
    public init() {
        decoder = HPACKDecoder(
            allocator: ByteBufferAllocator(), maxDynamicTableSize: HPACKDecoder.maxDynamicTableSize,
            maxHeaderListSize: Self.listBytesMax)
    }

    /// Permits a dynamic table: SETTINGS_HEADER_TABLE_SIZE of the reader. A smaller size takes effect by the blocks of
    /// the writer, which acknowledges it.
    public mutating func permitTable(bytes: UInt32) {
        let limit = min(Int(bytes), Self.tableBytesMax)
        if limit > decoder.maxDynamicTableLength { decoder.maxDynamicTableLength = limit }
    }

    /// Decodes the block of a frame.
    public mutating func decode(_ frame: HTTP2Frame) throws(HTTP2Error) -> [HTTP2Field] {
        var block = frame.content
        do {
            return try decoder.decodeHeaders(from: &block).map { name, value, indexing in
                HTTP2Field(name, value, isNeverIndexed: indexing == .neverIndexed)
            }
        } catch is NIOHPACKErrors.MaxHeaderListSizeViolation {
            throw HTTP2Error(
                code: .enhanceYourCalm, reason: "a header list has more than \(Self.listBytesMax) bytes",
                offset: frame.range.lowerBound)
        } catch {
            throw HTTP2Error(
                code: .compressionError, reason: "a header block cannot be decoded", offset: frame.range.lowerBound)
        }
    }
}
