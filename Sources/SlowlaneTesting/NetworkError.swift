internal import Impairment

/// A setting of a network that cannot be used, or a declared fault that has not fired.
public struct NetworkError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What failed, why, and what to do.
    public let description: String

    static let noNetwork = NetworkError(
        description: "the current task has no network; add the trait .network(...) to the test or its suite, and use "
            + "no detached task")

    static let noUpstream = NetworkError(
        description: "the network has no upstream; add .network(upstream: \"HOST:PORT\") to the test or its suite")

    static func invalidUpstream(_ text: String) -> NetworkError {
        NetworkError(description: "the upstream '\(text.prefix(60))' is not HOST:PORT")
    }

    static func invalidFault(_ problem: String) -> NetworkError {
        NetworkError(description: "the fault cannot be used: \(problem)")
    }

    static func unusedFault(_ rule: FaultRule, fired: Int) -> NetworkError {
        let request = [rule.method ?? "any method", rule.path ?? "any path"].joined(separator: ", ")
        let point = rule.point?.rawValue ?? "any point"
        return NetworkError(
            description: "the fault \(rule.action) at \(point) (\(request)) fired \(fired) of \(rule.times.lowerBound) "
                + "times; check that the test sends the request through the network")
    }
}
