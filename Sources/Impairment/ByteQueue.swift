internal import DequeModule
internal import NIOCore

/// Bytes in order, taken from the front in any size.
///
/// Small chunks are copied together, so that what is kept in memory stays in proportion to what is counted: a
/// socket read of one byte arrives in a buffer of a kilobyte or more.
struct ByteQueue {
    private var chunks = Deque<ByteBuffer>()
    /// Bytes in the queue.
    private(set) var count = 0

    /// The last chunk is a copy of ours, to which more may be added.
    private var lastIsGathered = false

    /// A chunk that fills less than half of its buffer is copied; copies gather up to this size.
    static let gatherBytes = 16 * 1024

    /// Appends a chunk.
    mutating func append(_ chunk: ByteBuffer) {
        let size = chunk.readableBytes
        guard size > 0 else { return }
        count += size
        var chunk = chunk
        if chunk.isCompact {
            lastIsGathered = false
            chunks.append(chunk)
        } else if lastIsGathered, let last = chunks.indices.last, chunks[last].readableBytes + size <= Self.gatherBytes
        {
            chunks[last].writeBuffer(&chunk)
        } else {
            var gathered = ByteBufferAllocator().buffer(capacity: size)
            gathered.writeBuffer(&chunk)
            lastIsGathered = true
            chunks.append(gathered)
        }
    }

    /// Takes up to `limit` bytes from the front as one piece; `nil` if there are none.
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

    /// A copy of `size` bytes that stand `offset` bytes from the front; `nil` if they are not all there.
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
    /// Whether the bytes fill at least half of what is kept in memory for them.
    var isCompact: Bool { readableBytes * 2 >= storageCapacity }

    /// The bytes in a buffer of about their size.
    var compact: ByteBuffer { isCompact ? self : ByteBuffer(bytes: readableBytesView) }
}
