import Determinism
import Testing

@testable import Scenario

@Suite struct StepPlanTests {
    private static func step(_ trigger: Scenario.Step.Trigger, mark: String? = nil) -> Scenario.Step {
        Scenario.Step(
            trigger: trigger, action: ("A", .sync), mark: mark,
            location: SourceLocation(file: "s.yaml", line: 1, column: 1))
    }

    private static func plan(_ steps: Scenario.Step...) -> StepPlan {
        var scenario = Scenario(name: "steps")
        scenario.steps = steps
        return StepPlan(scenario)
    }

    private static func state(_ icon: History.Icon) -> History.DeviceState {
        History.DeviceState(
            rows: [.init(name: "n1", title: nil, text: nil, icon: icon, isDeleted: false, kept: [])], outbox: 0)
    }

    private static let conflict = StateCondition(
        row: "n1", checks: [.init(key: .icon, value: "conflict", isNegated: false)])

    private static func due(_ plan: inout StepPlan) -> [Int] {
        var steps: [Int] = []
        while let due = plan.takeDue() { steps.append(due.step) }
        return steps
    }

    private static func missed(_ plan: inout StepPlan) -> [Int] {
        var steps: [Int] = []
        while let missed = plan.takeMissed() { steps.append(missed.step) }
        return steps
    }

    @Test func stepsAreDueAtTheirTimesInOrder() {
        var plan = Self.plan(Self.step(.at(.seconds(2))), Self.step(.at(.seconds(1))), Self.step(.at(.seconds(2))))
        #expect(plan.nextDeadline == .seconds(1))
        plan.advance(to: .milliseconds(999))
        #expect(Self.due(&plan) == [])
        plan.advance(to: .seconds(1))
        #expect(plan.takeDue() == .init(step: 1, planned: .seconds(1)))
        #expect(plan.nextDeadline == .seconds(2))
        plan.advance(to: .seconds(3))
        #expect(!plan.isFinished)
        #expect(plan.takeDue() == .init(step: 0, planned: .seconds(2)))
        #expect(Self.due(&plan) == [2])
        #expect(plan.isFinished && plan.nextDeadline == nil)
    }

    @Test func aStepAfterAMarkIsDueAfterItsDelay() {
        var plan = Self.plan(Self.step(.after("m", delay: .seconds(5))), Self.step(.at(.zero), mark: "m"))
        plan.advance(to: .seconds(10))
        #expect(Self.due(&plan) == [1])
        #expect(plan.nextDeadline == nil && !plan.isFinished)
        plan.markSet("m", at: .seconds(10))
        plan.markSet("m", at: .seconds(14))
        #expect(plan.nextDeadline == .seconds(15), "only the first time of a mark counts")
        plan.advance(to: .seconds(15))
        #expect(Self.due(&plan) == [0])
    }

    @Test func aStepIsDueWhenADeviceReachesAState() {
        var plan = Self.plan(Self.step(.when(device: "A", Self.conflict, within: .seconds(20))))
        plan.stateChanged("A", Self.state(.upload), at: .seconds(1))
        plan.stateChanged("B", Self.state(.conflict), at: .seconds(2))
        #expect(Self.due(&plan) == [])
        // The window includes its end.
        plan.advance(to: .seconds(20))
        plan.stateChanged("A", Self.state(.conflict), at: .seconds(20))
        #expect(Self.due(&plan) == [0])
    }

    private static func step(since mark: String, within: Nanoseconds) -> Scenario.Step {
        var step = step(.when(device: "A", conflict, within: within))
        step.since = mark
        return step
    }

