import ConfigFiles
import Determinism
import LinkModel
import MutantGallery
import ScenarioRunner
import TestSupport
import Testing

@testable import Scenario
@testable import Worlds

/// Runs of scenarios whose draws are explicit values: they are the runs that drew them.
@Suite struct MaterializedRunTests {
    /// Returns the events of the script without the numbers of steps and faults, which differ.
    private static func script(_ history: History) -> [String] {
        history.entries[..<history.restoreIndex].compactMap { entry in
            switch entry.event {
            case .step: return nil
            case .fault(_, let exchange, let point):
                return "\(entry.time.count) fault \(exchange) \(point?.rawValue ?? "")"
            // The limit on attempts depends on the number of steps.
            case .aborted: return nil
            // Of a reaction that was not possible nothing is left.
            case .notice(_, .reactionImpossible), .notice(_, .skipped): return nil
            default: return "\(entry.time.count) \(entry.event)"
            }
        }
    }

    private static func failures(_ verdict: Verdict) -> [String] {
        verdict.checks.compactMap { check in
            if case .fail = check.outcome { check.description } else { nil }
        }
    }

    /// Compares a run with that of its materialised scenario.
    private static func check(_ scenario: Scenario, seed: UInt64, mutants: [RunMutant] = []) throws {
        let run = try SimulatedRun.run(scenario, behavior: mutants.behavior, seed: seed)
        let explicit = scenario.materialized(seed: seed, history: run.history)
        #expect(explicit.workload.isEmpty)
        #expect(explicit.faults.allSatisfy { $0.probability == nil && $0.point != .any && $0.mustFire })
        for device in explicit.devices {
            #expect(
                device.network.allSatisfy { if case .hold = $0.phase { $0.signalling != .sometimes } else { false } })
        }
        let again = try SimulatedRun.run(explicit, behavior: mutants.behavior)
        // The script of explicit values can end earlier, so that a mutant violates more in the restore phase, and no less.
        let (expectedFailures, foundFailures) = (Self.failures(run.verdict), Self.failures(again.verdict))
        #expect(
            mutants.isEmpty
                ? foundFailures == expectedFailures : Set(foundFailures).isSuperset(of: expectedFailures),
            "\(scenario.fullName), seed \(seed)")
        let (expected, found) = (Self.script(run.history), Self.script(again.history))
        let same = zip(expected, found).prefix { $0 == $1 }.count
        // The end of the script can differ: a scenario with explicit values knows that nothing follows.
        let isSame = same == min(expected.count, found.count)
        #expect(
            isSame,
            "\(scenario.fullName), seed \(seed): \(expected.dropFirst(same).first ?? "end"), \(found.dropFirst(same).first ?? "end")"
        )
    }

    private static let isSoak = TestSettings.isSoak

    @Test(.enabled(if: isSoak), arguments: randomSeeds(1)) func aRunWithFlapsAndOptionalFaultsIsTheSame(_ seed: UInt64)
        throws
    {
        let swarm = Swarm(try ScenarioCatalogue.scenario("two-device-soak").scenario, links: .builtIn)
        try Self.check(swarm.scenario(seed: seed + 1), seed: seed + 1)
    }

    @Test(arguments: randomSeeds(1)) func aRunWithAWorkloadReactionsAndProbabilitiesIsTheSame(_ seed: UInt64) throws {
        let scenario = try ScenarioFile(parsing: Self.drawn, file: "drawn.yaml").scenario
        for number in seed * 2..<seed * 2 + 2 { try Self.check(scenario, seed: number) }
    }

    @Test(arguments: randomSeeds(1)) func aViolationIsTheSame(_ seed: UInt64) throws {
        let scenario = try ScenarioFile(parsing: Self.drawn, file: "drawn.yaml").scenario
        for mutant in ["drops-on-lost-response", "own-echo-is-conflict", "no-backoff"].prefix(Self.isSoak ? 3 : 1) {
            try Self.check(scenario, seed: seed, mutants: [MutantGallery[mutant]])
        }
    }

    /// Everything that a run can draw.
    private static let drawn = """
        scenario: 1
        name: drawn
        limit: 5m
        server: { notes: { n1: { title: Milk, text: one }, n2: { title: Bread, text: rye }, n3: { text: two } } }
        devices: { A: { user: ada }, B: { user: ada } }
        writers: { W: { user: ada } }
        network:
          A: { 0s: { flap: [{ edge: 9s }, { 100-loss: 4s }], jitter: 50%, signalled: sometimes, interface: cellular }, 1m: wifi }
          B: { 0s: 3g, 20s: { flap: [{ offline: 2s }, { lte: 5s }], jitter: 80%, signalled: false }, 50s: lte }
        faults:
          - { request: any, probability: 10%, point: any, then: reset, times: { min: 0, max: 15 } }
          - { request: PUT any, probability: 20%, point: before-response, then: stall, times: { min: 0, max: 3 } }
          - { request: any, nth: 9, point: any, then: { delay: 3s }, times: { min: 0, max: 2 } }
        steps: [{ at: 12s, A: { kill: now } }, { at: 15s, A: { start: again } }]
        workload:
          - { from: 0s, to: 1m, every: 5s, jitter: 90%, by: [A, B], mix: { create: 2, edit: 6, delete: 1, sync: 1 } }
          - { from: 0s, to: 1m, every: 9s, jitter: 90%, by: [W], notes: 2, mix: { edit: 1 } }
          - { when: { any: { icon: conflict } }, delay: 4s, by: [A, B], mix: { resolve: 1 } }
          - { when: { B: { outbox: 1 } }, delay: 2s, by: [B], mix: { sync: 1 } }
        expect:
          finally: { agree: [A, B, server] }
        """

    // MARK: Streams

    /// Without a step, the draws of other streams are the same: the links of the devices change at the same times, and the
    /// workload has the same steps.
    @Test(arguments: randomSeeds(1)) func removingAStepDoesNotChangeOtherDraws(_ seed: UInt64) throws {
        let scenario = try ScenarioFile(parsing: Self.drawn, file: "drawn.yaml").scenario
        var without = scenario
        without.steps.removeAll()
        without.faults.removeAll()
        func changes(_ scenario: Scenario) throws -> [String] {
            let run = try SimulatedRun.run(scenario, seed: seed)
            return run.history.entries.compactMap { entry in
                guard case .network = entry.event, entry.time < .seconds(50) else { return nil }
                return "\(entry.time.count) \(entry.event)"
            }
        }
        #expect(try changes(scenario) == changes(without))
        // While A is killed, it does not act.
        func steps(_ scenario: Scenario) -> [String] {
            scenario.materialized(seed: seed).steps.filter { $0.action?.actor != "A" }.map(\.description)
        }
        #expect(steps(scenario) == steps(without))
        // Of two devices, the events of one without any exchange of the other are the same, whatever the other does.
        var alone = scenario
        alone.workload = []
        alone.faults = []
        alone.steps = try Self.steps("- { at: 2s, A: { edit: n1, text: a } }\n- { at: 21s, A: { edit: n1, text: b } }")
        var both = alone
        both.steps += try Self.steps("- { at: 5s, B: { open: n2 } }")
        func events(_ scenario: Scenario) throws -> [String] {
            try SimulatedRun.run(scenario, seed: seed).history.entries.compactMap { entry in
                switch entry.event {
                case .commit("A", _), .belief("A", _), .device("A", _): "\(entry.time.count) \(entry.event)"
                default: nil
                }
            }
        }
        #expect(try events(alone) == events(both))
    }

    private static func steps(_ text: String) throws -> [Scenario.Step] {
        let indented = text.split(separator: "\n").map { "  \($0)" }.joined(separator: "\n")
        return try ScenarioFile(
            parsing: """
                scenario: 1
                name: steps
                server: { notes: { n1: { text: a }, n2: { text: a } } }
                devices: { A: { user: ada }, B: { user: ada } }
                network: { A: { 0s: wifi }, B: { 0s: wifi } }
                steps:
                \(indented)
                expect: { finally: { agree: [A, B] } }
                """, file: "steps.yaml"
        ).scenario.steps
    }
}
