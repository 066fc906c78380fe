internal import ArgumentParser
internal import ConfigFiles
internal import Foundation
internal import LinkModel
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import PacketCapture
internal import ProxyServer

/// `slowlane proxy`.
struct ProxyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "proxy",
        abstract: "Runs one proxy in the foreground whose traffic takes as long as on a given network.",
        discussion: """
            Examples:
              slowlane proxy --upstream localhost:8000 --profile edge
              slowlane proxy --listen 127.0.0.1:9000 --upstream 8000
              slowlane proxy --upstream 8000 --profile ./office.yaml
              slowlane proxy --upstream 8000 --timeline subway --seed 7
              slowlane proxy --upstream 8000 --netem-down 'delay 100ms loss 2% rate 780kbit' --netem-up 'delay 100ms'

            While it runs it takes commands, a line each, and answers 'ok ...' once they are in force, or 'error ...':
              profile NAME|FILE   from now on this network ('profile 100-loss' for a tunnel)
              timeline WHAT       a timeline's name or file, or written out ('timeline 0s: 3g, 20s: 100-loss, 50s: edge')
              pause               the timeline stands still; 'resume' lets it go on
              seek TIME           the timeline goes on from there ('seek 20s')
              cut [up|down]       nothing gets through, whatever the network is; 'heal' ends it
              reset               every connection is cut with a RST, now
              clear               nothing in force: bytes go straight through
              status              where things stand
              quit                stop: what has been read is delivered first, for --grace seconds at most
              help                these lines

            Not only networks: 'profile refuse' (connections are cut, new ones refused), 'portal' (a sign-in page answers),
            'updead' and 'downdead' (nothing gets through in one direction), 'dns', 'high-latency-dns'.

            SIGINT and SIGTERM stop it like 'quit'; a second one stops it at once.
            """)

    @Option(help: "Where clients connect, HOST:PORT; port 0 takes a free one and prints it.")
    var listen = "127.0.0.1:0"

    @Option(help: "Where their connections go, HOST:PORT; a port alone means this machine.")
    var upstream: String

    @OptionGroup(title: "The link; without it nothing is in force") var link: LinkOptions

    @Option(help: "Write what the modelled link carries to this file, for Wireshark: retransmissions, losses, why.")
    var pcapng: String?

    @Option(help: "Whose end of the link --pcapng shows: server (good for downloads) or client (good for uploads).")
    var pcapngAt = "server"

    @Option(
        help:
            "How many connections may be open at once; further ones wait. (default: 10000, or what 'ulimit -n' allows)")
    var maxConnections: Int?

    @Option(help: "How many seconds a dial to the upstream may take.")
    var connectTimeout = 10.0

    @Option(help: "How many seconds bytes may still travel after a stop.")
    var grace = 5.0

    @Flag(name: .shortAndLong, help: "Print results only.")
    var quiet = false

    private static let ends: [String: Side] = ["server": .server, "client": .client]

    func validate() throws {
        guard Endpoint(listen) != nil else {
            throw ValidationError("--listen '\(listen)' is not HOST:PORT (as 127.0.0.1:9000, [::1]:9000 or 9000)")
        }
        guard let upstream = Endpoint(upstream), upstream.port > 0 else {
            throw ValidationError("--upstream '\(upstream)' is not HOST:PORT (as localhost:8000 or 8000)")
        }
        if let maxConnections, !(1...1_000_000).contains(maxConnections) {
            throw ValidationError("--max-connections \(maxConnections) is not within 1 to 1000000")
        }
        if Self.ends[pcapngAt] == nil {
            throw ValidationError("--pcapng-at '\(pcapngAt.prefix(40))' is neither server nor client")
        }
        for (name, seconds) in [("--connect-timeout", connectTimeout), ("--grace", grace)] {
            guard seconds >= 0, seconds <= 3600 else {
                throw ValidationError("\(name) \(seconds) is not within 0 to 3600 seconds")
            }
        }
    }

    func run() async throws {
        guard let listen = Endpoint(listen), let upstream = Endpoint(upstream) else { throw ExitStatus.usage }
        let console = Console(wantsStatusLine: !quiet)
        let link = try link.link(console)
        let logger = Logger(label: "slowlane") { _ in ConsoleLogHandler(console, level: quiet ? .error : .info) }

        var configuration = ProxyConfiguration(
            listen: listen, upstream: upstream, connectionsMax: connectionsThatFit(console),
            connectTimeout: .nanoseconds(Int64(connectTimeout * 1e9)))
        configuration.seed = self.link.seed
        configuration.clientStack = self.link.client
        configuration.serverStack = self.link.server
        let words: String
        var course: TimelineCourse?
        switch link {
        case .nothing: words = "profile none (nothing in force)"
        case .holds(let conditions, let name):
            configuration.conditions = conditions
            words = "profile \(name) (\(Units.conditions(conditions)))"
        case .follows(let file):
            configuration.timeline = file.timeline
            words = "timeline \(file.id)"
            course = TimelineCourse(file)
        }
        let capture = try pcapng.map { try linkCapture($0, listen: listen, upstream: upstream, console) }
        if let capture {
            configuration.onPacket = {
                capture.append(
                    $0.record, payload: $0.payload, cause: $0.cause, ports: $0.ports,
                    startUnixNanoseconds: $0.startUnixNanoseconds)
            }
        }
        // Signals are caught before anybody can know that we listen.
        let happenings = Happenings()
        let proxy: Proxy
        do {
            proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton, logger: logger)
        } catch {
            console.print("error: \(error)", to: .progress)
            if let error = error as? ProxyError, error.code == .upstreamIsProxy { throw ExitStatus.usage }
            throw ExitStatus.unavailable
        }
        console.print("listening on \(proxy.address)\(otherAddresses(proxy.address)) -> \(upstream), \(words)")
        if !LocalAddresses.isLoopback(proxy.address.host) {
            console.print(
                "warning: whoever reaches this machine on port \(proxy.address.port) can use the upstream; "
                    + "--listen 127.0.0.1:\(proxy.address.port) keeps it to this machine", to: .progress)
        }
        // The event loop logs, and must not wait for whoever reads our output.
        console.writeLater()

        var run = ProxyRun(
            proxy: proxy, console: console, profile: Self.name(of: link), course: course,
            grace: .nanoseconds(Int64(grace * 1e9)), isQuiet: quiet,
            happenings: happenings)
        await run.untilStopped()
        if let capture {
            let loss = capture.close()
            if loss.packets > 0 {
                console.print(
                    "error: \(pcapng ?? ""): \(loss.packets) packets are not in it: "
                        + (loss.reason ?? "the disk was too slow"), to: .progress)
                console.flush()
                throw ExitStatus.unavailable
            }
        }
    }

    private func linkCapture(
        _ path: String, listen: Endpoint, upstream: Endpoint, _ console: Console
    ) throws -> LinkCapture {
        do {
            return try LinkCapture(
                path, at: Self.ends[pcapngAt] ?? .server, application: "slowlane \(SlowlaneVersion.current)",
                interface: "modelled link \(listen) -> \(upstream), at the \(pcapngAt)'s end")
        } catch {
            console.print("error: --pcapng \(error)", to: .progress)
            throw ExitStatus.unavailable
        }
    }

    private static func name(of link: LinkOptions.Link) -> String {
        switch link {
        case .nothing: "none"
        case .holds(_, let name): name
        case .follows(let file): file.id
        }
    }

    /// What another device would type, for the line that says where the proxy listens.
    private func otherAddresses(_ address: Endpoint) -> String {
        if LocalAddresses.isLoopback(address.host) { return "" }
        let hosts = LocalAddresses.reachable(through: address.host).map { "\(Endpoint(host: $0, port: address.port))" }
        return hosts.isEmpty ? "" : " (from another device \(hosts.joined(separator: " or ")))"
    }

    /// A connection takes two open files; some are needed for everything else.
    private func connectionsThatFit(_ console: Console) -> Int {
        let files = Terminal.raiseOpenFileLimit()
        let fit = max(1, (files - 64) / 2)
        guard let maxConnections else { return min(fit, ProxyConfiguration.connectionsMaxDefault) }
        if fit < maxConnections {
            console.print(
                "note: \(files) open files are allowed (ulimit -n), so at most \(fit) connections", to: .progress)
        }
        return min(fit, maxConnections)
    }
}
