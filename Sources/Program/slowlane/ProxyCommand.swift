internal import ArgumentParser
internal import CommandSupport
internal import ConfigFiles
internal import ControlAPI
internal import Foundation
internal import HTTPSockets
internal import Impairment
internal import LinkModel
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import PacketCapture
internal import Proxy

/// `slowlane proxy`.
struct ProxyCommand: AsyncParsableCommand, LinkArguments {
    static let configuration = CommandConfiguration(
        commandName: "proxy",
        abstract: "Forward TCP connections and UDP datagrams to a server as a slow or lossy network would.",
        discussion: """
            Examples:
              slowlane proxy --upstream localhost:8000 --profile edge
              slowlane proxy --listen 127.0.0.1:9000 --upstream 8000
              slowlane proxy --upstream 8000 --profile ./office.yaml
              slowlane proxy --upstream 8000 --delay 200ms --rate 1mbit --loss 2%
              slowlane proxy --upstream 8000 --profile 3g --loss-down 2%
              slowlane proxy --upstream 8000 --timeline subway --seed 7
              slowlane proxy --upstream 8000 --dashboard
              slowlane proxy --upstream https://api.example.com --profile 3g
              slowlane proxy --forward --listen 127.0.0.1:9000 --profile 3g
              slowlane proxy --forward --intercept api.test --profile 3g
              slowlane proxy --udp --upstream 192.0.2.1:53 --loss 10%
              slowlane proxy --protocol tcp,udp --upstream localhost:8443 --profile 3g
              slowlane proxy --forward --to '*.cdn.test=wifi' --map api.test=127.0.0.1:8000
              slowlane proxy --upstream 8000 --netem-up 'delay 100ms' \\
                  --netem-down 'delay 100ms loss 2% rate 780kbit'

            With --forward, clients name the server of each connection: HTTP CONNECT,
            requests with a whole URL, SOCKS 5, 4 and 4a, on one port ('curl -x
            http://127.0.0.1:9000 https://example.com/'). All connections share one link,
            as on one device, and a client's request succeeds when the modelled handshake
            is complete. A browser that opens this address shows instructions
            (docs/reference/forward-proxy.md).

            With --upstream https://HOST, clients speak HTTP to the proxy, and the proxy
            speaks HTTPS to the server, whose certificate is verified ('curl
            http://127.0.0.1:9000/'). Faults see every exchange. If the TLS handshake
            fails, the response is a 502 with the reason.

            With --intercept HOST, the proxy terminates the client's TLS with a certificate of
            its own authority and speaks TLS to the server, whose certificate is verified.
            Clients must trust the authority ('slowlane ca'). The proxy does not touch the
            TLS of other hosts (docs/how-to/https.md).

            A fault of HTTP exchanges is a rule on one line (docs/reference/faults.md):
              slowlane proxy --upstream 8000 --fault \\
                  'POST /notes/ nth 3 before-response stall'
              slowlane proxy --upstream 8000 --fault \\
                  'any * times 2 before-request respond 503 Retry-After: 1 body busy'
              slowlane proxy --upstream 8000 --fault \\
                  'GET /img/* probability 5% mid-response reset'

              METHOD|any [PATH] [nth N | probability P%] [times N|unlimited]
                  POINT [bytes N] ACTION [client|server|both]

              PATH    without the query; '*' stands for any text
              POINT   before-request, mid-request, before-request-end (the last byte
                      is withheld), before-response (the response has been read from
                      the server), after-response-head, mid-response (body),
                      after-response, or any
              ACTION  reset (RST), close (FIN), stall (deliver nothing more),
                      delay TIME, throttle BYTES_PER_SECOND, portal (a sign-in page),
                      or respond STATUS [NAME: VALUE ...] [body TEXT]

            On HTTP/2 a rule acts on the stream of a request. Further
            actions: reset CODE (such as REFUSED_STREAM), reset connection, goaway,
            limit-streams N, ignore-pings, ping, block-window [connection] (no
            WINDOW_UPDATE), drop-trailers, truncate-headers.

            Requests inside TLS are visible with --intercept only. For other connections of
            TLS, a rule of handshakes selects by the name of the server (SNI):
              slowlane proxy --upstream api.test:443 \\
                  --fault 'TLS api.test after-server-hello reset'

              TLS [HOST] [nth N | probability P%] [times N|unlimited]
                  POINT [bytes N] ACTION [client|server|both]

              POINT   after-client-hello, mid-server-hello (a truncated record),
                      after-server-hello, or mid-stream bytes N (of the server's
                      stream)
              ACTION  reset, close (without close_notify), stall, or delay TIME

            A rule of bytes applies to any protocol without TLS. It selects a text in the
            bytes of one peer ("\\r", "\\n", "\\x00" and the like in double quotes):
              slowlane proxy --upstream 25 \\
                  --fault 'TCP server "250 " after "\\r\\n.\\r\\n" before-match reset'

              TCP client|server ["TEXT" [after "TEXT"]] [nth N | probability P%]
                  [times N|unlimited] POINT [bytes N] ACTION [client|server|both]

              after   the other peer must have sent this text before
              POINT   before-match, after-match [bytes N] (N bytes after the text), or
                      without a text mid-stream bytes N
              ACTION  reset, close, stall, or delay TIME

            Each fault that fires is logged. At the end, a line per rule counts the
            requests that it has matched and the faults that have fired.

            While the proxy runs, it reads commands from standard input, one per
            line. It replies to each line, also to an invalid one, with a line: 'ok ...'
            when the command has taken effect, or 'error ...'. Empty lines are ignored.
              profile NAME|FILE   switch to a profile ('100-loss' loses all packets)
              timeline NAME|FILE|TIMES
                                  start a timeline
                                  ('timeline 0s: 3g, 20s: 100-loss, 50s: edge')
              pause               pause the timeline; 'resume' continues it
              seek TIME           jump to a time of the timeline ('seek 20s')
              outage [up|down]    lose all packets, in both directions or in one, until
                                  'end-outage', even if the profile changes
              end-outage          end the outage
              fault RULE          add a fault; 'fault remove N|all' removes it
              faults              list the faults with their counts
              to PATTERN=CONDITIONS
                                  with --forward: conditions of a host;
                                  'to remove PATTERN' removes and 'rules' lists them,
                                  'hosts' lists the hosts with their traffic
              disconnect          abort all connections (RST)
              clear               remove all conditions
              status              print conditions, connections and byte counts
              quit                stop when open transfers are complete, at the
                                  latest after --grace seconds
              help                list the commands

            Connection-level faults are profiles, too: 'offline' (connections are aborted,
            new ones fail at once), 'portal' (every HTTP request gets a sign-in page),
            'dns' (a DNS failure: the same as 'offline'; with --forward, lookups fail with
            SERVFAIL), 'uplink-loss' and 'downlink-loss' (one direction loses all packets),
            'high-latency-dns' (a delay of 3 s before each handshake).

            SIGINT and SIGTERM stop the proxy like 'quit'; a second one stops it
            immediately. Transfers that are not complete end with a RST. With --until-eof,
            the end of standard input stops the proxy, too, and with --exit-with-parent the
            end of the parent process.

            Exit status: 0 stopped; 64 wrong arguments; 65 invalid file; 69 cannot bind
            the port, resolve the upstream, or write --pcapng, --har or the output; 130
            stopped by a second signal.
            """)

