internal import Impairment

/// A setting of a network that cannot be used, or a declared fault that has not fired.
public struct NetworkError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What failed, why, and what to do.
    public let description: String

    static let noNetwork = NetworkError(
        description: "the current task has no network; add the trait .network(...) to the test or its suite, and use "
            + "no detached task")

    static let noUpstream = NetworkError(
        description: "the network has no upstream; add .network(upstream: \"HOST:PORT\") or "
            + ".forwardNetwork() to the test or its suite")

    static let isNotForward = NetworkError(
        description:
            "the network has an upstream; .forwardNetwork() or withForwardNetwork() gives a test a forward proxy")

    static let noInterceptedHosts = NetworkError(
        description: "'upstreamCA' is for intercepted connections; give their hosts, such as intercept: [\"api.test\"]")

    static func unreadableAuthorities(_ path: String) -> NetworkError {
        NetworkError(description: "the file '\(path.prefix(200))' of 'upstreamCA' cannot be read")
    }

    static func invalidUpstream(_ text: String) -> NetworkError {
        NetworkError(description: "the upstream '\(text.prefix(60))' is not HOST:PORT")
    }

    static func invalidFault(_ problem: String) -> NetworkError {
        NetworkError(description: "the fault cannot be used: \(problem)")
    }

    static func unusedFault(_ fault: FaultRuleStatus) -> NetworkError {
        let times = fault.rule.times.lowerBound
        return NetworkError(
            description: "the fault '\(fault.rule)' fired \(fault.fired) of \(times) time\(times == 1 ? "" : "s"), "
                + "\(fault.matched) request\(fault.matched == 1 ? "" : "s") matched; check that the test sends the "
                + "request through the network")
    }
}
