internal import CommandSupport
internal import ControlAPI
internal import Determinism
internal import Foundation
internal import LinkModel
internal import Logging
internal import NIOPosix
internal import Proxy
internal import Wire

/// A server of the control API in the foreground, until a signal or the end of the parent process stops it.
struct ForegroundServer {
    /// The program whose behaviour the server has.
    enum Style: Sendable {
        /// Slowlane's own.
        case slowlane
        /// Toxiproxy's server: it logs in that server's format, starts despite an invalid configuration, and accepts
        /// requests from other machines without a token.
        case toxiproxy
    }

    /// The reason why the server did not start. The error itself has been printed.
    enum StartError: Error {
        /// An address that cannot be resolved, or that needs a token.
        case unsuitableAddress
        /// A configuration that cannot be read or applied.
        case invalidConfiguration
        /// A port that cannot be bound.
        case unavailable
    }

    /// The program whose behaviour the server has.
    var style = Style.slowlane
    /// The path of a JSON file of proxies, in the format of `POST /populate`.
    var configurationPath: String?
    /// The random seed; a random one by default.
    var seed = UInt64.random(in: 0..<(1 << 53))
    /// The start of timelines that have none of their own.
    var timelineStart: TimelineStart?
    /// The limits.
    var limits = ServerLimits()
    /// The metrics under Toxiproxy's path `/metrics`.
    var metrics: API.MetricsSelection?
    /// The settings of the dashboard.
    var dashboard = Dashboard()
    /// The token that requests must have.
    var token: String?
    /// Whether requests from other machines need no token.
    var needsNoToken = false
    /// Names that are accepted in the Host header, besides those of the address.
    var allowedHosts: [String] = []
    /// The name of the log level, Toxiproxy's or Slowlane's; empty for the default.
    var logLevel = ""
    /// Whether only results are printed.
    var isQuiet = false
    /// Whether the end of the parent process stops the server.
    var stopsWithParent = false
    /// The time that transfers have at the end.
    var grace = Nanoseconds.zero
    /// Whether the configuration is applied again when its file changes.
    var watchesConfiguration = false
    /// The path of the file that exists while the server is ready.
    var readyPath: String?

    private let host: String
    private let port: String

    /// Creates a server.
    ///
    /// - Parameters:
    ///   - host: The host to listen on: a name or an address. An empty host is the wildcard address.
    ///   - port: The port to listen on: a number or a service name.
    init(host: String, port: String) {
        self.host = host
        self.port = port
    }

    private var isToxiproxy: Bool { style == .toxiproxy }

    /// Runs the server. Prints the error if it cannot start.
    func run(_ console: Console) async throws(StartError) {
        let logger = logger(console)
        if isToxiproxy { logger.info("Starting Toxiproxy", metadata: ["version": "\(API.toxiproxyVersion)"]) }
        let address = try await resolvedAddress(console)
        let isReachable = !LocalAddresses.isLoopback(address.host)
        // Toxiproxy has no tokens, and its container image listens on all interfaces.
        if isReachable && token == nil && !needsNoToken && !isToxiproxy {
            console.error(
                "cannot listen on \(address) without a token: other machines could open ports and connections on this one; "
                    + "add --token TOKEN, or --no-token (SLOWLANE_NO_TOKEN=1) to allow it")
            throw .unsuitableAddress
        }
        let api = API(
            seed: seed, limits: limits, metrics: metrics, version: SlowlaneVersion.current,
            dashboard: dashboard, timelineStart: timelineStart,
            authority: { () throws(CertificateAuthorityError) in try AuthorityFolder.ofUser().load() },
            on: MultiThreadedEventLoopGroup.singleton, logger: logger)
        // A signal may arrive as soon as the line "listening" is printed.
        let events = ForegroundEvents()
        if stopsWithParent { ParentMonitor.start(events.parent) { events.receive(.parentExited) } }
        // Toxiproxy's server has no handler of SIGHUP.
        if configurationPath != nil, !isToxiproxy { events.catchReload() }
        // The file of a server that was killed is not that of this one.
        removeReadyFile()
        let proxies = try await load(api, console, logger)
        let server = try await start(api, address, console, logger)
        let bound = Endpoint(host: address.host, port: server.port)
        do {
            try writeReadyFile(bound, proxies)
        } catch {
            console.error("--ready-file \(readyPath ?? ""): \(error.localizedDescription)")
            await server.stop()
            await api.close()
            throw .unavailable
        }
        announce(bound, proxies.map { ", proxies \($0.map(\.name).joined(separator: ", "))" } ?? "", console, logger)
        console.writeAsynchronously()
        let watch = watch(events)
        while case .reload? = await events.next() { await reload(api, bound, console, logger) }
        watch?.cancel()
        removeReadyFile()
        await server.stop()
        await api.close(grace: grace)
        if isToxiproxy {
            logger.info("Shutdown finished")
        } else if !isQuiet && logger.logLevel <= .warning {
            console.print("stopped", to: .progress)
        }
        console.flush()
    }

