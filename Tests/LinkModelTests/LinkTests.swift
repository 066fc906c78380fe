import Testing

@testable import LinkModel

/// A link in virtual time that writes down what happens.
private struct World {
    var link: Link
    var now = Instant.start
    var seen: [FlowOccurrence] = []

    init(_ conditions: Conditions) { link = Link(conditions) }

    mutating func run(until end: Instant = Instant(.seconds(3600))) {
        while link.runNext(until: end) {
            while let occurrence = link.takeOccurrence() { seen.append(occurrence) }
        }
        now = max(now, seen.last?.time ?? now)
    }

    func times(_ flow: FlowID, _ direction: Direction) -> [Nanoseconds] {
        seen.filter { $0.flow == flow && $0.event != .finished(direction) }.compactMap {
            if case .delivered(_, direction) = $0.event { $0.time.sinceStart } else { nil }
        }
    }

    func bytes(_ flow: FlowID, _ direction: Direction) -> Int {
        seen.filter { $0.flow == flow }.reduce(0) { sum, occurrence in
            if case .delivered(let bytes, direction) = occurrence.event { sum + bytes } else { sum }
        }
    }
}

private let edge = Conditions(
    up: DirectionConditions(rate: .kilobits(200), delay: .milliseconds(440)),
    down: DirectionConditions(rate: .kilobits(240), delay: .milliseconds(400)))
private let slow = DirectionConditions(rate: .kilobits(800), delay: .milliseconds(50))
private let even = Conditions(up: slow, down: slow)

@Suite struct LinkTests {
    @Test func aRequestPaysForHandshakeHeadersAndBothDelays() {
        var world = World(edge)
        let flow = world.link.open(at: .start)
        let arrivesAtOnce = world.link.send(100, on: flow, .up, at: .start)
        #expect(!arrivesAtOnce)
        world.run()
        // SYN 60 B at 200 kbit/s 2.4 ms + 440 + SYN-ACK 60 B at 240 kbit/s 2 ms + 400 + ACK 52 B 2.08 ms
        // + 152 B 6.08 ms + 440
        let expected: Int64 = 2_400 + 440_000 + 2_000 + 400_000 + 2_080 + 6_080 + 440_000
        #expect(world.times(flow, .up) == [.microseconds(expected)])
    }

    @Test func theServerMaySpeakFirstOnceTheHandshakeIsComplete() {
        var world = World(even)
        let flow = world.link.open(at: .start)
        _ = world.link.send(48, on: flow, .down, at: .start)
        world.run()
        // 60 B at 800 kbit/s are 0.6 ms; the ACK 0.52 ms; 100 B 1 ms; three delays before, one after.
        let expected: Int64 = 600 + 600 + 520 + 3 * 50_000 + 1_000 + 50_000
        #expect(world.times(flow, .down) == [.microseconds(expected)])
    }

    @Test func aStreamIsCutIntoSegmentsAndPaysHeadersForEach() {
        var world = World(even)
        let flow = world.link.open(at: .start)
        _ = world.link.send(3000, on: flow, .up, at: .start)
        world.run()
        let first: Int64 = 600 + 600 + 2 * 50_000 + 520 + 15_000 + 50_000
        let second = first + 15_000
        let third = second + (104 + 52) * 10
        #expect(world.times(flow, .up) == [first, second, third].map(Nanoseconds.microseconds))
        #expect(world.bytes(flow, .up) == 3000)
    }

    @Test func connectionsShareTheLink() {
        var alone = World(even)
        let one = alone.link.open(at: .start)
        _ = alone.link.send(200_000, on: one, .up, at: .start)
        alone.run()

        var together = World(even)
        let flows = [together.link.open(at: .start), together.link.open(at: .start)]
        for flow in flows { _ = together.link.send(100_000, on: flow, .up, at: .start) }
        together.run()
        let ends = flows.map { together.times($0, .up).last ?? .zero }
        let end = alone.times(one, .up).last ?? .zero
        // The same but for one handshake more (60 + 52 B) and one more short segment.
        let last = ends.max() ?? .zero
        #expect(abs((last - end).count) < Nanoseconds.milliseconds(20).count)
        // In turn from the moment both wait: apart by what the first had put into the queue before.
        let first = ends.min() ?? .zero
        #expect(last - first <= .milliseconds(52 * 15))
        #expect(together.link.counters(.up).queueDepthMax == 50)
    }

    @Test func aFullQueueMakesTheSenderWaitAndDropsNothing() throws {
        var conditions = even
        conditions.up.queue = try #require(QueueLimit(packets: 1))
        var world = World(conditions)
        let flow = world.link.open(at: .start)
        _ = world.link.send(50_000, on: flow, .up, at: .start)
        world.link.finish(flow, .up, at: .start)
        world.run()
        #expect(world.bytes(flow, .up) == 50_000)
        #expect(world.seen.last?.event == .finished(.up))
        #expect(world.link.counters(.up).queueDepthMax == 1)
    }

    @Test func theFinIsASegmentAfterTheLastByte() {
        var world = World(even)
        let flow = world.link.open(at: .start)
        _ = world.link.send(48, on: flow, .up, at: .start)
        world.link.finish(flow, .up, at: .start)
        world.run()
        #expect(world.seen.map(\.event) == [.delivered(bytes: 48, .up), .finished(.up)])
        #expect(world.seen[1].time - world.seen[0].time == .microseconds(520), "52 B at 800 kbit/s")
    }

