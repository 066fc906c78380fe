import Determinism
import LinkModel
import Testing

@testable import Scenario

/// The workload: seed and entry alone determine the steps of an entry.
@Suite struct WorkloadTests {
    private static func entry(
        every: Int64 = 10, to: Int64 = 500, by actors: [String] = ["A", "W"],
        mix: [Scenario.Workload.Share] = [
            .init(.create, weight: 2), .init(.edit, weight: 6), .init(.delete, weight: 1),
        ]
    ) -> Scenario.Workload {
        Scenario.Workload(
            trigger: .periodic(
                from: .zero, to: .seconds(to), every: .seconds(every),
                jitter: Probability(partsPerMillion: 800_000) ?? .zero),
            actors: actors, notes: 2, mix: mix, location: SourceLocation(file: "s.yaml", line: 1, column: 1))
    }

    private static func scenario(_ workload: [Scenario.Workload]) -> Scenario {
        var scenario = Scenario(name: "w")
        scenario.notes = ["n1", "n2", "n3"].map { .init(row: $0, title: nil, text: nil, revision: 1) }
        scenario.devices = [.init(name: "A", user: "ada", startsSynced: true, network: [])]
        scenario.writers = [.init(name: "W", user: "ada")]
        scenario.workload = workload
        return scenario
    }

    private static func steps(_ workload: [Scenario.Workload], seed: UInt64 = 1) -> [String] {
        scenario(workload).materialized(seed: seed).steps.map(\.description)
    }

    @Test func theSameSeedGivesTheSameSteps() {
        #expect(Self.steps([Self.entry()]) == Self.steps([Self.entry()]))
        #expect(Self.steps([Self.entry()]) != Self.steps([Self.entry()], seed: 2))
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func removingAnEntryDoesNotChangeTheStepsOfTheOthers(seed: UInt64) {
        let entries = [Self.entry(), Self.entry(every: 7), Self.entry(by: ["W"]), Self.entry(to: 90)]
        for removed in entries.indices {
            var rest = entries
            rest.remove(at: removed)
            let expected = rest.flatMap { Self.steps([$0], seed: seed) }
            #expect(Self.steps(rest, seed: seed) == expected)
        }
    }

    @Test func equalEntriesHaveDifferentDraws() {
        let one = Self.steps([Self.entry()])
        let two = Self.steps([Self.entry(), Self.entry()])
        #expect(Array(two.prefix(one.count)) == one)
        #expect(Array(two.dropFirst(one.count)) != one)
    }

    @Test(arguments: 1...50 as ClosedRange<UInt64>) func eachPeriodHasOneAction(seed: UInt64) {
        let steps = Self.scenario([Self.entry()]).materialized(seed: seed).steps
        var periods: [Int64] = []
        var actors: Set<String> = []
        for step in steps {
            guard case .at(let time) = step.trigger else {
                Issue.record("not at a time")
                return
            }
            periods.append(time.count / 10_000_000_000)
            #expect(time.count % 10_000_000_000 < 8_000_000_000)
            if let actor = step.action?.actor { actors.insert(actor) }
        }
        #expect(periods == Array(0..<50))
        #expect(actors == ["A", "W"])
    }

    /// Edits are of notes that the actor has, and deletions of notes that the actor has created.
    @Test(arguments: 1...50 as ClosedRange<UInt64>) func everyActionIsPossible(seed: UInt64) {
        var own: [String: Set<String>] = [:]
        var kinds: Set<String> = []
        for step in Self.scenario([Self.entry()]).materialized(seed: seed).steps {
            guard let (actor, action) = step.action else {
                Issue.record("no action")
                return
            }
            switch action {
            case .create(let row, _, _):
                kinds.insert("create")
                #expect(own.values.allSatisfy { !$0.contains(row) })
                own[actor, default: []].insert(row)
            case .edit(let row, _, _):
                kinds.insert("edit")
                #expect(["n1", "n2"].contains(row) || own[actor]?.contains(row) == true)
            case .delete(let row):
                kinds.insert("delete")
                #expect(own[actor]?.remove(row) != nil)
            default: Issue.record("\(action)")
            }
        }
        #expect(kinds.isSuperset(of: ["create", "edit"]))
    }

    @Test func actionsAfterTheLimitAndOfKilledDevicesAreSkipped() {
        var scenario = Self.scenario([Self.entry(by: ["A"])])
        scenario.limit = .seconds(300)
        let location = SourceLocation(file: "s.yaml")
        scenario.steps = [
            .init(trigger: .at(.seconds(100)), action: ("A", .kill), mark: nil, location: location),
            .init(trigger: .at(.seconds(200)), action: ("A", .start), mark: nil, location: location),
        ]
        let whole = Self.scenario([Self.entry(by: ["A"])]).materialized(seed: 3).steps.map(\.description)
        let steps = scenario.materialized(seed: 3).steps.dropFirst(2)
        for step in steps {
            guard case .at(let time) = step.trigger else {
                Issue.record("not at a time")
                return
            }
            #expect(time < .seconds(100) || (time >= .seconds(200) && time < .seconds(300)))
        }
        #expect(steps.count < whole.count)
        // The steps before the kill are those of the run without it.
        #expect(Array(steps.prefix(5).map(\.description)) == Array(whole.prefix(5)))
    }

    @Test func reactionsRemainInTheWorkload() {
        let reaction = Scenario.Workload(
            trigger: .when(
                device: Scenario.anyDevice,
                StateCondition(row: nil, checks: [.init(key: .icon, value: "conflict", isNegated: false)]),
                delay: .seconds(1)), actors: ["A"], notes: nil, mix: [.init(.resolve, weight: 1)],
            location: SourceLocation(file: "s.yaml"))
        let scenario = Self.scenario([Self.entry(), reaction]).materialized(seed: 1)
        #expect(scenario.workload == [reaction])
        #expect(scenario.materialized(seed: 1).steps.count == scenario.steps.count)
    }
}
