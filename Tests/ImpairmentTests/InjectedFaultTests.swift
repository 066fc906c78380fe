import Determinism
import LinkModel
import Testing

@testable import Impairment

/// Faults that are injected into an exchange after its request has been read.
@Suite struct InjectedFaultTests {
    private static let request = Array("PUT /notes/n1 HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n".utf8)
    private static let response = Array("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntext".utf8)

    /// The sockets of a connection on which a number of requests have been read.
    private static func sockets(requests: Int) -> (VirtualSockets, FlowID) {
        let way = DirectionConditions(delay: .milliseconds(50))
        var sockets = VirtualSockets(Conditions(up: way, down: way), exchangeTracking: ExchangeTracking())
        let id = sockets.open()
        for _ in 0..<requests { sockets.send(request, from: .client, id) }
        sockets.runToQuiet()
        return (sockets, id)
    }

    private static func inject(_ sockets: VirtualSockets, _ exchange: Int, _ id: FlowID) -> Bool {
        sockets.box.link.injectFault(.mute, rule: 7, into: ExchangeID(number: exchange), of: id, at: sockets.now)
    }

    @Test func anInjectedFaultWithholdsTheResponse() {
        var (sockets, id) = Self.sockets(requests: 2)
        #expect(Self.inject(sockets, 1, id))
        sockets.send(Self.response + Self.response, from: .server, id)
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).received == Self.response)
        #expect(sockets.exchangeEvents.contains("1 fault of rule 7"))
    }

    @Test func aFaultOnAResponseThatHasBegunDoesNotApply() {
        var (sockets, id) = Self.sockets(requests: 1)
        sockets.send(Array(Self.response.prefix(10)), from: .server, id)
        #expect(!Self.inject(sockets, 0, id))
        sockets.send(Array(Self.response.dropFirst(10)), from: .server, id)
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).received == Self.response)
        #expect(!Self.inject(sockets, 0, id), "the exchange has ended")
        #expect(!Self.inject(sockets, 5, id), "there is no such exchange")
    }

    @Test func aWithdrawnFaultDoesNotApply() {
        var (sockets, id) = Self.sockets(requests: 1)
        #expect(Self.inject(sockets, 0, id))
        sockets.box.link.withdrawFaults(at: sockets.now)
        sockets.send(Self.response, from: .server, id)
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).received == Self.response)
    }

    /// The bytes that have been withheld are lost, so the rest must be withheld too.
    @Test func aFaultThatHasBegunToApplyIsNotWithdrawn() {
        var (sockets, id) = Self.sockets(requests: 1)
        #expect(Self.inject(sockets, 0, id))
        sockets.send(Array(Self.response.prefix(10)), from: .server, id)
        sockets.box.link.withdrawFaults(at: sockets.now)
        sockets.send(Array(Self.response.dropFirst(10)), from: .server, id)
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).received.isEmpty)
        #expect(sockets.exchangeEvents.contains("0 fault of rule 7"))
    }
}
