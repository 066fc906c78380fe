import Testing

@testable import LinkModel

@Suite struct PipeTests {
    private let ms = { (count: Int64) in Instant(.milliseconds(count)) }

    @Test func aPacketTakesItsSerialisationAndTheDelay() {
        var pipe = Pipe(DirectionConditions(rate: .kilobits(780), delay: .milliseconds(100)))
        let fate = pipe.offer(bytes: 1500, at: .start)
        // 1500 B at 780 kbit/s: 12 000 bit / 780 000 bit/s = 15.384615... ms, rounded up to whole nanoseconds.
        #expect(fate == .arrives(Instant(Nanoseconds(115_384_616))))
    }

    @Test func packetsQueueBehindEachOtherAndAnIdleLinkEarnsNothing() {
        var pipe = Pipe(DirectionConditions(rate: .kilobits(8), delay: .milliseconds(500)))
        let fates = [Instant.start, .start, ms(1000)].map { pipe.offer(bytes: 100, at: $0) }
        #expect(fates == [.arrives(ms(600)), .arrives(ms(700)), .arrives(ms(1600))])
    }

    @Test func thePacketBeingSentTakesAPlaceInTheQueue() throws {
        let queue = try #require(QueueLimit(packets: 2))
        var pipe = Pipe(DirectionConditions(rate: .kilobits(8), queue: queue))
        let fates = [Instant.start, .start, .start, ms(100)].map { pipe.offer(bytes: 100, at: $0) }
        #expect(fates == [.arrives(ms(100)), .arrives(ms(200)), .full(until: ms(100)), .arrives(ms(300))])
        let depth = pipe.depth(at: ms(250))
        #expect(depth == 1)
    }

    @Test func everythingIsLostAtHundredPercent() {
        var pipe = Pipe(DirectionConditions(loss: .all))
        let fate = pipe.offer(bytes: 100, at: .start)
        #expect(fate == .lost)
        #expect(pipe.counters.packetsLost == 1)
        #expect(pipe.counters.packets == 0)
    }

    @Test func aChangeActsOnLaterPacketsAndKeepsTheOrder() {
        var pipe = Pipe(DirectionConditions(delay: .milliseconds(400)))
        let before = pipe.offer(bytes: 100, at: .start)
        pipe.setConditions(.clear)
        #expect(!pipe.isStraight(at: ms(10)), "a packet is still ahead")
        let after = pipe.offer(bytes: 100, at: ms(10))
        #expect([before, after] == [.arrives(ms(400)), .arrives(ms(400))])
        #expect(pipe.isStraight(at: ms(400)))
    }

    @Test func rateIsWholeNanosecondsRoundedUp() throws {
        #expect(Rate.kilobits(1).serialisation(ofBytes: 1) == .milliseconds(8))
        let odd = try #require(Rate(bitsPerSecond: 1_638_400))
        #expect(odd.serialisation(ofBytes: 1500) == Nanoseconds(7_324_219))
        #expect(Rate(bitsPerSecond: 0) == nil)
        #expect(Rate(bitsPerSecond: 99) == nil)
        #expect(Rate(bitsPerSecond: 100_000_000_001) == nil)
    }

    @Test func wordsForPeople() {
        #expect(Rate.kilobits(780).description == "780 kbit/s")
        #expect(Rate.kilobits(50_000).description == "50 Mbit/s")
        #expect(Loss(partsPerMillion: 15_000)?.description == "1.5 %")
        #expect(Loss.all.description == "100 %")
        #expect(Loss(partsPerMillion: 1)?.description == "0.0001 %")
    }
}
