/// A pattern of destinations: `api.test`, `*.cdn.test`, `*`, an address or a network, each with an optional port.
public struct HostPattern: Hashable, Sendable, CustomStringConvertible {
    /// The hosts of a pattern.
    public enum Hosts: Hashable, Sendable {
        /// Every host.
        case any
        /// The host of this name.
        case name(String)
        /// The hosts below this name, without the name itself.
        case subdomains(of: String)
        /// The addresses whose first bits are those of an address. A name that has such an address does not match.
        case network(IPAddress, prefixLength: Int)
    }

    /// The hosts.
    public var hosts: Hosts
    /// The port; `nil` for every port.
    public var port: Int?

    /// Reads a pattern.
    public init(parsing text: String) throws(HostRuleError) {
        hosts = .any
    }

    /// Returns whether a destination matches.
    public func matches(_ destination: Destination) -> Bool { false }

    public var description: String { "" }
}
