import Determinism
import TestSupport
import Testing

@testable import LinkModel

@Suite struct TimelineTests {
    private let slow = Timeline.NamedConditions(
        "slow", Conditions(up: .clear, down: DirectionConditions(rate: .kilobits(100), delay: .milliseconds(400))))
    private let fast = Timeline.NamedConditions(
        "fast",
        Conditions(
            up: .clear,
            down: DirectionConditions(
                rate: .kilobits(1100), delay: .milliseconds(100), loss: Probability(partsPerMillion: 10_000)!)))

    private func states(of run: inout TimelineRun, until end: Nanoseconds) -> [(time: Double, name: String)] {
        var seen = [(run.timeline.entries[0].start.inSeconds, run.name)]
        while let change = run.nextDeadline, change.sinceStart <= end {
            let hasChanged = run.advance(to: change)
            #expect(hasChanged)
            seen.append((change.sinceStart.inSeconds, run.name))
        }
        return seen
    }

    @Test func entriesLastUntilTheNextAndTheTimelineRepeats() throws {
        let timeline = try Timeline(
            [.init(at: .zero, .hold(slow)), .init(at: .seconds(2), .hold(fast))], repeatsAfter: .seconds(5))
        var run = TimelineRun(timeline, startingAt: .start, seed: 1)
        let seen = states(of: &run, until: .seconds(8))
        #expect(seen.map(\.time) == [0, 2, 5, 7])
        #expect(seen.map(\.name) == ["slow", "fast", "slow", "fast"])
    }

    @Test func aRampIsLinearAndReachesItsTarget() throws {
        let timeline = try Timeline([
            .init(at: .zero, .hold(slow)), .init(at: .seconds(1), .ramp(to: fast, over: .seconds(10))),
        ])
        var run = TimelineRun(timeline, startingAt: .start, seed: 1)
        _ = run.advance(to: Instant(.seconds(6)))
        #expect(run.conditions.down.rate == .kilobits(600))
        #expect(run.conditions.down.delay == .milliseconds(250))
        #expect(run.conditions.down.loss.partsPerMillion == 5000)
        _ = run.advance(to: Instant(.seconds(11)))
        #expect(run.conditions == fast.conditions)
        #expect(run.nextDeadline == nil)
    }

