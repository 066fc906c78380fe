import ConfigFiles
import Determinism
import LinkModel
import LiveWorld
import MutantGallery
import ScenarioRunner
import TestSupport
import Testing
import Worlds

@testable import Scenario

/// Failures that were found and shrunk in virtual time, run over sockets with the real clock.
@Suite(.tags(.runs), .serialized, .timeLimit(.minutes(3))) struct ShrunkReplayTests {
    /// Two minutes in which users and links of two devices do more than a failure needs: a lost response, a write of
    /// another client while a change is pending, and a kill with changes in the queue.
    private static let noisy = """
        scenario: 1
        name: noisy
        seed: 7
        limit: 4m
        server: { contract: orig, notes: { milk: { title: Milk, text: one, revision: 4 }, bread: { title: Bread, text: rye } } }
        devices: { A: { user: bo }, B: { user: bo } }
        writers: { W: { user: bo } }
        network:
          A: { 0s: 3g, 42s: 100-loss, 60s: { flap: [{ edge: 5s }, { lte: 3s }], jitter: 40% }, 90s: wifi }
          B: { 0s: edge, 20s: lte }
        faults:
          - { request: PUT milk, nth: 1, point: before-response, then: reset }
          - { request: POST tea, point: before-request-end, then: reset }
          - { request: GET any, probability: 5%, times: { min: 0, max: 3 }, point: any, then: reset }
        steps:
          - { at: 2s, A: { edit: milk, text: two litres of milk }, mark: edited }
          - { after: edited, delay: 3s, B: { sync: now } }
          - { at: 30s, B: { create: tea, text: green } }
          - { at: 43s, W: { edit: bread, text: from the web } }
          - { at: 44s, A: { edit: bread, text: white } }
          - { at: 46s, A: { create: list, text: cheese } }
          - { at: 50s, A: { kill: now } }
          - { at: 55s, A: { start: again } }
          - { at: 100s, B: { sync: now } }
        workload: [{ from: 10s, to: 28s, every: 10s, jitter: 50%, by: [B], mix: { create: 1, sync: 1 } }]
        expect: { finally: { server: { milk: { text: two litres of milk } } } }
        """

    private static func environment(_ mutants: [RunMutant]) -> Shrinker.Environment {
        func profile(_ name: String) -> Timeline.NamedConditions? {
            ProfileCatalogue.builtInProfile(named: name).map { .init($0.id, $0.conditions) }
        }
        return Shrinker.Environment(
            run: { scenario, isControl in
                guard let run = try? SimulatedRun.run(scenario, behavior: (isControl ? [] : mutants).behavior) else {
                    return nil
                }
                return .init(verdict: run.verdict, history: run.history)
            },
            isValid: { scenario in
                guard let text = try? ScenarioWriter.text(scenario) else { return false }
                return (try? ScenarioFile(parsing: text, file: "x.yaml")) != nil
            }, hasTime: { true }, wifi: profile("wifi") ?? .init("clear", .clear),
            unnamedLink: ProfileCatalogue.unnamed, profile: profile, hasOtherBehavior: !mutants.isEmpty)
    }

    private static func failed(_ verdict: Verdict) -> [String] {
        verdict.checks.compactMap { if case .fail = $0.outcome { $0.description } else { nil } }
    }

    @Test(arguments: [
        ("drops-on-lost-response", Scenario.Invariant.noLostWrite), ("own-echo-is-conflict", .noFalseConflict),
        ("overwrites-on-conflict", .noSilentOverwrite), ("queue-lost-on-restart", .noLostWrite),
    ]) func theFileOfAShrunkFailureViolatesItsInvariantInBothWorlds(
        mutant: String, invariant: Scenario.Invariant
    ) async throws {
        let mutants = [MutantGallery[mutant]]
        let noisy = try ScenarioFile(parsing: Self.noisy, file: "noisy.yaml").scenario
        let check = invariant.checkDescription
        let shrunk = try #require(
            Shrinker.shrink(
                noisy, choosing: { found in found.first { $0.description == check } }, in: Self.environment(mutants)))
        let text = try ScenarioWriter.text(shrunk.scenario)
        #expect(shrunk.scenario.steps.count <= 5 && shrunk.scenario.faults.count <= 1, "\(text)")
        let scenario = try ScenarioFile(parsing: text, file: "shrunk.yaml").scenario
        let simulated = try SimulatedRun.run(scenario, behavior: mutants.behavior).verdict
        #expect(Self.failed(simulated).contains(check), "\(text)")
        let live = try await LiveRun.run(scenario, behavior: mutants.behavior)
        if live.verdict.result == .inconclusive, Parity.wasLate(live.history) { return }
        #expect(Self.failed(live.verdict).contains(check), "\(WorldCase.reasons(live.verdict))\n\(text)")
        // The defect is the reason, and not the scenario.
        let control = try SimulatedRun.run(scenario).verdict
        #expect(control.result == .pass, "\(WorldCase.reasons(control))\n\(text)")
    }
}
