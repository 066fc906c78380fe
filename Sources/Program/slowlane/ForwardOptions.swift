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
            "The address to connect to in place of a host, such as 'api.test=127.0.0.1:8000' (repeatable).",
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
        do {
            return try ForwardSettings(to: to, maps: map) { try Profile.forArgument($0, console).conditions }
        } catch let error as HostRuleError {
            console.error("--to or --map: \(error)")
            throw ExitStatus.usage
        }
    }
}

/// The options that decide who may use a forward proxy.
struct ForwardAccessOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Addresses from which clients may connect, such as 192.168.1.0/24 (repeatable). --allow or --user is "
                + "required if --listen is not a loopback address.", valueName: "network"))
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
            do throws(HostRuleError) {
                settings.clientsAllowed.append(try HostPattern(network: text))
            } catch {
                console.error("--allow: \(error)")
                throw ExitStatus.usage
            }
        }
        if let login = try login(console) {
            settings.credentials = ProxyCredentials(user: login.user, password: login.password)
        }
        settings.setAddresses(for: listen)
        if settings.isOpen(on: listen) {
            console.error(
                "--listen \(listen) would let every machine of the network use this proxy; add --allow NETWORK "
                    + "(such as --allow 192.168.1.0/24) or --user NAME, or listen on 127.0.0.1")
            throw ExitStatus.usage
        }
    }

    /// Returns the user and password that clients must give; `nil` for none. Prints an error and throws an exit status if
    /// they are invalid.
    func login(_ console: Console) throws -> (user: String, password: String)? {
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
        guard ProxyCredentials(user: user, password: password) != nil else {
            console.error("--user and its password must have 1 to 255 bytes, and the user no colon")
            throw ExitStatus.usage
        }
        return (user, password)
    }
}

/// The arguments that choose between an upstream and a forward proxy.
enum ForwardArguments {
    /// Throws a validation error if there is neither or both, or if options of forward proxies are without one.
    static func check(
        upstream: String?, isForward: Bool, _ destinations: ForwardOptions, _ access: ForwardAccessOptions
    ) throws {
        if isForward {
            if upstream == nil { return }
            throw ValidationError("give --upstream or --forward, not both; clients of a forward proxy name the server")
        }
        if upstream == nil {
            throw ValidationError(
                "give the server with --upstream HOST:PORT, or --forward for a proxy whose clients name the server")
        }
        if !destinations.to.isEmpty || !destinations.map.isEmpty || access.isGiven {
            throw ValidationError("--to, --map, --allow, --user and --password-file need --forward")
        }
    }
}
