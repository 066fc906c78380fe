import ConfigFiles
import Determinism
import Scenario
import Testing

@testable import Worlds

/// What belongs to the script phase: its end, and the instant in which a client's timeout meets a response.
@Suite struct ScriptEndTests {
    private static func result(_ text: String) throws -> Run {
        let scenario = try ScenarioFile(parsing: "scenario: 1\nname: script-end\n" + text, file: "s.yaml").scenario
        let result = try SimulatedRun.run(scenario)
        let heal = result.history.entries.first { if case .phase(.restore) = $0.event { true } else { false } }
        return Run(verdict: result.verdict, history: result.history, restoreAt: try #require(heal).time)
    }

    private struct Run {
        let verdict: Verdict
        let history: History
        let restoreAt: Nanoseconds
    }

    /// A scenario in which an edit at 1 s gets no response.
    private static func edit(_ rest: String, policy: String = "{ first-delay: 20s, longest-delay: 20s }") -> String {
        """
        server: { notes: { n1: { title: Milk, text: one } } }
        devices: { A: { user: ada } }
        policy: \(policy)
        faults: [{ request: PUT n1, point: before-request, then: reset }]
        steps: [{ at: 1s, A: { edit: n1, text: two } }]
        \(rest)
        """
    }

    @Test func anExpectationWithoutAnEndWaitsForTheClientsOwnRepetition() throws {
        let result = try Self.result(
            Self.edit(
                """
                network: { A: { 0s: wifi } }
                expect: { traffic: [{ request: PUT n1, from: A, seen: proxy, responses: [none, 200], same: [body] }] }
                """))
        #expect(result.verdict.result == .pass, "\(result.verdict.checks)")
        #expect(result.restoreAt > .seconds(10))
    }

    @Test func withoutSuchAnExpectationPendingChangesWaitForTheHealPhase() throws {
        let result = try Self.result(
            Self.edit("network: { A: { 0s: wifi } }\nexpect: { finally: { agree: [A, server] } }"))
        #expect(result.verdict.result == .pass, "\(result.verdict.checks)")
        #expect(result.restoreAt < .seconds(2))
    }

    @Test func aRepetitionInTheHealPhaseCountsOnlyInAWindowThatEndsWithTheRun() throws {
        func traffic(_ window: String) throws -> Run {
            try Self.result(
                "limit: 5m\n"
                    + Self.edit(
                        """
                        network: { A: { 0s: wifi, 2s: { link: 100-loss, signalled: false } } }
                        expect: { traffic: [{ request: PUT n1, from: A, seen: proxy, responses: [none, 200]\(window) }] }
                        """))
        }
        let script = try traffic("")
        #expect(script.verdict.result == .fail)
        // The client repeats its attempts for ever.
        let end = Nanoseconds.seconds(2) + ScenarioDirector.undecidedMax
        #expect(script.restoreAt >= end && script.restoreAt < end + .seconds(15), "\(script.restoreAt)")
        #expect(!script.history.entries.contains { if case .aborted = $0.event { true } else { false } })
        let run = try traffic(", between: [0s, finally]")
        #expect(run.verdict.result == .pass, "\(run.verdict.checks)")
        #expect(run.restoreAt < .seconds(15))
    }

    @Test func theWaitEndsBeforeTheLimit() throws {
        let result = try Self.result(
            "limit: 40s\n"
                + Self.edit(
                    """
                    network: { A: { 0s: wifi, 2s: { link: 100-loss, signalled: false } } }
                    expect: { traffic: [{ request: PUT n1, from: A, count: { max: 2 } }] }
                    """, policy: "{ first-delay: 5s, longest-delay: 5s, timeout: 3s }"))
        #expect(result.verdict.result == .pass, "\(result.verdict.checks)")
        #expect(result.restoreAt >= .seconds(21) && result.restoreAt < .seconds(40), "\(result.restoreAt)")
    }

    @Test func aChangeThatTheClientNeverSendsItselfExceedsAThreshold() throws {
        let result = try Self.result(
            Self.edit(
                """
                network: { A: { 0s: wifi } }
                expect: { thresholds: { save-to-synced: { max: 10s } } }
                """))
        #expect(result.verdict.result == .fail, "the first repetition is after 20 s")
    }

    // MARK: Responses

    @Test func aResponseInTheInstantOfTheTimeoutIsNotReceived() throws {
        let result = try Self.result(
            """
            policy: { timeout: 3s }
            server: { notes: { n1: { title: Milk, text: one } } }
            devices: { A: { user: ada } }
            network: { A: { 0s: { up: { delay: 0ms }, down: { delay: 0ms } } } }
            faults: [{ request: PUT n1, point: before-response, then: { delay: 3s } }]
            steps: [{ at: 1s, A: { edit: n1, text: two } }]
            expect: { traffic: [{ request: PUT n1, from: A, responses: [lost, 200] }] }
            """)
        #expect(result.verdict.result == .pass, "\(result.verdict.checks)")
        // The link has delivered the response in the instant in which the client closed the connection.
        let ends = result.history.entries.filter { entry in
            switch entry.event {
            case .failed(1), .responseReceived(1, _): true
            default: false
            }
        }
        #expect(ends.count == 1 && ends.first?.time == .seconds(4))
        if case .failed? = ends.first?.event { return }
        Issue.record("the response is recorded as received")
    }

    @Test func aResponseOneMillisecondBeforeTheTimeoutIsReceived() throws {
        let result = try Self.result(
            """
            policy: { timeout: 3s }
            server: { notes: { n1: { title: Milk, text: one } } }
            devices: { A: { user: ada } }
            network: { A: { 0s: { up: { delay: 0ms }, down: { delay: 0ms } } } }
            faults: [{ request: PUT n1, point: before-response, then: { delay: 2999ms } }]
            steps: [{ at: 1s, A: { edit: n1, text: two } }]
            expect: { traffic: [{ request: PUT n1, from: A, responses: [200] }] }
            """)
        #expect(result.verdict.result == .pass, "\(result.verdict.checks)")
    }

    // MARK: Clients that do what they must

    @Test func aFirstSyncOfManyGeneratedNotesIsNoRepetition() throws {
        let result = try Self.result(
            """
            server: { fill: { notes: 1100, bytes: 50 } }
            devices: { A: { user: ada, starts: empty } }
            network: { A: { 0s: wifi } }
            expect: { finally: { agree: [A, server] } }
            """)
        #expect(result.verdict.result == .pass, "\(result.verdict.checks)")
    }

    @Test func aNoteMayVanishInTheInstantThatEndsItsWindow() throws {
        let result = try Self.result(
            """
            server: { notes: { n1: { title: Milk, text: one } } }
            devices: { A: { user: ada }, B: { user: ada } }
            network: { A: { 0s: wifi }, B: { 0s: wifi } }
            steps:
              - { at: 1s, B: { delete: n1 } }
              - { at: 3s, A: { sync: now } }
              - { when: { A: { row: n1, present: false } }, within: 60s, mark: gone }
            expect:
              always:
                - A: { row: n1, text: one, until: gone }
            """)
        #expect(result.verdict.result == .pass, "\(result.verdict.checks)")
    }
}
