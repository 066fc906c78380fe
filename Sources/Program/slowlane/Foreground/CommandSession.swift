internal import ArgumentParser
internal import CommandSupport
internal import CommandTraffic
internal import ForwardProxy
internal import Foundation
internal import Impairment
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import Proxy
internal import Synchronization

/// A command that runs with a forward proxy of its own.
struct CommandSession {
    var command: [String]
    var mode: CommandSummary.Mode
    /// Hosts that are connected without the proxy.
    var bypass: [String]
    /// The command's soft limit of open files.
    var openFilesMax: Int
    var configuration: ProxyConfiguration
    var conditions: LinkSource
    /// The folder of the report; `nil` for none.
    var reportFolder: String?
    var isQuiet: Bool
    var console: Console

    /// The longest wait for bytes on the link after the end of the command.
    private static let grace = TimeAmount.seconds(5)

    /// Runs the command to its end, then stops the proxy. Throws an exit status, after an error message, if the command
    /// could not be run.
    func run() async throws -> CommandSummary {
        var configuration = configuration
        let redirections = RedirectedConnections()
        if mode == .connect { configuration.forward?.redirections = redirections }
        let logger = Logger(label: "slowlane") { _ in ConsoleLogHandler(console, level: isQuiet ? .error : .warning) }
        let proxy: Proxy
        do {
            proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton, logger: logger)
        } catch {
            console.error("\(error)")
            throw ExitStatus.unavailable
        }
        let trust = try configuration.interception.map { try trustFolder($0) }
        defer { trust?.remove() }
        let report = try reportFolder.map { try CommandReport(folder: $0, console) }
        try await report?.start(proxy, configuration, conditions)
        let requests = await FirstRequests(of: proxy)
        let signals = SignalForwarder()
        let names = CommandNames(proxy, configuration.forward?.rules ?? HostRules())
        let process = try start(proxy, redirections, names, trust)
        signals.forward(to: process)
        let status = await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: process.wait()) }
        }
        let leavesProcesses = process.supervisor?.stop() ?? false
        await proxy.stop(grace: Self.grace)
        let rules = await proxy.faultRules()
        let summary = CommandSummary(
            mode: mode, status: status, hosts: await proxy.hostTraffic(),
            faults: await FaultCommands(proxy).summary() + requests.note(rules),
            others: process.supervisor?.counts ?? ConnectCounts(), leavesProcesses: leavesProcesses,
            pinnedHosts: await proxy.interception().pinnedHosts)
        try await report?.finish(
            summary.json(
                command: command, conditions: conditions.text,
                faults: rules.map { (FaultCommands.text($0.rule), $0.matched, $0.fired) }))
        return summary
    }

    /// Writes the certificates that the command must trust. Prints an error and throws an exit status if that fails.
    private func trustFolder(_ interception: Interception) throws -> TrustFolder {
        let authority = interception.authority
        do {
            let folder = try TrustFolder(
                TrustFolder.Authority(
                    certificate: authority.certificatePEM, keyDigest: authority.keyDigest,
                    javaKeyStore: { authority.javaKeyStore(with: $0) }))
            if !isQuiet {
                let notes =
                    [
                        "intercepting TLS of \(interception.hosts); apps that pin certificates or have a trust store of "
                            + "their own (Firefox, Swift on NIOSSL) refuse the connection"
                    ] + folder.limitations
                for note in notes { console.print("slowlane: note: \(note)", to: .progress) }
            }
            return folder
        } catch {
            console.error("cannot write the certificates for the command: \(error.localizedDescription)")
            throw ExitStatus.unavailable
        }
    }

    private func start(
        _ proxy: Proxy, _ redirections: RedirectedConnections, _ names: CommandNames, _ trust: TrustFolder?
    ) throws -> CommandProcess {
        let command = trust?.command(command) ?? command
        let present = ProcessInfo.processInfo.environment["JAVA_TOOL_OPTIONS"]
        let java = [present, trust?.javaOptions].compactMap { $0 }.joined(separator: " ")
        var variables = trust?.variables ?? []
        do {
            switch mode {
            case .env:
                let proxyVariables = ProxyVariables(port: proxy.address.port, bypass: bypass)
                variables += proxyVariables.variables(javaOptions: java.isEmpty ? nil : java)
                return try CommandProcess(
                    proxyVariables.command(command), variables: variables, openFilesMax: openFilesMax)
            case .connect:
                variables += ProxyVariables.variablesOfRedirection(ProcessInfo.processInfo.environment)
                if trust?.javaOptions != nil { variables.append(("JAVA_TOOL_OPTIONS", java)) }
                return try CommandProcess(
                    command, variables: variables, openFilesMax: openFilesMax,
                    redirection: redirection(to: proxy, redirections, names))
            }
        } catch let error as CommandProcess.StartError {
            console.error(error)
            switch error {
            case .notFound: throw ExitCode(127)
            case .notExecutable: throw ExitCode(126)
            case .notWatched, .noProcess: throw ExitStatus.unavailable
            }
        }
    }

    private func redirection(
        to proxy: Proxy, _ redirections: RedirectedConnections, _ names: CommandNames
    ) throws -> ConnectSupervisor.Destinations {
        let bypass = try bypass.map { text in
            do {
                return try HostPattern(parsing: text)
            } catch {
                console.error("--bypass: \(error)")
                throw ExitStatus.usage
            }
        }
        let rules = configuration.forward?.rules ?? HostRules()
        return ConnectSupervisor.Destinations(
            proxyPort: proxy.address.port, nameServer: NameServer { await names.answer($0) },
            record: { redirections.record(names.destination($0), fromPort: $1) },
            remove: { redirections.remove(fromPort: $0) },
            isBypassed: { address in
                let destination = names.destination(address)
                return bypass.contains { $0.matches(destination) }
            },
            isMapped: { address in
                let destination = names.destination(address)
                return rules.mapped(destination) != destination
            },
            datagramPort: { proxy.datagramPort(to: names.destination($0)) })
    }
}

/// The signals that this process gets for its command.
private final class SignalForwarder: Sendable {
    private enum State {
        /// Signals before the start of the command.
        case waiting([CInt])
        case forwarding(CommandProcess)
    }

    private let state = Mutex(State.waiting([]))

    /// Catches signals for the lifetime of the process, except those that are ignored, as the command ignores them, too.
    init() {
        Signals.onOrigin(Signals.forwarded.filter { !Signals.isIgnored($0) }) { [self] number, origin in
            // The terminal sends its signals to all processes of the group.
            guard origin == .process else { return }
            state.withLock { state in
                switch state {
                case .waiting(let numbers): state = .waiting(numbers + [number])
                case .forwarding(let process): process.signal(number)
                }
            }
        }
    }

    /// Forwards signals to a command from now on, and those before.
    func forward(to process: CommandProcess) {
        state.withLock { state in
            if case .waiting(let numbers) = state { for number in numbers { process.signal(number) } }
            state = .forwarding(process)
        }
    }
}
