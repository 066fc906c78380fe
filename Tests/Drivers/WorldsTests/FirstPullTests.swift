import ConfigFiles
import Determinism
import Scenario
import TestSupport
import Testing

@testable import Worlds

/// The time of a first pull on a slow link.
@Suite struct FirstPullTests {
    /// Returns the times of the first response and of the last commit of a first pull, and the number of its requests.
    private static func pull(
        _ contract: String, notes: Int
    ) throws -> (response: Nanoseconds, end: Nanoseconds, requests: Int) {
        let scenario = try ScenarioFile(
            parsing: """
                scenario: 1
                name: first-pull
                limit: 5m
                server: { contract: \(contract), fill: { notes: \(notes), bytes: 100 } }
                devices: { A: { user: ada, starts: empty } }
                network: { A: { 0s: 3g } }
                steps: [{ at: 55s, A: { edit: f1, text: x } }]
                expect: { finally: { agree: [A, server] } }
                """, file: "s.yaml"
        ).scenario
        let result = try SimulatedRun.run(scenario)
        #expect(result.verdict.result == .pass, "\(result.verdict.checks)")
        var response: Nanoseconds?
        var (end, requests) = (Nanoseconds.zero, 0)
        for entry in result.history.entries where entry.time < .seconds(55) {
            switch entry.event {
            case .request: requests += 1
            case .responseReceived: response = response ?? entry.time
            case .commit: end = entry.time
            default: break
            }
        }
        return (try #require(response), end, requests)
    }

    /// Without pages, the first pull is one list response, with which the pages of the other contracts are compared.
    @Test(arguments: [500, TestSettings.work(2_000, soak: 5_000)])
    func aFirstPullTakesLittleLongerThanOneList(notes: Int) throws {
        let whole = try Self.pull("orig", notes: notes)
        #expect(whole.requests == 1)
        let list = whole.response.inSeconds
        #expect(list > 1 && whole.end.inSeconds <= list * 1.3)
        for contract in ["compat", "strict"] {
            let pages = try Self.pull(contract, notes: notes)
            #expect(pages.end.inSeconds <= list * 1.3, "\(contract): \(pages.end.inSeconds) s, one list \(list) s")
            #expect(pages.requests <= 1 + notes / 800)
        }
    }
}
