import Determinism
import LinkModel
import NIOCore
import TCPModel
import Testing

@testable import Impairment

/// The observation of packets and exchanges that starts and stops while connections are open.
@Suite struct ObservationTests {
    private static let way = DirectionConditions(rate: .kilobits(800), delay: .milliseconds(50))
    private static let slow = Conditions(up: way, down: way)
    private static let request = Array("GET /a HTTP/1.1\r\nHost: h\r\n\r\n".utf8)
    private static let response = Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi".utf8)

    private func isPassThrough(_ sockets: VirtualSockets) -> Bool { sockets.box.link.isPassThrough }

    private func exchange(_ sockets: inout VirtualSockets, _ id: FlowID) {
        sockets.send(Self.request, from: .client, id)
        sockets.runToQuiet()
        sockets.send(Self.response, from: .server, id)
        sockets.runToQuiet()
    }

    @Test(arguments: [Conditions.clear, slow]) func packetsAreRecordedFromTheNextOneOn(_ conditions: Conditions) {
        var sockets = VirtualSockets(conditions)
        let id = sockets.open()
        sockets.send([1, 2, 3], from: .client, id)
        sockets.runToQuiet()
        #expect(sockets.packets.isEmpty)
        sockets.setObservation(.packets)
        #expect(!isPassThrough(sockets))
        sockets.send([4, 5, 6, 7], from: .client, id)
        sockets.runToQuiet()
        let data = sockets.packets.filter { $0.record.kind == .data }
        #expect(data.count == 1)
        #expect(
            data.first.map { Array($0.payload?.readableBytesView ?? ByteBufferView(ByteBuffer())) } == [4, 5, 6, 7])
        #expect(data.first?.record.isFirstOfSender == false && data.first?.record.isRetransmission == false)
        #expect(sockets.packets.contains { $0.record.kind == .ack && $0.record.direction == .down })
        #expect(sockets.socket(.server, id).received == [1, 2, 3, 4, 5, 6, 7])

        sockets.setObservation([])
        let count = sockets.packets.count
        sockets.send([8], from: .client, id)
        sockets.runToQuiet()
        #expect(sockets.packets.count == count)
        #expect(sockets.socket(.server, id).received == [1, 2, 3, 4, 5, 6, 7, 8])
        #expect(isPassThrough(sockets) == (conditions == .clear))
    }

    /// Bytes that bypassed the TCP model wait in the same queue as those that it carries.
    @Test func payloadsAreTheirPacketsBytesBehindBytesThatBypassedTheModel() {
        var sockets = VirtualSockets(limits: BufferLimits(socketBytesMax: 1000))
        let id = sockets.open()
        sockets.setRead(false, .server, id)
        let sent = (0..<9000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        // The socket takes the first piece; the second waits.
        sockets.send(Array(sent[..<1000]), from: .client, id)
        sockets.send(Array(sent[1000..<3000]), from: .client, id)
        sockets.setObservation(.packets)
        sockets.send(Array(sent[3000...]), from: .client, id)
        sockets.wait(.milliseconds(1))
        sockets.setRead(true, .server, id)
        sockets.runToQuiet()
        #expect(sockets.socket(.server, id).received == sent)
        var payloads: [UInt8] = []
        for packet in sockets.packets where packet.record.kind == .data && packet.record.direction == .up {
            payloads += Array(packet.payload?.readableBytesView ?? ByteBufferView(ByteBuffer()))
        }
        #expect(payloads == Array(sent[3000...]))
    }

    @Test func packetsInFlightWhenRecordingStartsAreNotRecorded() {
        var sockets = VirtualSockets(Self.slow)
        let id = sockets.open()
        sockets.send([UInt8](repeating: 1, count: 5000), from: .client, id)
        sockets.wait(.milliseconds(20))
        sockets.setObservation(.packets)
        #expect(sockets.packets.isEmpty)
        sockets.runToQuiet()
        #expect(sockets.packets.allSatisfy { $0.record.time >= Instant(.milliseconds(20)) })
        #expect(sockets.socket(.server, id).received.count == 5000)
    }

    @Test func exchangesAreRecordedWhoseRequestBeginsLater() {
        var sockets = VirtualSockets(Self.slow)
        let id = sockets.open()
        exchange(&sockets, id)
        // The response arrives after the recording has begun.
        sockets.send(Self.request, from: .client, id)
        sockets.runToQuiet()
        sockets.setObservation(.exchanges)
        sockets.send(Self.response, from: .server, id)
        sockets.runToQuiet()
        #expect(sockets.exchangeEvents.isEmpty)
        exchange(&sockets, id)
        let events = [
            "2 requested GET ? 0 B", "2 request delivered", "2 response read 200", "2 response delivered 200",
        ]
        #expect(sockets.exchangeEvents == events)

        sockets.setObservation([])
        exchange(&sockets, id)
        #expect(sockets.exchangeEvents == events)
        sockets.setObservation(.exchanges)
        exchange(&sockets, id)
        #expect(sockets.exchangeEvents.dropFirst(4).first == "4 requested GET ? 0 B")
        #expect(sockets.socket(.client, id).received.count == 5 * Self.response.count)
    }

    /// A link that takes up a connection in the middle of a message cannot know where the next one begins.
    @Test func aConnectionOpenedMidStreamIsNeverTracked() {
        var sockets = VirtualSockets(Self.slow, observation: .exchanges)
        let id = sockets.openEstablished(ConnectionSeed(number: 0, seed: 1), openedAt: .start, isMidStream: true)
        #expect(sockets.exchangeEvents.count == 1 && sockets.exchangeEvents[0].hasPrefix("not HTTP"))
        let isArmed = try? sockets.box.link.addFaultRule(
            FaultRule(times: 1...10, point: .beforeRequest, action: .respond(FaultResponse(status: 503))),
            at: sockets.now)
        #expect(isArmed == 0 && sockets.box.link.untrackedConnectionCount == 1)
        // A piece of a request body that looks like a request.
        exchange(&sockets, id)
        #expect(sockets.socket(.server, id).received == Self.request)
        #expect(sockets.socket(.client, id).received == Self.response)
        #expect(sockets.box.link.faultRules.first?.matched == 0)
        let fresh = sockets.openEstablished(ConnectionSeed(number: 1, seed: 1), openedAt: .start, isMidStream: false)
        sockets.send(Self.request, from: .client, fresh)
        sockets.runToQuiet()
        #expect(sockets.socket(.server, fresh).received.isEmpty)
        #expect(sockets.box.link.faultRules.first?.fired == 1)
    }

    @Test func faultsAreInjectedWithoutObservation() {
        var sockets = VirtualSockets(
            Self.slow, exchangeTracking: ExchangeTracking(rules: [FaultRule(nth: 2, action: .reset)]))
        let id = sockets.open()
        exchange(&sockets, id)
        #expect(sockets.exchangeEvents.count == 4)
        sockets.setObservation([])
        exchange(&sockets, id)
        #expect(sockets.exchangeEvents.count == 4)
        #expect(sockets.socket(.client, id).received == Self.response && sockets.socket(.client, id).gotReset)
        #expect(!isPassThrough(sockets))
    }
}
