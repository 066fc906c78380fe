internal import ConfigFiles
internal import Impairment

/// The settings of a network, merged from the traits of suites and the test, the innermost last.
struct NetworkSettings: Sendable {
    /// Returns the address of the server under test, as HOST:PORT.
    var upstream: (@Sendable () async throws -> String)?
    var link: LinkPlan?
    var faults: [DeclaredFault] = []
    var seed: UInt64?
    /// The number of traits that have been merged.
    var traitCount = 0

    /// The settings of the enclosing traits.
    @TaskLocal static var inherited = NetworkSettings()

    /// Replaces the settings that `inner` has, and adds its faults.
    mutating func merge(_ inner: NetworkSettings) {
        upstream = inner.upstream ?? upstream
        link = inner.link ?? link
        faults += inner.faults
        seed = inner.seed ?? seed
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
