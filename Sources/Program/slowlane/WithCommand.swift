internal import ArgumentParser
internal import CommandSupport
internal import CommandTraffic
internal import Foundation
internal import Proxy

/// `slowlane with`.
struct WithCommand: AsyncParsableCommand, LinkArguments {
    static let configuration = CommandConfiguration(
        commandName: "with",
        abstract: "Run a command whose traffic passes through a slow or lossy network.",
        discussion: """
            Examples:
              slowlane with --profile 3g -- curl https://example.com/
              slowlane with --profile edge -- npm test
              slowlane with --timeline subway -- ./app --server localhost:8000
              slowlane with --map api.test=127.0.0.1:8000 -- curl http://api.test/
              slowlane with --fault 'POST * nth 2 before-response reset' -- ./app
              slowlane with --profile 3g --to '*.cdn.test=wifi' -- python3 app.py
              slowlane with --intercept api.test --fault 'POST * any reset' -- ./app
              slowlane with --profile 3g --require-traffic --report out -- pytest

            All TCP connections and connected UDP sockets of the command and of the processes that it starts share one \
            link, as on one device. \
            There are two modes:
              connect  redirects the connections of every program (Linux, without root)
              env      sets the variables with which programs use a proxy (http_proxy ...)
              auto     connect if it works on this machine ('slowlane doctor'), else env

            With --intercept HOST, faults also see requests inside TLS: the command trusts an authority of this run by the \
            variables SSL_CERT_FILE, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE, NODE_EXTRA_CA_CERTS and others, Java by a trust \
            store, Chromium by a flag (docs/how-to/https.md).

            The command inherits the standard streams, the terminal, the working directory and the environment \
            variables of slowlane. Signals are forwarded to it. At the end, lines on standard error list its hosts, \
            connections and bytes, the faults, and UDP traffic that has not passed through the link. docs/reference/with.md \
            describes what each mode reaches.

            Exit status: that of the command, or 128 + N if signal N has ended it; 3 no connection passed, with \
            --require-traffic; 126 the command cannot be executed; 127 there is no such command; 64 wrong arguments; \
            65 invalid file; 69 connect mode does not work here, or the report cannot be written.
            """)

    @OptionGroup(title: "Network conditions (default: none)") var profileOption: ProfileOption
    @OptionGroup(title: "Network conditions (default: none)") var figureOptions: FigureOptions
    @OptionGroup(title: "Network conditions (default: none)") var link: LinkOptions
    @OptionGroup(title: "Network conditions (default: none)") var timelineStart: TimelineStartOption

    @Option(
        help: ArgumentHelp(
            "A fault of HTTP exchanges, such as 'POST * nth 3 before-response stall' (repeatable).", valueName: "rule"))
    var fault: [String] = []

    @OptionGroup(title: "Hosts") var destinations: ForwardOptions
    @OptionGroup(title: "Interception of TLS (default: none)") var interception: InterceptionOptions
    @OptionGroup(title: "Interception of TLS (default: none)") var certificates: UpstreamCertificateOptions

    /// A value of `--mode`.
    enum Mode: String, CaseIterable, ExpressibleByArgument {
        case auto, connect, env
    }

    @Option(help: ArgumentHelp("The way in which connections reach the link: auto, connect or env.", valueName: "mode"))
    var mode = Mode.auto

    @Option(
        help: ArgumentHelp(
            "Hosts that are connected without the link, separated by commas; in connect mode also networks.",
            valueName: "hosts"))
    var bypass: String?

    @Flag(help: "Exit with status 3 if the command ends with status 0 and no connection has passed.")
    var requireTraffic = false

    @Option(
        help: ArgumentHelp(
            "Write summary.json, events.jsonl and traffic.har into this folder; it is created if it does not exist.",
            valueName: "folder"))
    var report: String?

    @Flag(name: .shortAndLong, help: "Print errors only.")
    var quiet = false

    @Argument(
        parsing: .postTerminator,
        help: ArgumentHelp("The command and its arguments, after '--'.", valueName: "command"))
    var command: [String] = []

    func validate() throws {
        guard !command.isEmpty else {
            throw ValidationError(
                "give the command after '--', such as 'slowlane with --profile 3g -- curl https://example.com/'")
        }
        try checkLink()
        try timelineStart.check(link.timeline)
        _ = try FaultArguments.rules(fault)
        if certificates.isGiven, !interception.isGiven {
            throw ValidationError(
                "--upstream-ca, --upstream-cert, --upstream-key and --insecure need --intercept HOST or --intercept-all"
            )
        }
        _ = try certificates.certificates()
    }

    /// The validity of the authority of a run.
    private static let authorityDays = 7

    func run() async throws {
        let console = Console()
        let source = try linkSource(console).starting(at: timelineStart.timelineStart)
        // Before the proxy raises it.
        let openFilesMax = Terminal.openFilesMax
        var configuration = try ProxyConfiguration(
            listen: Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "127.0.0.1", port: 0),
            connectionsMax: ConnectionLimit.connectionsMax(
                nil, default: ProxyConfiguration.connectionsMaxDefault, console))
        configuration.seed = link.seed
        configuration.clientStack = link.client
        configuration.serverStack = link.server
        source.apply(to: &configuration)
        configuration.faultRules = try FaultArguments.rules(fault)
        configuration.forward = try destinations.settings(console)
        configuration.interception = try interception.settings(certificates, console) {
            try InterceptionOptions.newAuthority(for: $0, days: Self.authorityDays, console)
        }
        let session = CommandSession(
            command: command, mode: try chosenMode(console), bypass: bypassed, openFilesMax: openFilesMax,
            configuration: configuration, conditions: source, reportFolder: report, isQuiet: quiet, console: console)
        let summary = try await session.run()
        if !quiet { for line in summary.lines { console.print("slowlane: \(line)", to: .progress) } }
        if summary.status != 0 { throw ExitCode(summary.status) }
        if requireTraffic && summary.connections == 0 { throw ExitStatus.noTraffic }
    }

    private var bypassed: [String] {
        bypass?.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty } ?? []
    }

    private func chosenMode(_ console: Console) throws -> CommandSummary.Mode {
        guard mode != .env else {
            noteLimitation(console)
            return .env
        }
        guard let obstacle = ConnectMode.obstacle() else {
            noteLostPrivileges(console)
            return .connect
        }
        guard mode == .auto else {
            console.error("connect mode does not work here: \(obstacle); use --mode env")
            throw ExitStatus.unavailable
        }
        note("connect mode does not work here: \(obstacle); only programs that use proxy variables pass", console)
        noteLimitation(console)
        return .env
    }

    private func noteLimitation(_ console: Console) {
        if let text = ProxyVariables.limitation(of: command) { note(text, console) }
    }

    /// The kernel ignores the owner of a program with this bit, because a filter of system calls must not change what a
    /// privileged program does.
    private func noteLostPrivileges(_ console: Console) {
        guard let program = command.first, let path = ProgramPath.find(program), ProgramPath.changesUser(path) else {
            return
        }
        note(
            "\(program) runs without the privileges of its owner in connect mode (setuid); --mode env keeps them",
            console)
    }

    private func note(_ text: String, _ console: Console) {
        if !quiet { console.print("slowlane: note: \(text)", to: .progress) }
    }
}