    @Option(
        help: ArgumentHelp(
            "Address to listen on, HOST:PORT; port 0 picks a free port and prints it.", valueName: "host:port"))
    var listen = "127.0.0.1:0"

    @Option(
        help: ArgumentHelp(
            "Address of the server: HOST:PORT, a port of this machine, or https://HOST[:PORT].", valueName: "host:port")
    )
    var upstream: String?

    @Flag(help: "Forward UDP datagrams only: the same as --protocol udp (Linux).")
    var udp = false

    @Option(
        name: .customLong("protocol"),
        help: ArgumentHelp(
            "Protocols to forward on the port: tcp, udp or tcp,udp. (default: tcp)", valueName: "protocols"))
    var protocolNames: String?

    @Flag(help: "Be a forward proxy: clients name the server of each connection.")
    var forward = false

    @Flag(
        help: ArgumentHelp(
            "Also take connections that the firewall redirects to the port, to their original destinations (Linux, with "
                + "--forward)."))
    var transparent = false

    @OptionGroup(title: "Interception of TLS (default: none)") var interception: InterceptionOptions
    @OptionGroup(title: "Interception of TLS (default: none)") var authority: InterceptionAuthorityOptions
    @OptionGroup(title: "Servers with TLS (--upstream https://HOST, --intercept HOST)")
    var certificates: UpstreamCertificateOptions
    @OptionGroup(title: "Servers with TLS (--upstream https://HOST, --intercept HOST)") var tls: UpstreamTLSOptions
    @OptionGroup(title: "Forward proxy") var destinations: ForwardOptions
    @OptionGroup(title: "Access to a forward proxy") var access: ForwardAccessOptions

