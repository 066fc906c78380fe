import Determinism
import Testing

@testable import LinkModel

/// The position of a running timeline.
@Suite struct TimelinePositionTests {
    private static func run(repeatsAfter: Nanoseconds? = nil) throws -> TimelineRun {
        func link(_ name: String) -> Timeline.NamedConditions { .init(name, .clear) }
        let timeline = try Timeline(
            [
                .init(at: .zero, .hold(link("a"))),
                .init(at: .seconds(10), .ramp(to: link("b"), over: .seconds(5))),
                .init(
                    at: .seconds(20),
                    .flap([.init(link("c"), .seconds(2)), .init(link("d"), .seconds(3))], jitter: .zero)),
            ], repeatsAfter: repeatsAfter)
        return TimelineRun(timeline, startingAt: .start, seed: 1)
    }

    private static func position(
        at seconds: Int64, repeatsAfter: Nanoseconds? = nil
    ) throws -> TimelineRun.Position {
        var run = try run(repeatsAfter: repeatsAfter)
        let time = Instant(.seconds(seconds))
        _ = run.advance(to: time)
        return run.position(at: time)
    }

    @Test func aPositionNamesTheCurrentAndTheNextConditions() throws {
        for (seconds, name, isRamping, next, wait) in [
            (0, "a", false, "b", 10), (12, "b", true, "c", 8), (17, "b", false, "c", 3), (21, "c", false, "d", 1),
            (24, "d", false, "c", 1),
        ] as [(Int64, String, Bool, String, Int64)] {
            let position = try Self.position(at: seconds)
            #expect(position.time == .seconds(seconds) && position.elapsed == .seconds(seconds))
            #expect(position.name == name && position.isRamping == isRamping, "\(position)")
            #expect(position.nextName == next && position.nextChange == .seconds(wait), "\(position)")
        }
    }

    @Test func aTimelineThatRepeatsContinuesWithItsFirstEntry() throws {
        let last = try Self.position(at: 29, repeatsAfter: .seconds(30))
        #expect(last.name == "d" && last.nextName == "a" && last.nextChange == .seconds(1), "\(last)")
        let second = try Self.position(at: 31, repeatsAfter: .seconds(30))
        #expect(second.name == "a" && second.time == .seconds(1) && second.elapsed == .seconds(31), "\(second)")
    }

    @Test func theLastEntryHasNoNextChange() throws {
        let timeline = try Timeline([.init(at: .zero, .hold(.init("only", .clear)))])
        let position = TimelineRun(timeline, startingAt: .start, seed: 1).position(at: Instant(.seconds(5)))
        #expect(position.nextChange == nil && position.nextName == nil && position.name == "only")
    }

    /// A run that starts in the middle is at the same position as one that has reached it.
    @Test func aRunThatStartsLaterHasTheSamePosition() throws {
        let timeline = try Self.run(repeatsAfter: .seconds(30)).timeline
        for seconds in [0, 13, 24, 30, 55, 95] as [Int64] {
            var late = TimelineRun(timeline, startingAt: Instant(.seconds(100 - seconds)), seed: 1)
            _ = late.advance(to: Instant(.seconds(100)))
            let expected = try Self.position(at: seconds, repeatsAfter: .seconds(30))
            #expect(late.position(at: Instant(.seconds(100))) == expected)
        }
    }
}
