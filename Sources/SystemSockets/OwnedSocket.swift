internal import Synchronization

/// A socket that is closed when nobody wants it any more.
final class OwnedSocket: Sendable {
    private let descriptor: Atomic<CInt>

    init(_ descriptor: CInt) { self.descriptor = Atomic(descriptor) }

    deinit {
        let left = take()
        if left >= 0 { SystemSocket.close(left) }
    }

    /// Gives it to somebody who will close it; -1 if it has been given already.
    func take() -> CInt { descriptor.exchange(-1, ordering: .relaxed) }

    /// Closes it with a RST.
    func reset() {
        let left = take()
        if left < 0 { return }
        ResetOnClose.arm(left)
        SystemSocket.close(left)
    }
}
