internal import ArgumentParser
internal import ConfigFiles
internal import Impairment

/// The values of `--fault`.
enum FaultArguments {
    /// Returns the rules; throws the problem of the first invalid one.
    static func rules(_ texts: [String]) throws -> [FaultRule] {
        guard texts.count <= SharedLink.faultRulesMax else {
            throw ValidationError("--fault: at most \(SharedLink.faultRulesMax) faults are possible")
        }
        return try texts.map { text in
            do {
                return try FaultExpression.parse(text)
            } catch {
                throw ValidationError("--fault: \(error)")
            }
        }
    }
}
