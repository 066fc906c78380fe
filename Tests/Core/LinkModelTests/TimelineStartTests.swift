import Determinism
import Testing

@testable import LinkModel

/// Timelines that start at an absolute time.
@Suite struct TimelineStartTests {
    @Test(
        arguments: [
            ("1970-01-01T00:00:00Z", 0), ("2026-03-01T12:00:00Z", 1_772_366_400_000_000_000),
            ("2026-03-01t14:30:00.25+02:30", 1_772_366_400_250_000_000),
            ("2026-02-28T22:00:00-14:00", 1_772_366_400_000_000_000),
            ("2000-02-29T23:59:60z", 951_868_800_000_000_000), ("2199-12-31T23:59:59Z", 7_258_118_399_000_000_000),
            ("2026-03-01T12:00:00.1234567891Z", 1_772_366_400_123_456_789),
        ] as [(String, Int64)]) func aStartIsATimeOfRFC3339(_ text: String, _ nanoseconds: Int64) throws
    {
        let start = try #require(TimelineStart(text))
        #expect(start.unixNanoseconds == nanoseconds && start.description == text)
    }

    @Test(arguments: [
        "", "now", "2026-03-01", "2026-03-01T12:00:00", "2026-03-01 12:00:00Z", "2026-02-29T12:00:00Z",
        "2100-02-29T00:00:00Z", "2026-13-01T12:00:00Z", "2026-03-01T24:00:00Z", "2026-03-01T12:00Z",
        "2026-03-01T12:00:00.Z", "2026-03-01T12:00:00Z ", "2026-03-01T12:00:00+2:00", "1969-12-31T23:59:59Z",
        "2200-01-01T00:00:00Z", "2026-03-01T12:00:00\u{661}Z", "+026-03-01T12:00:00Z",
        "2026-03-01T12:00:00.00000000000000000000000000000Z",
    ]) func otherTextsAreNoStarts(_ text: String) {
        #expect(TimelineStart(text) == nil)
    }

    private static func link(_ name: String, _ delay: Int64) -> Timeline.NamedConditions {
        .init(name, Conditions(up: .clear, down: DirectionConditions(delay: .milliseconds(delay))))
    }

    /// A ramp, and intervals of random length, repeated every 30 s.
    private static func timeline() throws -> Timeline {
        try Timeline(
            [
                .init(at: .zero, .hold(link("a", 10))),
                .init(at: .seconds(5), .ramp(to: link("b", 90), over: .seconds(5))),
                .init(
                    at: .seconds(12),
                    .flap(
                        [.init(link("c", 20), .milliseconds(700)), .init(link("d", 40), .milliseconds(900))],
                        jitter: try #require(Probability(partsPerMillion: 300_000)))),
            ], repeatsAfter: .seconds(30))
    }

    /// A machine whose proxy starts at a time of the wall clock. Its own time begins with the proxy.
    private struct Machine {
        let bootTime: Int64
        var link = PacketLink<Int>(.clear, seed: 7, name: "link")

        init(startedAt time: Int64, _ start: TimelineStart) throws {
            bootTime = time
            link.startTimeline(try TimelineStartTests.timeline(), from: start.offset(at: time), at: .start)
        }

        mutating func conditions(at time: Int64) -> Conditions {
            while link.timelineDeadline <= time - bootTime { link.advanceTimeline() }
            return link.conditions
        }
    }

    @Test func machinesThatStartAtDifferentTimesHaveTheSameConditions() throws {
        let start = try #require(TimelineStart("2026-03-01T12:00:00Z"))
        let zero = start.unixNanoseconds
        // Before the start, at it, within the first round, and after an hour of rounds.
        var machines = try [-40, 0, 13, 29, 3600].map { try Machine(startedAt: zero + $0 * 1_000_000_000, start) }
        for tenth in 0..<1200 as Range<Int64> {
            let time = zero + 3_600_000_000_000 + tenth * 100_000_000
            let all = (0..<machines.count).map { machines[$0].conditions(at: time) }
            #expect(Set(all).count == 1, "at \(tenth) tenths of a second: \(all)")
        }
    }

    @Test func aStartInTheFutureWaitsWithTheFirstConditions() throws {
        let start = try #require(TimelineStart("2026-03-01T12:00:00Z"))
        let boot = start.unixNanoseconds - 60_000_000_000
        var run = TimelineRun(
            try Self.timeline(), startingAt: Instant(.zero - start.offset(at: boot)), seed: 7)
        _ = run.advance(to: Instant(.seconds(59)))
        #expect(run.conditions == Self.link("a", 10).conditions && run.nextDeadline == Instant(.seconds(65)))
        let waiting = run.position(at: Instant(.seconds(50)))
        #expect(waiting.elapsed == .seconds(-10) && waiting.time == .zero, "\(waiting)")
        #expect(waiting.nextChange == .seconds(15) && waiting.nextName == "b", "\(waiting)")
        _ = run.advance(to: Instant(.seconds(70)))
        #expect(run.conditions == Self.link("b", 90).conditions)
        #expect(run.position(at: Instant(.seconds(71))).elapsed == .seconds(11))
    }

    /// The extremes of clocks and starts.
    @Test(arguments: ["1970-01-01T00:00:00Z", "2199-12-31T23:59:59Z"])
    func noClockMakesThePositionOverflow(_ text: String) throws {
        let start = try #require(TimelineStart(text))
        for clock in [Int64.min, 0, 1_772_366_400_000_000_000, Int64.max] {
            var link = PacketLink<Int>(.clear, seed: 7, name: "link")
            link.startTimeline(try Self.timeline(), from: start.offset(at: clock), at: .start)
            #expect(link.conditions != .clear)
            _ = link.timeline?.position(at: Instant(.seconds(5)))
        }
    }
}