    @Test func aFlapAlternatesWithVaryingTimes() throws {
        let timeline = try Timeline([
            .init(
                at: .zero,
                .flap(
                    [.init(fast, .seconds(10)), .init(slow, .seconds(2))],
                    jitter: Probability(partsPerMillion: 500_000)!))
        ])
        func times(_ seed: UInt64) -> [Double] {
            var run = TimelineRun(timeline, startingAt: .start, seed: seed)
            let seen = states(of: &run, until: .seconds(600))
            for (index, state) in seen.enumerated() { #expect(state.name == (index % 2 == 0 ? "fast" : "slow")) }
            return seen.map(\.time)
        }
        let first = times(1)
        let lengths = zip(first.dropFirst(), first).map { $0 - $1 }
        for (index, length) in lengths.enumerated() {
            #expect(index % 2 == 0 ? (5...15).contains(length) : (1...3).contains(length))
        }
        #expect(Set(lengths).count > 50)
        #expect(times(1) == first)
        #expect(times(2) != first)
    }

    /// A start half-way in gives the same state as waiting.
    @Test func startingWithAnOffsetEqualsWaiting() throws {
        let timeline = try Timeline(
            [
                .init(at: .zero, .flap([.init(fast, .seconds(1)), .init(slow, .seconds(1))], jitter: .one)),
                .init(at: .seconds(20), .ramp(to: fast, over: .seconds(5))),
            ], repeatsAfter: .seconds(30))
        var waited = TimelineRun(timeline, startingAt: .start, seed: 9)
        _ = waited.advance(to: Instant(.milliseconds(52_500)))
        var sought = TimelineRun(timeline, startingAt: Instant(.zero - .milliseconds(52_500)), seed: 9)
        _ = sought.advance(to: .start)
        #expect(sought.conditions == waited.conditions)
        let ahead = try #require(sought.nextDeadline).sinceStart
        #expect(try #require(waited.nextDeadline).sinceStart - .milliseconds(52_500) == ahead)
    }

    /// One advance gives the same state as an advance for every change.
    @Test(arguments: 0..<100) func oneAdvanceEqualsAnAdvanceForEveryChange(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let timeline = RandomConditions.timeline(&generator)
        let start = Instant(Nanoseconds(.random(in: -50_000_000_000...50_000_000_000, using: &generator)))
        var waited = TimelineRun(timeline, startingAt: start, seed: seed)
        var now = start
        for _ in 0..<5 {
            var sought = TimelineRun(timeline, startingAt: start, seed: seed)
            now = now + Nanoseconds(.random(in: 0...30_000_000_000, using: &generator))
            while let change = waited.nextDeadline, change <= now { _ = waited.advance(to: change) }
            _ = sought.advance(to: now)
            #expect(sought.conditions == waited.conditions, "seed \(seed)")
            #expect(sought.name == waited.name, "seed \(seed)")
            #expect(sought.nextDeadline == waited.nextDeadline, "seed \(seed)")
        }
    }

    /// A day of intervals of 10 ms has 8.6 million changes.
    @Test func theCostOfAnAdvanceDoesNotDependOnTheNumberOfIntervals() throws {
        let flap = Timeline.Phase.flap([.init(fast, .milliseconds(10)), .init(slow, .milliseconds(10))], jitter: .zero)
        let rounds = try Timeline(
            [.init(at: .zero, flap), .init(at: .seconds(1), .ramp(to: slow, over: .seconds(1)))],
            repeatsAfter: .seconds(3))
        let spent = try ContinuousClock().measure {
            for offset in [Nanoseconds.seconds(86_399), .seconds(3_155_760_000), Nanoseconds(.max)] {
                for timeline in [try Timeline([.init(at: .zero, flap)]), rounds] {
                    var link = PacketLink<Int>(.clear, seed: 1, name: "link")
                    link.startTimeline(timeline, from: offset, at: .start)
                    #expect(link.timelineDeadline < .max)
                }
            }
        }
        #expect(spent < .milliseconds(500), "change by change it takes some seconds: \(spent)")
        var run = TimelineRun(try Timeline([.init(at: .zero, flap)]), startingAt: .start, seed: 1)
        _ = run.advance(to: Instant(.milliseconds(86_399_995)))
        #expect(run.name == "slow" && run.nextDeadline == Instant(.seconds(86_400)))
    }

    @Test(arguments: [ConnectionPolicy.offline, .portal, .dns]) func aRampEndsWithThePolicyOfItsTarget(
        _ target: ConnectionPolicy
    ) throws {
        let closed = Timeline.NamedConditions(
            "closed", Conditions(up: .clear, down: fast.conditions.down, connectionPolicy: target))
        let timeline = try Timeline([
            .init(at: .zero, .hold(slow)), .init(at: .seconds(1), .ramp(to: closed, over: .seconds(10))),
            .init(at: .seconds(20), .ramp(to: slow, over: .seconds(10))),
        ])
        var run = TimelineRun(timeline, startingAt: .start, seed: 1)
        func policy(at seconds: Int64) -> ConnectionPolicy {
            _ = run.advance(to: Instant(.seconds(seconds)))
            return run.conditions.connectionPolicy
        }
        #expect(policy(at: 1) == .open)
        #expect(policy(at: 10) == .open, "connections are open until the ramp ends")
        #expect(policy(at: 11) == target)
        #expect(run.conditions == closed.conditions)
        #expect(policy(at: 19) == target)
        #expect(policy(at: 20) == .open, "connections are open during the ramp")
        _ = run.advance(to: Instant(.seconds(30)))
        #expect(run.conditions == slow.conditions)
    }

    @Test func theLinkFollowsTheTimeline() throws {
        let timeline = try Timeline([.init(at: .zero, .hold(slow)), .init(at: .seconds(1), .hold(fast))])
        var link = PacketLink<Int>(.clear, seed: 1, name: "link")
        link.startTimeline(timeline, from: .zero, at: .start)
        #expect(link.timelineDeadline == 1_000_000_000)
        #expect(link.conditions == slow.conditions)
        link.advanceTimeline()
        #expect(link.conditions == fast.conditions)
        #expect(link.timelineDeadline == .max)
        link.startTimeline(timeline, from: .seconds(3), at: Instant(.seconds(2)))
        #expect(link.conditions == fast.conditions)
        link.setConditions(.clear)
        #expect(link.timeline == nil)
    }

    @Test func invalidTimelinesAreRejectedWithTheIndexOfTheEntry() {
        let cases: [(entries: [Timeline.Entry], repeats: Nanoseconds?, index: Int?)] = [
            ([], nil, nil),
            ([.init(at: .seconds(1), .hold(slow))], nil, 0),
            ([.init(at: .zero, .ramp(to: slow, over: .seconds(1)))], nil, 0),
            ([.init(at: .zero, .hold(slow)), .init(at: .zero, .hold(fast))], nil, 1),
            (
                [
                    .init(at: .zero, .hold(slow)), .init(at: .seconds(5), .hold(fast)),
                    .init(at: .seconds(4), .hold(slow)),
                ],
                nil, 2
            ),
            (
                [
                    .init(at: .zero, .hold(slow)), .init(at: .seconds(1), .ramp(to: fast, over: .seconds(3))),
                    .init(at: .seconds(2), .hold(slow)),
                ], nil, 1
            ),
            ([.init(at: .zero, .flap([], jitter: .zero))], nil, 0),
            ([.init(at: .zero, .flap([.init(slow, .milliseconds(9))], jitter: .zero))], nil, 0),
            ([.init(at: .zero, .hold(slow)), .init(at: .seconds(5), .hold(fast))], .seconds(5), nil),
            ([.init(at: .zero, .hold(slow)), .init(at: .seconds(86_401), .hold(fast))], nil, 1),
            ([.init(at: .zero, .hold(slow))], .seconds(90_000), nil),
        ]
        for (number, bad) in cases.enumerated() {
            let error = #expect(throws: TimelineError.self) {
                _ = try Timeline(bad.entries, repeatsAfter: bad.repeats)
            }
            #expect(error?.index == bad.index, "case \(number): \(error?.message ?? "")")
        }
    }
}
