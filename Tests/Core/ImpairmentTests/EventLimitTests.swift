import Determinism
import LinkModel
import NIOCore
import Testing

@testable import Impairment

private let way = DirectionConditions(rate: .kilobits(800), delay: .milliseconds(50))
private let slow = Conditions(up: way, down: way)

/// The limit of events per call, which changes no modelled time.
@Suite struct EventLimitTests {
    @Test(arguments: [1, 7, 30]) func theEventLimitOfACallChangesNoModelledTime(_ eventsMax: Int) {
        func run(_ eventsMax: Int) -> ([Nanoseconds], Bool) {
            var sockets = VirtualSockets(slow)
            sockets.box.link.eventsPerCallMax = eventsMax
            let id = sockets.open()
            sockets.send([UInt8](repeating: 1, count: 30_000), from: .client, id)
            sockets.wait(.seconds(3))
            let wasBehind = sockets.isBehind
            sockets.runToQuiet()
            return (sockets.socket(.server, id).times, wasBehind)
        }
        let (times, isBehind) = run(.max)
        #expect(!isBehind && times.count > 1)
        #expect(run(eventsMax) == (times, true))
    }

    @Test func aCallStopsAtTheEventLimitAndReportsItsTime() {
        var sockets = VirtualSockets(slow)
        sockets.box.link.eventsPerCallMax = 10
        let id = sockets.open()
        sockets.send([UInt8](repeating: 1, count: 30_000), from: .client, id)
        sockets.wait(.seconds(10))
        #expect(sockets.isBehind && sockets.linkTime < sockets.now)
        // An event is processed at the link's time, which is behind.
        sockets.send([2], from: .client, id)
        #expect(sockets.linkTime < sockets.now)
        var calls = 0
        while sockets.isBehind {
            sockets.wait(.zero)
            calls += 1
        }
        #expect(calls > 0 && sockets.linkTime == sockets.now)
        sockets.runToQuiet()
        #expect(sockets.socket(.server, id).received.count == 30_001)
    }

    @Test func aSlicerPassesALimitedNumberOfPiecesPerCall() {
        var sockets = VirtualSockets()
        sockets.box.link.eventsPerCallMax = 64
        let id = sockets.open()
        sockets.add(.slicer(averageSize: 1, sizeVariation: 0, delay: 0))
        sockets.setRead(false, .client, id)
        sockets.send([UInt8](repeating: 1, count: 40_000), from: .server, id)
        #expect(sockets.isBehind)
        #expect(sockets.socket(.client, id).received.count <= 1024)
        sockets.setRead(true, .client, id)
        while sockets.isBehind { sockets.wait(.zero) }
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).received.count == 40_000)
    }

    @Test func theEventLimitLosesNoBytesOfARemovedToxic() {
        var sockets = VirtualSockets()
        sockets.box.link.eventsPerCallMax = 1
        let id = sockets.open()
        sockets.add(.latency(latency: 10_000, jitter: 0))
        for _ in 0..<600 { sockets.send([7, 8], from: .server, id) }
        sockets.remove()
        sockets.send([9], from: .server, id)
        sockets.report(.inputClosed(.server), id)
        while sockets.isBehind { sockets.wait(.zero) }
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).received == (0..<600).flatMap { _ in [7, 8] as [UInt8] } + [9])
        #expect(sockets.socket(.client, id).gotFin)
    }

    @Test func aRefusalAbortsALimitedNumberOfConnectionsPerCall() {
        var sockets = VirtualSockets(slow)
        sockets.box.link.eventsPerCallMax = 64
        let connections = (0..<100).map { _ in sockets.open() }
        while sockets.isBehind { sockets.wait(.zero) }
        var refusing = Conditions.clear
        refusing.connectionPolicy = .offline
        sockets.setConditions(refusing)
        #expect(sockets.isBehind && sockets.ended.count < 100)
        while sockets.isBehind { sockets.wait(.zero) }
        #expect(sockets.ended == Set(connections))
        #expect(connections.allSatisfy { sockets.socket(.client, $0).gotReset && sockets.socket(.server, $0).gotReset })
    }
}
