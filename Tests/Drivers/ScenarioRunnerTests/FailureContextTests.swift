import Determinism
import Scenario
import Testing
import Worlds

@testable import ScenarioRunner

/// The time of a failure, and what it concerns.
@Suite struct FailureContextTests {
    private static func context(_ rest: String, _ check: String) throws -> FailureContext {
        let run = try Fixture.run(Fixture.short + rest)
        let result = try RunWorlds.standard.simulated(run, nil)
        let found = try #require(
            result.verdict.checks.first { $0.description.hasPrefix(check) && $0.outcome != .pass },
            "\(result.verdict.checks.map(\.description))")
        return FailureContext(found, run.scenario, result.history)
    }

    @Test func alwaysFailsAtTheFirstStateThatDiffers() throws {
        let context = try Self.context("expect: { always: [{ A: { row: n1, text: two } }] }", "always")
        #expect(context.time == .milliseconds(200))
        #expect(context.actors == ["A"])
        #expect(context.rows == ["n1"])
    }

    @Test func eventuallyFailsAtTheEndOfItsWindow() throws {
        let by = try Self.context("expect: { eventually: [{ A: { outbox: 3 }, by: 150ms }] }", "eventually")
        #expect(by.time == .milliseconds(150))
        #expect(by.rows.isEmpty)
        let after = try Self.context(
            "expect: { eventually: [{ A: { outbox: 3 }, after: edited, within: 500ms }] }", "eventually")
        #expect(after.time == .milliseconds(700))
    }

    @Test func trafficFailsAtTheFirstRequestTooMany() throws {
        let tooMany = try Self.context("expect: { traffic: [{ request: PUT n1, from: A, count: 0 }] }", "traffic")
        #expect(tooMany.time >= .milliseconds(200) && tooMany.time < .milliseconds(210))
        #expect(tooMany.actors == ["A"])
        #expect(tooMany.rows == ["n1"])
        let other = try Self.context("expect: { traffic: [{ request: PUT n1, responses: [409] }] }", "traffic")
        #expect(other.time == tooMany.time)
    }

    @Test func missingTrafficFailsAtTheEndOfItsWindow() throws {
        let context = try Self.context(
            "expect: { traffic: [{ request: DELETE n1, between: [0s, 100ms], count: 1 }] }", "traffic")
        #expect(context.time == .milliseconds(100))
        #expect(context.actors.isEmpty)
    }

    @Test func valuesOfTheServerFailAtTheEnd() throws {
        let context = try Self.context("expect: { finally: { server: { n1: { revision: 9 } } } }", "finally")
        #expect(context.time > .milliseconds(200))
        #expect(context.rows == ["n1"])
    }

    @Test func anUnusedFaultConcernsItsRequest() throws {
        let context = try Self.context(
            """
            faults: [{ request: PUT n1, nth: 2, to: A, point: before-response, then: reset }]
            expect: { finally: { server: { count: 1 } } }
            """, "fault")
        #expect(context.actors == ["A"])
        #expect(context.rows == ["n1"])
    }

    @Test func anAbortFailsAtItsTime() throws {
        let history = Fixture.history([.mark("a"), .aborted(.other("over")), .mark("b")])
        let scenario = Scenario(name: "s")
        let check = try #require(Verdict(scenario, history).checks.first)
        #expect(FailureContext(check, scenario, history).time == .milliseconds(1))
    }

    @Test func devicesThatDisagreeConcernTheNotesThatDiffer() throws {
        var scenario = try Fixture.run(Fixture.passing).scenario
        scenario.expectations = [Expectation(.agree(["A", "server"]), location: SourceLocation(file: "f"))]
        let rows = ["n1", "n2"].map {
            History.DeviceState.Row(name: $0, title: nil, text: "x", icon: .plain, isDeleted: false, kept: [])
        }
        let history = Fixture.history([
            .device("A", .init(rows: rows, outbox: 0)),
            .server([
                .init(user: "ada", name: "n1", revision: 1, title: nil, text: "x"),
                .init(user: "ada", name: "n2", revision: 1, title: nil, text: "y"),
            ]),
        ])
        let check = try #require(Verdict(scenario, history).checks.first)
        let context = FailureContext(check, scenario, history)
        #expect(context.rows == ["n2"])
        #expect(context.actors == ["A"])
    }
}
