internal import ArgumentParser
internal import ControlAPI
internal import Foundation
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import ProxyServer

/// `slowlane server`.
struct ServerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "server",
        abstract: "Runs proxies that are made and changed over HTTP: Toxiproxy's API, and Slowlane's.",
        discussion: """
            Every Toxiproxy client works with it; GET /version says 2.12.0. Called as 'toxiproxy-server' it takes that \
            program's flags. Networks, seeds and single connections are under /slowlane/v1 (docs/server.md).

            Examples:
              slowlane server
              slowlane server --config toxiproxy.json --seed 7
              slowlane server --host 0.0.0.0 --token "$TOKEN" --allow-host ci-host

            Then, in another terminal:
              slowlane create redis --listen 127.0.0.1:26379 --upstream 127.0.0.1:6379
              slowlane toxic add -t latency -a latency=1000 redis
              slowlane link redis edge

            SIGINT and SIGTERM stop it: every connection is closed.
            """)

    @Option(help: "Where to listen; with another than this machine's own address a token is wanted.")
    var host = "localhost"

    @Option(help: "The port, a number or a service's name; 0 takes a free one and prints it.")
    var port = "8474"

    @Option(help: "Proxies to begin with: a JSON file, an array as in the body of POST /populate.")
    var config: String?

    @Option(
        help:
            "Where all chance comes from: the same seed makes the same connections toxic. (default: another each time)")
    var seed: UInt64?

    @Flag(help: "Show the proxies' counters under /metrics, too. (They are always under /slowlane/v1/metrics.)")
    var proxyMetrics = false

    @Flag(help: "Show the process's figures under /metrics, too.")
    var runtimeMetrics = false

    @Option(help: "Callers must send 'Authorization: Bearer TOKEN'.")
    var token: String?

    @Flag(help: "Listen for other machines without a token.")
    var noToken = false

    @Option(
        help: "A name under which callers reach this server, beside its own address; may be given again. '*' is any.")
    var allowHost: [String] = []

    @Option(help: "How many proxies there may be.")
    var maxProxies = ServerLimits().proxiesMax

    @Option(help: "How many toxics a proxy may have.")
    var maxToxics = ServerLimits().toxicsMax

    @Option(
        help:
            "How many connections of a proxy may be open; further ones wait. (default: 10000, or what 'ulimit -n' allows)"
    )
    var maxConnections: Int?

    @Option(help: "How many bytes a call's body may have.")
    var maxBody = ServerLimits().bodyBytesMax

    @Option(help: "How many bytes a call's headers may have.")
    var maxHeaders = ServerLimits().headerBytesMax

    @Option(help: "How many connections to the API may be open; a further one takes the slot of the idlest.")
    var maxCallers = ServerLimits().callersMax

    @Flag(name: .shortAndLong, help: "Print results only.")
    var quiet = false

    /// A broken configuration is told and the server starts without it, as Toxiproxy does.
    var goesOnWithoutConfig: Bool { ToxiproxyName.isUsed }

    func validate() throws {
        if token != nil && noToken { throw ValidationError("--token and --no-token: give one") }
        if token?.isEmpty == true { throw ValidationError("--token is empty") }
        for (name, value) in [
            ("--max-proxies", maxProxies), ("--max-toxics", maxToxics), ("--max-connections", maxConnections ?? 1),
            ("--max-body", maxBody), ("--max-headers", maxHeaders), ("--max-callers", maxCallers),
        ] where !(1...1_000_000_000).contains(value) {
            throw ValidationError("\(name) \(value) is not within 1 to 1000000000")
        }
    }

    func run() async throws {
        let console = Console()
        let level = ProcessInfo.processInfo.environment["LOG_LEVEL"].flatMap(Self.level)
        let logger = Logger(label: "slowlane") { _ in
            ConsoleLogHandler(console, level: level ?? (quiet ? .error : .info))
        }
        let address: Endpoint
        do {
            address = try await ListenAddress.resolve("\(host.contains(":") ? "[\(host)]" : host):\(port)")
        } catch {
            console.print("error: --host \(host) --port \(port): \(error.reason)", to: .progress)
            throw ExitStatus.usage
        }
        if !LocalAddresses.isLoopback(address.host) && token == nil && !noToken {
            console.print(
                "error: \(address) can be reached from other machines, and whoever calls may open ports and connections "
                    + "here; set --token TOKEN, or say --no-token", to: .progress)
            throw ExitStatus.usage
        }
        var limits = ServerLimits()
        limits.proxiesMax = maxProxies
        limits.toxicsMax = maxToxics
        limits.connectionsMax = min(maxConnections ?? limits.connectionsMax, connectionsThatFit())
        limits.bodyBytesMax = maxBody
        limits.headerBytesMax = maxHeaders
        limits.callersMax = maxCallers
        let seed = seed ?? UInt64.random(in: 0..<(1 << 53))
        let showsMetrics = proxyMetrics || runtimeMetrics
        let api = API(
            seed: seed, limits: limits,
            metrics: showsMetrics ? .init(proxies: proxyMetrics, process: runtimeMetrics) : nil,
            version: SlowlaneVersion.current, on: MultiThreadedEventLoopGroup.singleton, logger: logger)
        // Signals are caught before anybody can know that we listen.
        let happenings = Happenings()
        let configured = try await load(api, console)
        let server: APIServer
        do {
            server = try await APIServer.start(
                api, host: address.host, port: address.port,
                gatekeeper: Gatekeeper(boundTo: address.host, token: token, allowedHosts: allowHost), logger: logger)
        } catch {
            console.print(
                "error: \(error); another server may be running there: stop it, or choose another --port", to: .progress
            )
            await api.close()
            throw ExitStatus.unavailable
        }
        let bound = Endpoint(host: address.host, port: server.port)
        console.print("listening on http://\(bound) (Toxiproxy \(API.toxiproxyVersion)), seed \(seed)\(configured)")
        if !LocalAddresses.isLoopback(address.host) && token == nil {
            console.print("warning: whoever reaches this machine on port \(server.port) can use it", to: .progress)
        }
        console.writeLater()
        _ = await happenings.next()
        await server.stop()
        await api.close()
        if !quiet { console.print("stopped", to: .progress) }
        console.flush()
    }

    /// Makes the proxies of the configuration; gives words about them.
    private func load(_ api: API, _ console: Console) async throws -> String {
        guard let config else { return "" }
        let problem: String
        if let data = FileManager.default.contents(atPath: config) {
            let (names, failure) = await api.load(Array(data))
            guard let failure else { return ", proxies \(names.joined(separator: ", "))" }
            problem = failure
        } else {
            problem = "it cannot be read"
        }
        console.print("error: --config \(config): \(problem)", to: .progress)
        guard goesOnWithoutConfig else {
            await api.close()
            throw ExitStatus.invalidFile
        }
        return ""
    }

    /// A connection takes two open files; some are needed for everything else.
    private func connectionsThatFit() -> Int { max(1, (Terminal.raiseOpenFileLimit() - 64) / 2) }

    private static func level(_ text: String) -> Logger.Level? {
        switch text.lowercased() {
        case "panic", "fatal": .critical
        case "warn": .warning
        default: Logger.Level(rawValue: text.lowercased())
        }
    }
}

