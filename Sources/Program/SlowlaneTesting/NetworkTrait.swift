public import Impairment
public import Testing

/// A trait that gives each test, and each case of a parameterised test, a network of its own.
///
/// The traits of suites and of the test are merged: for each setting, the innermost one that has it wins. Faults of all
/// of them apply.
public struct NetworkTrait: SuiteTrait, TestTrait, TestScoping {
    let settings: NetworkSettings
    let sourceLocation: SourceLocation

    public var isRecursive: Bool { true }

    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        var merged = NetworkSettings.inherited
        merged.merge(settings)
        merged.traitCount += 1
        let isInnermost = merged.traitCount >= test.traits.count { $0 is NetworkTrait }
        try await NetworkSettings.$inherited.withValue(merged) { [merged] in
            // The innermost trait starts the proxy, so that there is only one.
            guard isInnermost else { return try await function() }
            try await provideNetwork(merged, function)
        }
    }

    private func provideNetwork(
        _ settings: NetworkSettings, _ function: @Sendable () async throws -> Void
    ) async throws {
        let network = try await Network.start(settings)
        do {
            try await Network.$bound.withValue(network) { try await function() }
        } catch {
            await network.close()
            throw error
        }
        await network.close()
        for error in await network.unusedFaults {
            Issue.record("\(error)", sourceLocation: sourceLocation)
        }
    }
}

extension Trait where Self == NetworkTrait {
    /// Gives each test a network.
    ///
    /// - Parameters:
    ///   - profile: The initial conditions. If no trait states any, the network is pass-through.
    ///   - changes: Further conditions, with their times since the start of the test.
    ///   - upstream: The server under test, as HOST:PORT.
    ///   - intercept: The hosts whose TLS is intercepted, so that faults see their requests: names or patterns such as
    ///     `*.api.test`. Clients must trust ``Network/authorityCertificate``.
    ///   - upstreamCA: The PEM file of the authorities of these servers; those of the system by default.
    ///   - seed: The random seed; 1 by default.
    public static func network(
        _ profile: NetworkProfile? = nil, at changes: KeyValuePairs<Duration, NetworkProfile> = [:],
        upstream: String? = nil, intercept: [String] = [], upstreamCA: String? = nil, seed: UInt64? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) -> NetworkTrait {
        NetworkTrait(
            settings: NetworkSettings(
                servers: Servers(upstream), link: LinkPlan(profile, at: changes),
                interception: InterceptedServers(intercept, authorities: upstreamCA), seed: seed),
            sourceLocation: sourceLocation)
    }

    /// Gives each test a network to a server whose address is known only when the test starts.
    public static func network(
        _ profile: NetworkProfile? = nil, at changes: KeyValuePairs<Duration, NetworkProfile> = [:],
        upstream: @escaping @Sendable () async throws -> String, intercept: [String] = [], upstreamCA: String? = nil,
        seed: UInt64? = nil, sourceLocation: SourceLocation = #_sourceLocation
    ) -> NetworkTrait {
        NetworkTrait(
            settings: NetworkSettings(
                servers: .upstream(upstream), link: LinkPlan(profile, at: changes),
                interception: InterceptedServers(intercept, authorities: upstreamCA), seed: seed),
            sourceLocation: sourceLocation)
    }

    /// Gives each test a forward network: a forward proxy, whose clients name the server of each connection.
    ///
    /// - Parameters:
    ///   - profile: The initial conditions. If no trait states any, the network is pass-through.
    ///   - changes: Further conditions, with their times since the start of the test.
    ///   - rules: Conditions of their own for some hosts, such as `*.cdn.test=wifi` or `ads.test=block`.
    ///   - maps: Addresses to connect in place of hosts, such as `api.test=127.0.0.1:8000`.
    ///   - intercept: The hosts whose TLS is intercepted, so that faults see their requests: names or patterns such as
    ///     `*.api.test`. Clients must trust ``Network/authorityCertificate``.
    ///   - upstreamCA: The PEM file of the authorities of these servers; those of the system by default.
    ///   - seed: The random seed; 1 by default.
    public static func forwardNetwork(
        _ profile: NetworkProfile? = nil, at changes: KeyValuePairs<Duration, NetworkProfile> = [:],
        to rules: [String] = [], map maps: [String] = [], intercept: [String] = [], upstreamCA: String? = nil,
        seed: UInt64? = nil, sourceLocation: SourceLocation = #_sourceLocation
    ) -> NetworkTrait {
        NetworkTrait(
            settings: NetworkSettings(
                servers: .forward(to: rules, map: maps), link: LinkPlan(profile, at: changes),
                interception: InterceptedServers(intercept, authorities: upstreamCA), seed: seed),
            sourceLocation: sourceLocation)
    }

    /// Injects a fault into HTTP exchanges of the test's network. A test in which the fault does not fire fails.
    ///
    /// - Parameters:
    ///   - action: The effect on the connection.
    ///   - point: The point of the exchange.
    ///   - method: The method of the requests; `nil` means any.
    ///   - path: The path of the requests, in which each `*` stands for any number of bytes; `nil` means any.
    ///   - nth: The first matching request to which the fault applies, from 1.
    ///   - times: The number of requests to which the fault applies, and at which it must fire.
    public static func fault(
        _ action: FaultAction, at point: FaultPoint = .beforeResponse, method: String? = nil, path: String? = nil,
        nth: Int = 1, times: Int = 1, sourceLocation: SourceLocation = #_sourceLocation
    ) -> NetworkTrait {
        // A number that cannot be used is reported by the rule.
        let times = max(0, times)
        return fault(
            FaultRule(method: method, path: path, nth: nth, times: times...times, point: point, action: action),
            sourceLocation: sourceLocation)
    }

    /// Injects the faults of a rule into HTTP exchanges of the test's network. A test in which they fire less often than
    /// the lower bound of the rule's `times` fails.
    public static func fault(
        _ rule: FaultRule, sourceLocation: SourceLocation = #_sourceLocation
    ) -> NetworkTrait {
        NetworkTrait(settings: NetworkSettings(faults: [.rule(rule)]), sourceLocation: sourceLocation)
    }

    /// Injects a fault, given on one line, into HTTP exchanges of the test's network: `PUT /notes/* before-response reset`. A
    /// test in which the fault does not fire fails.
    public static func fault(
        _ rule: String, sourceLocation: SourceLocation = #_sourceLocation
    ) -> NetworkTrait {
        NetworkTrait(settings: NetworkSettings(faults: [.text(rule)]), sourceLocation: sourceLocation)
    }
}
