import Determinism
import LinkModel
import TestSupport
import Testing

@testable import TCPModel

/// Random transfers over random links: the delivered bytes are always the next of the stream, and the stream is complete
/// after an orderly close on a link that recovers.
@Suite(.timeLimit(.minutes(20))) struct TCPLinkPropertyTests {
    private struct Stream {
        var sent = 0
        var delivered = 0
        var isFinished = false
        var isEnded = false
    }

    // 40 runs of some 20 connections: more than 600 transfers.
    @Test(arguments: randomSeeds(40)) func deliveredBytesAreTheBytesSent(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let note = Comment(rawValue: "seed \(seed)")
        var link = TCPLink(
            RandomConditions.conditions(&generator), seed: seed,
            client: seed % 3 == 1 ? .apple : seed % 3 == 2 ? .rfc : .linux,
            readsImmediately: seed % 2 == 0)
        // The bytes that applications have not read.
        var unread: [FlowID: PerDirection<Int>] = [:]
        var now = Instant.start
        var flows: [FlowID] = []
        var streams: [FlowID: PerDirection<Stream>] = [:]
        var reset: Set<FlowID> = []

        var mostUnread = 0
        func readAll(_ flow: FlowID, _ link: inout TCPLink) {
            for direction in Direction.allCases {
                link.read(unread[flow]?[direction] ?? 0, on: flow, direction, at: now)
                unread[flow]?[direction] = 0
            }
        }

        func run(until end: Instant, _ link: inout TCPLink) {
            while link.advance(to: end) {
                while let event = link.takeEvent() {
                    let flow = event.flow
                    switch event.event {
                    case .established, .writable: break
                    case .delivered(let bytes, let direction):
                        streams[flow]?[direction].delivered += bytes
                        unread[flow, default: PerDirection(up: 0, down: 0)][direction] += bytes
                        mostUnread = max(mostUnread, unread[flow]?[direction] ?? 0)
                        #expect(streams[flow]?[direction].isEnded == false, note)
                    case .finished(let direction):
                        #expect(streams[flow]?[direction].isFinished == true, note)
                        #expect(streams[flow]?[direction].delivered == streams[flow]?[direction].sent, note)
                        streams[flow]?[direction].isEnded = true
                    case .reset: #expect(reset.contains(flow), note)
                    }
                }
            }
        }

        for _ in 0..<80 {
            now = now + Nanoseconds(.random(in: 0...500_000_000, using: &generator))
            run(until: now, &link)
            let choice = Int.random(in: 0..<100, using: &generator)
            guard !flows.isEmpty, choice >= 30 else {
                let flow = link.open(at: now)
                flows.append(flow)
                streams[flow] = PerDirection(up: Stream(), down: Stream())
                continue
            }
            let flow = flows.randomElement(using: &generator)!
            let direction = Bool.random(using: &generator) ? Direction.up : .down
            switch choice {
            case 30..<80 where streams[flow]![direction].isFinished == false && !reset.contains(flow):
                let bytes = Int.random(in: 1...(Bool.random(using: &generator) ? 300 : 60_000), using: &generator)
                streams[flow]![direction].sent += bytes
                link.send(bytes, on: flow, direction, at: now)
            case 80..<86 where !reset.contains(flow):
                streams[flow]![direction].isFinished = true
                link.finish(flow, direction, at: now)
            case 86..<88:
                reset.insert(flow)
                link.abort(flow, from: direction.sender, at: now)
            case 88..<92: link.setConditions(RandomConditions.conditions(&generator))
            case 92..<95:
                link.startTimeline(
                    RandomConditions.timeline(&generator),
                    from: .milliseconds(.random(in: 0...20_000, using: &generator)), at: now)
            case 95..<97:
                link.setOutage(
                    PerDirection(up: Bool.random(using: &generator), down: Bool.random(using: &generator)))
            default: readAll(flow, &link)
            }
            for flow in flows {
                for direction in Direction.allCases {
                    #expect(streams[flow]![direction].delivered <= streams[flow]![direction].sent, note)
                }
            }
        }
        link.setConditions(.clear)
        link.setOutage(PerDirection(up: false, down: false))
        for flow in flows where !reset.contains(flow) {
            for direction in Direction.allCases where !streams[flow]![direction].isFinished {
                streams[flow]![direction].isFinished = true
                link.finish(flow, direction, at: now)
            }
        }
        // Unread bytes fit into a receive buffer, which only grows with the bytes read.
        if seed % 2 == 1 { #expect(mostUnread < 1_000_000, note) }
        // Applications that have not read start to read at intervals.
        for _ in 0..<1000 where seed % 2 == 1 {
            now = now + .milliseconds(200)
            for flow in flows { readAll(flow, &link) }
            run(until: now, &link)
        }
        // The longest RTO is 120 s, the longest SYN timeout 64 s.
        run(until: now + .seconds(2000), &link)
        for flow in flows where !reset.contains(flow) {
            for direction in Direction.allCases {
                #expect(streams[flow]![direction].delivered == streams[flow]![direction].sent, note)
                #expect(streams[flow]![direction].isEnded, note)
            }
        }
    }

    /// No value of any field traps, or runs without end.
    @Test(arguments: 0..<60) func extremeConditionsDoNotTrapOrSpin(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        func direction() -> DirectionConditions {
            DirectionConditions(
                rate: [nil, Rate(bitsPerSecond: 100), Rate(bitsPerSecond: 100_000_000_000)].randomElement(
                    using: &generator)!,
                delay: [.zero, Nanoseconds(1), DirectionConditions.delayMax].randomElement(using: &generator)!,
                loss: [.zero, .one, Probability(partsPerMillion: 1)!, Probability(partsPerMillion: 999_999)!]
                    .randomElement(
                        using: &generator)!,
                queue: [.packets(1), .packets(100_000), .bytes(1), .bytes(150_000_000)].randomElement(
                    using: &generator)!,
                jitter: [
                    nil, Jitter(span: DirectionConditions.delayMax, distribution: .normal),
                    Jitter(span: DirectionConditions.delayMax, distribution: .pareto, mayOvertake: true),
                ].randomElement(using: &generator)!,
                bursts: [
                    nil, .gilbertElliott(becomesBad: .one, becomesGood: .zero, lossInBad: .one, lossInGood: .one),
                    .timed(good: .zero, bad: .zero, lossInBad: .one, lossInGood: .zero),
                ].randomElement(using: &generator)!,
                duplication: [.zero, .one].randomElement(using: &generator)!,
                reordering: [.zero, .one].randomElement(using: &generator)!)
        }
        var link = TCPLink(Conditions(up: direction(), down: direction()), seed: seed)
        let flow = link.open(at: .start)
        link.send(300_000, on: flow, .up, at: .start)
        link.send(300_000, on: flow, .down, at: .start)
        var steps = 0
        while steps < 200_000, link.advance(to: Instant(.seconds(100_000))) { steps += 1 }
        #expect(steps < 200_000, "seed \(seed) spins")
    }

    /// The digest of a thousand mixed transfers is the same in debug and release, in every process and on every machine. A
    /// change of the model changes it; update it here then.
    @Test func theDigestOfAThousandTransfersIsStable() {
        // As FNV-1a, with words instead of bytes.
        var digest: UInt64 = 0xCBF2_9CE4_8422_2325
        func mix(_ value: Int64) {
            digest = (digest ^ UInt64(bitPattern: value)) &* 0x0000_0100_0000_01B3
        }
        var generator = SeededGenerator(seed: 11)
        var count = 0
        while count < 1000 {
            var conditions = RandomConditions.conditions(&generator)
            if conditions.up.loss == .one { conditions.up.loss = .zero }
            if conditions.down.loss == .one { conditions.down.loss = .zero }
            var link = TCPLink(conditions, seed: UInt64(count))
            for index in 0..<20 {
                let start = Instant(.milliseconds(Int64(index) * 300))
                let flow = link.open(at: start)
                link.send(.random(in: 1...50_000, using: &generator), on: flow, .up, at: start)
                link.send(.random(in: 1...50_000, using: &generator), on: flow, .down, at: start)
                count += 1
            }
            while link.advance(to: Instant(.seconds(120))) {
                while let event = link.takeEvent() {
                    mix(event.time.sinceStart.count)
                    mix(Int64(event.flow.index))
                    if case .delivered(let bytes, let direction) = event.event {
                        mix(Int64(direction == .up ? bytes : -bytes))
                    }
                }
            }
        }
        #expect(digest == 6_094_376_778_150_473_738, "the digest is \(digest)")
    }
}
