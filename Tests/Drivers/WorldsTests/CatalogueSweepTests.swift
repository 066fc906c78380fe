import ConfigFiles
import Foundation
import MutantGallery
import Scenario
import ScenarioRunner
import Testing
import Worlds

/// Kills at commit boundaries, and what scenarios do not check. `scripts/soak kills` and `scripts/soak coverage` do both with
/// all built-in scenarios.
@Suite struct CatalogueSweepTests {
    private static func scenario(_ text: String) throws -> Scenario {
        try ScenarioFile(
            parsing: """
                scenario: 1
                name: test
                server: { notes: { n1: { title: Milk, text: one } } }
                devices: { A: { user: ada } }
                network: { A: { 0s: wifi } }
                \(text)
                """, file: "test.yaml"
        ).scenario
    }

    // MARK: Kills

    /// A sample; `scripts/soak kills` takes all scenarios with all variants and boundaries.
    @Test(arguments: ["put-answer-lost", "edit-vs-edit", "late-answer"])
    func aKillAtACommitBoundaryLeadsToTheSameEnd(_ name: String) throws {
        for scenario in try ScenarioCatalogue.scenario(name).runs(ofVariant: "none") {
            let sweep = try KillSweep(scenario, every: 3)
            #expect(sweep.differences.isEmpty, "\(sweep.differences)")
            #expect(sweep.kills > 1)
        }
    }

    @Test func everyCommitHasTwoBoundaries() throws {
        let scenario = try Self.scenario(
            """
            steps: [{ at: 1s, A: { create: n2, text: two } }]
            expect: { finally: { server: { count: 2 } } }
            """)
        // The creation, its attempt, the response, and the index.
        let commits = try #require(try SimulatedRun.run(scenario).commitActions["A"])
        #expect(commits.count >= 3)
        #expect(try KillSweep(scenario).kills == Set(commits.flatMap { [$0, $0 + 1] }).count)
    }

    // MARK: MutationCoverage

    @Test func whatNothingNeedsIsFound() throws {
        let scenario = try Self.scenario(
            """
            faults:
              - { request: PUT n1, nth: 1, point: before-request, then: reset }
              - { request: PUT n1, nth: 9, point: before-response, then: reset, times: { min: 0, max: 1 } }
            steps: [{ at: 1s, A: { edit: n1, text: two } }]
            expect:
              always: [{ A: { row: n1, title: Milk } }]
              eventually: [{ by: 30s, A: { row: n1, icon: none, text: two } }]
            """)
        let coverage = try MutationCoverage(scenario, mutants: [MutantGallery["drops-on-lost-response"]])
        #expect(coverage.findings.count == 4 && coverage.killers == [MutantGallery["drops-on-lost-response"]])
        let unneeded = coverage.findings.filter { !$0.value.isNeeded($0.key.kind) }
        #expect(
            unneeded.keys.sorted().map(\.text) == [
                "reset at before-request of PUT n1", "reset at before-response of PUT n1", "always: A n1 title Milk",
                // The dropped change is shown for a moment without an icon.
                "eventually: A n1 icon none, text two, by 30.0 s",
            ])
        #expect(unneeded.filter { $0.key.kind == .fault }.values.map(\.isFired).sorted { $0 && !$1 } == [true, false])
    }

    /// A mutant for which an expectation is inconclusive is not detected by it.
    @Test func anInconclusiveExpectationIsNotNoticed() throws {
        let scenario = try Self.scenario(
            """
            steps:
              - { at: 1s, A: { edit: n1, text: two } }
              - { when: { A: { row: n1, icon: upload } }, within: 5s, mark: shown }
            expect:
              sometimes: [{ A: { row: n1, icon: upload } }]
              eventually: [{ after: shown, within: 20s, A: { outbox: 1 } }]
              finally: { server: { n1: { text: two } } }
            """)
        var coverage = try MutationCoverage(scenario, mutants: [MutantGallery["pending-mark-missing"]])
        func needed() -> [String] {
            coverage.findings.filter { $0.value.isNeeded($0.key.kind) }.keys.sorted().map(\.text)
        }
        #expect(needed() == ["sometimes: A n1 icon upload"])
        // Findings of several runs of a file are added up.
        coverage.add(
            try MutationCoverage(
                scenario, mutants: [MutantGallery["drops-on-lost-response"], MutantGallery["outbox-not-counted"]]))
        #expect(coverage.findings.count == 3 && needed().count > 1)
    }
}
