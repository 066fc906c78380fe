internal import NIOCore
internal import Synchronization

/// How large the buffers are that sockets are read into: they grow with what arrives, and nothing is kept between reads.
///
/// NIO's own allocator lets each channel keep its buffers, which is some hundred kilobytes for every connection that was ever
/// busy. A large block of memory is had and given back in less than the system call beside it takes.
struct ReadSizes: RecvByteBufferAllocator {
    /// What all of a proxy's connections keep to: less when there are many.
    final class Ceiling: Sendable {
        private let bytes: Atomic<Int>

        init(_ bytes: Int) { self.bytes = Atomic(bytes) }

        /// The most that a read may take.
        var value: Int {
            get { bytes.load(ordering: .relaxed) }
            set { bytes.store(newValue, ordering: .relaxed) }
        }
    }

    private let ceiling: Ceiling
    private let maximum: Int
    private var size: Int
    private var wasSmall = false

    private static let minimum = 1024
    private static let first = 4096

    /// - Parameter maximum: No read takes more, whatever the ceiling.
    init(_ ceiling: Ceiling, maximum: Int) {
        self.ceiling = ceiling
        self.maximum = maximum
        size = min(Self.first, maximum)
    }

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer {
        allocator.buffer(capacity: min(size, max(Self.minimum, ceiling.value)))
    }

    /// A full buffer doubles the next, two that were at most half full halve it.
    mutating func record(actualReadBytes: Int) -> Bool {
        if actualReadBytes >= min(size, ceiling.value) && size < maximum {
            size = min(maximum, 2 * size)
            wasSmall = false
            return true
        }
        if actualReadBytes <= size / 2 && size > Self.minimum {
            if wasSmall { size /= 2 }
            wasSmall.toggle()
        } else {
            wasSmall = false
        }
        return false
    }
}
