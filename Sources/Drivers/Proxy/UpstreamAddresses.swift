internal import NIOCore

/// The upstream's addresses. They are looked up at the start; a dial refreshes them in the background if they are older
/// than ``ageMax``.
///
/// Dials never wait for a refresh. A lookup that fails leaves the addresses unchanged. Used on its proxy's event loop
/// only.
final class UpstreamAddresses {
    private let endpoint: Endpoint
    private let resolver: NameResolver
    private var addresses: [SocketAddress]
    private var refreshedAt = NIODeadline.now()
    private var isRefreshing = false

    /// The age at which the addresses are looked up again.
    static let ageMax = TimeAmount.seconds(5)

    init(_ endpoint: Endpoint, _ addresses: [SocketAddress], resolver: NameResolver = .shared) {
        self.endpoint = endpoint
        self.addresses = addresses
        self.resolver = resolver
    }

    /// The addresses that the last lookup has found, or that need none.
    var known: [SocketAddress] { immediate ?? addresses }

    /// Returns the addresses in dial order, and starts a refresh if they are old.
    func current(on eventLoop: any EventLoop) -> [SocketAddress] {
        if !isRefreshing && NIODeadline.now() - refreshedAt > Self.ageMax && immediate == nil {
            isRefreshing = true
            resolver.addresses(of: endpoint, on: eventLoop).assumeIsolated().whenComplete { result in
                self.isRefreshing = false
                self.refreshedAt = .now()
                if case .success(let found) = result { self.addresses = found }
            }
        }
        return addresses
    }

    /// Looks the addresses up now; fails after `time`.
    func fresh(within time: TimeAmount, on eventLoop: any EventLoop) -> EventLoopFuture<[SocketAddress]>.Isolated {
        resolver.addresses(of: endpoint, within: time, on: eventLoop).assumeIsolated()
    }

    /// The addresses of an upstream that needs no lookup; `nil` for a name.
    private(set) lazy var immediate = NameResolver.immediate(endpoint)
}
