internal import NIOCore
internal import Synchronization

/// An allocator of read buffers: their size follows the amount of data per read, and no buffer is kept between reads.
///
/// NIO's own allocators keep one buffer per channel, which is several hundred kilobytes for each connection that was
/// ever busy. Allocating and freeing a large buffer takes less time than the `read()` it is for.
struct ReadBufferAllocator: RecvByteBufferAllocator {
    /// The size limit that all connections of a proxy share; lower with more connections.
    final class Limit: Sendable {
        private let bytes: Atomic<Int>

        init(_ bytes: Int) { self.bytes = Atomic(bytes) }

        /// The maximum number of bytes of one read.
        var value: Int {
            get { bytes.load(ordering: .relaxed) }
            set { bytes.store(newValue, ordering: .relaxed) }
        }
    }

    private let limit: Limit
    private let maximum: Int
    private var size: Int
    private var lastReadWasSmall = false

    private static let minimum = 1024
    private static let initial = 4096

    /// - Parameter maximum: The maximum number of bytes of one read, in addition to the shared limit.
    init(_ limit: Limit, maximum: Int) {
        self.limit = limit
        self.maximum = maximum
        size = min(Self.initial, maximum)
    }

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer {
        allocator.buffer(capacity: min(size, max(Self.minimum, limit.value)))
    }

    /// Doubles the size after a read that filled its buffer, and halves it after two reads that filled at most half of
    /// it.
    ///
    /// Returns `true`, so that the channel asks for a buffer before each read. It keeps its first buffer, which has the
    /// initial size, and would read into that one instead.
    mutating func record(actualReadBytes: Int) -> Bool {
        if actualReadBytes >= min(size, limit.value) && size < maximum {
            size = min(maximum, 2 * size)
            lastReadWasSmall = false
        } else if actualReadBytes <= size / 2 && size > Self.minimum {
            if lastReadWasSmall { size /= 2 }
            lastReadWasSmall.toggle()
        } else {
            lastReadWasSmall = false
        }
        return true
    }
}
