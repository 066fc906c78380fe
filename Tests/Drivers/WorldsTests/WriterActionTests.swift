import ConfigFiles
import Scenario
import Testing

@testable import Worlds

/// Changes of writers on an old base, requests of writers that are sent as given, and choices in a conflict.
@Suite struct WriterActionTests {
    private static func run(_ text: String) throws -> Verdict {
        let head = """
            scenario: 1
            name: writers
            server: { notes: { n1: { title: Milk, text: "1 l", revision: 2 } } }
            devices: { A: { user: ada } }
            writers: { W: { user: ada }, V: { user: ada } }
            network: { A: { 0s: wifi } }

            """
        let scenario = try ScenarioFile(parsing: head + text, file: "s.yaml").scenario
        return try SimulatedRun.run(scenario).verdict
    }

    @Test func aStaleChangeHasTheBaseThatTheWriterReadBefore() throws {
        let verdict = try Self.run(
            """
            steps:
              - { at: 1s, W: { edit: n1, text: "2 l" } }
              - { at: 2s, V: { edit: n1, text: "3 l" } }
              - { at: 3s, W: { edit: n1, text: "4 l", stale: true } }
              - { at: 4s, W: { delete: n1, stale: true } }
              - { at: 5s, V: { edit: n1, text: "5 l" } }
            expect:
              traffic:
                - { request: PUT n1, from: W, responses: [200, 409] }
                - { request: DELETE n1, from: W, responses: [409] }
              finally: { server: { n1: { revision: 5, text: "5 l" } }, agree: [A, server] }
            """)
        #expect(verdict.result == .pass, "\(verdict.checks)")
    }

    @Test func aRawRequestIsSentAsGiven() throws {
        let verdict = try Self.run(
            """
            steps:
              - { at: 1s, W: { raw: { method: PUT, path: "/api/notes/{n1}/", body: "text=x" } } }
              - { at: 2s, W: { raw: { method: GET, path: "/api/notes/{n1}/" } } }
            expect:
              traffic:
                - { request: PUT n1, from: W, responses: [4xx] }
                - { request: GET n1, from: W, responses: [200] }
              finally: { server: { n1: { revision: 2, text: "1 l" } } }
            """)
        #expect(verdict.result == .pass, "\(verdict.checks)")
    }

    @Test(arguments: [("theirs", "2 l"), ("mine", "3 l")])
    func aChoiceInAConflictDecidesTheText(choice: String, text: String) throws {
        let verdict = try Self.run(
            """
            steps:
              - { at: 1s, W: { edit: n1, text: "2 l" } }
              - { at: 1s, A: { edit: n1, text: "3 l" } }
              - { when: { A: { row: n1, icon: conflict } }, within: 20s, A: { resolve: n1, with: \(choice) } }
            expect:
              finally: { server: { n1: { text: "\(text)" } }, A: { row: n1, icon: none }, agree: [A, server] }
            """)
        #expect(verdict.result == .pass, "\(verdict.checks)")
    }

    @Test func aConflictCanEndWithADeletion() throws {
        let verdict = try Self.run(
            """
            steps:
              - { at: 1s, W: { edit: n1, text: "2 l" } }
              - { at: 1s, A: { edit: n1, text: "3 l" } }
              - { when: { A: { row: n1, icon: conflict } }, within: 20s, A: { resolve: n1, with: delete } }
            expect:
              finally: { server: { count: 0 }, A: { row: n1, present: false }, agree: [A, server] }
            """)
        #expect(verdict.result == .pass, "\(verdict.checks)")
    }
}
