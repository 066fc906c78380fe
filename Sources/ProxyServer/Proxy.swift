public import Impairment
public import LinkModel
public import Logging
internal import NIOConcurrencyHelpers
public import NIOCore
internal import NIOPosix
internal import SpliceRelay

/// A TCP proxy whose traffic takes as long as its ``LinkModel/Conditions`` say.
///
/// ```swift
/// let proxy = try await Proxy.start(
///     ProxyConfiguration(listen: Endpoint("127.0.0.1:0")!, upstream: Endpoint("127.0.0.1:8000")!),
///     on: MultiThreadedEventLoopGroup.singleton)
/// await proxy.setConditions(.clear)   // in force when the call returns
/// await proxy.stop()
/// ```
public final class Proxy: Sendable {
    /// Where clients connect; the port is the real one if 0 was asked for.
    public let address: Endpoint
    private let eventLoop: any EventLoop
    private let core: NIOLoopBound<ProxyCore>
    private let failure: NIOLockedValueBox<String?>

    /// Why it does not listen although it is to, as when another process has taken the port after a refusal; it tries again every
    /// second. `nil` while all is well.
    public var listenFailure: String? { failure.withLockedValue { $0 } }

    private init(
        address: Endpoint, eventLoop: any EventLoop, core: NIOLoopBound<ProxyCore>, failure: NIOLockedValueBox<String?>
    ) {
        self.address = address
        self.failure = failure
        self.eventLoop = eventLoop
        self.core = core
    }

    /// Whether connections go past SwiftNIO on this machine while nothing is in force (Linux).
    public static var hasRelay: Bool { !Relay.all.isEmpty }

    /// Starts a proxy on one loop of `group`. Throws a ``ProxyError`` if it cannot.
    public static func start(
        _ configuration: ProxyConfiguration, on group: any EventLoopGroup,
        logger: Logger = Logger(label: "slowlane.proxy") { _ in SwiftLogNoOpLogHandler() }
    ) async throws -> Proxy {
        // Names are looked up now, so that a misspelt one is told at the start and not at the first client.
        let upstream = configuration.resolvesEachTime ? [] : try await addresses(of: configuration.upstream)
        let listen: SocketAddress
        do {
            listen = try await addresses(of: configuration.listen)[0]
        } catch let error as ProxyError {
            throw ProxyError(code: .cannotListen, endpoint: configuration.listen, reason: error.reason)
        }
        if upstream.contains(where: { wouldReach(listen, from: $0) }) {
            throw ProxyError(code: .callsItself, endpoint: configuration.upstream, reason: "")
        }
        let eventLoop = group.next()
        let core = try await eventLoop.submit {
            let addresses = UpstreamAddresses(configuration.upstream, upstream)
            let core = ProxyCore(configuration, upstream: addresses, on: eventLoop, logger: logger)
            return NIOLoopBound(core, eventLoop: eventLoop)
        }.get()
        do {
            let failure = NIOLockedValueBox<String?>(nil)
            let port = try await eventLoop.flatSubmit {
                core.value.listen(on: listen) { reason in failure.withLockedValue { $0 = reason } }
            }.get()
            let host = configuration.resolvesEachTime ? listen.ipAddress : configuration.listen.host
            let address = Endpoint(host: host ?? configuration.listen.host, port: port)
            return Proxy(address: address, eventLoop: eventLoop, core: core, failure: failure)
        } catch {
            try? await eventLoop.submit {
                core.value.forgetListener()
                core.value.linkLoop.shutDown()
            }.get()
            throw ProxyError.cannotListen(configuration.listen, error)
        }
    }

    /// Lets a timeline change the conditions from now on, as if `offset` of it had passed; in force when the call returns.
    public func follow(_ timeline: Timeline, from offset: Nanoseconds = .zero) async {
        await change { $0.follow(timeline, from: offset) }
    }

    /// Changes the conditions for everything that enters the link from now on; in force when the call returns.
    public func setConditions(_ conditions: Conditions) async {
        let isImpairing = !conditions.isClear || conditions.connectionPolicy != .open
        await change(isImpairing: isImpairing) { $0.setConditions(conditions) }
    }

    /// Loses everything in a direction, or no longer, whatever the conditions say; in force when the call returns.
    public func setCut(_ isCut: PerDirection<Bool>) async {
        await change(isImpairing: isCut.up || isCut.down) { $0.setCut(isCut) }
    }