    @Test func aStateCountsFromItsMarkOn() {
        var plan = Self.plan(Self.step(since: "m", within: .seconds(5)), Self.step(.at(.seconds(10)), mark: "m"))
        plan.stateChanged("A", Self.state(.conflict), at: .seconds(1))
        plan.stateChanged("A", Self.state(.upload), at: .seconds(2))
        plan.advance(to: .seconds(10))
        #expect(Self.due(&plan) == [1])
        plan.markSet("m", at: .seconds(10))
        #expect(Self.due(&plan) == [], "the state before the mark does not count")
        #expect(plan.nextDeadline == .seconds(15) + Nanoseconds(1))
        plan.advance(to: .seconds(15))
        plan.stateChanged("A", Self.state(.conflict), at: .seconds(15))
        #expect(Self.due(&plan) == [0] && plan.isFinished)
    }

    @Test func aStateThatHoldsWhenItsMarkIsSetCounts() {
        var plan = Self.plan(Self.step(since: "m", within: .seconds(5)), Self.step(.at(.seconds(10)), mark: "m"))
        plan.stateChanged("A", Self.state(.conflict), at: .seconds(1))
        #expect(Self.due(&plan) == [])
        plan.markSet("m", at: .seconds(10))
        #expect(Self.due(&plan) == [0])
    }

    @Test func aStateAfterAMarkIsMissedAfterItsTimeAndWithItsMark() {
        var late = Self.plan(Self.step(since: "m", within: .seconds(5)), Self.step(.at(.zero), mark: "m"))
        late.markSet("m", at: .seconds(1))
        late.advance(to: .seconds(6))
        #expect(Self.missed(&late) == [])
        late.advance(to: .seconds(7))
        #expect(Self.missed(&late) == [0])
        var lost = Self.plan(Self.step(since: "m", within: .seconds(5)), Self.step(.at(.zero), mark: "m"))
        lost.stepLost(1)
        #expect(Self.missed(&lost) == [0])
        var unknown = Self.plan(Self.step(since: "x", within: .seconds(5)))
        #expect(Self.missed(&unknown) == [0])
    }

    @Test func stepsAfterAMissedMarkAreMissedToo() {
        var plan = Self.plan(
            Self.step(.after("b", delay: .zero)), Self.step(.after("a", delay: .zero), mark: "b"),
            Self.step(.when(device: "A", Self.conflict, within: .seconds(20)), mark: "a"))
        #expect(plan.nextDeadline == .seconds(20) + Nanoseconds(1))
        plan.advance(to: .seconds(20) + Nanoseconds(1))
        #expect(plan.isFinished)
        #expect(Self.missed(&plan) == [2, 1, 0])
        #expect(Self.due(&plan) == [])
    }

    @Test func aStepAfterALostStepIsMissed() {
        var plan = Self.plan(Self.step(.at(.zero), mark: "a"), Self.step(.after("a", delay: .zero)))
        plan.advance(to: .zero)
        #expect(Self.due(&plan) == [0])
        plan.stepLost(0)
        #expect(Self.missed(&plan) == [1])
        #expect(plan.isFinished)
    }

    @Test func aStepAfterAMarkThatNoStepSetsIsMissedAtOnce() {
        var plan = Self.plan(Self.step(.after("a", delay: .zero), mark: "b"), Self.step(.after("b", delay: .zero)))
        #expect(Self.missed(&plan) == [0, 1])
        #expect(plan.isFinished)
    }

    @Test func aCancelledPlanMissesWhatIsLeft() {
        var plan = Self.plan(
            Self.step(.at(.seconds(1)), mark: "a"), Self.step(.after("a", delay: .zero)),
            Self.step(.when(device: "A", Self.conflict, within: .seconds(20))), Self.step(.after("c", delay: .zero)),
            Self.step(.after("d", delay: .zero), mark: "c"), Self.step(.after("c", delay: .zero), mark: "d"))
        plan.advance(to: .zero)
        plan.cancel()
        #expect(plan.isFinished)
        #expect(Self.missed(&plan).sorted() == [0, 1, 2, 3, 4, 5])
        plan.stateChanged("A", Self.state(.conflict), at: .seconds(2))
        #expect(Self.due(&plan) == [])
    }
}
