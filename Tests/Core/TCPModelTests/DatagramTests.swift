import Determinism
import LinkModel
import Testing

@testable import TCPModel

/// Datagrams of other protocols on the link of connections.
@Suite struct DatagramTests {
    private static func link(_ up: DirectionConditions, down: DirectionConditions = .clear, seed: UInt64 = 1) -> TCPLink
    {
        TCPLink(Conditions(up: up, down: down), seed: seed)
    }

    @Test func aDatagramTakesRateAndDelay() {
        var link = Self.link(DirectionConditions(rate: .kilobits(8), delay: .milliseconds(50)))
        #expect(link.offerDatagram(bytes: 100, .up, at: .start) == .start + .milliseconds(150))
        // The second one waits for the first.
        #expect(link.offerDatagram(bytes: 100, .up, at: .start) == .start + .milliseconds(250))
        #expect(link.offerDatagram(bytes: 100, .down, at: .start) == .start)
        #expect(link.counters(.up).packets == 2 && link.counters(.up).bytes == 200)
        #expect(link.isIdle && link.nextDeadline == nil, "the caller carries the datagram")
    }

    @Test func connectionsWaitForDatagramsInTheQueue() {
        var alone = Self.link(DirectionConditions(rate: .kilobits(8)))
        var shared = Self.link(DirectionConditions(rate: .kilobits(8)))
        _ = shared.offerDatagram(bytes: 500, .up, at: .start)
        _ = alone.open(at: .start)
        _ = shared.open(at: .start)
        #expect(alone.nextDeadline == .start + .milliseconds(60))
        #expect(shared.nextDeadline == .start + .milliseconds(560))
    }

    @Test func datagramsAreLostAtTheLossRateAndDoNotShiftTheLossesOfConnections() {
        let conditions = DirectionConditions(loss: Probability(partsPerMillion: 300_000)!)
        var first = Self.link(conditions)
        var second = Self.link(conditions)
        var lost = 0
        for _ in 0..<1_000 where second.offerDatagram(bytes: 60, .up, at: .start) == nil { lost += 1 }
        #expect((220...380).contains(lost))
        for _ in 0..<50 {
            _ = first.open(at: .start)
            _ = second.open(at: .start)
        }
        #expect(first.counters(.up).packetsLost == second.counters(.up).packetsLost - lost)
    }

    @Test func anOutageLosesAllDatagramsOfItsDirection() {
        var link = Self.link(.clear)
        link.setOutage(PerDirection(up: false, down: true))
        #expect(link.offerDatagram(bytes: 60, .up, at: .start) == .start)
        #expect(link.offerDatagram(bytes: 60, .down, at: .start) == nil)
    }
}
