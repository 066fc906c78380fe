import Determinism
import LiveWorld
import ScenarioModel
import ScenarioWorld
import SimulatedWorld
import TestSupport
import Testing

/// The same small scenarios in virtual time and in real time.
@Suite(.tags(.runs), .serialized, .timeLimit(.minutes(3))) struct WorldCaseTests {
    private static func expect(_ verdict: Verdict, _ testCase: WorldCase) {
        let reasons = WorldCase.reasons(verdict)
        #expect(verdict.result == testCase.result, "\(testCase.name): \(reasons)")
        if let reason = testCase.reason { #expect(reasons.contains(reason), "\(testCase.name): \(reasons)") }
    }

    /// A run in real time.
    private struct LiveResult: Sendable {
        let testCase: WorldCase
        let result: RunResult
    }

    /// The number of runs side by side; more of them start late.
    private static let jobs = 16

    /// A pause of the host makes a verdict in real time inconclusive, and then may repeat requests.
    @Test func theVerdictsAndRequestsOfBothWorldsAreTheSame() async throws {
        let results = try await withThrowingTaskGroup(of: LiveResult.self) { group in
            var results: [LiveResult] = []
            for (index, testCase) in WorldCase.all.enumerated() {
                if index >= Self.jobs, let result = try await group.next() { results.append(result) }
                group.addTask { LiveResult(testCase: testCase, result: try await LiveRun.run(testCase.scenario())) }
            }
            for try await result in group { results.append(result) }
            return results
        }
        #expect(results.count == WorldCase.all.count)
        for live in results {
            let simulated = try SimulatedRun.run(live.testCase.scenario())
            Self.expect(simulated.verdict, live.testCase)
            if live.result.verdict.result == .inconclusive, Parity.wasLate(live.result.history) { continue }
            Self.expect(live.result.verdict, live.testCase)
            if !live.testCase.hasParity || Parity.wasLate(live.result.history) { continue }
            let difference = Parity.difference(simulated.history, live.result.history)
            #expect(difference == nil, "\(live.testCase.name): \(difference ?? "")")
        }
    }
}
