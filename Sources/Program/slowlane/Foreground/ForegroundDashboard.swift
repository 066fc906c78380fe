internal import CommandSupport
internal import ControlAPI
internal import NIOPosix

/// The control API and the dashboard of `slowlane proxy`, on a port of the loopback interface.
struct ForegroundDashboard: Sendable {
    /// The API.
    let api: API
    private let server: APIServer

    /// The URL of the page.
    var url: String { "http://127.0.0.1:\(server.port)/" }

    /// Starts the API without proxies. Throws an ``ControlAPI/APIServer/StartError``.
    ///
    /// - Parameters:
    ///   - port: The port; 0 picks a free one.
    ///   - portOption: The command's option for the port, for error messages.
    static func start(
        port: Int, portOption: String, seed: UInt64, _ dashboard: Dashboard, pages: AdditionalPages? = nil
    ) async throws -> ForegroundDashboard {
        var limits = ServerLimits()
        limits.proxiesMax = 1
        let api = API(
            seed: seed, limits: limits, version: SlowlaneVersion.current, dashboard: dashboard, pages: pages,
            on: MultiThreadedEventLoopGroup.singleton)
        let server = try await APIServer.start(
            api, host: "127.0.0.1", port: port, hostOption: portOption, portOption: portOption,
            requestGuard: RequestGuard(boundTo: "127.0.0.1", token: nil, allowedHosts: []))
        return ForegroundDashboard(api: api, server: server)
    }

    /// Closes the port and all connections to it.
    func stop() async {
        await server.stop()
        await api.close()
    }
}
