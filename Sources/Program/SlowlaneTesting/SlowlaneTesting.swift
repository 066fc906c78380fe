//  SlowlaneTesting: networks in tests of Swift packages.
//
//  Owns: the traits of Swift Testing, the network of a test (one proxy on a free loopback port), the declared faults that
//  must fire.
//
//  Does not own: proxies (Proxy), profiles (ConfigFiles), scenarios (SlowlaneScenarioTesting).

public import Impairment

/// Runs a closure with a network of its own: a proxy on a free port of the loopback interface, which ends with the
/// closure. Works with every test framework, XCTest included; nested in a test with the trait `.network`, it inherits
/// the upstream.
///
/// ```swift
/// try await withNetwork(.edge, upstream: "127.0.0.1:8000") { network in
///     let app = App(server: network.url)
/// }
/// ```
///
/// - Parameters:
///   - profile: The initial conditions; `nil` means pass-through.
///   - changes: Further conditions, with their times since the start.
///   - upstream: The server under test, as HOST:PORT.
///   - intercept: The hosts whose TLS is intercepted; clients must trust ``Network/authorityCertificate``.
///   - upstreamCA: The PEM file of the authorities of these servers; those of the system by default.
///   - faults: Faults of HTTP exchanges. Each must fire as often as its `times` states, at least.
///   - seed: The random seed; 1 by default.
/// - Throws: The error of `body`; a ``NetworkError`` if a setting cannot be used or if a fault has not fired.
public func withNetwork<Value>(
    _ profile: NetworkProfile? = nil, at changes: KeyValuePairs<Duration, NetworkProfile> = [:],
    upstream: String? = nil, intercept: [String] = [], upstreamCA: String? = nil, faults: [FaultRule] = [],
    seed: UInt64? = nil,
    isolation: isolated (any Actor)? = #isolation, _ body: (Network) async throws -> Value
) async throws -> Value {
    let settings = NetworkSettings(
        servers: Servers(upstream), link: LinkPlan(profile, at: changes),
        interception: InterceptedServers(intercept, authorities: upstreamCA), faults: faults.map { .rule($0) },
        seed: seed)
    return try await withNetwork(settings, isolation: isolation, body)
}

/// Runs a closure with a forward network of its own: a forward proxy, whose clients name the server of each connection.
///
/// ```swift
/// try await withForwardNetwork(.edge, map: ["api.test=127.0.0.1:8000"]) { network in
///     let app = App(proxy: try network.proxyURL)
/// }
/// ```
///
/// - Parameters:
///   - rules: Conditions of their own for some hosts, such as `*.cdn.test=wifi` or `ads.test=block`.
///   - maps: Addresses to connect in place of hosts, such as `api.test=127.0.0.1:8000`.
///   - intercept: The hosts whose TLS is intercepted; clients must trust ``Network/authorityCertificate``.
///   - upstreamCA: The PEM file of the authorities of these servers; those of the system by default.
/// - Throws: The error of `body`; a ``NetworkError`` if a setting cannot be used or if a fault has not fired.
public func withForwardNetwork<Value>(
    _ profile: NetworkProfile? = nil, at changes: KeyValuePairs<Duration, NetworkProfile> = [:],
    to rules: [String] = [], map maps: [String] = [], intercept: [String] = [], upstreamCA: String? = nil,
    faults: [FaultRule] = [], seed: UInt64? = nil,
    isolation: isolated (any Actor)? = #isolation, _ body: (Network) async throws -> Value
) async throws -> Value {
    let settings = NetworkSettings(
        servers: .forward(to: rules, map: maps), link: LinkPlan(profile, at: changes),
        interception: InterceptedServers(intercept, authorities: upstreamCA),
        faults: faults.map { .rule($0) }, seed: seed)
    return try await withNetwork(settings, isolation: isolation, body)
}

private func withNetwork<Value>(
    _ inner: NetworkSettings, isolation: isolated (any Actor)?, _ body: (Network) async throws -> Value
) async throws -> Value {
    // Faults of an outer network have to fire there.
    var settings = NetworkSettings.inherited
    settings.faults = []
    settings.merge(inner)
    let network = try await Network.start(settings)
    let value: Value
    do {
        value = try await Network.$bound.withValue(network) { try await body(network) }
    } catch {
        await network.close()
        throw error
    }
    await network.close()
    if let unused = await network.unusedFaults.first { throw unused }
    return value
}
