import Determinism
import ScenarioModel
import Testing

@testable import LiveWorld

@Suite struct StepScheduleTests {
    private static func step(_ trigger: Scenario.Step.Trigger, mark: String? = nil, line: Int = 1) -> Scenario.Step {
        Scenario.Step(
            trigger: trigger, action: ("A", .sync), mark: mark,
            location: SourceLocation(file: "s.yaml", line: line, column: 1))
    }

    private static func schedule(_ steps: Scenario.Step..., limit: Nanoseconds = .seconds(60)) -> StepSchedule {
        var scenario = Scenario(name: "steps")
        scenario.limit = limit
        scenario.steps = steps
        return StepSchedule(scenario)
    }

    private static func state(_ icon: String) -> History.DeviceState {
        History.DeviceState(
            rows: [.init(name: "n1", title: nil, text: nil, icon: icon, isDeleted: false, kept: [])], outbox: 0)
    }

    private static let conflict = StateCondition(
        row: "n1", checks: [.init(key: .icon, value: "conflict", isNegated: false)])

    /// Takes all steps that are due and returns their lines.
    private static func take(_ schedule: inout StepSchedule) -> [Int?] {
        var lines: [Int?] = []
        while let step = schedule.takeAction() { lines.append(step.location.line) }
        return lines
    }

    @Test func stepsAreDueAtTheirTimesInOrder() {
        var schedule = Self.schedule(
            Self.step(.at(.seconds(2)), line: 1), Self.step(.at(.seconds(1)), line: 2),
            Self.step(.at(.seconds(2)), line: 3))
        #expect(schedule.nextDeadline == .seconds(1))
        schedule.advance(to: .milliseconds(999))
        #expect(Self.take(&schedule) == [])
        schedule.advance(to: .seconds(1))
        #expect(Self.take(&schedule) == [2])
        #expect(schedule.nextDeadline == .seconds(2))
        schedule.advance(to: .seconds(3))
        #expect(!schedule.isFinished)
        #expect(Self.take(&schedule) == [1, 3])
        #expect(schedule.isFinished && schedule.nextDeadline == nil)
    }

    @Test func aStepAfterAMarkIsDueAfterItsDelay() {
        var schedule = Self.schedule(Self.step(.after("shown", delay: .seconds(5))))
        schedule.advance(to: .seconds(10))
        #expect(Self.take(&schedule) == [])
        #expect(schedule.nextDeadline == .seconds(60), "only the limit is known")
        schedule.markSet("shown", at: .seconds(10))
        schedule.markSet("shown", at: .seconds(14))
        #expect(schedule.nextDeadline == .seconds(15), "only the first time of a mark counts")
        schedule.advance(to: .seconds(15))
        #expect(Self.take(&schedule) == [1])
    }

    @Test func aStepIsDueWhenADeviceReachesAState() {
        var schedule = Self.schedule(Self.step(.when(device: "A", Self.conflict, within: .seconds(20))))
        schedule.stateChanged("A", Self.state("upload"), at: .seconds(1))
        schedule.stateChanged("B", Self.state("conflict"), at: .seconds(2))
        #expect(Self.take(&schedule) == [])
        schedule.stateChanged("A", Self.state("conflict"), at: .seconds(20))
        #expect(Self.take(&schedule) == [1])
    }

    @Test func stepsAfterAMissedMarkAreMissedToo() {
        var schedule = Self.schedule(
            Self.step(.after("decided", delay: .zero), line: 1),
            Self.step(.after("shown", delay: .zero), mark: "decided", line: 2),
            Self.step(.when(device: "A", Self.conflict, within: .seconds(20)), mark: "shown", line: 3))
        schedule.advance(to: .seconds(20))
        #expect(!schedule.isFinished)
        #expect(schedule.nextDeadline == .seconds(20) + Nanoseconds(1))
        schedule.advance(to: .seconds(20) + Nanoseconds(1))
        #expect(schedule.isFinished)
        #expect(Self.take(&schedule) == [])
    }

    @Test func noStepIsDueAtTheLimit() {
        var schedule = Self.schedule(Self.step(.at(.seconds(9))), Self.step(.at(.seconds(10))), limit: .seconds(10))
        schedule.advance(to: .seconds(10))
        #expect(schedule.isFinished)
        #expect(Self.take(&schedule) == [])
    }
}
