/// The hosts whose TLS connections are intercepted: patterns as in rules of hosts, or all hosts.
public struct InterceptedHosts: Hashable, Sendable, CustomStringConvertible {
    /// The patterns, without ports.
    public let patterns: [HostPattern]

    /// Every host.
    public static let all = InterceptedHosts(patterns: [HostPattern(.any)])

    /// The maximum number of patterns. Each one is part of the certificate of the authority, which every handshake carries.
    public static let patternsMax = 100

    private init(patterns: [HostPattern]) { self.patterns = patterns }

    /// Creates the hosts that an authority may certify; ``all`` without constraints.
    public init(_ constraints: Constraints?) {
        guard let constraints else {
            self = .all
            return
        }
        patterns =
            constraints.names.filter { $0 != Constraints.noName }
            .flatMap { [HostPattern(.name($0)), HostPattern(.subdomains(of: $0))] }
            + constraints.networks.compactMap { network in
                let (bytes, mask) = (network.prefix(network.count / 2), network.suffix(network.count / 2))
                let length = mask.reduce(0) { $0 + (~$1).leadingZeroBitCount }
                return IPAddress(bytes: Array(bytes)).map { HostPattern(.network($0, prefixLength: length)) }
            }
    }

    /// Reads lists of patterns, separated by commas, such as `api.test,*.cdn.test`. A lone `*` is an error, so that nobody
    /// intercepts every host by mistake.
    public init(parsing texts: [String]) throws(HostRuleError) {
        var patterns: [HostPattern] = []
        for text in texts {
            for part in text.split(separator: ",", omittingEmptySubsequences: false) {
                let pattern = try Self.pattern(String(part.drop { $0 == " " }))
                if !patterns.contains(pattern) { patterns.append(pattern) }
            }
            guard patterns.count <= Self.patternsMax else {
                throw HostRuleError(text: text, column: 1, problem: "more than \(Self.patternsMax) hosts")
            }
        }
        self.patterns = patterns
    }

    private static func pattern(_ text: String) throws(HostRuleError) -> HostPattern {
        let pattern = try HostPattern(parsing: text)
        if pattern.port != nil {
            throw HostRuleError(text: text, column: 1, problem: "a port; a host is intercepted on every port")
        }
        if pattern.hosts == .any {
            throw HostRuleError(
                text: text, column: 1,
                problem: "every host; name the hosts, or give --intercept-all (in the API: intercept_all)")
        }
        return pattern
    }

    /// Whether every host is intercepted.
    public var isAll: Bool { patterns.contains { $0.hosts == .any } }

    /// Returns whether a host is intercepted: a name or an address. A text that is neither is not.
    public func includes(_ host: String) -> Bool { normalized(host) != nil }

    /// Returns a host in its normal form if it is valid and intercepted; the text may be that of a hostile client.
    public func normalized(_ host: String) -> String? {
        // The longest text of a host has a trailing dot.
        guard host.utf8.count <= HostSyntax.nameBytesMax + 1, let host = try? HostSyntax.host(Array(host.utf8)) else {
            return nil
        }
        // The port is that of no pattern.
        let destination = Destination(host: host, port: 1)
        return patterns.contains { $0.matches(destination) } ? host : nil
    }

    /// Returns a DNS name of a certificate in its normal form if all its hosts are intercepted; `nil` otherwise. The name
    /// may begin with `*.`.
    public func normalized(certificateName name: String) -> String? {
        guard name.hasPrefix("*.") else {
            return normalized(name).flatMap { IPAddress($0) == nil ? $0 : nil }
        }
        // The names below a name are intercepted if any label stands for them.
        guard let host = normalized("a" + name.dropFirst()), IPAddress(host) == nil,
            patterns.contains(where: { $0.includesSubdomains(of: host.dropFirst(2)) })
        else { return nil }
        return "*" + host.dropFirst()
    }

    /// Returns whether all these hosts are among others.
    public func isSubset(of others: InterceptedHosts) -> Bool {
        patterns.allSatisfy { pattern in others.patterns.contains { $0.includesAll(of: pattern) } }
    }

    /// Returns whether a DNS name of a certificate is that of a host (RFC 6125, 6.4): `*` stands for one label.
    public static func covers(_ name: String, _ host: String) -> Bool {
        if name == host { return true }
        guard name.hasPrefix("*."), let dot = host.utf8.firstIndex(of: UInt8(ascii: ".")) else { return false }
        return name.dropFirst() == host[dot...]
    }

    /// The patterns as text.
    public var description: String { isAll ? "all hosts" : patterns.map(\.description).joined(separator: ", ") }
}

extension HostPattern {
    /// Returns whether the pattern matches every host below a name.
    fileprivate func includesSubdomains(of name: Substring) -> Bool {
        switch hosts {
        case .any: true
        case .subdomains(let parent): name == parent || name.hasSuffix("." + parent)
        case .name, .network: false
        }
    }

    /// Returns whether the pattern matches every host of another one.
    fileprivate func includesAll(of other: HostPattern) -> Bool {
        switch (hosts, other.hosts) {
        case (.any, _): true
        case (_, .subdomains(let name)): includesSubdomains(of: name[...])
        case (_, .name(let name)): matches(Destination(host: name, port: 1))
        case (.network(let network, let length), .network(let address, let otherLength)):
            length <= otherLength && address.isIn(network, prefixLength: length)
        default: false
        }
    }
}

// MARK: Name constraints

extension InterceptedHosts {
    /// The names that an authority may certify (RFC 5280, 4.2.1.10).
    public struct Constraints: Hashable, Sendable {
        /// The names that are permitted with all names below them.
        public var names: [String]
        /// The networks that are permitted, each the bytes of an address followed by those of the mask.
        public var networks: [[UInt8]]
        /// The networks that are excluded.
        public var networksExcluded: [[UInt8]]

        /// The only name that is permitted if there is none: a reserved domain (RFC 6761, 6.4).
        static let noName = "invalid"

        /// Creates constraints.
        public init(names: [String], networks: [[UInt8]], networksExcluded: [[UInt8]] = []) {
            self.names = names
            self.networks = networks
            self.networksExcluded = networksExcluded
        }
    }

    /// The constraints for these hosts; `nil` if every host is intercepted.
    ///
    /// A pattern `*.cdn.test` becomes `cdn.test`, because a constraint with a leading dot has no standard meaning for DNS
    /// names (Python's cryptography rejects it). A constraint restricts only names of its kind, so that one of names excludes
    /// all addresses, and one of addresses permits only names of the reserved domain `invalid`.
    public var constraints: Constraints? {
        if isAll { return nil }
        var constraints = Constraints(names: [], networks: [])
        for pattern in patterns {
            switch pattern.hosts {
            case .any: break
            case .name(let name), .subdomains(of: let name):
                if !constraints.names.contains(name) { constraints.names.append(name) }
            case .network(let address, let prefixLength):
                let ones = IPAddress(bytes: address.bytes.map { _ in 0xFF })?.masked(prefixLength: prefixLength)
                constraints.networks.append(address.bytes + (ones?.bytes ?? []))
            }
        }
        if constraints.names.isEmpty { constraints.names = [Constraints.noName] }
        if constraints.networks.isEmpty {
            constraints.networksExcluded = [[UInt8](repeating: 0, count: 8), [UInt8](repeating: 0, count: 32)]
        }
        return constraints
    }
}