    @OptionGroup(title: "Network conditions (default: none)") var profileOption: ProfileOption
    @OptionGroup(title: "Network conditions (default: none)") var figureOptions: FigureOptions
    @OptionGroup(title: "Network conditions (default: none)") var link: LinkOptions
    @OptionGroup(title: "Network conditions (default: none)") var timelineStart: TimelineStartOption

    @Option(
        help: ArgumentHelp(
            "A fault of HTTP exchanges, such as 'POST * nth 3 before-response stall' (repeatable).", valueName: "rule"))
    var fault: [String] = []

    @Option(
        help: ArgumentHelp(
            "Write the packets of the modelled link to this pcapng file for Wireshark.", valueName: "file"))
    var pcapng: String?

    @Option(
        help: ArgumentHelp(
            "End of the link at which --pcapng captures: server (shows the lost packets of downloads) or client "
                + "(shows the lost packets of uploads).", valueName: "end"))
    var pcapngAt = "server"

    @Option(
        help: ArgumentHelp(
            "Write the HTTP exchanges to this HAR file, without header fields and bodies.", valueName: "file"))
    var har: String?

    @Option(
        help: ArgumentHelp(
            "Maximum number of open connections; further connections wait. (default: 10000, or what 'ulimit -n' allows)",
            valueName: "count"))
    var maxConnections: Int?

    @Option(help: ArgumentHelp("Time limit for connecting to the upstream, in seconds.", valueName: "seconds"))
    var connectTimeout = 10.0

    @Option(help: ArgumentHelp("Longest wait for open transfers after a stop, in seconds.", valueName: "seconds"))
    var grace = 5.0

    @Option(
        name: .customLong("dashboard"), defaultAsFlag: 8474,
        help: ArgumentHelp(
            "Serve the dashboard and the API of 'slowlane server' for this proxy on a port of 127.0.0.1 (0 picks a free one).",
            valueName: "port"))
    var dashboardPort: Int?

    @Flag(help: "Stop at the end of standard input, after its commands.")
    var untilEof = false

    @Flag(help: "Stop when the parent process has ended.")
    var exitWithParent = false

    @Flag(name: .shortAndLong, help: "Print results only.")
    var quiet = false

    private static let ends: [String: Side] = ["server": .server, "client": .client]

    func validate() throws {
        try AddressArgument.check(listen, option: "--listen")
        try validateUpstream()
        try checkLink()
        try timelineStart.check(link.timeline)
        guard Endpoint(listen) != nil else {
            throw ValidationError("--listen '\(listen)' must be HOST:PORT, such as 127.0.0.1:9000, [::1]:9000 or 9000")
        }
        _ = try FaultArguments.rules(fault)
        if let maxConnections, !(1...1_000_000).contains(maxConnections) {
            throw ValidationError("--max-connections \(maxConnections) must be from 1 to 1000000")
        }
        if let dashboardPort, !(0...65535).contains(dashboardPort) {
            throw ValidationError("--dashboard \(dashboardPort) must be a port, from 0 to 65535")
        }
        if Self.ends[pcapngAt] == nil {
            throw ValidationError("--pcapng-at '\(pcapngAt.prefix(40))' must be server or client")
        }
        for (name, seconds) in [("--connect-timeout", connectTimeout), ("--grace", grace)] {
            guard seconds >= 0, seconds <= 3600 else {
                throw ValidationError("\(name) \(seconds) must be from 0 to 3600 seconds")
            }
        }
    }

