internal import ConfigFiles
internal import ForwardProxy
internal import Foundation
internal import HTTPSockets
internal import Impairment
internal import LinkModel
internal import Proxy

/// The settings of a network, merged from the traits of suites and the test, the innermost last.
struct NetworkSettings: Sendable {
    var servers: Servers?
    var link: LinkPlan?
    var interception: InterceptedServers?
    var faults: [DeclaredFault] = []
    var seed: UInt64?
    /// The number of traits that have been merged.
    var traitCount = 0

    /// The settings of the enclosing traits.
    @TaskLocal static var inherited = NetworkSettings()

    /// Replaces the settings that `inner` has, and adds its faults.
    mutating func merge(_ inner: NetworkSettings) {
        servers = inner.servers ?? servers
        link = inner.link ?? link
        interception = inner.interception ?? interception
        faults += inner.faults
        seed = inner.seed ?? seed
    }
}

/// The servers that a network reaches.
enum Servers: Sendable {
    /// One server; the function returns its address, as HOST:PORT.
    case upstream(@Sendable () async throws -> String)
    /// Those that the clients name, with the rules and maps of a forward proxy.
    case forward(to: [String], map: [String])

    /// Returns the server of an address, if there is one.
    init?(_ address: String?) {
        guard let address else { return nil }
        self = .upstream { address }
    }

    /// Returns a proxy's upstream, or the settings of a forward proxy.
    func resolved() async throws -> (upstream: Endpoint?, forward: ForwardSettings?) {
        switch self {
        case .upstream(let address):
            let text = try await address()
            guard let endpoint = Endpoint(text) else { throw NetworkError.invalidUpstream(text) }
            return (endpoint, nil)
        case .forward(let rules, let maps):
            let settings = try ForwardSettings(to: rules, maps: maps) { try ProfileCatalogue.profile($0).conditions }
            return (nil, settings)
        }
    }
}

/// The servers whose TLS is intercepted, as a test declares them.
struct InterceptedServers: Sendable {
    /// The hosts, as for `--intercept`.
    let hosts: [String]
    /// The path of the PEM file of the authorities of the servers; `nil` for those of the system.
    let authorities: String?

    /// Returns `nil` without hosts and authorities.
    init?(_ hosts: [String], authorities: String?) {
        if hosts.isEmpty && authorities == nil { return nil }
        self.hosts = hosts
        self.authorities = authorities
    }

    /// Returns the settings of a proxy, with a new authority.
    func resolved() throws -> Interception {
        let hosts = try InterceptedHosts(parsing: hosts)
        guard !hosts.patterns.isEmpty else { throw NetworkError.noInterceptedHosts }
        var certificates = UpstreamCertificates()
        if let authorities {
            guard let bytes = try? Data(contentsOf: URL(filePath: authorities)) else {
                throw NetworkError.unreadableAuthorities(authorities)
            }
            certificates = UpstreamCertificates(authorities: Array(bytes))
        }
        try certificates.check()
        let authority = try CertificateAuthority(for: hosts, now: Int64(Date().timeIntervalSince1970))
        return Interception(hosts: hosts, authority: authority, upstream: certificates)
    }
}

/// A fault as a test declares it.
enum DeclaredFault: Sendable {
    case rule(FaultRule)
    /// A rule on one line.
    case text(String)

    /// The rule, which can be used.
    var rule: FaultRule {
        get throws {
            let rule =
                switch self {
                case .rule(let rule): rule
                case .text(let text): try FaultExpression.parse(text)
                }
            if let problem = rule.problem { throw NetworkError.invalidFault(problem) }
            return rule
        }
    }
}
