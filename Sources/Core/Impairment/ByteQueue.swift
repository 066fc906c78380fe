internal import DequeModule
internal import NIOCore

/// A queue of bytes, taken from the front in pieces of any size.
///
/// Small chunks are coalesced, so that the memory used stays in proportion to the bytes counted: a read of one byte
/// arrives in a buffer of a kilobyte or more.
struct ByteQueue {
    private var chunks = Deque<ByteBuffer>()
    /// Bytes in the queue.
    private(set) var count = 0

    /// Whether the last chunk is a copy made by the queue, to which further bytes may be appended.
    private var lastIsCoalesced = false

    /// The maximum size of a coalesced chunk. A chunk that fills less than half of its buffer is copied.
    static let coalescedBytesMax = 16 * 1024

    /// Appends a chunk.
    mutating func append(_ chunk: ByteBuffer) {
        let size = chunk.readableBytes
        guard size > 0 else { return }
        count += size
        var chunk = chunk
        if chunk.isCompact {
            lastIsCoalesced = false
            chunks.append(chunk)
        } else if lastIsCoalesced, let last = chunks.indices.last,
            chunks[last].readableBytes + size <= Self.coalescedBytesMax
        {
            chunks[last].writeBuffer(&chunk)
        } else {
            var gathered = ByteBufferAllocator().buffer(capacity: size)
            gathered.writeBuffer(&chunk)
            lastIsCoalesced = true
            chunks.append(gathered)
        }
    }

    /// Takes up to `limit` bytes from the front as one piece; `nil` if the queue is empty.
    mutating func takePiece(atMost limit: Int) -> ByteBuffer? {
        guard limit > 0, !chunks.isEmpty else { return nil }
        if chunks[0].readableBytes <= limit {
            let piece = chunks.removeFirst()
            count -= piece.readableBytes
            return piece
        }
        guard let piece = chunks[0].readSlice(length: limit) else { return nil }
        count -= limit
        return piece
    }

    /// Returns a copy of `size` bytes at `offset` from the front; `nil` if the queue does not hold all of them.
    func copy(at offset: Int, count size: Int) -> ByteBuffer? {
        guard offset >= 0, size > 0, offset + size <= count else { return nil }
        var copy = ByteBufferAllocator().buffer(capacity: size)
        var skip = offset
        for chunk in chunks {
            if skip >= chunk.readableBytes {
                skip -= chunk.readableBytes
                continue
            }
            let length = min(chunk.readableBytes - skip, size - copy.readableBytes)
            copy.writeImmutableBuffer(chunk.getSlice(at: chunk.readerIndex + skip, length: length) ?? ByteBuffer())
            skip = 0
            if copy.readableBytes == size { return copy }
        }
        return nil
    }

    /// Drops `size` bytes from the front.
    mutating func drop(_ size: Int) {
        var left = size
        while left > 0, let piece = takePiece(atMost: left) { left -= piece.readableBytes }
    }

    /// Drops `size` bytes from the back.
    mutating func dropLast(_ size: Int) {
        var left = size
        count -= size
        while left > 0, var last = chunks.popLast() {
            if last.readableBytes > left {
                last.moveWriterIndex(to: last.writerIndex - left)
                chunks.append(last)
                return
            }
            left -= last.readableBytes
        }
    }
}

extension ByteBuffer {
    /// Whether the bytes fill at least half of the memory of their buffer.
    var isCompact: Bool { readableBytes * 2 >= storageCapacity }

    /// The same bytes in a buffer of about their size.
    var compact: ByteBuffer { isCompact ? self : ByteBuffer(bytes: readableBytesView) }
}
