internal import ArgumentParser
internal import CommandSupport
internal import ForwardProxy
internal import Foundation
internal import Proxy

/// `slowlane ca`.
struct AuthorityCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ca",
        abstract: "Manage the certificate authority for intercepted TLS connections.",
        discussion: """
            Examples:
              slowlane ca create --for api.test --for '*.cdn.test' --days 30
              slowlane ca show
              slowlane ca export > slowlane.pem
              slowlane ca delete

            A proxy that intercepts TLS makes certificates for the intercepted hosts, which \
            clients accept if they trust this authority. 'slowlane with --intercept' does not need it: \
            it makes an authority in memory for each run. The authority is in \
            $XDG_DATA_HOME/slowlane/ca or ~/.local/share/slowlane/ca, and only its owner may read the key. These commands \
            never change what this machine trusts; they print the commands that do.
            """,
        subcommands: [Create.self, Show.self, Export.self, Delete.self])

    fileprivate static func load(_ console: Console) throws -> (
        authority: CertificateAuthority, folder: AuthorityFolder
    ) {
        let folder = AuthorityFolder.ofUser()
        do throws(CertificateAuthorityError) {
            if let authority = try folder.load() { return (authority, folder) }
        } catch {
            console.error(error)
            throw ExitStatus.unavailable
        }
        console.error("there is no authority in '\(folder.path)'; run 'slowlane ca create'")
        throw ExitStatus.failed
    }

    /// `slowlane ca create`.
    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "create", abstract: "Create the authority. Nothing trusts it yet.",
            discussion: """
                Examples:
                  slowlane ca create --for api.test --for '*.cdn.test'
                  slowlane ca create --days 7

                With --for, the authority's certificate limits it to these hosts and their
                subdomains, and clients reject its certificates for other hosts.

                Exit status: 0 created; 64 wrong arguments; 69 there is an authority already, or the folder cannot be written.
                """)

        @Option(
            name: .customLong("for"),
            help: ArgumentHelp(
                "A host that the authority may certify: a name, a pattern such as '*.cdn.test', an address or a network "
                    + "(repeatable). (default: every host)", valueName: "host"))
        var hosts: [String] = []

        @Option(help: ArgumentHelp("Validity in days, up to \(CertificateAuthority.daysMax).", valueName: "days"))
        var days = 30

        func validate() throws {
            guard (1...CertificateAuthority.daysMax).contains(days) else {
                throw ValidationError("--days \(days) must be from 1 to \(CertificateAuthority.daysMax)")
            }
            _ = try constraints()
        }

        private func constraints() throws -> InterceptedHosts {
            if hosts.isEmpty { return .all }
            do throws(HostRuleError) {
                return try InterceptedHosts(parsing: hosts)
            } catch {
                throw ValidationError("--for: \(error)")
            }
        }

        func run() async throws {
            let console = Console()
            let constraints = try constraints()
            do throws(CertificateAuthorityError) {
                let authority = try CertificateAuthority(
                    for: constraints, now: Int64(Date().timeIntervalSince1970), days: days)
                try AuthorityFolder.ofUser().create(authority)
            } catch {
                console.error(error)
                throw ExitStatus.unavailable
            }
            let (authority, folder) = try AuthorityCommand.load(console)
            for line in AuthorityText.lines(authority, folder) { console.print(line) }
            if hosts.isEmpty {
                console.print(
                    "warning: this authority may certify every host; --for HOST limits what its key can do",
                    to: .progress)
            }
        }
    }

    /// `slowlane ca show`.
    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show", abstract: "Print the authority, and the commands that trust and distrust it.",
            discussion: """
                Example:
                  slowlane ca show

                Exit status: 0 printed; 1 there is none; 69 other users have access to it, or it cannot be read.
                """)

        func run() async throws {
            let console = Console()
            let (authority, folder) = try AuthorityCommand.load(console)
            for line in AuthorityText.lines(authority, folder) { console.print(line) }
        }
    }

    /// `slowlane ca export`.
    struct Export: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "export", abstract: "Print the certificate that clients must trust.",
            discussion: """
                Examples:
                  slowlane ca export > slowlane.pem
                  slowlane ca export --format der > slowlane.cer
                  slowlane ca export --format jks > slowlane.jks

                The key is never printed. The commands that trust and distrust the certificate are printed on standard error.

                Exit status: 0 printed; 1 there is none; 69 other users have access to it, or it cannot be read.
                """)

        enum Format: String, CaseIterable, ExpressibleByArgument {
            case pem, der, jks
        }

        @Option(help: ArgumentHelp("pem, der, or jks (a key store of Java).", valueName: "format"))
        var format = Format.pem

        func run() async throws {
            let console = Console()
            let (authority, folder) = try AuthorityCommand.load(console)
            switch format {
            case .pem: StandardStream.output.write(authority.certificatePEM)
            case .der: StandardStream.output.write(authority.certificateBytes)
            case .jks: StandardStream.output.write(authority.javaKeyStore())
            }
            for line in AuthorityText.instructions(authority, folder) { console.print(line, to: .progress) }
        }
    }

    /// `slowlane ca delete`.
    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "delete", abstract: "Delete the authority and its key.",
            discussion: """
                Example:
                  slowlane ca delete

                Clients go on trusting the certificate until it expires or is removed from their stores, but no key is left \
                that can use it.

                Exit status: 0 deleted; 1 there is none; 69 it cannot be removed.
                """)

        func run() async throws {
            let console = Console()
            let folder = AuthorityFolder.ofUser()
            // The commands need the name, which is unknown if the files are damaged.
            let authority = try? folder.load()
            let isDeleted: Bool
            do throws(CertificateAuthorityError) {
                isDeleted = try folder.delete()
            } catch {
                console.error(error)
                throw ExitStatus.unavailable
            }
            guard isDeleted else {
                console.error("there is no authority in '\(folder.path)'")
                throw ExitStatus.failed
            }
            console.print("deleted the authority in \(folder.path)")
            for line in authority.map({ AuthorityText.removal($0, folder) }) ?? [] { console.print(line) }
        }
    }
}
