/// A failure of a look-up that a rule causes.
public enum DNSFailure: String, Hashable, Sendable, CaseIterable {
    /// The name does not exist.
    case nxdomain
    /// The name server fails.
    case servfail
    /// No name server responds.
    case timeout = "dns-timeout"

    /// The failure of a connection to such a name.
    public var connectFailure: ConnectFailure {
        switch self {
        case .nxdomain: .nameNotFound
        case .servfail: .nameServerFailure
        case .timeout: .lookupTimeout
        }
    }
}

/// Rules by host (`PATTERN=CONDITIONS`) and maps of hosts (`NAME[:PORT]=HOST:PORT`). The most specific pattern wins.
public struct HostRules: Hashable, Sendable {
    /// What applies to the connections of a rule.
    public enum Treatment: Hashable, Sendable, CustomStringConvertible {
        /// A link of its own with a profile or timeline, in place of the device's link.
        case conditions(String)
        /// No conditions.
        case direct
        /// The connection is refused.
        case refuse
        /// SYNs get no response.
        case block
        /// The look-up of the name fails.
        case dnsFailure(DNSFailure)

        public var description: String { "" }
    }

    /// A rule.
    public struct Rule: Hashable, Sendable, CustomStringConvertible {
        /// The destinations.
        public var pattern: HostPattern
        /// What applies to them.
        public var treatment: Treatment

        /// Creates a rule.
        public init(pattern: HostPattern, treatment: Treatment) {
            self.pattern = pattern
            self.treatment = treatment
        }

        public var description: String { "\(pattern)=\(treatment)" }
    }

    /// A map: the destination that is connected in place of those that match.
    public struct Map: Hashable, Sendable, CustomStringConvertible {
        /// The destinations that the client names.
        public var pattern: HostPattern
        /// The host that is connected.
        public var host: String
        /// The port that is connected; `nil` for the port that the client names.
        public var port: Int?

        public var description: String { "" }
    }

    /// The rules, in the order in which they were added.
    public var rules: [Rule] = []
    /// The maps, in the order in which they were added.
    public var maps: [Map] = []

    /// Creates an empty set.
    public init() {}

    /// Creates a set from the texts of rules and maps.
    public init(rules: [String], maps: [String] = []) throws(HostRuleError) {}

    /// Reads a rule.
    public static func rule(parsing text: String) throws(HostRuleError) -> Rule {
        throw HostRuleError(text: text, column: 1, problem: "")
    }

    /// Reads a map.
    public static func map(parsing text: String) throws(HostRuleError) -> Map {
        throw HostRuleError(text: text, column: 1, problem: "")
    }

    /// Adds a rule. Throws if there is a rule of the same pattern.
    public mutating func add(_ rule: Rule) throws(HostRuleError) {}

    /// Adds a map. Throws if there is a map of the same pattern.
    public mutating func add(_ map: Map) throws(HostRuleError) {}

    /// Returns the most specific rule of a destination as the client names it; `nil` if it has none.
    public func treatment(of destination: Destination) -> Rule? { nil }

    /// Returns the destination to connect.
    public func mapped(_ destination: Destination) -> Destination { destination }
}

/// An error in a rule or a map of hosts.
public struct HostRuleError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The rule or the map.
    public let text: String
    /// The position in the text, from 1.
    public let column: Int
    /// What is wrong and what to write instead.
    public let problem: String

    public var description: String { "\(text.debugDescription), column \(column): \(problem)" }
}
