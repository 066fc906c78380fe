internal import NIOCore

/// A client that one relay has let in, on its way to the one that carries it; ``HandedOver`` is what leaves a relay.
struct Arrival: Sendable {
    /// A dial that has begun.
    struct Dial: Sendable {
        let server: OwnedSocket
        /// The addresses left to try.
        let addresses: ArraySlice<SocketAddress>
        /// Set if it may lead to a proxy of this process.
        let record: LoopDetector.Dial?
    }

    let client: OwnedSocket
    let number: Int
    let seed: UInt64
    let startedAt: NIODeadline
    /// The proxies of this process that it has passed.
    let passed: [LoopDetector.ProxyNumber]
    /// `nil` while nobody has asked where it goes.
    let dial: Result<Dial, IOError>?
}
