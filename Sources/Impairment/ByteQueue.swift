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

    /// A chunk that fills less than half of its buffer is copied; copies gather in buffers of this size.
    static let gatherBytes = 16 * 1024

    /// Appends a chunk.
    mutating func append(_ chunk: ByteBuffer) {
        let size = chunk.readableBytes
        guard size > 0 else { return }
        count += size
        if size * 2 >= chunk.storageCapacity {
            chunks.append(chunk)
            return
        }
        if let last = chunks.indices.last, chunks[last].writableBytes >= size {
            var copy = chunk
            chunks[last].writeBuffer(&copy)
            return
        }
        var gathered = ByteBufferAllocator().buffer(capacity: size < 1024 ? 4 * size : max(size, Self.gatherBytes))
        var copy = chunk
        gathered.writeBuffer(&copy)
        chunks.append(gathered)
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
