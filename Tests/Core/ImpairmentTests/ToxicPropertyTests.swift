import Determinism
import LinkModel
import NIOCore
import TestSupport
import Testing

@testable import Impairment

/// Random additions, updates and removals of toxics: bytes stay in order, none is invented, and the counts of bytes held balance.
@Suite(.timeLimit(.minutes(20))) struct ToxicPropertyTests {
    private static func effect(_ random: inout SeededGenerator) -> Toxic.Effect {
        let figures: [Int64] = [.min, -1, 0, 1, 7, 100, 5000, 1 << 40, .max]
        func figure() -> Int64 { figures[Int.random(in: 0..<figures.count, using: &random)] }
        switch Int.random(in: 0..<9, using: &random) {
        case 0: return .latency(latency: figure(), jitter: figure())
        case 1: return .bandwidth(rate: figure())
        case 2: return .slowClose(delay: figure())
        case 3: return .timeout(timeout: figure())
        case 4: return .resetPeer(timeout: figure())
        case 5: return .slicer(averageSize: figure(), sizeVariation: figure(), delay: figure())
        case 6: return .limitData(bytes: figure())
        case 7: return .packetLoss(lossRate: .random(in: -0.5...1.2, using: &random), correlation: 0.3)
        default: return .noop
        }
    }

    @Test(arguments: randomSeeds(40, soak: 2000))
    func randomToxicsKeepBytesInOrderAndTheCountsBalanced(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let slow = Conditions(
            up: DirectionConditions(rate: .kilobits(800), delay: .milliseconds(20)),
            down: DirectionConditions(rate: .kilobits(800), delay: .milliseconds(20)))
        var sockets = VirtualSockets(seed % 3 == 0 ? slow : .clear, seed: seed)
        var sent: [FlowID: PerDirection<[UInt8]>] = [:]
        /// Directions in which a `timeout` may have discarded bytes.
        var hasSwallowed = PerDirection(up: false, down: false)
        var closed: Set<String> = []
        for step in 0..<60 {
            let ids = Array(sent.keys).sorted { ($0.index, $0.generation) < ($1.index, $1.generation) }
                .filter { !sockets.ended.contains($0) }
            let direction = Bool.random(using: &random) ? Direction.up : .down
            switch Int.random(in: 0..<10, using: &random) {
            case 0: sent[sockets.open(connected: Bool.random(using: &random))] = PerDirection(up: [], down: [])
            case 1 where sockets.box.link.toxics.count < 6:
                let effect = Self.effect(&random)
                if case .timeout = effect { hasSwallowed[direction] = true }
                sockets.add(
                    effect, direction, toxicity: .random(in: -0.2...1.5, using: &random), name: "t\(step)")
            case 2:
                guard let toxic = sockets.box.link.toxics.randomElement(using: &random) else { continue }
                let effect = Self.effect(&random)
                if case .timeout = effect { hasSwallowed[toxic.stream] = true }
                sockets.update(effect, toxic.stream, toxicity: 0.8, name: toxic.name)
            case 3:
                if let toxic = sockets.box.link.toxics.randomElement(using: &random) { sockets.remove(toxic.name) }
            case 4: sockets.wait(.milliseconds(Int64.random(in: 0..<2000, using: &random)))
            case 5:
                guard let id = ids.randomElement(using: &random) else { continue }
                if closed.insert("\(id)\(direction)").inserted { sockets.report(.inputClosed(direction.sender), id) }
            case 6 where Int.random(in: 0..<4, using: &random) == 0:
                guard let id = ids.randomElement(using: &random) else { continue }
                closed.insert("\(id)\(direction)")
                sockets.report(.gone(direction.sender), id)
            default:
                guard let id = ids.randomElement(using: &random), !closed.contains("\(id)\(direction)") else {
                    continue
                }
                let piece = (0..<Int.random(in: 1...3000, using: &random)).map { _ in
                    UInt8.random(in: 0...255, using: &random)
                }
                sent[id]?[direction] += piece
                sockets.send(piece, from: direction.sender, id)
            }
        }
        let held = sockets.box.link.connections.map {
            sockets.box.link.bytesHeld($0, .up) + sockets.box.link.bytesHeld($0, .down)
        }
        #expect(sockets.box.link.bytesHeld == held.reduce(0, +))
        for toxic in sockets.box.link.toxics { sockets.remove(toxic.name) }
        for id in sent.keys where !sockets.ended.contains(id) { sockets.report(.connected, id) }
        sockets.runToQuiet(steps: 200_000)
        for (id, streams) in sent {
            for direction in Direction.allCases {
                let received = sockets.socket(direction.receiver, id).received
                if hasSwallowed[direction] {
                    #expect(isSubsequence(received, streams[direction]))
                } else {
                    #expect(streams[direction].starts(with: received))
                }
                let isWhole = !sockets.ended.contains(id) && !hasSwallowed[direction]
                if isWhole && !sockets.socket(direction.receiver, id).gotReset
                    && !closed.contains("\(id)\(direction.opposite)")
                {
                    #expect(received.count == streams[direction].count)
                }
            }
            if !sockets.ended.contains(id) {
                sockets.report(.gone(.client), id)
                sockets.report(.gone(.server), id)
            }
        }
        #expect(sockets.box.link.bytesHeld == 0)
        #expect(sockets.box.link.connections.isEmpty)
    }

    private func isSubsequence(_ some: [UInt8], _ all: [UInt8]) -> Bool {
        var place = some.startIndex
        for byte in all where place < some.endIndex && some[place] == byte { place += 1 }
        return place == some.endIndex
    }
}
