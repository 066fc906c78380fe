internal import DequeModule
public import NIOCore

/// The comparison of the bytes that enter one direction of a link with those that leave it.
///
/// Bytes that have entered are kept until they leave; bytes that never leave, such as those of an aborted connection,
/// are no difference.
public struct StreamComparison: Sendable {
    private var pending = Deque<ByteBuffer>()
    /// The number of bytes that have left the link.
    public private(set) var offset = 0
    private var hasEnded = false

    /// Creates the comparison of a stream without bytes.
    public init() {}

    /// Ends the comparison: a fault or a response of the link itself may change the stream.
    public mutating func stop() {
        hasEnded = true
        pending = []
    }

    /// Records bytes that enter the link.
    public mutating func entered(_ bytes: ByteBuffer) {
        if !hasEnded, bytes.readableBytes > 0 { pending.append(bytes) }
    }

    /// Records bytes that leave the link. Returns the number of bytes before the piece that differs from what has
    /// entered; `nil` if none does. The comparison ends with the first difference.
    public mutating func left(_ bytes: ByteBuffer) -> Int? {
        if hasEnded { return nil }
        var rest = bytes
        while rest.readableBytes > 0 {
            guard var first = pending.popFirst() else { return difference() }
            let count = min(first.readableBytes, rest.readableBytes)
            guard let expected = first.readSlice(length: count), let found = rest.readSlice(length: count),
                expected == found
            else { return difference() }
            offset += count
            if first.readableBytes > 0 { pending.prepend(first) }
        }
        return nil
    }

    private mutating func difference() -> Int {
        stop()
        return offset
    }
}
