import Determinism
import LinkModel
import NIOCore
import TestSupport
import Testing

@testable import Impairment

/// Attributes come unchecked from API callers: no value traps, loops or changes bytes.
@Suite(.timeLimit(.minutes(20))) struct ToxicExtremesTests {
    private static let counts: [Int64] = [
        .min, -1, 0, 1, 2, 1000, 1 << 31, 1_000_000_000_000, 9_223_372_036_854, 1 << 62, .max,
    ]
    private static let shares: [Double] = [
        .nan, -.nan, .infinity, -.infinity, -0.0, 0.5, 1, .greatestFiniteMagnitude, .leastNonzeroMagnitude,
    ]

    private static func effect(_ generator: inout SeededGenerator) -> Toxic.Effect {
        func count() -> Int64 { counts.randomElement(using: &generator)! }
        func share() -> Double { shares.randomElement(using: &generator)! }
        switch Int.random(in: 0..<9, using: &generator) {
        case 0: return .latency(latency: count(), jitter: count())
        case 1: return .bandwidth(rate: count())
        case 2: return .slowClose(delay: count())
        case 3: return .timeout(timeout: count())
        case 4: return .resetPeer(timeout: count())
        case 5: return .slicer(averageSize: count(), sizeVariation: count(), delay: count())
        case 6: return .limitData(bytes: count())
        case 7: return .packetLoss(lossRate: share(), correlation: share())
        default: return .noop
        }
    }

    @Test(arguments: randomSeeds(20)) func noAttributeValueTrapsOrLoops(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let comment = Comment(rawValue: "seed \(seed)")
        let way = DirectionConditions(delay: .milliseconds(10))
        var sockets = VirtualSockets(seed % 2 == 0 ? .clear : Conditions(up: way, down: way), seed: seed)
        var ids: [FlowID] = []
        var sent: [FlowID: PerDirection<[UInt8]>] = [:]
        var names: [String] = []
        for step in 0..<60 {
            let stream = Direction.allCases.randomElement(using: &generator)!
            let toxicity = Self.shares.randomElement(using: &generator)!
            switch Int.random(in: 0..<10, using: &generator) {
            case 0 where names.count < 6:
                names.append("t\(step)")
                sockets.add(Self.effect(&generator), stream, toxicity: toxicity, name: "t\(step)")
            case 1:
                if let toxic = sockets.box.link.toxics.randomElement(using: &generator) {
                    sockets.update(Self.effect(&generator), toxic.stream, toxicity: toxicity, name: toxic.name)
                }
            case 2:
                if let name = names.randomElement(using: &generator) {
                    names.removeAll { $0 == name }
                    sockets.remove(name)
                }
            case 3, 4:
                let id = sockets.open()
                ids.append(id)
                sent[id] = PerDirection(up: [], down: [])
            case 5...7:
                guard let id = ids.randomElement(using: &generator), !sockets.ended.contains(id) else { continue }
                let bytes = (0..<Int.random(in: 1...3000, using: &generator)).map {
                    UInt8(truncatingIfNeeded: $0 &+ step)
                }
                sent[id]?[stream] += bytes
                sockets.send(bytes, from: stream.sender, id)
            case 8:
                if let id = ids.randomElement(using: &generator) { sockets.report(.inputClosed(stream.sender), id) }
            default:
                // Advances by up to a year at once; the longest delay of a toxic is 31 years.
                sockets.wait(Nanoseconds([0, 1, 1_000_000, 1_000_000_000, 1 << 55].randomElement(using: &generator)!))
            }
        }
        sockets.runToQuiet(steps: 2000)
        for id in ids {
            for direction in Direction.allCases {
                let received = sockets.socket(direction.receiver, id).received
                // A `timeout` may have discarded bytes; the others are in order.
                var rest = sent[id]![direction][...]
                for byte in received {
                    guard let place = rest.firstIndex(of: byte) else {
                        Issue.record("a byte that was not sent: seed \(seed)")
                        break
                    }
                    rest = rest[(place + 1)...]
                }
            }
        }
        #expect(sockets.box.link.bytesHeld >= 0, comment)
    }
}
