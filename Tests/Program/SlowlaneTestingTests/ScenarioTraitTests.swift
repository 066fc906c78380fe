import ConfigFiles
import Foundation
import Scenario
import SlowlaneScenarioTesting
import Synchronization
import TestSupport
import Testing
import Worlds

@Suite struct ScenarioTraitTests {
    @Test(.scenario("create-offline-then-heal")) func aScenarioThatPassesHasNoIssues() {}

    @Test(arguments: UInt64(1)...3) func aScenarioRunsWithTheSeedOfATest(seed: UInt64) throws {
        let results = try runScenario("create-offline-then-heal", variant: "none", seed: seed)
        #expect(results.map(\.verdict.result) == [.pass])
        let again = try runScenario("create-offline-then-heal", variant: "none", seed: seed)
        #expect(again.map(\.digest) == results.map(\.digest))
    }

    /// A scenario in which one of two checks fails and a fault never fires.
    private static let failing = """
        scenario: 1
        name: failing
        seed: 5
        limit: 1m
        server: { contract: compat }
        devices:
          A: { user: ada, starts: synced }
        network:
          A: { 0s: wifi }
        faults:
          - { request: POST any, nth: 2, point: before-response, then: stall }
        steps:
          - { at: 1s, A: { create: n1, title: Milk, text: "2 l" } }
        expect:
          traffic:
            - { request: POST any, from: A, count: 1 }
            - { request: POST any, from: A, count: 2 }
        """

    @Test func aCheckThatFailsIsAnIssue() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("failing.yaml")
        try Self.failing.write(toFile: path, atomically: true, encoding: .utf8)
        let found = Mutex<[String]>([])
        try withKnownIssue {
            try runScenario(path)
        } matching: { issue in
            found.withLock { $0 += issue.comments.map { "\($0)" } }
            return true
        }
        let comments = found.withLock { $0 }
        try #require(comments.count == 2, "\(comments)")
        #expect(comments[0].hasPrefix("failing, seed 5: traffic: POST any from A, count 2: "))
        #expect(comments[0].hasSuffix("(\(path):17:7)"))
        #expect(comments[1].contains("inconclusive: the fault never fired"))
    }

    @Test func anUnknownScenarioIsAnError() {
        #expect {
            try runScenario("create-offline")
        } throws: { error in
            "\(error)".contains("no scenario is called 'create-offline'")
        }
    }

    @Test func anUnknownVariantIsAnError() {
        #expect {
            try runScenario("create-offline-then-heal", variant: "train")
        } throws: { error in
            "\(error)".contains("create-offline-then-heal has no variant 'train'; its variants are none")
        }
    }
}
