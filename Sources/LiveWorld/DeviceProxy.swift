internal import Impairment
internal import NIOPosix
internal import ProxyServer
internal import ScenarioModel
internal import ScenarioWorld

/// The proxy that is the link of a device.
enum DeviceProxy {
    /// Starts the proxy of a device, which reports exchanges to the world.
    static func start(
        of device: Scenario.Device, in world: World, server: LiveServer.Address
    ) async throws -> Proxy {
        var configuration = ProxyConfiguration(listen: Endpoint(host: "127.0.0.1", port: 0), upstream: server.endpoint)
        configuration.seed = world.seed
        configuration.linkName = "link/\(device.name)"
        configuration.exchangeTracking = ExchangeTracking(
            awaitsDecisions: world.scenario.decidesOnFaultsBeforeRequests)
        let name = device.name
        configuration.exchangeController = { event, port in world.exchange(of: name, event, port: port) }
        configuration.onBytesChanged = { world.bytesChanged(of: name, $0, offset: $1) }
        return try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
    }

    /// Aborts or closes the connection of an exchange of the run.
    static func closeConnection(
        of exchange: Int, _ device: String, on proxy: Proxy, in world: World, isAbort: Bool
    ) async {
        guard let port = world.port(of: exchange, device) else { return }
        let connection = await proxy.connections().first { $0.client?.port == port }
        if let connection { _ = await proxy.closeConnection(connection.id, abortively: isAbort) }
    }
}
