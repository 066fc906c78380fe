internal import NIOCore
internal import NIOPosix

/// The upstream's addresses: looked up at the start, and again in the background when they are a few seconds old and
/// wanted, so that no connection ever waits for a look-up. A look-up that fails leaves them as they were.
///
/// Used on its proxy's event loop only.
final class UpstreamAddresses {
    private let endpoint: Endpoint
    private var addresses: [SocketAddress]
    private var lookedUpAt = NIODeadline.now()
    private var isLookingUp = false

    /// After this long the name is looked up again.
    static let ageMax = TimeAmount.seconds(5)

    init(_ endpoint: Endpoint, _ addresses: [SocketAddress]) {
        self.endpoint = endpoint
        self.addresses = addresses
    }

    /// What to dial now, in this order.
    func current(on eventLoop: any EventLoop) -> [SocketAddress] {
        if !isLookingUp && NIODeadline.now() - lookedUpAt > Self.ageMax {
            isLookingUp = true
            let endpoint = endpoint
            NIOThreadPool.singleton.runIfActive(eventLoop: eventLoop) { try NameLookup.addresses(of: endpoint) }
                .assumeIsolated()
                .whenComplete { result in
                    self.isLookingUp = false
                    self.lookedUpAt = .now()
                    if case .success(let found) = result { self.addresses = found }
                }
        }
        return addresses
    }

    /// What to dial now, looked up now; a numeric address is its own. Who asks while a look-up is under way shares it.
    func fresh(on eventLoop: any EventLoop) -> EventLoopFuture<[SocketAddress]>.Isolated {
        if let address = numeric { return eventLoop.makeSucceededFuture([address]).assumeIsolated() }
        if let underWay { return underWay.assumeIsolated() }
        let endpoint = endpoint
        let found = Self.pool.runIfActive(eventLoop: eventLoop) { try NameLookup.addresses(of: endpoint) }
        underWay = found
        found.assumeIsolated().whenComplete { _ in self.underWay = nil }
        return found.assumeIsolated()
    }

    private var underWay: EventLoopFuture<[SocketAddress]>?
    /// Its one address, if it is no name.
    private(set) lazy var numeric = try? SocketAddress(ipAddress: endpoint.host, port: endpoint.port)

    /// A name server that does not answer keeps threads waiting: these are nobody else's.
    private static let pool: NIOThreadPool = {
        let pool = NIOThreadPool(numberOfThreads: 8)
        pool.start()
        return pool
    }()
}