    private func upstreamTLS() throws -> UpstreamTLS? {
        try tls.settings(upstream: upstream, certificates, isIntercepting: interception.isGiven)
    }

    /// The protocols of --udp and --protocol.
    private var protocols: ForwardedProtocols {
        udp ? .udp : protocolNames.flatMap { ForwardedProtocols($0) } ?? .tcp
    }

    private func validateProtocols() throws {
        if let protocolNames {
            if udp { throw ValidationError("give --udp or --protocol, not both") }
            guard ForwardedProtocols(protocolNames) != nil else {
                throw ValidationError("--protocol '\(protocolNames.prefix(40))' must be tcp, udp or tcp,udp")
            }
        }
        guard protocols.contains(.udp) else { return }
        let option = udp ? "--udp" : "--protocol \(protocols)"
        if forward {
            throw ValidationError(
                "\(option) needs --upstream HOST:PORT; a forward proxy forwards TCP and the datagrams of SOCKS 5")
        }
        if interception.isGiven || upstream.map({ UpstreamTLS.isURL($0) }) == true {
            throw ValidationError("\(option) cannot be combined with TLS of the proxy (https://, --intercept)")
        }
        if protocols == .udp, !fault.isEmpty || har != nil {
            throw ValidationError("--fault and --har are for HTTP over TCP; with UDP use --protocol tcp,udp")
        }
    }

    private func validateUpstream() throws {
        try validateProtocols()
        if transparent, !forward || access.user != nil {
            throw ValidationError(
                forward
                    ? "redirected connections cannot give a user; use --allow NETWORK in place of --user"
                    : "--transparent needs --forward")
        }
        try ForwardArguments.check(upstream: upstream, isForward: forward, destinations, access)
        if authority.interceptCaFile != nil, !interception.isGiven {
            throw ValidationError("--intercept-ca-file needs --intercept HOST or --intercept-all")
        }
        if try upstreamTLS() != nil { return }
        if interception.isGiven { _ = try certificates.certificates() }
        guard let upstream else { return }
        try AddressArgument.check(upstream, option: "--upstream")
        guard let endpoint = Endpoint(upstream), endpoint.port > 0 else {
            throw ValidationError("--upstream '\(upstream)' must be HOST:PORT, such as localhost:8000 or 8000")
        }
    }

