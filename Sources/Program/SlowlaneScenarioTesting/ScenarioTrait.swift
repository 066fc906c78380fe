//  SlowlaneScenarioTesting: scenarios in tests of Swift packages.
//
//  Owns: the trait of Swift Testing that runs a scenario, the issue of each check that does not pass.
//
//  Does not own: scenario files (ConfigFiles), runs of scenarios (Worlds/Simulated), networks of tests (SlowlaneTesting).

internal import ConfigFiles
internal import Scenario
public import Testing
public import Worlds

/// A trait that runs a scenario in virtual time before the test's function.
public struct ScenarioTrait: TestTrait, TestScoping {
    let name: String
    let variant: String?
    let seed: UInt64?
    let sourceLocation: Testing.SourceLocation

    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try runScenario(name, variant: variant, seed: seed, sourceLocation: sourceLocation)
        try await function()
    }
}

extension Trait where Self == ScenarioTrait {
    /// Runs a scenario in virtual time before the test's function, which may be empty. Each check that does not pass is
    /// an issue.
    ///
    /// - Parameters:
    ///   - nameOrPath: The built-in name or the path of the scenario's file, relative to the current folder: with
    ///     `swift test`, the folder of the package.
    ///   - variant: The variant, `none` for the scenario itself, `nil` for all.
    ///   - seed: The random seed; the scenario's by default.
    public static func scenario(
        _ nameOrPath: String, variant: String? = nil, seed: UInt64? = nil,
        sourceLocation: Testing.SourceLocation = #_sourceLocation
    ) -> ScenarioTrait {
        ScenarioTrait(name: nameOrPath, variant: variant, seed: seed, sourceLocation: sourceLocation)
    }
}

/// Runs a scenario in virtual time and records an issue for each check that does not pass.
///
/// - Parameters:
///   - nameOrPath: The built-in name or the path of the scenario's file, relative to the current folder.
///   - variant: The variant, `none` for the scenario itself, `nil` for all.
///   - seed: The random seed; the scenario's by default.
/// - Returns: The results: of the scenario and its variants, each with all rows of its matrix.
/// - Throws: If the file has errors, or if it has no such variant.
@discardableResult
public func runScenario(
    _ nameOrPath: String, variant: String? = nil, seed: UInt64? = nil,
    sourceLocation: Testing.SourceLocation = #_sourceLocation
) throws -> [RunResult] {
    let file = try ScenarioCatalogue.scenario(nameOrPath)
    let runs = file.runs(ofVariant: variant)
    if runs.isEmpty {
        let names = (["none"] + file.variants.compactMap(\.variant)).joined(separator: ", ")
        throw SetupError("\(nameOrPath) has no variant '\(variant?.prefix(40) ?? "")'; its variants are \(names)")
    }
    return try runs.map { scenario in
        let result = try SimulatedRun.run(scenario, seed: seed)
        for check in result.verdict.checks {
            let reason: String
            switch check.outcome {
            case .pass: continue
            case .fail(let text): reason = text
            case .inconclusive(let text, _): reason = "inconclusive: \(text)"
            }
            Issue.record(
                """
                \(scenario.fullName), seed \(seed ?? scenario.seed): \(check.description): \(reason) \
                (\(check.location))
                """, sourceLocation: sourceLocation)
        }
        return result
    }
}
