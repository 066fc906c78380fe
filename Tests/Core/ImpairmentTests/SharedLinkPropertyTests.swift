import Determinism
import LinkModel
import NIOCore
import TCPModel
import TestSupport
import Testing

@testable import Impairment

/// Random events in random order: bytes keep their order, none is invented, none is lost without a reset, and the limits on bytes
/// held apply.
@Suite struct SharedLinkPropertyTests {
    private static let limits = BufferLimits(
        bytesMaxTotal: 200_000, bytesMaxPerDirection: 50_000, bytesMinPerDirection: 5_000,
        socketBytesMax: 30_000)
    private static let chunkBytesMax = 9_000

    private struct Peer {
        var sent: [UInt8] = []
        var hasClosed = false
        var isGone = false
        var isReadable = true
    }

    private static func conditions(_ generator: inout SeededGenerator) -> Conditions {
        func direction() -> DirectionConditions {
            let rate =
                Bool.random(using: &generator)
                ? nil : Rate(bitsPerSecond: .random(in: 20_000...50_000_000, using: &generator))
            let queue = QueueLimit(packets: .random(in: 1...60, using: &generator)) ?? .standard
            return DirectionConditions(
                rate: rate, delay: Nanoseconds(.random(in: 0...500_000_000, using: &generator)),
                loss: [
                    .zero, .zero, .zero, .one, Probability(partsPerMillion: 50_000) ?? .zero,
                    Probability(partsPerMillion: 300_000) ?? .zero,
                ][
                    Int.random(in: 0..<6, using: &generator)], queue: queue)
        }
        if Int.random(in: 0..<4, using: &generator) == 0 { return .clear }
        return Conditions(
            up: direction(), down: direction(),
            dnsDelay: Int.random(in: 0..<10, using: &generator) == 0 ? .milliseconds(300) : .zero)
    }

    // 20 runs of 80 events: 1600 inputs.
    @Test(arguments: randomSeeds(8, soak: 400)) func randomEventsKeepBytesInOrderCompleteAndWithinLimits(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var sockets = VirtualSockets(
            Self.conditions(&generator), limits: Self.limits, observation: seed % 2 == 1 ? .packets : [])
        var peers: [FlowID: PerDirection<Peer>] = [:]
        var ids: [FlowID] = []
        var everReset: Set<FlowID> = []
        let comment = Comment(rawValue: "seed \(seed)")

        for _ in 0..<80 {
            let choice = Int.random(in: 0..<100, using: &generator)
            if ids.isEmpty || (choice < 5 && ids.count < 6) {
                let id = sockets.open(connected: Bool.random(using: &generator))
                ids.append(id)
                peers[id] = PerDirection(up: Peer(), down: Peer())
                continue
            }
            let id = ids.randomElement(using: &generator)!
            let side = Bool.random(using: &generator) ? Side.client : .server
            let isMute = peers[id]![side.sendDirection].hasClosed || peers[id]![side.sendDirection].isGone
            switch choice {
            case 5..<50 where !isMute && !sockets.socket(side, id).isPaused && !sockets.ended.contains(id):
                let count = Int.random(in: 1...Self.chunkBytesMax, using: &generator)
                let start = peers[id]![side.sendDirection].sent.count
                let bytes = (0..<count).map { UInt8(truncatingIfNeeded: ($0 + start) &* 31 &+ id.index) }
                peers[id]![side.sendDirection].sent += bytes
                sockets.send(bytes, from: side, id)
            case 50..<56 where !isMute:
                peers[id]![side.sendDirection].hasClosed = true
                sockets.report(.inputClosed(side), id)
            case 56..<59:
                peers[id]![side.sendDirection].isGone = true
                everReset.insert(id)
                sockets.report(.gone(side), id)
            case 59..<66:
                sockets.report(.connected, id)
            case 66..<74:
                sockets.setRead(Bool.random(using: &generator), side, id)
            case 74..<80:
                sockets.setConditions(Self.conditions(&generator))
            default:
                sockets.wait(Nanoseconds(.random(in: 0...400_000_000, using: &generator)))
            }
            var held = 0
            for id in ids {
                for direction in Direction.allCases {
                    let bytes = sockets.box.link.bytesHeld(id, direction)
                    held += bytes
                    #expect(bytes <= Self.limits.bytesMaxPerDirection + Self.chunkBytesMax, comment)
                }
            }
            #expect(held == sockets.box.link.bytesHeld, comment)
        }
        Self.expectPrefixes(ids, peers, sockets, comment)

        // Without conditions, all bytes sent arrive once they are read, and all connections end.
        sockets.setConditions(.clear)
        for id in ids {
            sockets.report(.connected, id)
            for side in Side.allCases { sockets.setRead(true, side, id) }
        }
        sockets.runToQuiet()
        for id in ids {
            for side in Side.allCases
            where !peers[id]![side.sendDirection].hasClosed && !peers[id]![side.sendDirection].isGone {
                sockets.report(.inputClosed(side), id)
            }
        }
        sockets.runToQuiet()
        Self.expectPrefixes(ids, peers, sockets, comment)
        for id in ids where !everReset.contains(id) {
            #expect(sockets.ended.contains(id), comment)
            for direction in Direction.allCases {
                #expect(sockets.socket(direction.receiver, id).received == peers[id]![direction].sent, comment)
                #expect(sockets.socket(direction.receiver, id).gotFin, comment)
                #expect(!sockets.socket(direction.receiver, id).gotReset, comment)
            }
        }
        Self.expectPayloadsMatchSentBytes(peers, sockets, comment)
        #expect(sockets.box.link.bytesHeld == 0, comment)
        #expect(sockets.box.link.nextDeadline == nil, comment)
        #expect(sockets.box.link.connectionCount == 0, comment)
    }

    /// A recorded payload is the bytes that were sent; only a retransmission may have none.
    private static func expectPayloadsMatchSentBytes(
        _ peers: [FlowID: PerDirection<Peer>], _ sockets: VirtualSockets, _ comment: Comment
    ) {
        for packet in sockets.packets where packet.record.payloadBytes > 0 {
            let record = packet.record
            let start = Int(record.range.lowerBound)
            let sent = peers[record.flow]![record.direction].sent[start..<start + record.payloadBytes]
            if let payload = packet.payload {
                #expect(payload.readableBytesView.elementsEqual(sent), comment)
            } else {
                #expect(record.isRetransmission, comment)
            }
        }
    }

    private static func expectPrefixes(
        _ ids: [FlowID], _ peers: [FlowID: PerDirection<Peer>], _ sockets: VirtualSockets, _ comment: Comment
    ) {
        for id in ids {
            for direction in Direction.allCases {
                let received = sockets.socket(direction.receiver, id).received[...]
                #expect(received.count <= peers[id]![direction].sent.count, comment)
                #expect(peers[id]![direction].sent.prefix(received.count) == received, comment)
            }
        }
    }
}
