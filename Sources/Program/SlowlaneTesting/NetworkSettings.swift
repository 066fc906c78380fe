internal import ConfigFiles
internal import Impairment
internal import LinkModel
internal import Proxy

/// The settings of a network, merged from the traits of suites and the test, the innermost last.
struct NetworkSettings: Sendable {
    var servers: Servers?
    var link: LinkPlan?
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