    private func logger(_ console: Console) -> Logger {
        let level = Self.level(logLevel)
        let logger = Logger(label: "slowlane") { [isToxiproxy, isQuiet] _ in
            let level = level ?? (isQuiet ? .error : .info)
            return isToxiproxy ? JSONLogHandler(console, level: level) : ConsoleLogHandler(console, level: level)
        }
        if level == nil && !logLevel.isEmpty { logger.error("unknown LOG_LEVEL value: \"\(logLevel.prefix(40))\"") }
        return logger
    }

    /// Returns a log level by Toxiproxy's name or by that of swift-log.
    static func level(_ name: String) -> Logger.Level? {
        switch name.lowercased() {
        case "panic", "fatal": .critical
        case "warn": .warning
        default: Logger.Level(rawValue: name.lowercased())
        }
    }

    /// Returns the address to listen on. An IPv6 address may have brackets. No host means all interfaces, and so does
    /// Toxiproxy's `0.0.0.0`, which includes IPv6 there.
    private func resolvedAddress(_ console: Console) async throws(StartError) -> Endpoint {
        var name = host
        if name.hasPrefix("["), name.hasSuffix("]") { name = String(name.dropFirst().dropLast()) }
        if isToxiproxy && name == "0.0.0.0" { name = "" }
        do {
            return try await ListenAddress.resolve("\(name.contains(":") ? "[\(name)]" : name):\(port)")
        } catch {
            console.error("--host \(host) --port \(port): \(error.reason)")
            throw .unsuitableAddress
        }
    }

    /// Creates the proxies of the configuration and returns them; `nil` if there is no configuration.
    private func load(
        _ api: API, _ console: Console, _ logger: Logger
    ) async throws(StartError) -> [API.LoadedProxy]? {
        guard let configurationPath else { return nil }
        guard let data = FileManager.default.contents(atPath: configurationPath) else {
            try await loadFailed(configurationPath, "cannot be read", "Error reading config file", api, console, logger)
            return nil
        }
        let (proxies, problem) = await api.load(Array(data))
        if isToxiproxy {
            for proxy in proxies where proxy.isEnabled {
                logger.info(
                    "Started proxy",
                    metadata: [
                        "name": "\(proxy.name)", "listen": "\(proxy.listen)", "upstream": "\(proxy.upstream)",
                    ])
            }
        }
        if let problem {
            try await loadFailed(
                configurationPath, problem, "Failed to populate proxies from file", api, console, logger)
            return nil
        }
        if isToxiproxy {
            logger.info(
                "Populated proxies from file",
                metadata: ["config": "\(configurationPath)", "proxies": .stringConvertible(proxies.count)])
        }
        return proxies
    }

    /// Applies the configuration again.
    private func reload(_ api: API, _ address: Endpoint, _ console: Console, _ logger: Logger) async {
        guard let configurationPath else { return }
        guard let data = FileManager.default.contents(atPath: configurationPath) else {
            return logger.error("--config \(configurationPath): cannot be read; nothing has changed")
        }
        let (proxies, problem) = await api.load(Array(data), again: true)
        if let problem { return logger.error("--config \(configurationPath): \(problem)") }
        do {
            try writeReadyFile(address, proxies)
        } catch {
            logger.error("--ready-file \(readyPath ?? ""): \(error.localizedDescription)")
        }
        logger.info("configuration applied again: proxies \(proxies.map(\.name).joined(separator: ", "))")
    }

