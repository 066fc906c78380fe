import Determinism
import Testing

@testable import LinkModel

/// Packets with a payload that the link does not know.
@Suite struct PacketLinkTests {
    private static let id = FlowID(index: 0, generation: 0)

    private func link(_ up: DirectionConditions) -> PacketLink<String> {
        PacketLink(Conditions(up: up, down: .clear), seed: 1, name: "link")
    }

    /// Takes the next packet of either direction.
    private func takeNext(_ link: inout PacketLink<String>) -> String? {
        let next = link.nextArrival
        return next.time == .max ? nil : link.takeArrival(next.direction)?.payload
    }

    @Test func packetsArriveInOrderOfTimeAndThenOfSequence() {
        var link = link(DirectionConditions(rate: .kilobits(8), delay: .milliseconds(1)))
        var flow = link.makeFlow(seed: 1, name: "flow/0")
        // A byte per millisecond: the first packet leaves after 100 ms, the second after 150 ms.
        let first = link.offer("first", bytes: 100, of: Self.id, state: &flow.up, .up, at: 0)
        let second = link.offer("second", bytes: 50, of: Self.id, state: &flow.up, .up, at: 0)
        #expect(first == 101_000_000 && second == 151_000_000)
        _ = link.offer("down", bytes: 1500, of: Self.id, state: &flow.down, .down, at: 100_500_000)
        _ = link.offer("tie", bytes: 1500, of: Self.id, state: &flow.down, .down, at: 151_000_000)
        var order: [String] = []
        while let payload = takeNext(&link) { order.append(payload) }
        #expect(order == ["down", "first", "second", "tie"])
        #expect(link.isIdle)
    }

    @Test func flowsShareTheQueue() {
        var link = link(DirectionConditions(rate: .kilobits(8), queue: .packets(2)))
        var flows = (0..<3).map { link.makeFlow(seed: 1, name: "flow/\($0)") }
        let arrivals = flows.indices.map {
            link.offer("\($0)", bytes: 100, of: Self.id, state: &flows[$0].up, .up, at: 0)
        }
        #expect(arrivals == [100_000_000, 200_000_000, nil])
        #expect(link.counters(.up).packetsDropped == 1)
        #expect(link.queueDepth(.up, at: 150_000_000) == 1)
    }

    @Test func anOutageLosesPacketsAndKeepsTheConditions() {
        var link = link(DirectionConditions(delay: .milliseconds(1)))
        var flow = link.makeFlow(seed: 1, name: "flow/0")
        link.setOutage(PerDirection(up: true, down: false))
        #expect(link.isBlocked(.up) && !link.isBlocked(.down))
        #expect(link.offer("lost", bytes: 100, of: Self.id, state: &flow.up, .up, at: 0) == nil)
        link.setOutage(PerDirection(up: false, down: false))
        #expect(link.offer("passes", bytes: 100, of: Self.id, state: &flow.up, .up, at: 0) == 1_000_000)
        #expect(link.conditions.up.loss == .zero)
    }
}
