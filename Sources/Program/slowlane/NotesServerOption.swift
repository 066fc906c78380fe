internal import ArgumentParser
internal import Client
internal import CommandSupport
internal import ForwardProxy
internal import Foundation
internal import HTTPSockets
internal import LiveClient

extension NotesCommand {
    /// The options of the connection to the server.
    struct ServerOption: ParsableArguments {
        @Option(
            help: ArgumentHelp(
                "User and password, NAME:PASSWORD. (default: $SLOWLANE_USER)", valueName: "name:password"))
        var user: String?

        @Option(
            help: ArgumentHelp(
                "With https://: trust the certificate authorities in this PEM file. (default: those of the system)",
                valueName: "file"))
        var ca: String?

        @Option(
            help: ArgumentHelp(
                "Interfaces on which to send: any or unmetered.", valueName: "any|unmetered"))
        var interface = Interfaces.any

        @Option(
            help: ArgumentHelp(
                "Interfaces on which to transfer attachments: any or unmetered.", valueName: "any|unmetered"))
        var attachments = Interfaces.any

        @Option(
            help: ArgumentHelp(
                "Resolution of conflicts: ask, latest (later date), fields (merge title and text), lines (merge lines, too), mine or theirs.",
                valueName: "policy"))
        var conflicts = Policies.ask

        @Flag(help: "The network interface of this device is metered.")
        var metered = false

        /// The network interface of the device.
        var networkInterface: NetworkInterface { NetworkInterface(isUp: true, isMetered: metered) }

        /// Returns the configuration of a client; prints an error and throws an exit status if an option is wrong.
        func configuration(server address: String, store: String, _ console: Console) throws -> SyncClientConfiguration
        {
            let server: ServerAddress
            do throws(ServerAddress.ParseError) { server = try ServerAddress(address) } catch {
                console.error("--server: \(error)")
                throw ExitStatus.usage
            }
            let text = user ?? ProcessInfo.processInfo.environment["SLOWLANE_USER"] ?? ""
            let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 2, !parts[0].isEmpty else {
                console.error("no user and password; add --user NAME:PASSWORD, or set SLOWLANE_USER")
                throw ExitStatus.usage
            }
            var configuration = try configuration(of: server, user: parts[0], password: parts[1], store: store, console)
            configuration.conflicts = conflicts.conflictPolicy
            configuration.policy.interfaces = interface.allowed
            configuration.policy.attachmentInterfaces = attachments.allowed
            return configuration
        }

        private func configuration(
            of server: ServerAddress, user: String, password: String, store: String, _ console: Console
        ) throws -> SyncClientConfiguration {
            guard server.isSecure || ca == nil else {
                console.error("--ca needs a server with TLS, --server https://HOST")
                throw ExitStatus.usage
            }
            do {
                let authorities = try ca.map { try UpstreamCertificateOptions.bytes(of: $0, option: "--ca") }
                return try SyncClientConfiguration(
                    server: server, trusting: authorities.map { UpstreamCertificates(authorities: $0) }, user: user,
                    credentials: .password(password), storePath: store)
            } catch let error as UpstreamTLSError {
                console.error("\(error.part == .url ? "--server" : ca.map { "--ca '\($0)'" } ?? "--ca"): \(error)")
                throw ExitStatus.usage
            } catch {
                console.error("\(error)")
                throw ExitStatus.usage
            }
        }
    }
}

/// The values of `--interface`.
enum Interfaces: String, ExpressibleByArgument, CaseIterable {
    case any, unmetered

    var allowed: SyncPolicy.AllowedInterfaces { self == .any ? .any : .unmetered }
}

/// The values of `--policy`: those of `--conflicts` that resolve a conflict without its user.
enum ResolutionPolicies: String, ExpressibleByArgument, CaseIterable {
    case latest, fields, lines, mine, theirs

    var conflictPolicy: ConflictPolicy {
        switch self {
        case .latest: .latest
        case .fields: .fields
        case .lines: .lines
        case .mine: .mine
        case .theirs: .theirs
        }
    }
}

/// The values of `--conflicts`.
enum Policies: String, ExpressibleByArgument, CaseIterable {
    case ask, latest, fields, lines, mine, theirs

    var conflictPolicy: ConflictPolicy {
        switch self {
        case .ask: .ask
        case .latest: .latest
        case .fields: .fields
        case .lines: .lines
        case .mine: .mine
        case .theirs: .theirs
        }
    }
}
