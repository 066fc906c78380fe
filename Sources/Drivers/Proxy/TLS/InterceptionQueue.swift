#if TLS
internal import DequeModule
internal import NIOCore

/// The end of an ``InterceptionQueue``.
enum InterceptionEnd {
    /// A FIN after the bytes.
    case finished
    /// The sender takes nothing more, and has ended its stream.
    case closed
    /// A RST.
    case gone
}

/// Bytes of one session of an intercepted connection for the other one.
struct InterceptionQueue {
    private(set) var pieces = Deque<ByteBuffer>()
    private(set) var byteCount = 0
    var end: InterceptionEnd?
    var endIsPassed = false
    var awaitsDrain = false
    /// Whether the session that gets the bytes takes no more.
    var isPaused = false

    mutating func append(_ bytes: ByteBuffer) {
        guard end == nil else { return }
        pieces.append(bytes)
        byteCount += bytes.readableBytes
    }

    mutating func next() -> ByteBuffer? {
        // Nothing follows a RST, so that it need not wait for room.
        guard !isPaused || end == .gone, let piece = pieces.popFirst() else { return nil }
        byteCount -= piece.readableBytes
        return piece
    }

    mutating func drop() { (pieces, byteCount) = ([], 0) }

    /// Returns the end when all bytes before it have been taken; once.
    mutating func takeEnd() -> InterceptionEnd? {
        guard pieces.isEmpty, !endIsPassed, let end else { return nil }
        endIsPassed = true
        return end
    }
}
#endif
