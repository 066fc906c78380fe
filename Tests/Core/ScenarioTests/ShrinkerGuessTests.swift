import Determinism
import Impairment
import Testing

@testable import Scenario

/// Guesses of small scenarios, and merged faults, decided by an artificial rule.
@Suite struct ShrinkerGuessTests {
    private typealias Runs = ArtificialRuns

    /// A fault of the 62nd request, which is the change of the step t30.
    private static let late = Runs.fault(.link(.reset), nth: 62)

    private static var hitsChange: Runs {
        Runs { _, hits in hits.contains(.init(text: "t30", method: "PUT", action: .link(.reset))) }
    }

    @Test func oneUserForAllDevicesLeavesTheSettingsOfAnApp() {
        var scenario = Runs.scenario(steps: 1)
        scenario.devices[0].user = "bo"
        scenario.devices[0].settings = [.init(name: "network", value: "any")]
        let hasChanged = scenario.useOneUser()
        #expect(hasChanged)
        #expect(scenario.devices[0].user == "ada")
        #expect(scenario.devices[0].settings == [.init(name: "network", value: "any")])
    }

    /// With `agree` a run ends before its violation.
    @Test func theExpectationOfTheFileIsVerifiedByARun() throws {
        func run(_ scenario: Scenario) -> Shrinker.Observation {
            var history = History()
            history.append(.device("A", .init(rows: [], outbox: 0)), at: .zero)
            history.append(.server([]), at: .zero)
            let isVacuous = scenario.expectations.first?.description == Shrinker.vacuousExpectation.description
            if isVacuous { history.append(.aborted(.other("the artificial rule is violated")), at: .zero) }
            return .init(verdict: Verdict(scenario, history), history: history)
        }
        let environment = Shrinker.Environment(
            run: { scenario, _ in run(scenario) }, isValid: { _ in true }, hasTime: { true }, wifi: Runs.wifi,
            unnamedLink: "unnamed", profile: { _ in Runs.wifi }, hasOtherBehavior: false)
        let result = try #require(Shrinker.shrink(Runs.scenario(steps: 1), in: environment))
        let repeated = run(result.scenario)
        #expect(Violation.first(like: result.violation, in: repeated.verdict, result.scenario, repeated.history) != nil)
    }

    @Test func singleRemovalsDoNotFindAFaultWhoseNumberTheyShift() throws {
        var shrinker = try #require(Self.hitsChange.shrinker(Runs.scenario(steps: 40, [Self.late])))
        let hasChanged = shrinker.removeUnits()
        #expect(hasChanged)
        #expect(Runs.texts(shrinker.current) == (0...30).map { "t\($0)" })
    }

    @Test func aGuessLeavesTheStepBeforeAFaultAndTheNumberOfItsRequestThere() throws {
        var shrinker = try #require(Self.hitsChange.shrinker(Runs.scenario(steps: 40, [Self.late])))
        let hasChanged = shrinker.isolate()
        #expect(hasChanged)
        #expect(Runs.texts(shrinker.current) == ["t30"])
        #expect(shrinker.current.faults.map(\.nth) == [2])
    }

    @Test func aGuessKeepsTwoFaultsIfTheRuleNeedsBoth() throws {
        let runs = Runs { _, hits in
            hits.contains(.init(text: "t30", method: "PUT", action: .link(.stall)))
                && hits.contains(.init(text: "t30", method: "GET", action: .link(.reset)))
        }
        let faults = [
            Runs.fault(.link(.close), nth: 3), Runs.fault(.link(.reset), nth: 61), Runs.fault(.link(.stall), nth: 62),
        ]
        var shrinker = try #require(runs.shrinker(Runs.scenario(steps: 40, faults)))
        let hasChanged = shrinker.isolate()
        #expect(hasChanged)
        #expect(Runs.texts(shrinker.current) == ["t30"])
        #expect(shrinker.current.faults.map(\.action) == [.link(.reset), .link(.stall)])
        // A fault whose request another one has taken applies to the next.
        #expect(shrinker.current.faults.map(\.nth) == [1, 1])
    }

    @Test func aGuessLeavesSeveralStepsBeforeAFault() throws {
        let runs = Runs { scenario, hits in
            Set(Runs.texts(scenario)).isSuperset(of: ["t26", "t30"])
                && hits.contains { $0.text == "t30" && $0.action == .link(.reset) }
        }
        let fault = Runs.fault(.link(.reset), "PUT", "n3", nth: 8)
        // The fault is that of the eighth change of n3, so that the guess must count from the notes that are left.
        var shrinker = try #require(runs.shrinker(Runs.scenario(steps: 40, [fault])))
        let hasChanged = shrinker.isolate()
        #expect(hasChanged)
        #expect(Runs.texts(shrinker.current) == ["t26", "t27", "t28", "t29", "t30"])
        #expect(shrinker.current.faults.map(\.nth) == [2])
    }

