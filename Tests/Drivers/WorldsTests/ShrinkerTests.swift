import ConfigFiles
import Determinism
import LinkModel
import MutantGallery
import ScenarioRunner
import TestSupport
import Testing

@testable import Scenario
@testable import Worlds

/// Shrinking of failing runs in virtual time.
@Suite struct ShrinkerTests {
    static func environment(_ mutants: [RunMutant]) -> Shrinker.Environment {
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
            unnamedLink: ProfileCatalogue.unnamed,
            profile: profile, hasOtherBehavior: !mutants.isEmpty)
    }

    private static func shrink(_ scenario: Scenario, _ mutant: RunMutant, runsMax: Int = 2000) throws -> Shrinker.Result
    {
        try #require(Shrinker.shrink(scenario, runsMax: runsMax, in: environment([mutant])))
    }

    private static func scenario(_ text: String) throws -> Scenario {
        try ScenarioFile(parsing: "scenario: 1\nname: test\n" + text, file: "test.yaml").scenario
    }

    /// A noisy scenario: only the first edit and the lost response matter.
    private static let noisy = """
        seed: 7
        limit: 4m
        server: { notes: { milk: { title: Milk, text: one, revision: 4 }, bread: { title: Bread, text: rye } } }
        devices: { A: { user: bo }, B: { user: bo } }
        writers: { W: { user: bo } }
        network:
          A: { 0s: 3g, 9s: { flap: [{ edge: 5s }, { lte: 3s }], jitter: 40%, signalled: sometimes }, 40s: wifi }
          B: { 0s: edge, 20s: lte }
        faults:
          - { request: PUT any, nth: 1, point: before-response, then: stall }
          - { request: any, probability: 5%, times: { min: 0, max: 3 }, point: any, then: reset }
        steps:
          - { at: 1s, B: { sync: now } }
          - { at: 2s, A: { edit: milk, text: two litres of milk }, mark: edited }
          - { after: edited, delay: 3s, B: { edit: bread, text: white } }
          - { at: 30s, B: { kill: now } }
          - { at: 35s, B: { start: again } }
          - { at: 50s, W: { edit: bread, text: from the web } }
        workload: [{ from: 10s, to: 60s, every: 10s, jitter: 50%, by: [B], mix: { create: 1, sync: 1 } }]
        expect:
          eventually: [{ by: 3m, A: { outbox: 0 } }]
          finally: { agree: [A, B, server] }
        """

    @Test func aViolationOfAnInvariantShrinksToItsCause() throws {
        let result = try Self.shrink(Self.scenario(Self.noisy), MutantGallery["drops-on-lost-response"])
        #expect(result.isComplete)
        let scenario = result.scenario
        let text = try ScenarioWriter.text(scenario)
        #expect(scenario.steps.count <= 1 && scenario.faults.count <= 1, "\(text)")
        #expect(scenario.devices.count == 1 && scenario.writers.isEmpty && scenario.workload.isEmpty)
        #expect(scenario.devices[0].network.count == 1)
        // The same violation, also after the file was read.
        let read = try ScenarioFile(parsing: text, file: "x.yaml").scenario
        let again = try SimulatedRun.run(read, behavior: [MutantGallery["drops-on-lost-response"]].behavior)
        #expect(again.verdict.checks.contains { $0.description == result.violation.description && $0.outcome != .pass })
        #expect(try SimulatedRun.run(read).verdict.result == .pass, "\(text)")
    }

    @Test func theResultDependsOnTheNumberOfRunsOnly() throws {
        let scenario = try Self.scenario(Self.noisy)
        for runsMax in TestSettings.isSoak ? [3, 40, 2000] : [6] {
            let texts = try (0..<2).map { _ in
                try ScenarioWriter.text(
                    Self.shrink(scenario, MutantGallery["drops-on-lost-response"], runsMax: runsMax).scenario)
            }
            #expect(texts[0] == texts[1])
        }
        let limited = try Self.shrink(scenario, MutantGallery["drops-on-lost-response"], runsMax: 3)
        #expect(!limited.isComplete && limited.runs <= 4)
    }

    @Test func aRunThatPassesIsNotShrunk() throws {
        #expect(Shrinker.shrink(try Self.scenario(Self.noisy), in: Self.environment([])) == nil)
    }

    /// Without the control, a scenario without steps would fail.
    @Test func aViolatedExpectationKeepsTheStepsThatFulfilIt() throws {
        let scenario = try Self.scenario(
            """
            server: { notes: { n1: { title: Milk, text: one } } }
            devices: { A: { user: ada } }
            writers: { W: { user: ada } }
            network: { A: { 0s: wifi, 30s: edge } }
            steps:
              - { at: 1s, A: { open: n1 } }
              - { at: 5s, W: { edit: n1, text: two } }
              - { at: 9s, W: { edit: n1, text: three } }
            invariants: { drop: [convergence, bounded-retries] }
            expect: { eventually: [{ by: 2m, A: { row: n1, text: three } }] }
            """)
        let result = try Self.shrink(scenario, MutantGallery["never-polls"])
        #expect(result.hasControl == true)
        let text = try ScenarioWriter.text(result.scenario)
        #expect(result.scenario.steps.count == 1, "\(text)")
        #expect(result.scenario.steps.first?.action?.actor == "W")
    }

    // MARK: Reductions

    @Test func whatARemovedStepLeavesWithoutAMeaningIsRemoved() throws {
        let scenario = try Self.scenario(
            """
            devices: { A: { user: ada } }
            network: { A: { 0s: wifi } }
            faults: [{ request: PUT n1, point: before-response, then: stall, times: { min: 0 } }]
            steps:
              - { at: 1s, A: { create: n1, text: a }, mark: made }
              - { at: 2s, A: { kill: now } }
              - { at: 3s, A: { start: again } }
              - { at: 4s, A: { edit: n1, text: b } }
              - { after: made, delay: 7s, A: { sync: now } }
            expect: { finally: { agree: [A, server] } }
            """)
        let history = try SimulatedRun.run(scenario).history
        // Without the creation: no edit, no fault of the note, and a time in place of the mark.
        let withoutNote = try #require(scenario.removing(steps: [0], history))
        #expect(
            withoutNote.steps.map(\.description) == [
                "step: A is killed at 2.0 s", "step: A starts again at 3.0 s", "step: A syncs at 8.0 s",
            ])
        #expect(withoutNote.faults.isEmpty)
        // Without the kill: no start.
        let withoutKill = try #require(scenario.removing(steps: [1], history))
        #expect(withoutKill.steps.count == 3)
        // Without the start: no steps of a client that does not run, except those after marks.
        let withoutStart = try #require(scenario.removing(steps: [2], history))
        #expect(withoutStart.steps.count == 3)
        #expect(scenario.removing(actor: "A", history) == nil)
        #expect(try #require(scenario.removing(steps: [], faults: [0], history)).faults.isEmpty)
    }
}
