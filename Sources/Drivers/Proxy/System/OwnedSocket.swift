internal import Synchronization

/// A socket descriptor that is closed when its last reference is released, unless its ownership was transferred.
package final class OwnedSocket: Sendable {
    private let descriptor: Atomic<CInt>

    /// Takes ownership of a descriptor.
    package init(_ descriptor: CInt) { self.descriptor = Atomic(descriptor) }

    deinit {
        let descriptor = take()
        if descriptor >= 0 { SystemSocket.close(descriptor) }
    }

    /// Transfers the descriptor to the caller, which must close it; returns -1 if it was transferred before.
    package func take() -> CInt { descriptor.exchange(-1, ordering: .relaxed) }

    /// Aborts the connection (RST).
    package func reset() {
        let descriptor = take()
        if descriptor < 0 { return }
        ResetOnClose.arm(descriptor)
        SystemSocket.close(descriptor)
    }
}
