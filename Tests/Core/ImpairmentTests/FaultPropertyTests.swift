import Determinism
import LinkModel
import NIOCore
import TestSupport
import Testing

@testable import Impairment

/// Random conversations with random rules that come and go, random ends, and receivers that do not read: bytes keep
/// their order, nothing stays in memory, and every connection ends.
@Suite struct FaultPropertyTests {
    private static let limits: BufferLimits = {
        var limits = BufferLimits(
            bytesMaxTotal: 100_000, bytesMaxPerDirection: 20_000, bytesMinPerDirection: 3_000, socketBytesMax: 10_000)
        limits.toxicBytesMaxPerDirection = 50_000
        return limits
    }()

    private static func rule(_ plan: inout ConversationPlan, replies: Bool) -> FaultRule {
        let actions: [FaultAction] = [
            .reset, .close, .stall, .delay(.milliseconds(Int64(plan.number(1...3000)))),
            .throttle(bytesPerSecond: Int64(plan.number(1...100_000))),
            .report(hold: .milliseconds(Int64(plan.number(0...100)))),
            .respond(
                FaultResponse(status: 500 + plan.number(0...4), body: [UInt8](repeating: 9, count: plan.number(0...50)))
            ),
        ]
        while true {
            let point = plan.number(0...7) == 7 ? nil : FaultPoint.allCases[plan.number(0...6)]
            let action = actions[plan.number(0...(replies ? 6 : 5))]
            let isPart = point == .midRequest || point == .midResponse
            var side: FaultSide?
            if [.reset, .close, .stall].contains(action), plan.number(0...2) == 0 {
                side = FaultSide.allCases[plan.number(0...2)]
            }
            let rule = FaultRule(
                method: plan.number(0...3) == 0 ? "PUT" : nil, subject: plan.number(0...3) == 0 ? "*1" : nil,
                nth: plan.number(1...2), times: 1...plan.number(1...3), probability: plan.number(0...1) == 0 ? 1 : 0.5,
                point: point, bytes: isPart && plan.number(0...1) == 0 ? Int64(plan.number(0...600)) : nil, side: side,
                action: action)
            if rule.problem == nil { return rule }
        }
    }

    @Test(arguments: randomSeeds(60, soak: 3000)) func randomFaultsKeepBytesInOrderAndLeaveNothingBehind(seed: UInt64) {
        var plan = ConversationPlan(seed: 1_000_000 + seed)
        let comment = Comment(rawValue: "seed \(seed)")
        let way = DirectionConditions(
            rate: .kilobits(Int64(plan.number(100...8000))), delay: .milliseconds(Int64(plan.number(0...60))))
        // The subject is the number of bytes of the body, modulo 2.
        let replies = seed % 2 == 0
        var sockets = VirtualSockets(
            plan.number(0...2) == 0 ? .clear : Conditions(up: way, down: way), limits: Self.limits,
            exchangeTracking: ExchangeTracking(rules: [Self.rule(&plan, replies: replies)]) { _, body in
                "body\(body.count % 2)"
            }, seed: seed)
        let id = sockets.open()
        var sent = PerDirection(up: 0, down: 0)
        var (hasClosed, isGone) = (PerDirection(up: false, down: false), PerDirection(up: false, down: false))
        let sizeMax = [3, 100, 800, 6000][plan.number(0...3)]
        for _ in 0..<1500 {
            if sockets.ended.contains(id) { break }
            let direction: Direction = plan.number(0...1) == 0 ? .up : .down
            let side = direction.sender
            switch plan.number(0...199) {
            case 0: sockets.box.link.removeFaultRule(plan.number(0...3), at: sockets.now)
            case 1...3: _ = try? sockets.box.link.addFaultRule(Self.rule(&plan, replies: replies), at: sockets.now)
            case 4 where !isGone[direction] && !hasClosed[direction]:
                hasClosed[direction] = true
                sockets.report(.inputClosed(side), id)
            case 5 where !isGone[direction] && plan.number(0...3) == 0:
                isGone[direction] = true
                sockets.report(.gone(side), id)
            case 6: sockets.setRead(false, side, id)
            case 7...9: sockets.setRead(true, side, id)
            case 10: sockets.box.link.withdrawFaults(at: sockets.now)
            case 11: sockets.add(.latency(latency: 30, jitter: 20), direction, name: "l\(sent.up)-\(sent.down)")
            case 12...50: sockets.wait(.milliseconds(Int64(plan.number(1...60))))
            default:
                if isGone[direction] || hasClosed[direction] || sockets.socket(side, id).isPaused { continue }
                let stream = direction == .up ? plan.up : plan.down
                let end = direction == .up ? stream.count : plan.downAvailable(after: sent.up)
                let count = min(plan.number(1...sizeMax), end - sent[direction])
                guard count > 0 else { continue }
                sockets.send(Array(stream[sent[direction]..<sent[direction] + count]), from: side, id)
                sent[direction] += count
            }
            for direction in Direction.allCases {
                // A share after the toxics, a share before them and in the tracker, and a read for each.
                let held = sockets.box.link.bytesHeld(id, direction)
                #expect(held <= 20_000 + 50_000 + 2 * 6000, comment)
            }
        }
        for side in Side.allCases { sockets.setRead(true, side, id) }
        // The hold of a removed or live rule ends; a mute does not.
        sockets.wait(.seconds(400))
        if !replies {
            for direction in Direction.allCases {
                let stream = direction == .up ? plan.up : plan.down
                let received = sockets.socket(direction.receiver, id).received
                #expect(received.count <= sent[direction], comment)
                #expect(received == Array(stream.prefix(received.count)), comment)
            }
        }
        for side in Side.allCases {
            sockets.report(.gone(side), id)
            sockets.wait(.seconds(200))
        }
        #expect(sockets.ended == [id], comment)
        #expect(sockets.box.link.bytesHeld == 0, comment)
        sockets.runToQuiet()
        #expect(sockets.box.link.nextDeadline == nil, comment)
        // Each request ends with a delivery, an interruption, or the end of tracking.
        let started = sockets.allExchangeEvents.count { if case .requestStarted = $0.event { true } else { false } }
        var ends: [Int: Int] = [:]
        for event in sockets.allExchangeEvents {
            switch event.event {
            case .responseDelivered(let id, _, _), .interrupted(let id): ends[id.number, default: 0] += 1
            default: break
            }
        }
        #expect(ends.values.allSatisfy { $0 == 1 }, comment)
        if !sockets.exchangeEvents.contains(where: { $0.hasPrefix("not HTTP") }) {
            #expect(ends.count == started, comment)
        }
        for status in sockets.box.link.faultRules {
            #expect(status.fired <= status.applied && status.applied <= status.matched, comment)
        }
    }
}
