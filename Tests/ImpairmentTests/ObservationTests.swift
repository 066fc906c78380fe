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

    @Test func exchangesAreRecordedOnConnectionsOpenedLater() {
        var sockets = VirtualSockets(Self.slow)
        let old = sockets.open()
        exchange(&sockets, old)
        sockets.setObservation(.exchanges)
        let new = sockets.open()
        exchange(&sockets, old)
        #expect(sockets.exchangeEvents.isEmpty)
        exchange(&sockets, new)
        let events = [
            "0 requested GET ? 0 B", "0 request delivered", "0 committed 200", "0 response delivered 200",
        ]
        #expect(sockets.exchangeEvents == events)

        sockets.setObservation([])
        exchange(&sockets, new)
        #expect(sockets.exchangeEvents == events)
        #expect(sockets.socket(.client, new).received == Self.response + Self.response)

        // A connection whose tracking was stopped in the middle of an exchange is not tracked again.
        sockets.send(Self.request, from: .client, new)
        sockets.setObservation(.exchanges)
        exchange(&sockets, new)
        #expect(sockets.exchangeEvents == events)
        let newest = sockets.open()
        exchange(&sockets, newest)
        #expect(sockets.exchangeEvents.dropFirst(4).first == "1 requested GET ? 0 B")
    }

    @Test func faultsAreInjectedWithoutObservation() {
        var sockets = VirtualSockets(
            Self.slow, exchangeTracking: ExchangeTracking(rules: [FaultRule(nth: 2, action: .abort)]))
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
