import Client
import ConfigFiles
import Scenario
import Testing

@testable import Worlds

/// The behaviour of the legacy client: its eight defects.
@Suite struct LegacyClientTests {
    private static func run(_ text: String, behavior: RunBehavior = RunBehavior()) throws -> RunResult {
        let scenario = try ScenarioFile(
            parsing: """
                scenario: 1
                name: test
                server: { contract: orig, notes: { n1: { title: Milk, text: one } } }
                devices: { A: { user: ada, client: legacy } }
                writers: { W: { user: ada } }
                network: { A: { 0s: wifi, 2s: 100-loss, 10s: wifi } }
                \(text)
                """, file: "test.yaml"
        ).scenario
        return try SimulatedRun.run(scenario, behavior: behavior)
    }

    private static func failures(_ result: RunResult) -> [String] {
        result.verdict.checks.filter { $0.outcome != .pass }.map(\.description)
    }

    /// The markers are in the user's words, nothing is shown as pending, and the server never gets the merged note.
    @Test func aConflictIsMergedAndNeverSent() throws {
        let result = try Self.run(
            """
            steps:
              - { at: 3s, W: { edit: n1, title: Bread, text: two } }
              - { at: 4s, A: { edit: n1, text: three } }
            expect:
              traffic: [{ request: PUT n1, from: A, responses: [409] }]
              sometimes: [{ A: { row: n1, title: "Conflict: Milk vs Bread", icon: none } }]
              finally: { server: { n1: { revision: 2, text: two } } }
            """)
        #expect(Self.failures(result).allSatisfy { $0.hasPrefix("invariant: ") }, "\(Self.failures(result))")
    }

    @Test func aChangeByAnotherClientUndoesADeletion() throws {
        let result = try Self.run(
            """
            steps:
              - { at: 3s, W: { edit: n1, text: two } }
              - { at: 4s, A: { delete: n1 } }
            expect:
              traffic: [{ request: DELETE n1, from: A, responses: [409] }]
              finally: { A: { row: n1, icon: none, text: two }, agree: [A, server] }
            """)
        #expect(Self.failures(result) == ["invariant: no-lost-write (I1)"])
    }

    /// The network of the scenario is good, so a sync is all that must follow the deletion.
    @Test func aDeletedNoteStays() throws {
        let result = try Self.run(
            """
            steps:
              - { at: 1s, W: { delete: n1 } }
              - { at: 15s, A: { sync: now } }
            expect: { finally: { server: { count: 0 }, A: { row: n1, icon: none, text: one } } }
            """)
        #expect(Self.failures(result) == ["invariant: convergence (I4)"])
    }

    @Test func anOwnChangeWhoseResponseWasLostIsAConflict() throws {
        let result = try Self.run(
            """
            faults: [{ request: PUT n1, point: before-response, then: reset }]
            steps: [{ at: 1s, A: { edit: n1, text: two } }]
            expect:
              sometimes: [{ A: { row: n1, icon: conflict } }]
              finally: { server: { n1: { revision: 2, text: two } } }
            """)
        #expect(Self.failures(result) == ["invariant: no-false-conflict (I9)"])
    }

    /// The behaviour of a run is that of the reference client: the legacy client has its own.
    @Test func theBehaviorOfARunDoesNotConcernTheLegacyClient() throws {
        let text = """
            steps: [{ at: 4s, A: { edit: n1, text: two } }, { at: 5s, A: { kill: now } }, { at: 6s, A: { start: again } }]
            expect: { finally: { server: { n1: { revision: 2, text: two } }, agree: [A, server] } }
            """
        var behavior = RunBehavior()
        behavior.adaptClients { $0.state.entries = [] }
        #expect(try Self.run(text, behavior: behavior).verdict.result == .pass)
    }
}
