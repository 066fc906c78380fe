import ConfigFiles
import Determinism
import ScenarioModel
import Synchronization
import TestSupport
import Testing

@testable import LiveWorld

/// Runs of the shortest scenarios over the loopback interface.
@Suite(.serialized, .timeLimit(.minutes(2))) struct LiveRunTests {
    private static func scenario(_ text: String) throws -> Scenario {
        try ScenarioFile(
            parsing: """
                scenario: 1
                name: short
                limit: 20s
                server: { notes: { n1: { title: Milk, text: two } } }
                devices: { A: { user: ada } }
                network: { A: { 0s: wifi } }
                \(text)
                """, file: "short.yaml"
        ).scenario
    }

    @Test func aScenarioThatHoldsPasses() async throws {
        let scenario = try Self.scenario(
            """
            steps: [{ at: 50ms, A: { edit: n1, text: three }, mark: edited }]
            expect:
              traffic: [{ request: PUT n1, from: A, answers: [200] }]
              eventually: [{ after: edited, within: 10s, A: { row: n1, icon: none, text: three } }]
              finally: { server: { n1: { revision: 2, text: three } }, agree: [A, server] }
            """)
        let lines = Mutex<[String]>([])
        let (verdict, history) = try await LiveRun.run(scenario) { line in lines.withLock { $0.append(line) } }
        #expect(verdict.result == .pass, "\(verdict.checks)")
        #expect(try #require(history.time(of: "edited")) >= .milliseconds(50))
        let text = lines.withLock { $0.joined(separator: "\n") }
        #expect(text.contains("A  edits n1"))
        #expect(text.contains("plan finished; all links restored, waiting for convergence"))
    }

    @Test func anActionOnAMissingNoteAbortsTheRun() async throws {
        let scenario = try Self.scenario(
            """
            steps:
              - { at: 20ms, A: { delete: n1 } }
              - { at: 40ms, A: { edit: n1, text: three } }
            expect: { finally: { server: { count: 0 } } }
            """)
        let (verdict, _) = try await LiveRun.run(scenario)
        // A long host pause makes the verdict inconclusive.
        #expect(verdict.result != .pass)
        #expect(
            verdict.checks.map { "\($0.outcome)" }.contains {
                $0.contains("short.yaml:9:5: ") && $0.contains("failed: no such note")
            },
            "\(verdict.checks)")
    }

    @Test func aRunThatExceedsItsLimitIsAborted() async throws {
        var scenario = try Self.scenario(
            "expect: { eventually: [{ by: 10s, A: { row: n1, text: never } }] }")
        scenario.limit = .milliseconds(200)
        let (verdict, _) = try await LiveRun.run(scenario)
        #expect(verdict.result != .pass)
        #expect(
            verdict.checks.contains { "\($0.outcome)".contains("exceeded the 0.2 s limit") }, "\(verdict.checks)")
    }
}
