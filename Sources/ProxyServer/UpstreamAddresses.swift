internal import NIOCore

/// The upstream's addresses: looked up at the start, and again in the background when they are a few seconds old and
/// wanted, so that no connection ever waits for a lookup. A lookup that fails leaves them as they were.
///
/// Used on its proxy's event loop only.
final class UpstreamAddresses {
    private let endpoint: Endpoint
    private let resolver: NameResolver
    private var addresses: [SocketAddress]
    private var lookedUpAt = NIODeadline.now()
    private var isLookingUp = false

    /// After this long the name is looked up again.
    static let ageMax = TimeAmount.seconds(5)

    init(_ endpoint: Endpoint, _ addresses: [SocketAddress], resolver: NameResolver = .shared) {
        self.endpoint = endpoint
        self.addresses = addresses
        self.resolver = resolver
    }

    /// What to dial now, in this order.
    func current(on eventLoop: any EventLoop) -> [SocketAddress] {
        if !isLookingUp && NIODeadline.now() - lookedUpAt > Self.ageMax && immediate == nil {
            isLookingUp = true
            resolver.addresses(of: endpoint, on: eventLoop).assumeIsolated().whenComplete { result in
                self.isLookingUp = false
                self.lookedUpAt = .now()
                if case .success(let found) = result { self.addresses = found }
            }
        }
        return addresses
    }

    /// What to dial now, looked up now, or an error after `time`.
    func fresh(within time: TimeAmount, on eventLoop: any EventLoop) -> EventLoopFuture<[SocketAddress]>.Isolated {
        resolver.addresses(of: endpoint, within: time, on: eventLoop).assumeIsolated()
    }

    /// Its addresses, if they need no lookup.
    private(set) lazy var immediate = NameResolver.immediate(endpoint)
}
