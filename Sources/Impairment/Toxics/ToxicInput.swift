internal import DequeModule
internal import LinkModel
internal import NIOCore

/// What waits before a toxic: chunks with the time at which each came, and then the end.
struct ToxicInput {
    /// One read of a socket, or what the toxic before made of it.
    struct Chunk {
        var bytes: ByteBuffer
        let arrival: Instant
    }

    /// How a stream ends.
    enum End {
        /// A FIN.
        case finished
        /// The socket is gone.
        case gone
        /// A toxic closes both sockets.
        case closed
    }

    private(set) var chunks = Deque<Chunk>()
    /// How it ends, once everything before the end has come.
    private(set) var end: End?
    /// Bytes in the chunks.
    private(set) var count = 0
    /// When it was last empty, or the last chunk came.
    private(set) var lastArrival: Instant

    init(at now: Instant) { lastArrival = now }

    var first: Chunk? { chunks.first }
    var isEmpty: Bool { chunks.isEmpty }
    /// Nothing is left but the end.
    var isAtEnd: Bool { chunks.isEmpty && end != nil }

    mutating func append(_ bytes: ByteBuffer, at now: Instant) {
        count += bytes.readableBytes
        lastArrival = now
        chunks.append(Chunk(bytes: bytes, arrival: now))
    }

    mutating func finish(_ end: End) {
        if self.end == nil { self.end = end }
    }

    /// Takes the first chunk.
    mutating func take() -> ByteBuffer? {
        guard let chunk = chunks.popFirst() else { return nil }
        count -= chunk.bytes.readableBytes
        return chunk.bytes
    }

    /// Takes up to `size` bytes of the first chunk.
    mutating func take(atMost size: Int) -> ByteBuffer? {
        guard let available = chunks.first?.bytes.readableBytes else { return nil }
        if available <= size { return take() }
        count -= size
        return chunks[0].bytes.readSlice(length: size)
    }

    mutating func dropAll() {
        chunks.removeAll()
        count = 0
    }
}
