import Determinism
import LinkModel
import Scenario
import Testing

@testable import ConfigFiles

/// The keys that drawn scenarios use.
@Suite struct ScenarioExplorationTests {
    private static func scenario(_ rest: String, device: String = "{ user: ada }") throws -> Scenario {
        let text = """
            scenario: 1
            name: exploration
            server: { notes: { n1: { title: Milk } } }
            devices: { A: \(device), B: { user: ada } }
            network: { A: { 0s: wifi }, B: { 0s: wifi } }
            expect: { finally: { server: { count: 1 } } }
            \(rest)

            """
        return try ScenarioFile(parsing: text, file: "s.yaml").scenario
    }

    @Test func restartsAndDevicesThatDoNotComeBackAreRead() throws {
        let scenario = try Self.scenario(
            "steps: [{ at: 1s, A: { kill: now } }, { at: 2s, A: { edit: n1, text: a } }]",
            device: "{ user: ada, restarts: 4s, restored: false }")
        #expect(scenario.devices[0].restartsAfter == .seconds(4) && !scenario.devices[0].isRestored)
        #expect(scenario.devices[1].restartsAfter == nil && scenario.devices[1].isRestored)
    }

    @Test func optionalStepsAreRead() throws {
        let scenario = try Self.scenario(
            "steps: [{ at: 1s, A: { kill: now }, optional: true }, { at: 2s, A: { kill: now }, optional: true }]")
        #expect(scenario.steps.map(\.isOptional) == [true, true])
        #expect(throws: FileError.self) { try Self.scenario("steps: [{ at: 1s, A: { start: again } }]") }
        _ = try Self.scenario("steps: [{ at: 1s, A: { start: again }, optional: true }]")
    }

    @Test func thePolicyIsRead() throws {
        var expected = Scenario.ClientSettings()
        expected.firstDelay = .milliseconds(200)
        expected.longestDelay = .seconds(2)
        expected.poll = .seconds(5)
        expected.timeout = .seconds(3)
        expected.largeBytes = 64
        let text = "policy: { first-delay: 200ms, longest-delay: 2s, poll: 5s, timeout: 3s, large: 64 }"
        #expect(try Self.scenario(text).policy == expected)
        #expect(try Self.scenario("").policy == .init())
    }

    @Test func theLinksOfAnExplorationExist() {
        #expect(SwarmLinks.builtIn.working.allSatisfy { !$0.conditions.preventsExchanges })
        #expect((SwarmLinks.builtIn.broken + SwarmLinks.builtIn.oneWay).allSatisfy { $0.conditions.preventsExchanges })
    }
}