/// The name of the program that the server stands in for, and its flags in Go's style.
enum ToxiproxyName {
    /// Whether the program was called by it.
    static var isUsed: Bool {
        CommandLine.arguments.first?.split(separator: "/").last == "toxiproxy-server"
    }

    private static let valueFlags: Set<String> = ["host", "port", "config", "seed"]
    private static let switches: Set<String> = ["proxy-metrics", "runtime-metrics", "version", "help", "h"]
    /// Ours, which a container may need beside them.
    private static let ours: Set<String> = ["token", "allow-host"]
    private static let ourSwitches: Set<String> = ["no-token"]

    /// What is to be done with a command line.
    enum Meaning: Equatable {
        /// Run the server with these arguments.
        case serve([String])
        /// Print this and end with the status.
        case say(String, status: Int32)
    }

    /// Reads a command line: one dash or two, a value beside or after `=`, no matter what follows the first word that is no flag.
    static func meaning(of arguments: [String]) -> Meaning {
        var result = ["server"]
        var rest = arguments[...]
        while let word = rest.popFirst(), word.hasPrefix("-"), word != "-", word != "--" {
            let text = word.drop { $0 == "-" }
            let name = String(text.prefix { $0 != "=" })
            let inline = text.contains("=") ? String(text.dropFirst(name.count + 1)) : nil
            if valueFlags.contains(name) || ours.contains(name) {
                guard let value = inline ?? rest.popFirst() else {
                    return .say("flag needs an argument: -\(name)\n\(usage)", status: 2)
                }
                // Its seeds may be negative.
                let isNegative = name == "seed" && value.hasPrefix("-")
                let seed = isNegative ? Int64(value).map { "\(UInt64(bitPattern: $0))" } : nil
                result.append("--\(name)=\(seed ?? value)")
            } else if switches.contains(name) || ourSwitches.contains(name) {
                if let inline, !["true", "1", "t", "TRUE", "True", "T"].contains(inline) { continue }
                switch name {
                case "version": return .say("toxiproxy-server version \(API.toxiproxyVersion)\n", status: 0)
                case "help", "h": return .say(usage, status: 0)
                default: result.append("--\(name)")
                }
            } else {
                return .say("flag provided but not defined: -\(name)\n\(usage)", status: 2)
            }
        }
        return .serve(result)
    }

    private static let usage = """
        Usage of toxiproxy-server (slowlane \(SlowlaneVersion.current)):
          -host string         where to listen (default "localhost")
          -port string         the port (default "8474")
          -config string       a JSON file with proxies to begin with
          -seed int            where all chance comes from
          -proxy-metrics       the proxies' counters under /metrics
          -runtime-metrics     the process's figures under /metrics
          -token string        callers must send it as 'Authorization: Bearer'
          -no-token            listen for other machines without a token
          -allow-host string   a name under which callers reach this server
          -version             print the version and end

        """
}
