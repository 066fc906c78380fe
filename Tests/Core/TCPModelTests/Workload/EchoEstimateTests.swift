import Determinism
import LinkModel
import TCPModel
import Testing

@Suite struct EchoEstimateTests {
    @Test func withoutARateAnEchoTakesTwoRoundTrips() {
        let direction = DirectionConditions(delay: .milliseconds(100))
        let conditions = Conditions(up: direction, down: direction, dnsDelay: .milliseconds(50))
        #expect(EchoEstimate.time(ofBytes: 10_240, under: conditions) == .milliseconds(450))
    }

    @Test func theRatesAddTheSerialisationOfEachPacket() {
        let up = DirectionConditions(rate: .kilobits(100), delay: .milliseconds(10))
        let conditions = Conditions(up: up, down: DirectionConditions(delay: .milliseconds(10)))
        // SYN, ACK and one packet of 200 bytes are serialised upstream at 100 kbit/s: 80 microseconds a byte.
        let bytes = PacketSize.handshake + PacketSize.header + (PacketSize.header + 200)
        #expect(EchoEstimate.time(ofBytes: 200, under: conditions) == Nanoseconds(40_000_000 + Int64(bytes) * 80_000))
    }
}
