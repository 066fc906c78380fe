import Testing

@testable import LinkModel

/// Applications that read late, and kernels that hold only so much.
@Suite struct WindowTests {
    private final class Tape {
        var link: TCPLink
        var delivered = 0
        var rooms: [Double] = []
        var lastAt = 0.0

        init(_ conditions: Conditions) { link = TCPLink(conditions, seed: 1, readsAtOnce: false) }

        func run(until end: Nanoseconds) {
            while link.runNext(until: Instant(end)) {
                while let occurrence = link.takeOccurrence() {
                    switch occurrence.event {
                    case .delivered(let bytes, .down):
                        delivered += bytes
                        lastAt = occurrence.time.sinceStart.inSeconds
                    case .room(.down): rooms.append(occurrence.time.sinceStart.inSeconds)
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
    @Test func whoDoesNotReadGetsABufferfulAndProbes() throws {
        let tape = Tape(conditions)
        let flow = tape.link.open(at: .start)
        tape.link.send(1_000_000, on: flow, .down, at: .start)
        tape.run(until: .seconds(5))
        #expect((65_535...82_500).contains(tape.delivered), "\(tape.delivered)")
        // From here on only probes, backed off: 0.24 s, doubled each time.
        let before = tape.link.counters(.down).packets
        tape.run(until: .seconds(60))
        let probes = tape.link.counters(.down).packets - before
        #expect((3...5).contains(probes), "\(probes)")
        #expect(tape.delivered <= 82_500)
    }

    @Test func theWindowOpensAgainWhenTheyRead() throws {
        let tape = Tape(conditions)
        let flow = tape.link.open(at: .start)
        tape.link.send(300_000, on: flow, .down, at: .start)
        tape.run(until: .seconds(5))
        var read = 0
        var now = Nanoseconds.seconds(5)
        while read < 300_000, now < .seconds(10) {
            tape.link.read(tape.delivered - read, on: flow, .down, at: Instant(now))
            read = tape.delivered
            now = now + .milliseconds(10)
            tape.run(until: now)
        }
        #expect(read == 300_000)
        #expect(tape.lastAt < 5.5, "told at once, not by the next probe: \(tape.lastAt)")
    }

    /// The window's opening is lost: the next probe finds out.
    @Test func aLostOpeningIsFoundByAProbe() throws {
        let tape = Tape(conditions)
        let flow = tape.link.open(at: .start)
        tape.link.send(200_000, on: flow, .down, at: .start)
        tape.run(until: .seconds(5))
        let before = tape.delivered
        tape.link.setCut(PerDirection(up: true, down: false))
        tape.link.read(before, on: flow, .down, at: Instant(.seconds(5)))
        tape.link.setCut(PerDirection(up: false, down: false))
        tape.run(until: .milliseconds(5500))
        #expect(tape.delivered == before)
        tape.run(until: .seconds(15))
        #expect(tape.delivered > before)
    }

    /// 10 segments charged with 4352 bytes, twice: 87 040 bytes; as the window grows, so does what is held.
    @Test func theKernelOfTheSenderTakesSoMuchAndTellsWhenThereIsRoom() throws {
        let tape = Tape(conditions)
        let flow = tape.link.open(at: .start)
        #expect(tape.link.sendRoom(flow, .down) == 87_040)
        tape.link.send(87_040, on: flow, .down, at: .start)
        #expect(tape.link.sendRoom(flow, .down) == 0)
        var now = Nanoseconds.zero
        var read = 0
        while tape.rooms.isEmpty, now < .seconds(5) {
            now = now + .milliseconds(1)
            tape.run(until: now)
            tape.link.read(tape.delivered - read, on: flow, .down, at: Instant(now))
            read = tape.delivered
        }
        #expect(tape.rooms.count == 1)
        #expect(tape.link.sendRoom(flow, .down) >= 87_040 / 3)
    }
}

/// What reordering teaches a sender.
@Suite struct ReorderingTests {
    /// Packets that overtake look like losses until the sender has seen that they are not.
    @Test func aSenderLearnsThatPacketsOvertake() {
        var conditions = Conditions(
            up: DirectionConditions(delay: .milliseconds(20)),
            down: DirectionConditions(
                rate: .kilobits(20_000), delay: .milliseconds(20), reordering: Loss(partsPerMillion: 20_000)!))
        func packets() -> Int {
            var link = TCPLink(conditions, seed: 4)
            let flow = link.open(at: .start)
            link.send(3_000_000, on: flow, .down, at: .start)
            while link.runNext(until: Instant(.seconds(100))) { while link.takeOccurrence() != nil {} }
            return link.counters(.down).packets
        }
        let reordered = packets()
        conditions.down.reordering = .none
        let inOrder = packets()
        // 2072 segments; of some 40 overtakings only the first few cost repairs.
        #expect(reordered - inOrder < 150, "\(reordered) \(inOrder)")
        #expect(reordered > inOrder)
    }
}
