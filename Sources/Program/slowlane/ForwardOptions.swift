internal import ArgumentParser
internal import CommandSupport
internal import ConfigFiles
internal import ForwardProxy
internal import Foundation
internal import Proxy

/// The options of a forward proxy's destinations: `--to` and `--map`.
struct ForwardOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Conditions of their own for some hosts: a pattern ('api.test', '*.cdn.test', '10.0.0.0/8', with ':PORT' if "
                + "wanted), and a profile, 'direct', 'refuse', 'block' or 'dns-failure' (repeatable).",
            valueName: "pattern=conditions"))
    var to: [String] = []

    @Option(
        help: ArgumentHelp(
            "The address to connect in place of a host, such as 'api.test=127.0.0.1:8000' (repeatable).",
            valueName: "host=address"))
    var map: [String] = []

    func validate() throws {
        do {
            _ = try HostRules(rules: to, maps: map)
        } catch {
            throw ValidationError("--to or --map: \(error)")
        }
    }

    /// Returns the settings; prints an error and throws an exit status if a profile is unknown.
    func settings(_ console: Console) throws -> ForwardSettings {
        var settings = ForwardSettings()
        do {
            settings.rules = try HostRules(rules: to, maps: map)
        } catch {
            console.error("--to or --map: \(error)")
            throw ExitStatus.usage
        }
        for rule in settings.rules.rules { try settings.resolve(rule, console) }
        return settings
    }
}

extension ForwardSettings {
    /// Adds the conditions that a rule names.
    mutating func resolve(_ rule: HostRules.Rule, _ console: Console) throws {
        guard case .conditions(let name) = rule.treatment else { return }
        conditions[name] = try Profile.forArgument(name, console).conditions
    }
}

/// The options that decide who may use a forward proxy.
struct ForwardAccessOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Addresses from which clients may connect, such as 192.168.1.0/24 (repeatable); needed, or --user, if --listen "
                + "is not an address of this machine alone.", valueName: "network"))
    var allow: [String] = []

    @Option(
        help: ArgumentHelp(
            "The user name that clients must give; the password is $\(Self.passwordName) or in --password-file.",
            valueName: "name"))
    var user: String?

    @Option(help: ArgumentHelp("The file whose first line is the password of --user.", valueName: "file"))
    var passwordFile: String?

    /// The environment variable of the password.
    static let passwordName = "SLOWLANE_PROXY_PASSWORD"

    /// Whether any of the options is given.
    var isGiven: Bool { !allow.isEmpty || user != nil || passwordFile != nil }

    /// Adds the options to settings; prints an error and throws an exit status if they are invalid, or if other machines
    /// could use the proxy freely.
    func apply(to settings: inout ForwardSettings, listen: Endpoint, _ console: Console) throws {
        for text in allow {
            do {
                let pattern = try HostPattern(parsing: text)
                guard case .network = pattern.hosts, pattern.port == nil else {
                    console.error(
                        "--allow '\(text.prefix(80))' must be an address or a network, such as 192.168.1.0/24")
                    throw ExitStatus.usage
                }
                settings.clientsAllowed.append(pattern)
            } catch let error as HostRuleError {
                console.error("--allow: \(error)")
                throw ExitStatus.usage
            }
        }
        settings.credentials = try credentials(console)
        guard LocalAddresses.isLoopback(listen.host) || isGiven else {
            console.error(
                "--listen \(listen) would let every machine of the network use this proxy; add --allow NETWORK "
                    + "(such as --allow 192.168.1.0/24) or --user NAME, or listen on 127.0.0.1")
            throw ExitStatus.usage
        }
    }

    private func credentials(_ console: Console) throws -> ProxyCredentials? {
        guard let user else {
            if passwordFile != nil {
                console.error("--password-file needs --user NAME")
                throw ExitStatus.usage
            }
            return nil
        }
        let password: String
        if let passwordFile {
            guard let data = FileManager.default.contents(atPath: passwordFile), data.count <= 4096,
                let line = String(decoding: data, as: UTF8.self).split(separator: "\n").first
            else {
                console.error("--password-file '\(passwordFile)' cannot be read, or has no first line")
                throw ExitStatus.usage
            }
            password = line.hasSuffix("\r") ? String(line.dropLast()) : String(line)
        } else if let value = ProcessInfo.processInfo.environment[Self.passwordName] {
            password = value
        } else {
            console.error("--user \(user) needs a password: set $\(Self.passwordName) or give --password-file FILE")
            throw ExitStatus.usage
        }
        guard let credentials = ProxyCredentials(user: user, password: password) else {
            console.error("--user and its password must have 1 to 255 bytes, and the user no colon")
            throw ExitStatus.usage
        }
        return credentials
    }
}
