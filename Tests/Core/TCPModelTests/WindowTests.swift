import Determinism
import LinkModel
import Testing

@testable import TCPModel

/// Applications that read late, and the limits of kernel buffers.
@Suite struct WindowTests {
    private final class Recorder {
        var link: TCPLink
        var delivered = 0
        var writableTimes: [Double] = []
        var lastAt = 0.0

        init(_ conditions: Conditions) { link = TCPLink(conditions, seed: 1, readsImmediately: false) }

        func run(until end: Nanoseconds) {
            while link.advance(to: Instant(end)) {
                while let event = link.takeEvent() {
                    switch event.event {
                    case .delivered(let bytes, .down):
                        delivered += bytes
                        lastAt = event.time.sinceStart.inSeconds
                    case .writable(.down): writableTimes.append(event.time.sinceStart.inSeconds)
                    default: break
                    }
                }
            }
        }
    }

    private let conditions = Conditions(
        up: DirectionConditions(rate: .kilobits(10_000), delay: .milliseconds(20)),
        down: DirectionConditions(rate: .kilobits(10_000), delay: .milliseconds(20)))

    /// Linux's first receive buffer of 128 KiB holds 82 kB of full segments.
    @Test func aReceiverThatDoesNotReadGetsOneBufferAndWindowProbes() throws {
        let recorder = Recorder(conditions)
        let flow = recorder.link.open(at: .start)
        recorder.link.send(1_000_000, on: flow, .down, at: .start)
        recorder.run(until: .seconds(5))
        #expect((65_535...82_500).contains(recorder.delivered), "\(recorder.delivered)")
        // Then only window probes are sent, after 0.24 s, doubled each time.
        let before = recorder.link.counters(.down).packets
        recorder.run(until: .seconds(60))
        let probes = recorder.link.counters(.down).packets - before
        #expect((3...5).contains(probes), "\(probes)")
        #expect(recorder.delivered <= 82_500)
    }

    @Test func readingOpensTheWindowAgain() throws {
        let recorder = Recorder(conditions)
        let flow = recorder.link.open(at: .start)
        recorder.link.send(300_000, on: flow, .down, at: .start)
        recorder.run(until: .seconds(5))
        var read = 0
        var now = Nanoseconds.seconds(5)
        while read < 300_000, now < .seconds(10) {
            recorder.link.read(recorder.delivered - read, on: flow, .down, at: Instant(now))
            read = recorder.delivered
            now = now + .milliseconds(10)
            recorder.run(until: now)
        }
        #expect(read == 300_000)
        #expect(
            recorder.lastAt < 5.5, "the window update is sent at once, not after the next probe: \(recorder.lastAt)")
    }

    /// The window update is lost: the next probe finds the window open.
    @Test func aProbeRepairsALostWindowUpdate() throws {
        let recorder = Recorder(conditions)
        let flow = recorder.link.open(at: .start)
        recorder.link.send(200_000, on: flow, .down, at: .start)
        recorder.run(until: .seconds(5))
        let before = recorder.delivered
        recorder.link.setOutage(PerDirection(up: true, down: false))
        recorder.link.read(before, on: flow, .down, at: Instant(.seconds(5)))
        recorder.link.setOutage(PerDirection(up: false, down: false))
        recorder.run(until: .milliseconds(5500))
        #expect(recorder.delivered == before)
        recorder.run(until: .seconds(15))
        #expect(recorder.delivered > before)
    }

    /// Twice 10 segments of 4352 bytes: 87 040 bytes. The send buffer grows with the congestion window.
    @Test func aFullSendBufferReportsSpaceAgain() throws {
        let recorder = Recorder(conditions)
        let flow = recorder.link.open(at: .start)
        #expect(recorder.link.sendBufferSpace(flow, .down) == 87_040)
        recorder.link.send(87_040, on: flow, .down, at: .start)
        #expect(recorder.link.sendBufferSpace(flow, .down) == 0)
        var now = Nanoseconds.zero
        var read = 0
        while recorder.writableTimes.isEmpty, now < .seconds(5) {
            now = now + .milliseconds(1)
            recorder.run(until: now)
            recorder.link.read(recorder.delivered - read, on: flow, .down, at: Instant(now))
            read = recorder.delivered
        }
        #expect(recorder.writableTimes.count == 1)
        #expect(recorder.link.sendBufferSpace(flow, .down) >= 87_040 / 3)
    }
}

/// The adaptation of a sender to reordering.
@Suite struct ReorderingTests {
    /// Overtaken packets look lost until the sender has detected the reordering.
    @Test func aSenderAdaptsToReordering() {
        var conditions = Conditions(
            up: DirectionConditions(delay: .milliseconds(20)),
            down: DirectionConditions(
                rate: .kilobits(20_000), delay: .milliseconds(20), reordering: Probability(partsPerMillion: 20_000)!))
        func packets() -> Int {
            var link = TCPLink(conditions, seed: 4)
            let flow = link.open(at: .start)
            link.send(3_000_000, on: flow, .down, at: .start)
            while link.advance(to: Instant(.seconds(100))) { while link.takeEvent() != nil {} }
            return link.counters(.down).packets
        }
        let reordered = packets()
        conditions.down.reordering = .zero
        let inOrder = packets()
        // Of some 40 reordered packets among 2072, only the first few cause retransmissions.
        #expect(reordered - inOrder < 150, "\(reordered) \(inOrder)")
        #expect(reordered > inOrder)
    }
}
