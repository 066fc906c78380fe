internal import Impairment
internal import LinkModel
internal import NIOCore
internal import NIOPosix
internal import Proxy
internal import Scenario
internal import Synchronization
internal import Worlds

/// The link of a device in real time: its proxy, and its lookups of host names.
final class DeviceLink: Sendable {
    /// Reports an event of an exchange on the connection from a port of the client; returns the fault to be injected.
    typealias ExchangeReporter = @Sendable (ExchangeEvent, Int) -> ExchangeFault?

    private let name: String
    private let world: LiveRunWorld
    private let proxy: Proxy
    private let resolves = Mutex(true)

    /// Starts the proxy.
    init(
        of device: Scenario.Device, in world: LiveRunWorld, server: LiveServer.Address,
        report: @escaping ExchangeReporter
    ) async throws {
        let name = device.name
        self.name = name
        self.world = world
        var configuration = ProxyConfiguration(listen: Endpoint(host: "127.0.0.1", port: 0), upstream: server.endpoint)
        configuration.seed = world.seed
        configuration.linkName = "link/\(name)"
        configuration.exchangeTracking = ExchangeTracking(
            awaitsDecisions: world.scenario.decidesOnFaultsBeforeRequests,
            samplesResponses: world.scenario.server != .builtIn)
        configuration.interception = server.interception?.settings
        configuration.exchangeController = { event, port in
            // The requests inside are those of another link.
            if case .notHTTP(ExchangeEvent.tlsReason) = event, server.interception != nil { return nil }
            return report(event, port)
        }
        configuration.onBytesChanged = { world.bytesChanged(of: name, $0, offset: $1) }
        proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
    }

    /// Starts the proxy of a client of this process, which reports exchanges to the world.
    convenience init(of device: Scenario.Device, in world: LiveRunWorld, server: LiveServer.Address) async throws {
        let name = device.name
        try await self.init(of: device, in: world, server: server) { world.exchange(of: name, $0, port: $1) }
    }

    /// The port of the proxy on the loopback interface.
    var port: Int { proxy.address.port }

    /// Whether the device can look up host names.
    var isNameResolved: Bool { resolves.withLock { $0 } }

    /// Executes an order that concerns the link only. Returns whether it was one.
    func execute(_ order: LiveRunWorld.Order) async -> Bool {
        switch order.action {
        case .setConditions(_, let conditions, link: _):
            resolves.withLock { $0 = conditions.connectionPolicy != .dns }
            await proxy.setConditions(conditions)
            world.executed(order)
        case .record(let event): world.record(event)
        case .closeConnection(let exchange, _, let isAbort):
            await closeConnection(of: exchange, isAbort: isAbort)
            world.executed(order)
        case .disarmFaults: await proxy.withdrawFaults()
        default: return false
        }
        return true
    }

    /// Aborts or closes the connection of an exchange of the run.
    private func closeConnection(of exchange: Int, isAbort: Bool) async {
        guard let port = world.port(of: exchange, name) else { return }
        let connection = await proxy.connections().first { $0.client?.port == port }
        if let connection { _ = await proxy.closeConnection(connection.id, abortively: isAbort) }
    }

    /// Aborts the connections of the setup; the next one has number 0.
    func reset() async {
        await proxy.abortConnections()
        await proxy.reseed(world.seed)
    }

    /// Ends the proxy.
    func stop() async { await proxy.stop(grace: .zero) }
}
