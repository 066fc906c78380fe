import Determinism
import Scenario
import Testing

@testable import ScenarioRunner

@Suite struct RunDifferenceTests {
    private static let events: [History.Event] = [
        .mark("a"), .device("A", .init(rows: [row("two")], outbox: 1)), .arrived(3),
    ]

    private static func row(_ text: String) -> History.DeviceState.Row {
        .init(name: "n1", title: nil, text: text, icon: .plain, isDeleted: false, kept: [])
    }

    private static func difference(_ left: History, _ right: History) -> RunDifference? {
        RunDifference(Fixture.result(left), Fixture.result(right))
    }

    @Test func equalHistoriesDoNotDiffer() {
        #expect(Self.difference(Fixture.history(Self.events), Fixture.history(Self.events)) == nil)
    }

    @Test func anotherTimeDiffers() throws {
        var late = Fixture.history(Array(Self.events.prefix(2)))
        late.append(Self.events[2], at: .milliseconds(3))
        let difference = try #require(Self.difference(Fixture.history(Self.events), late))
        #expect(difference.index == 2)
        #expect(
            difference.lines.dropFirst() == [
                "  run 1: 0.002000000 arrived exchange=3", "  run 2: 0.003000000 arrived exchange=3",
            ])
    }

    @Test func anotherKindDiffers() throws {
        let other = Fixture.history([.mark("a"), .started(device: "A"), .arrived(3)])
        let difference = try #require(Self.difference(Fixture.history(Self.events), other))
        #expect(difference.index == 1)
        #expect(difference.lines[2] == "  run 2: 0.001000000 started actor=A")
    }

    /// The texts differ, which the lines show as digests.
    @Test func otherBytesDiffer() throws {
        let other = Fixture.history([.mark("a"), .device("A", .init(rows: [Self.row("six")], outbox: 1)), .arrived(3)])
        let difference = try #require(Self.difference(Fixture.history(Self.events), other))
        #expect(difference.index == 1)
        #expect(difference.lines[1].dropFirst(9) != difference.lines[2].dropFirst(9))
        #expect(!difference.lines.joined().contains("six"))
    }

    @Test func aLongerHistoryDiffers() throws {
        let longer = Fixture.history(Self.events + [.mark("b")])
        let difference = try #require(Self.difference(Fixture.history(Self.events), longer))
        #expect(difference.index == 3)
        #expect(difference.lines[1] == "  run 1: (the run has ended)")
        #expect(difference.lines[2] == "  run 2: 0.003000000 mark mark=b")
    }

    /// Events of the world that leave no trace in the history.
    @Test func anotherNumberOfInternalEventsDiffers() throws {
        let history = Fixture.history(Self.events)
        let difference = try #require(
            RunDifference(Fixture.result(history, eventCount: 7), Fixture.result(history, eventCount: 8)))
        #expect(difference.index == nil)
        #expect(difference.lines[0].contains("7 and 8 internal events"))
    }
}