    /// Reports changes of the configuration's file: of its contents, because a mounted file may be replaced by a link.
    private func watch(_ events: ForegroundEvents) -> Task<Void, any Error>? {
        guard watchesConfiguration, let configurationPath else { return nil }
        return Task {
            var last = FileManager.default.contents(atPath: configurationPath)
            while true {
                try await Task.sleep(for: Self.watchInterval)
                let now = FileManager.default.contents(atPath: configurationPath)
                // A file that is missing for a moment is being replaced.
                if let now, now != last { events.receive(.reload) }
                last = now ?? last
            }
        }
    }

    private static let watchInterval = Duration.seconds(1)

    private func writeReadyFile(_ address: Endpoint, _ proxies: [API.LoadedProxy]?) throws {
        guard let readyPath else { return }
        let rows = (proxies ?? []).map { proxy in
            JSONText.object([
                ("name", JSONText.string(proxy.name)), ("listen", JSONText.string(proxy.listen)),
                ("upstream", JSONText.string(proxy.upstream)), ("enabled", "\(proxy.isEnabled)"),
            ])
        }
        let text = JSONText.object([
            ("url", JSONText.string("http://\(address)")), ("port", "\(address.port)"),
            ("pid", "\(ProcessInfo.processInfo.processIdentifier)"), ("seed", "\(seed)"),
            ("proxies", "[\(rows.joined(separator: ", "))]"),
        ])
        try Data("\(text)\n".utf8).write(to: URL(filePath: readyPath), options: .atomic)
    }

    private func removeReadyFile() {
        if let readyPath { try? FileManager.default.removeItem(atPath: readyPath) }
    }

    /// Reports that a configuration cannot be loaded. Toxiproxy's server logs that and starts.
    private func loadFailed(
        _ path: String, _ problem: String, _ toxiproxyMessage: Logger.Message, _ api: API, _ console: Console,
        _ logger: Logger
    ) async throws(StartError) {
        if isToxiproxy {
            return logger.error(toxiproxyMessage, metadata: ["config": "\(path)", "error": "\(problem)"])
        }
        console.error("--config \(path): \(problem)")
        await api.close()
        throw .invalidConfiguration
    }

    private func start(
        _ api: API, _ address: Endpoint, _ console: Console, _ logger: Logger
    ) async throws(StartError) -> APIServer {
        // Toxiproxy has no list of host names, so every name must be accepted.
        let isReachable = !LocalAddresses.isLoopback(address.host)
        let anyHost = isToxiproxy && isReachable && token == nil ? ["*"] : []
        do {
            return try await APIServer.start(
                api, host: address.host, port: address.port,
                requestGuard: RequestGuard(
                    boundTo: address.host, token: token, allowedHosts: allowedHosts + anyHost), logger: logger)
        } catch {
            if isToxiproxy { logger.error("\(error)") } else { console.error("\(error)") }
            await api.close()
            console.flush()
            throw .unavailable
        }
    }

    /// Prints the address, and a warning if other machines can send requests without a token.
    private func announce(_ address: Endpoint, _ configured: String, _ console: Console, _ logger: Logger) {
        let needsWarning = !LocalAddresses.isLoopback(address.host) && token == nil
        let warning = "other machines can open ports and connections on this one through port \(address.port)"
        if isToxiproxy {
            // Third-party programs wait for this message.
            logger.info(
                "Starting Toxiproxy HTTP server",
                metadata: ["address": "\(address)", "seed": "\(seed)", "slowlane": "\(SlowlaneVersion.current)"])
            if needsWarning { logger.warning("\(warning)") }
        } else if logger.logLevel <= .warning || isQuiet {
            console.print(
                "listening on http://\(address) (Toxiproxy \(API.toxiproxyVersion)), seed \(seed)\(configured)")
            if needsWarning { console.print("warning: \(warning)", to: .progress) }
        }
    }
}
