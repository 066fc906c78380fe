internal import DequeModule
internal import Determinism
internal import NIOCore

/// The input queue of a toxic: chunks with the times of their arrival, and then the end of the stream.
struct ToxicInput {
    /// One read of a socket, or one output of the toxic before.
    struct Chunk {
        var bytes: ByteBuffer
        let arrival: Instant
    }

    /// The end of a stream.
    enum End {
        /// A FIN.
        case finished
        /// The socket is gone.
        case gone
        /// A toxic closes both sockets.
        case closed
    }

    private(set) var chunks = Deque<Chunk>()
    /// The end of the stream, which follows the chunks.
    private(set) var end: End?
    /// Bytes in the chunks.
    private(set) var count = 0
    /// The arrival of the last chunk, or the creation of the queue.
    private(set) var lastArrival: Instant

    init(at now: Instant) { lastArrival = now }

    var first: Chunk? { chunks.first }
    var isEmpty: Bool { chunks.isEmpty }
    /// Whether only the end of the stream is left.
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
