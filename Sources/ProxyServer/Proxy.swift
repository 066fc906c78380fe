internal import Impairment
public import LinkModel
public import Logging
public import NIOCore
internal import NIOPosix

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

    private init(address: Endpoint, eventLoop: any EventLoop, core: NIOLoopBound<ProxyCore>) {
        self.address = address
        self.eventLoop = eventLoop
        self.core = core
    }

    /// Starts a proxy on one loop of `group`. Throws a ``ProxyError`` if it cannot.
    public static func start(
        _ configuration: ProxyConfiguration, on group: any EventLoopGroup,
        logger: Logger = Logger(label: "slowlane.proxy") { _ in SwiftLogNoOpLogHandler() }
    ) async throws -> Proxy {
        try await resolve(configuration.upstream)
        let eventLoop = group.next()
        let core = try await eventLoop.submit {
            NIOLoopBound(ProxyCore(configuration, on: eventLoop, logger: logger), eventLoop: eventLoop)
        }.get()
        do {
            let port = try await eventLoop.flatSubmit { core.value.listen() }.get()
            let address = Endpoint(host: configuration.listen.host, port: port)
            return Proxy(address: address, eventLoop: eventLoop, core: core)
        } catch {
            throw ProxyError.cannotListen(configuration.listen, error)
        }
    }

    /// Changes the conditions for everything that enters the link from now on; in force when the call returns.
    public func setConditions(_ conditions: Conditions) async {
        await onLoop { $0.linkLoop.setConditions(conditions) }
    }

    /// Where the proxy stands.
    public func status() async -> ProxyStatus {
        await onLoop { $0.status() }
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

    private func onLoop<Result: Sendable>(_ body: @escaping @Sendable (ProxyCore) -> Result) async -> Result {
        let core = core
        let submitted = eventLoop.submit { body(core.value) }
        do {
            return try await submitted.get()
        } catch {
            preconditionFailure("the event loop of a proxy must outlive it: \(error)")
        }
    }

    /// Asks once for the upstream's address, so that a misspelt name is told at the start and not at the first client.
    private static func resolve(_ upstream: Endpoint) async throws {
        do {
            _ = try await NIOThreadPool.singleton.runIfActive {
                try SocketAddress.makeAddressResolvingHost(upstream.host, port: upstream.port)
            }
        } catch {
            throw ProxyError(code: .cannotResolve, endpoint: upstream, reason: "its name has no address")
        }
    }
}