    /// Cuts every connection there is: both sockets get a RST at once. New ones are let in as before.
    public func reset() async {
        await ask { $0.reset() }
    }

    /// Adds a toxic, nearest the link, to the connections there are and those to come; in force when the call returns. Its name
    /// must be new.
    public func add(_ toxic: Toxic) async {
        await change { $0.add(toxic) }
    }

    /// Gives the toxic of that name other settings; in force when the call returns.
    public func update(_ toxic: Toxic) async {
        await change(isImpairing: false) { $0.update(toxic) }
    }

    /// Takes toxics away: what waits before them goes on at once; connections that a `timeout` held are closed.
    public func removeToxics(_ names: [String]) async {
        await change(isImpairing: false) { link in
            for name in names { link.removeToxic(name) }
        }
    }

    /// Draws all chance from another seed from now on: the next connection is number 0.
    public func reseed(_ seed: UInt64) async {
        await ask { $0.reseed(seed) }
    }

    /// The connections there are.
    public func connections() async -> [ConnectionStatus] {
        await ask { $0.connections() }
    }

    /// Ends one connection: with a RST to both sockets, or with a FIN after what has arrived; `false` if it is no more.
    public func cut(_ id: ConnectionID, byReset: Bool) async -> Bool {
        await ask { $0.cut(id, byReset: byReset) }
    }

    /// Where the proxy stands.
    public func status() async -> ProxyStatus {
        await ask { $0.status() }
    }

    /// Stops accepting, lets what has been read arrive at its modelled time, but no longer than `grace`, and closes
    /// every connection. Returns when all sockets are closed.
    ///
    /// - Returns: Whether everything read had arrived by then.
    @discardableResult
    public func stop(grace: TimeAmount = .seconds(5)) async -> Bool {
        let core = core
        let done = eventLoop.flatSubmit { core.value.stop(grace: grace) }
        return (try? await done.get()) ?? false
    }

    /// Closes the port and every connection at once: each socket gets a FIN after what has been handed to the system, whatever is
    /// still on its way. Returns when all sockets are closed, with where things stood.
    @discardableResult
    public func close() async -> ProxyStatus {
        let core = core
        let last = await status()
        let done = eventLoop.flatSubmit { core.value.close() }
        try? await done.get()
        return last
    }

    /// Changes something of the link; new connections too are treated accordingly when this returns.
    private func change(isImpairing: Bool = true, _ body: @escaping @Sendable (LinkLoop) -> Void) async {
        let core = core
        let done = eventLoop.flatSubmit { core.value.change(isImpairing: isImpairing, body) }
        // If the port cannot be had again at once, that is logged, and tried again.
        try? await done.get()
    }

    private func ask<Answer: Sendable>(
        _ question: @escaping @Sendable (ProxyCore) -> EventLoopFuture<Answer>
    ) async -> Answer {
        let core = core
        do {
            return try await eventLoop.flatSubmit { question(core.value) }.get()
        } catch {
            preconditionFailure("the event loop of a proxy must outlive it: \(error)")
        }
    }

    private static func addresses(of endpoint: Endpoint) async throws -> [SocketAddress] {
        return try await NameResolver.shared.addresses(of: endpoint)
    }

    /// Whether a dial to `address` would end at a listener on `listen`. What this does not see, ``LoopDetector`` does.
    static func wouldReach(_ listen: SocketAddress, from address: SocketAddress) -> Bool {
        guard listen.port == address.port, var host = LoopDetector.host(address), let own = LoopDetector.host(listen)
        else { return false }
        // A dial to the wildcard address goes to the loopback.
        if host == "0.0.0.0" { host = "127.0.0.1" }
        if host == "::" { host = "::1" }
        if host == own { return true }
        guard own == "0.0.0.0" || own == "::" else { return false }
        return LoopDetector.isLoopback(host) || ownAddresses.contains(host)
    }

    /// Whether an address is the loopback's, the wildcard's or one of this machine's.
    static func isOnThisMachine(_ address: SocketAddress) -> Bool {
        guard let host = LoopDetector.host(address) else { return false }
        return LoopDetector.isLoopback(host) || host == "0.0.0.0" || host == "::" || ownAddresses.contains(host)
    }

    /// The addresses of this machine's interfaces, at the process's start.
    private static let ownAddresses = Set((try? System.enumerateDevices())?.compactMap { $0.address?.ipAddress } ?? [])
}
