public import ForwardProxy
public import LinkModel

/// The settings of a forward proxy, whose clients name the destination of each connection.
public struct ForwardSettings: Sendable {
    /// The treatment of destinations, and the addresses that names stand for.
    public var rules = HostRules()
    /// The conditions that ``rules`` name. A destination with conditions of its own uses a link of its own instead of the
    /// device's.
    public var conditions: [String: Conditions] = [:]
    /// The user and password that clients must give; `nil` for none.
    public var credentials: ProxyCredentials?
    /// The addresses from which clients may connect; empty for all that reach the listening address.
    public var clientsAllowed: [HostPattern] = []
    /// The destinations that are refused.
    public var policy = DestinationPolicy()
    /// The destinations of connections that do not name them; see ``RedirectedConnections``.
    public var redirections: RedirectedConnections?
    /// Whether connections that the firewall has redirected to the port go to their original destinations
    /// (``canBeTransparent``).
    public var isTransparent = false

    /// Whether this system reports the original destinations of redirected connections (Linux).
    public static var canBeTransparent: Bool { OriginalDestination.isAvailable }

    /// The addresses under which clients reach the proxy, for its page and PAC file; empty for the listening address. Port 0
    /// stands for the listening port.
    public var addresses: [Destination] = []

    /// Creates settings without rules.
    public init() {}
}

// MARK: Rules

extension ForwardSettings {
    /// Creates settings from the texts of rules (`PATTERN=CONDITIONS`) and maps (`NAME=ADDRESS`).
    ///
    /// Throws a ``ForwardProxy/HostRuleError``, or the error of `conditions`.
    ///
    /// - Parameter conditions: Returns the conditions of a name in a rule.
    public init(
        to rules: [String], maps: [String] = [], conditions: (String) throws -> Conditions
    ) throws {
        self.rules = try HostRules(rules: rules, maps: maps)
        for case .conditions(let name) in self.rules.rules.map(\.treatment) {
            self.conditions[name] = try conditions(name)
        }
    }

    /// Sets a rule in place of the one with the same pattern.
    ///
    /// - Parameter conditions: The conditions that the rule names, if it names any.
    public mutating func set(_ rule: HostRules.Rule, conditions: Conditions?) {
        if case .conditions(let name) = rule.treatment { self.conditions[name] = conditions }
        if let index = rules.rules.firstIndex(where: { $0.pattern == rule.pattern }) {
            rules.rules[index] = rule
        } else {
            rules.rules.append(rule)
        }
    }

    /// Removes the rule of a pattern. Returns `false` if there is none.
    public mutating func removeRule(of pattern: HostPattern) -> Bool {
        let count = rules.rules.count
        rules.rules.removeAll { $0.pattern == pattern }
        return rules.rules.count < count
    }
}

// MARK: Clients

extension ForwardSettings {
    /// Returns whether every machine of the network could use a proxy with these settings that listens on an address.
    public func isOpen(on listen: Endpoint) -> Bool {
        !LocalAddresses.isLoopback(listen.host) && clientsAllowed.isEmpty && credentials == nil
    }

    /// Sets ``addresses`` for a proxy that listens on an address.
    public mutating func setAddresses(for listen: Endpoint) {
        addresses =
            LocalAddresses.isLoopback(listen.host)
            ? []
            : LocalAddresses.reachable(through: listen.host).map { Destination(host: $0, port: listen.port) }
    }
}
