import Determinism
import LiveWorld
import Scenario
import TestSupport
import Testing
import Worlds

/// The small scenarios in virtual time.
@Suite struct SimulatedCaseTests {
    @Test(arguments: WorldCase.selected) func theVerdictIsTheExpectedOne(_ testCase: WorldCase) throws {
        testCase.expect(try SimulatedRun.run(testCase.scenario()).verdict)
    }

    @Test func theNotesClientDoesNotAdoptARestoredServerByItself() throws {
        WorldCase.notAdopted.expect(try SimulatedRun.run(WorldCase.notAdopted.scenario()).verdict)
    }

    /// A name is the argument of a case in both suites, and the variable `SLOWLANE_CASE` selects by it.
    @Test func namesAreUnique() {
        #expect(Set(WorldCase.all.map(\.name)).count == WorldCase.all.count)
    }
}

/// The same small scenarios in real time.
@Suite(.tags(.runs), .timeLimit(.minutes(3))) struct WorldCaseTests {
    /// A pause of the host makes a verdict in real time inconclusive, and then may repeat requests. A run that fails after a
    /// pause is repeated, because a pause also changes the order of what several actors do.
    @Test(arguments: WorldCase.selected)
    func theVerdictAndTheRequestsAreThoseOfTheSimulatedWorld(_ testCase: WorldCase) async throws {
        let live = try await LiveCaseRuns.shared.result(of: testCase)
        let wasLate = Parity.wasLate(live.history)
        if live.verdict.result == .inconclusive, wasLate { return }
        testCase.expect(live.verdict)
        if !testCase.hasParity || wasLate { return }
        let simulated = try SimulatedRun.run(testCase.scenario())
        let difference = Parity.difference(simulated.history, live.history)
        #expect(difference == nil, "\(difference ?? "")")
    }
}

/// The runs in real time of all selected cases, side by side. They mostly wait, and a process that runs one test at a time
/// (`--no-parallel`) also runs one argument at a time.
private actor LiveCaseRuns {
    static let shared = LiveCaseRuns()

    /// The number of runs side by side; more of them start late.
    private static let jobs = 16

    private var runs: [String: Task<RunResult, any Error>] = [:]
    private var slots = LiveCaseRuns.jobs
    private var waiting: [CheckedContinuation<Void, Never>] = []

    /// Returns the result of a case. The first call starts the runs of all cases.
    func result(of testCase: WorldCase) async throws -> RunResult {
        if runs.isEmpty {
            for selected in WorldCase.selected { runs[selected.name] = Task { try await run(selected) } }
        }
        return try await (runs[testCase.name] ?? Task { try await run(testCase) }).value
    }

    private func run(_ testCase: WorldCase) async throws -> RunResult {
        if slots > 0 { slots -= 1 } else { await withCheckedContinuation { waiting.append($0) } }
        defer { if waiting.isEmpty { slots += 1 } else { waiting.removeFirst().resume() } }
        var result = try await LiveRun.run(testCase.scenario())
        for _ in 0..<2 where result.verdict.result != testCase.result && Parity.wasLate(result.history) {
            result = try await LiveRun.run(testCase.scenario())
        }
        return result
    }
}
