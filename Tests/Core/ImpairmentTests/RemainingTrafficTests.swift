import Determinism
import LinkModel
import TCPModel
import TestSupport
import Testing

@testable import Impairment

/// The traffic that a connection may still carry, which decides when a stop may close it.
@Suite struct RemainingTrafficTests {
    private static let slow = Conditions(
        up: DirectionConditions(delay: .milliseconds(100)), down: DirectionConditions(delay: .milliseconds(100)))
    private static let request = Array("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8)
    private static let response = Array("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone".utf8)

    private static func sockets(
        _ conditions: Conditions = slow, tracked: Bool = true, _ rules: [FaultRule] = []
    ) -> (VirtualSockets, FlowID) {
        var sockets = VirtualSockets(conditions, exchangeTracking: ExchangeTracking(rules: rules))
        let id =
            tracked
            ? sockets.open() : sockets.openEstablished(ConnectionSeed(number: 0, seed: 1), openedAt: .start)
        sockets.wait(.seconds(1))
        return (sockets, id)
    }

    @Test func aTrackedConnectionHasNoneBetweenExchanges() {
        var (sockets, id) = Self.sockets()
        // Bytes may wait in a socket.
        #expect(sockets.box.link.remainingTraffic(of: id) == .unknown)
        for _ in 0..<2 {
            sockets.send(Self.request, from: .client, id)
            #expect(sockets.box.link.remainingTraffic(of: id) == .pending)
            sockets.wait(.seconds(100))
            #expect(sockets.box.link.remainingTraffic(of: id) == .pending, "the response is outstanding")
            sockets.send(Array(Self.response.dropLast()), from: .server, id)
            sockets.wait(.seconds(100))
            #expect(sockets.box.link.remainingTraffic(of: id) == .pending, "a byte of the response is missing")
            sockets.send([Self.response.last ?? 0], from: .server, id)
            sockets.wait(.seconds(1))
            #expect(sockets.box.link.remainingTraffic(of: id) == .none)
        }
        sockets.send(Array(Self.request.prefix(5)), from: .client, id)
        sockets.wait(.seconds(1))
        #expect(sockets.box.link.remainingTraffic(of: id) == .unknown, "part of a head")
    }

    @Test func aResponseWithoutLengthIsPendingUntilTheServersFIN() {
        var (sockets, id) = Self.sockets()
        sockets.send(Self.request, from: .client, id)
        sockets.send(Array("HTTP/1.1 200 OK\r\n\r\npart".utf8), from: .server, id)
        sockets.wait(.seconds(1000))
        #expect(sockets.box.link.remainingTraffic(of: id) == .pending)
    }

    @Test func anUntrackedConnectionIsUnknownWithoutBytesInFlight() {
        var (sockets, id) = Self.sockets(tracked: false)
        #expect(sockets.box.link.remainingTraffic(of: id) == .unknown)
        for side in [Side.client, .server] {
            sockets.send([1, 2, 3], from: side, id)
            #expect(sockets.box.link.remainingTraffic(of: id) == .pending)
            sockets.wait(.seconds(1))
            #expect(sockets.box.link.remainingTraffic(of: id) == .unknown)
        }
    }

    /// A client that has sent its FIN awaits a response; one that has the server's FIN closes its socket when it likes.
    @Test func aConnectionIsPendingAfterTheClientsFINOnly() {
        for tracked in [true, false] {
            var (other, otherID) = Self.sockets(tracked: tracked)
            other.report(.inputClosed(.server), otherID)
            other.wait(.seconds(1))
            #expect(other.box.link.remainingTraffic(of: otherID) == .unknown)
            var (sockets, id) = Self.sockets(tracked: tracked)
            sockets.report(.inputClosed(.client), id)
            sockets.wait(.seconds(100))
            #expect(sockets.box.link.remainingTraffic(of: id) == .pending)
        }
    }

    /// A FIN to the client would make the truncated stream appear complete.
    @Test func aResetThatCrossesTheLinkIsPending() {
        var (sockets, id) = Self.sockets(tracked: false)
        sockets.report(.gone(.server), id)
        #expect(sockets.box.link.remainingTraffic(of: id) == .pending)
        sockets.wait(.seconds(1))
        #expect(sockets.box.link.remainingTraffic(of: id) == .none && sockets.socket(.client, id).gotReset)
    }

    @Test(arguments: [true, false]) func trafficIsBlockedByAnOutageThatLasts(_ tracked: Bool) {
        var (sockets, id) = Self.sockets(tracked: tracked)
        sockets.setConditions(
            Conditions(up: DirectionConditions(loss: .one), down: DirectionConditions(loss: .one)))
        #expect(sockets.box.link.remainingTraffic(of: id) == .unknown)
        sockets.send(Self.request, from: .client, id)
        sockets.wait(.seconds(1))
        #expect(sockets.box.link.remainingTraffic(of: id) == .blocked)
        sockets.setConditions(.clear)
        #expect(sockets.box.link.remainingTraffic(of: id) == .pending)
    }

    @Test func aMutedExchangeIsBlocked() {
        let rule = FaultRule(times: 1...1, point: .beforeResponse, action: .stall)
        var (sockets, id) = Self.sockets(.clear, [rule])
        sockets.send(Self.request, from: .client, id)
        sockets.send(Self.response, from: .server, id)
        #expect(sockets.box.link.remainingTraffic(of: id) == .blocked)
    }

    @Test func aConnectionThatWaitsForTheClientsFINHasNone() {
        let rule = FaultRule(times: 1...1, point: .beforeRequest, action: .respond(FaultResponse(status: 503)))
        var (sockets, id) = Self.sockets(.clear, [rule])
        sockets.send(Array("GET / HTTP/1.0\r\nHost: h\r\n\r\n".utf8), from: .client, id)
        #expect(sockets.socket(.client, id).gotFin && sockets.box.link.remainingTraffic(of: id) == .none)
    }
}