    @Test func hundredPercentLossStallsAndHealingLetsEverythingThrough() {
        var dead = even
        dead.up.loss = .all
        dead.down.loss = .all
        var world = World(dead)
        let flow = world.link.open(at: .start)
        _ = world.link.send(1000, on: flow, .up, at: .start)
        world.run()
        #expect(world.seen.isEmpty)
        world.link.setConditions(even, at: Instant(.seconds(60)))
        world.run()
        #expect(world.bytes(flow, .up) == 1000)
        #expect(world.times(flow, .up).allSatisfy { $0 > .seconds(60) })
    }

    @Test func whatIsInFlightWhenTheLinkDiesStillArrives() {
        var world = World(even)
        let flow = world.link.open(at: .start)
        world.run(until: Instant(.milliseconds(200)))
        _ = world.link.send(1000, on: flow, .up, at: Instant(.milliseconds(200)))
        var dead = even
        dead.up.loss = .all
        world.link.setConditions(dead, at: Instant(.milliseconds(201)))
        _ = world.link.send(500, on: flow, .up, at: Instant(.milliseconds(202)))
        world.run()
        #expect(world.bytes(flow, .up) == 1000)
    }

    @Test func aResetIsOnePacketOnTheLinkAndDropsWhatIsUnsent() throws {
        var conditions = even
        conditions.up.queue = try #require(QueueLimit(packets: 2))
        var world = World(conditions)
        let flow = world.link.open(at: .start)
        world.run(until: Instant(.seconds(1)))
        let now = Instant(.seconds(1))
        _ = world.link.send(100_000, on: flow, .up, at: now)
        let forgotten = world.link.abort(flow, from: .client, at: now)
        #expect(forgotten == 100_000 - 2 * 1448)
        world.run()
        #expect(world.bytes(flow, .up) == 2 * 1448)
        #expect(world.seen.last?.event == .reset(.up))
    }

    @Test func aResetAtHundredPercentLossIsLostForGoodAndTheNextSegmentAnsweredByAnother() {
        var world = World(even)
        let flow = world.link.open(at: .start)
        world.run(until: Instant(.seconds(1)))
        var dead = even
        dead.up.loss = .all
        world.link.setConditions(dead, at: Instant(.seconds(1)))
        _ = world.link.abort(flow, from: .client, at: Instant(.seconds(1)))
        world.link.setConditions(even, at: Instant(.seconds(2)))
        world.run()
        #expect(world.seen.isEmpty, "nobody tells the server")
        _ = world.link.send(10, on: flow, .down, at: Instant(.seconds(3)))
        world.run()
        #expect(world.seen.last?.event == .reset(.up), "the server hears of it when it speaks")
    }

    @Test func aRefusedConnectionIsToldAfterOneRoundTrip() {
        var world = World(even)
        let flow = world.link.open(at: .start)
        _ = world.link.abort(flow, from: .server, at: .start)
        world.run()
        #expect(world.seen.map(\.event) == [.reset(.down)])
        #expect(world.seen[0].time.sinceStart == .microseconds(600 + 50_000 + 400 + 50_000))
    }

    @Test func aNameLookUpDelaysTheHandshake() {
        var world = World(Conditions(up: .clear, down: .clear, dnsDelay: .seconds(3)))
        let flow = world.link.open(at: .start)
        _ = world.link.send(10, on: flow, .up, at: .start)
        world.run()
        #expect(world.times(flow, .up) == [.seconds(3)])
    }

    @Test func withNothingInForceBytesArriveAtOnce() {
        var link = Link()
        let flow = link.open(at: .start)
        let arrivesAtOnce = link.send(1_000_000, on: flow, .up, at: .start)
        #expect(arrivesAtOnce)
        #expect(link.nextDue == nil)
    }

    @Test func aNameOfAConnectionIsNeverUsedTwice() {
        var link = Link()
        let first = link.open(at: .start)
        link.remove(first)
        let second = link.open(at: .start)
        #expect(first != second)
        #expect(!link.contains(first) && link.contains(second))
        #expect(link.flowCount == 1)
    }

    @Test func whoLeavesAStalledLinkLeavesTheLine() {
        var link = Link(Conditions(up: DirectionConditions(loss: .all), down: DirectionConditions(loss: .all)))
        let stays = link.open(at: .start)
        for _ in 0..<1000 { link.remove(link.open(at: .start)) }
        #expect(link.waitingCount(.up) == 1)
        link.setConditions(even, at: .start)
        while link.runNext(until: Instant(.seconds(9))) {}
        #expect(link.waitingCount(.up) == 0)
        #expect(link.hasReachedServer(stays))
    }

    @Test func packetsOfAForgottenConnectionReachNobody() {
        var world = World(even)
        let flow = world.link.open(at: .start)
        _ = world.link.send(10, on: flow, .up, at: .start)
        world.link.remove(flow)
        let other = world.link.open(at: .start)
        world.run()
        #expect(world.seen.isEmpty)
        #expect(world.link.contains(other))
    }
}
