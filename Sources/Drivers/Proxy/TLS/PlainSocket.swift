#if TLS
internal import NIOCore

/// The client's socket of a session whose bytes are inside TLS.
final class PlainSocket: SessionSocket {
    private weak var socket: InterceptionSocket?

    init(_ socket: InterceptionSocket) { self.socket = socket }

    func write(_ buffer: ByteBuffer) {
        socket?.plaintext.append(buffer)
        socket?.schedule()
    }

    func awaitDrain() {
        socket?.plaintext.awaitsDrain = true
        socket?.schedule()
    }

    func closeOutput() { socket?.endPlaintext(.finished) }
    func closeAfterWrites() { socket?.endPlaintext(.closed) }
    func resetAfterWrites() { socket?.endPlaintext(.gone) }

    func reset() {
        socket?.plaintext.drop()
        socket?.endPlaintext(.gone)
    }

    func close() { reset() }
    func pauseReading() { socket?.setInsidePaused(true) }
    func resumeReading() { socket?.setInsidePaused(false) }
    func flush() {}
    func established() {}
    func readIfPending() {}
    var bytesUnsent: Int { socket?.plaintext.byteCount ?? 0 }
    var hasUnreadBytes: Bool { false }
}
#endif