    @Test func aGuessNeedsNoFault() throws {
        let runs = Runs { scenario, _ in Runs.texts(scenario).last == "t39" }
        var shrinker = try #require(runs.shrinker(Runs.scenario(steps: 40, [Self.late])))
        let hasChanged = shrinker.isolate()
        #expect(hasChanged)
        #expect(Runs.texts(shrinker.current) == ["t39"])
        #expect(shrinker.current.faults.isEmpty)
    }

    @Test func guessesEndIfNoneIsRight() throws {
        let runs = Runs { scenario, _ in scenario.steps.count == 40 }
        var shrinker = try #require(runs.shrinker(Runs.scenario(steps: 40, [Self.late])))
        let hasChanged = shrinker.isolate()
        #expect(!hasChanged)
        #expect(shrinker.current.steps.count == 40 && shrinker.current.faults.count == 1)
        #expect((2...1000).contains(shrinker.runs), "\(shrinker.runs) runs")
    }

    @Test func thereIsNothingToGuessInASmallScenario() throws {
        let runs = Runs { _, _ in true }
        var shrinker = try #require(runs.shrinker(Runs.scenario(steps: 4, [Runs.fault(.link(.reset), nth: 1)])))
        let hasChanged = shrinker.isolate()
        #expect(!hasChanged)
        #expect(shrinker.runs == 1)
    }

    // MARK: Merged faults

    /// Returns the faults after a merge, and the runs that it took; the rule asks for cuts of the changes with these texts.
    private static func merged(
        _ faults: [Scenario.Fault], cutting texts: [String], only: Bool = false
    ) throws -> (faults: [Scenario.Fault], runs: Int) {
        let runs = Runs { _, hits in
            let cut = hits.filter { $0.action == .link(.reset) && $0.method == "PUT" }.map(\.text)
            return only ? cut == texts : Set(cut).isSuperset(of: texts)
        }
        var shrinker = try #require(runs.shrinker(Runs.scenario(steps: 8, faults)))
        let hasChanged = shrinker.mergeFaults()
        #expect(hasChanged == (shrinker.current.faults.count < faults.count))
        return (shrinker.current.faults, shrinker.runs)
    }

    @Test func faultsOfRequestsInARowBecomeOne() throws {
        let faults = (2...4).map { Runs.fault(.link(.reset), "PUT", nth: $0) }
        let found = try Self.merged(faults, cutting: ["t1", "t2", "t3"], only: true).faults
        #expect(found.map(\.nth) == [2] && found.map(\.times) == [3...3])
    }

    /// Of faults of the same request, the second one applies to the next request.
    @Test func faultsOfTheSameRequestBecomeOneThatAppliesAsOften() throws {
        let faults = (0..<3).map { _ in Runs.fault(.link(.reset), "PUT", nth: 1) }
        let found = try Self.merged(faults, cutting: ["t0", "t1", "t2"], only: true).faults
        #expect(found.map(\.nth) == [1] && found.map(\.times) == [3...3])
    }

    @Test func faultsThatApplySeveralTimesBecomeOneThatAppliesAsOften() throws {
        let faults = [
            Runs.fault(.link(.reset), "PUT", nth: 1, times: 0...2),
            Runs.fault(.link(.reset), "PUT", nth: 3, times: 1...3),
        ]
        let found = try Self.merged(faults, cutting: ["t0", "t1", "t2", "t3", "t4"], only: true).faults
        #expect(found.map(\.nth) == [1] && found.map(\.times) == [5...5])
    }

    @Test func faultsAreNotMergedIfARequestBetweenThemMustNotFail() throws {
        let faults = [Runs.fault(.link(.reset), "PUT", nth: 1), Runs.fault(.link(.reset), "PUT", nth: 3)]
        let (found, runs) = try Self.merged(faults, cutting: ["t0", "t2"], only: true)
        #expect(found == faults)
        #expect(runs > 1)
        // Otherwise one fault of all three requests is simpler.
        let simpler = try Self.merged(faults, cutting: ["t0", "t2"]).faults
        #expect(simpler.map(\.times) == [3...3])
    }

    @Test func faultsOfOtherRequestsPointsOrEffectsAreNotMerged() throws {
        let first = Runs.fault(.link(.reset), "PUT", nth: 1)
        let other = Scenario.Fault(
            request: first.request, nth: 2, device: nil, point: .at(.afterResponse), action: .link(.reset),
            location: Runs.location)
        for different in [Runs.fault(.link(.stall), "PUT", nth: 2), Runs.fault(.link(.reset), "GET", nth: 2), other] {
            let (found, runs) = try Self.merged([first, different], cutting: ["t0"])
            #expect(found == [first, different])
            #expect(runs == 1, "there is nothing to try")
        }
    }
}
