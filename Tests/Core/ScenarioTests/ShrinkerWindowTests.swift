import Determinism
import Impairment
import LinkModel
import Testing

@testable import Scenario

/// Parts of a run in time, and what makes a large scenario small, decided by an artificial rule.
@Suite struct ShrinkerWindowTests {
    private typealias Runs = ArtificialRuns

    private static func time(_ step: Scenario.Step) -> Nanoseconds? {
        if case .at(let time) = step.trigger { time } else { nil }
    }

    private static func step(_ seconds: Int64, _ action: Scenario.Action) -> Scenario.Step {
        .init(trigger: .at(.seconds(seconds)), action: (actor: "A", action: action), mark: nil, location: Runs.location)
    }

    private static var neverViolated: Runs { Runs { _, _ in false } }

    /// Steps at 1 to 8 s, a network with three entries.
    private static var scenario: Scenario {
        var scenario = Runs.scenario(steps: 8)
        scenario.devices = scenario.devices.map { device in
            device.replacing(
                \.network,
                [
                    .init(at: .zero, .hold(Runs.wifi), isSignalled: true),
                    .init(at: .seconds(2), .hold(Runs.edge), isSignalled: true),
                    .init(at: .seconds(7), .hold(Runs.wifi), isSignalled: true),
                ])
        }
        scenario.restoreAt = .seconds(600)
        return scenario
    }

    private static func window(_ scenario: Scenario, from start: Int64, to end: Int64?) -> Scenario? {
        scenario.window(from: .seconds(start), to: end.map { .seconds($0) }, neverViolated.history(scenario))
    }

    @Test func aPartHasItsStepsAndLinksWithTimesFromItsBeginning() throws {
        let part = try #require(Self.window(Self.scenario, from: 4, to: 6))
        #expect(Runs.texts(part) == ["t3", "t4", "t5"])
        #expect(part.steps.compactMap(Self.time) == [.zero, .seconds(1), .seconds(2)])
        #expect(part.devices[0].network.map(\.start) == [.zero])
        #expect(part.devices[0].network[0].phase == .hold(Runs.edge))
        #expect(part.restoreAt == nil)
        // Up to the end of the scenario, its own restore phase is kept.
        let rest = try #require(Self.window(Self.scenario, from: 4, to: nil))
        #expect(Runs.texts(rest).count == 5 && rest.restoreAt == .seconds(596))
        #expect(rest.devices[0].network.map(\.start) == [.zero, .seconds(3)])
    }

    @Test func faultsCountTheRequestsThatAreLeft() throws {
        var scenario = Self.scenario
        scenario.faults = [
            Runs.fault(.link(.reset), nth: 9), Runs.fault(.link(.reset), "PUT", "n1", nth: 2),
            Runs.fault(.link(.stall), "GET", nth: 2),
            Runs.fault(.link(.close), "PUT", nth: 2, times: 1...4),
        ]
        // Before 4 s are three steps: 6 requests, of which one changes n1; the third fault has fired, the fourth one twice.
        let part = try #require(Self.window(scenario, from: 4, to: nil))
        #expect(part.faults.map(\.action) == [.link(.reset), .link(.reset), .link(.close)])
        #expect(part.faults.map(\.nth) == [3, 1, 1])
        #expect(part.faults.map(\.times) == [1...1, 1...1, 0...2])
    }

    @Test func notesThatEarlierStepsHaveCreatedAreOnTheServer() throws {
        var scenario = Self.scenario
        scenario.steps += [
            Self.step(1, .create(row: "c1", title: "T", text: "new")),
            Self.step(2, .create(row: "c2", title: nil, text: "x")),
            Self.step(3, .delete(row: "c2")), Self.step(3, .delete(row: "n4")),
            Self.step(5, .edit(row: "c1", title: nil, text: "newer")),
            Self.step(5, .edit(row: "c2", title: nil, text: "y")),
        ]
        let part = try #require(Self.window(scenario, from: 4, to: nil))
        #expect(part.notes.map(\.row) == ["n1", "n2", "n3", "c1"])
        #expect(part.notes.last == .init(row: "c1", title: "T", text: "new", revision: 1))
        #expect(Runs.texts(part).contains("newer"))
        #expect(!Runs.texts(part).contains("y"), "the note does not exist")
    }

    @Test func aPartThatNeedsEarlierMarksHasTheirTimes() throws {
        var scenario = Self.scenario
        scenario.steps[0].mark = "made"
        scenario.steps[5].trigger = .after("made", delay: .seconds(5))
        var history = History()
        history.append(.step(0), at: .seconds(1))
        history.append(.mark("made"), at: .milliseconds(1_500))
        history.append(.step(5), at: .milliseconds(6_500))
        let part = try #require(scenario.window(from: .seconds(4), to: nil, history))
        #expect(part.steps.compactMap(Self.time).contains(.milliseconds(2_500)))
    }

    /// The rule needs two steps in the middle of ten minutes.
    @Test func aShorterPartOfTheRunIsFoundInFewRuns() throws {
        let runs = Runs { scenario, _ in Set(Runs.texts(scenario)).isSuperset(of: ["t90", "t95"]) }
        var shrinker = try #require(runs.shrinker(Runs.scenario(steps: 200, every: .seconds(3))))
        let hasChanged = shrinker.shortenRun()
        #expect(hasChanged)
        #expect(shrinker.current.steps.count < 20, "\(Runs.texts(shrinker.current))")
        #expect(shrinker.current.lastPlannedTime < .seconds(60))
        #expect(shrinker.runs < 100, "\(shrinker.runs) runs")
    }

    @Test func aScenarioThatIsTooLargeForAFileIsShrunkUntilItHasOne() throws {
        func result(_ isTooLarge: @escaping (Scenario) -> Bool) throws -> Shrinker.Result {
            var runs = Runs { scenario, _ in
                // No candidate with less than half of the steps violates the rule, until there are few.
                Set(Runs.texts(scenario)).isSuperset(of: ["t1", "t7", "t13"]) && scenario.steps.count != 5
            }
            runs.isValid = { $0.steps.count <= 3 }
            runs.isTooLarge = isTooLarge
            return try #require(Shrinker.shrink(Runs.scenario(steps: 16), in: runs.environment))
        }
        let small = try result { $0.steps.count > 3 }
        #expect(small.scenario.steps.count == 3 && small.isComplete)
        // Another reason than the size is none to accept a candidate without a file.
        let large = try result { _ in false }
        #expect(large.scenario.steps.count == 16)
    }

    @Test func stepsThatCouldBeLeftOutBecomeMandatory() throws {
        let runs = Runs { scenario, _ in scenario.steps.count == 2 }
        let scenario = Runs.scenario(steps: 2).makingStepsOptional()
        #expect(!scenario.steps.contains { !$0.isOptional })
        let result = try #require(Shrinker.shrink(scenario, in: runs.environment))
        #expect(result.scenario.steps.count == 2 && !result.scenario.steps.contains(where: \.isOptional))
    }
}