    func run() async throws {
        guard let listen = Endpoint(listen) else { throw ExitStatus.usage }
        let upstreamTLS = try upstreamTLS()
        let upstream = upstreamTLS?.endpoint ?? upstream.flatMap { Endpoint($0) }
        let console = Console(wantsStatusLine: !quiet)
        let link = try linkSource(console).starting(at: timelineStart.timelineStart)
        let logger = Logger(label: "slowlane") { _ in ConsoleLogHandler(console, level: quiet ? .error : .info) }

        var configuration = try ProxyConfiguration(
            listen: listen, upstream: upstream ?? Endpoint(host: "127.0.0.1", port: 0),
            connectionsMax: ConnectionLimit.connectionsMax(
                maxConnections, default: ProxyConfiguration.connectionsMaxDefault, console),
            connectTimeout: .nanoseconds(Int64(connectTimeout * 1e9)))
        configuration.upstreamTLS = upstreamTLS
        configuration.protocols = protocols
        if protocols.contains(.udp), !Proxy.canForwardDatagrams {
            console.error("--udp and --protocol udp need Linux")
            throw ExitStatus.unavailable
        }
        configuration.interception = try interception.settings(certificates, console) {
            try authority.authority(for: $0, console)
        }
        configuration.seed = self.link.seed
        configuration.clientStack = self.link.client
        configuration.serverStack = self.link.server
        link.apply(to: &configuration)
        configuration.faultRules = try FaultArguments.rules(fault)
        if forward { configuration.forward = try forwardSettings(listen: listen, console) }
        let server = upstreamTLS?.url ?? upstream.map { "\($0)" } ?? API.forwardUpstream
        let capture = try pcapng.map { try linkCapture($0, listen: listen, upstream: server, console) }
        if let capture {
            configuration.onPacket = {
                capture.append(
                    $0.record, payload: $0.payload, cause: $0.cause, ports: $0.ports,
                    startUnixNanoseconds: $0.startUnixNanoseconds)
            }
        }
        // A signal may arrive as soon as the line "listening" is printed.
        let events = ForegroundEvents()
        let proxy: Proxy
        do {
            proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton, logger: logger)
        } catch {
            console.error("\(error)")
            if let error = error as? ProxyError, error.code == .upstreamIsProxy { throw ExitStatus.usage }
            throw ExitStatus.unavailable
        }
        let archive = try await trafficRecording(of: proxy, console)
        let dashboard = try await startDashboard(console)
        let adopted = await dashboard?.api.adopt(
            proxy, named: "proxy", upstream: server, conditions: configuration.conditions,
            profile: link.profile, timeline: link.timeline, seed: configuration.seed, forward: configuration.forward,
            interception: configuration.interception, protocols: protocols)
        var stops: InteractiveProxy.StopReasons = []
        if untilEof { stops.insert(.inputEnd) }
        if exitWithParent { stops.insert(.parentExit) }
        var session = InteractiveProxy(
            proxy, console: console, events: events, conditionsName: link.name, timeline: link.timeline,
            grace: .nanoseconds(Int64(grace * 1e9)), isQuiet: quiet, stops: stops, adopted: adopted,
            isForward: forward)
        session.announce(upstream: server, conditions: link.text, protocols: protocols)
        if let interception = configuration.interception { console.print(authority.announcement(interception)) }
        if let dashboard { console.print("dashboard \(dashboard.url)") }
        // The event loop logs, and must not wait for the reader of the output.
        console.writeAsynchronously()
        await session.run()
        await dashboard?.stop()
        do {
            try await archive?.end()
        } catch {
            throw harFailed(error, console)
        }
        if let capture {
            let loss = capture.close()
            if loss.packets > 0 {
                console.error(
                    "--pcapng \(pcapng ?? ""): \(TextTable.count(loss.packets, "packet")) not written: "
                        + (loss.reason ?? "the disk was too slow"))
                console.flush()
                throw ExitStatus.unavailable
            }
        }
    }

    private func forwardSettings(listen: Endpoint, _ console: Console) throws -> ForwardSettings {
        var settings = try destinations.settings(console)
        try access.apply(to: &settings, listen: listen, console)
        if transparent, !ForwardSettings.canBeTransparent {
            console.error("--transparent needs Linux, whose kernel tells the destination of a redirected connection")
            throw ExitStatus.unavailable
        }
        settings.isTransparent = transparent
        return settings
    }

    private func trafficRecording(of proxy: Proxy, _ console: Console) async throws -> TrafficRecording? {
        guard let har else { return nil }
        do {
            return try await TrafficRecording(of: proxy, path: URL(filePath: har))
        } catch {
            await proxy.stop(grace: .zero)
            throw harFailed(error, console)
        }
    }

    private func harFailed(_ error: any Error, _ console: Console) -> ExitCode {
        console.error("--har \(har ?? ""): cannot write: \(FileFailure.reason(error, writing: har ?? ""))")
        console.flush()
        return ExitStatus.unavailable
    }

    private func startDashboard(_ console: Console) async throws -> ForegroundDashboard? {
        guard let dashboardPort else { return nil }
        let folder = ProcessInfo.processInfo.environment["SLOWLANE_DASHBOARD_FILES"]
        do {
            return try await ForegroundDashboard.start(
                port: dashboardPort, portOption: "--dashboard", seed: link.seed, Dashboard(folder: folder))
        } catch {
            console.error("\(error)")
            throw ExitStatus.unavailable
        }
    }

    private func linkCapture(
        _ path: String, listen: Endpoint, upstream: String, _ console: Console
    ) throws -> LinkCapture {
        do {
            return try LinkCapture(
                path, at: Self.ends[pcapngAt] ?? .server, application: "slowlane \(SlowlaneVersion.current)",
                interface: "modelled link \(listen) -> \(upstream), at the \(pcapngAt)'s end")
        } catch {
            console.error("--pcapng \(error)")
            throw ExitStatus.unavailable
        }
    }
}
