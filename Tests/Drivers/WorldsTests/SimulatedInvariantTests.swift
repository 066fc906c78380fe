import ConfigFiles
import MutantGallery
import Scenario
import ScenarioRunner
import Testing

@testable import Worlds

/// Violations of invariants by defective clients, and the wall clock of devices.
@Suite struct SimulatedInvariantTests {
    private static func scenario(_ text: String) throws -> Scenario {
        try ScenarioFile(
            parsing: """
                scenario: 1
                name: test
                server: { notes: { n1: { text: one } } }
                devices: { A: { user: ada } }
                network: { A: { 0s: wifi, 10s: { link: offline, signalled: false }, 2m: wifi } }
                \(text)
                """, file: "test.yaml"
        ).scenario
    }

    /// No expectation fails: the invariants alone find the defects.
    @Test(arguments: [
        ("posts-again-under-new-id", "no-duplicate-effect (I2)"), ("drops-on-lost-response", "no-lost-write (I1)"),
        ("no-backoff", "bounded-retries (I5)"),
    ])
    func aDefectiveClientViolatesAnInvariant(_ mutant: String, _ invariant: String) throws {
        let scenario = try Self.scenario(
            """
            faults:
              - { request: POST n2, nth: 1, point: before-response, then: reset }
              - { request: PUT n1, nth: 1, point: before-request-end, then: reset }
            steps:
              - { at: 1s, A: { create: n2, text: two } }
              - { at: 2s, A: { edit: n1, text: two } }
              - { at: 20s, A: { create: n3, text: three } }
              - { at: 3m, A: { sync: now } }
            expect: { traffic: [{ request: POST any, count: { min: 1 } }] }
            """)
        #expect(try SimulatedRun.run(scenario).verdict.result == .pass)
        let verdict = try SimulatedRun.run(scenario, behavior: [MutantGallery[mutant]].behavior).verdict
        let failed = verdict.checks.filter { $0.outcome != .pass }.map(\.description)
        #expect(failed.contains("invariant: \(invariant)"), "\(failed)")
    }

    @Test func aShiftedWallClockChangesTheDatesOfChangesOnly() throws {
        func history(_ shift: String) throws -> History {
            try SimulatedRun.run(
                Self.scenario(
                    """
                    steps:
                      - { at: 1s, A: { clock: { wall: \(shift) } } }
                      - { at: 2s, A: { edit: n1, text: two } }
                    expect: { finally: { server: { n1: { revision: 2, text: two } } } }
                    """)
            ).history
        }
        func commits(_ history: History) -> [UInt64] {
            history.entries.compactMap { entry in
                if case .commit(_, let digest) = entry.event { digest } else { nil }
            }
        }
        let (plain, later) = (try history("+0s"), try history("+6h"))
        #expect(commits(plain) != commits(later))
        #expect(plain.entries.map(\.time) == later.entries.map(\.time))
        #expect(commits(later) == commits(try history("+6h")))
    }
}
