import Determinism
import LinkModel
import NIOCore
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
        sockets.box.link.injectFault(
            ExchangeFault(rule: 7, action: .stall), into: ExchangeID(number: exchange), of: id, at: sockets.now)
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

    // MARK: Points

    private static func inject(
        _ action: FaultAction, at point: FaultPoint, _ sockets: VirtualSockets, _ id: FlowID
    ) -> Bool {
        sockets.box.link.injectFault(
            ExchangeFault(rule: 7, point: point, action: action), into: ExchangeID(number: 0), of: id, at: sockets.now)
    }

    /// A fault is injected when the request has been read: over a link with delay, none of it has been written.
    @Test(arguments: FaultPoint.allCases) func aFaultIsInjectedAtAnyPointThatIsAhead(point: FaultPoint) {
        let way = DirectionConditions(delay: .milliseconds(50))
        var sockets = VirtualSockets(Conditions(up: way, down: way), exchangeTracking: ExchangeTracking())
        let id = sockets.open()
        sockets.send(Self.request, from: .client, id)
        #expect(Self.inject(.reset, at: point, sockets, id) == (point != .beforeRequest), "the request has left")
        #expect(
            !Self.inject(.stall, at: .beforeResponse, sockets, id) || point == .beforeRequest, "one fault per exchange")
        sockets.runToQuiet()
        sockets.send(Self.response, from: .server, id)
        sockets.runToQuiet()
        let head = Self.response.count - 4
        let expected: (up: Int, down: Int) =
            switch point {
            case .beforeRequest: (Self.request.count, 0)
            case .midRequest: (Self.request.count / 2, 0)
            case .beforeRequestEnd: (Self.request.count - 1, 0)
            case .beforeResponse: (Self.request.count, 0)
            case .afterResponseHead: (Self.request.count, head)
            case .midResponse: (Self.request.count, head + 2)
            case .afterResponse: (Self.request.count, head + 4)
            }
        #expect(sockets.socket(.server, id).received == Array(Self.request.prefix(expected.up)))
        #expect(sockets.socket(.client, id).received == Array(Self.response.prefix(expected.down)))
        #expect(sockets.socket(.client, id).gotReset == (point != .beforeRequest))
        #expect(sockets.exchangeEvents.contains("0 fault of rule 7"))
    }

    /// The server has received the request and has not responded: the point `before-request-end` is the present state.
    @Test func aFaultAtReceivedFiresAtOnceIfTheRequestHasArrived() {
        var (sockets, id) = Self.sockets(requests: 1)
        #expect(!Self.inject(.reset, at: .midRequest, sockets, id), "the point has been passed")
        #expect(Self.inject(.respond(FaultResponse(status: 429)), at: .beforeRequestEnd, sockets, id))
        sockets.runToQuiet()
        #expect(sockets.exchangeEvents.suffix(2) == ["0 fault of rule 7", "0 response delivered 429"])
        sockets.send(Self.response, from: .server, id)
        sockets.runToQuiet()
        #expect(String(decoding: sockets.socket(.client, id).received, as: UTF8.self).contains("429"))
        #expect(!String(decoding: sockets.socket(.client, id).received, as: UTF8.self).contains("200"))
    }

    /// With a rule that withholds requests, the fault of a call may apply before the first byte has left.
    @Test func aWithheldRequestCanBeKeptFromTheServer() {
        var sockets = VirtualSockets(
            exchangeTracking: ExchangeTracking(rules: [
                FaultRule(times: 1...Int.max, point: .beforeRequest, action: .report())
            ]))
        let id = sockets.open()
        sockets.send(Self.request, from: .client, id)
        #expect(sockets.socket(.server, id).received.isEmpty, "held for the call")
        #expect(sockets.allExchangeEvents.map { "\($0.event)" }.first == "0 request started PUT")
        sockets.runToQuiet()
        #expect(sockets.socket(.server, id).received == Self.request)
    }

    // MARK: Decisions

    private static func deciding() -> (VirtualSockets, FlowID) {
        var sockets = VirtualSockets(exchangeTracking: ExchangeTracking(awaitsDecisions: true))
        let id = sockets.open()
        return (sockets, id)
    }

    /// Nothing of the request leaves before the decision, and its FIN waits with it.
    @Test func aRequestWaitsForTheDecisionOnItsFaults() {
        var (sockets, id) = Self.deciding()
        let box = sockets.box
        box.link.receive(.bytes(ByteBuffer(bytes: Self.request + Self.request), from: .client), on: id, at: sockets.now)
        box.link.receive(.inputClosed(.client), on: id, at: sockets.now)
        var requested: [Int] = []
        while let event = box.link.takeExchangeEvent() {
            if case .requested(let id, _, body: _, subject: _) = event.event { requested.append(id.number) }
        }
        #expect(requested == [0], "the next request waits behind the first")
        let hasActions = box.link.hasActions
        #expect(!hasActions)
        box.link.admitRequest(ExchangeID(number: 0), of: id, at: sockets.now)
        sockets.runToQuiet()
        sockets.wait(.milliseconds(1))
        #expect(sockets.socket(.server, id).received == Self.request + Self.request)
        #expect(sockets.socket(.server, id).gotFin)
    }

    @Test func aRequestThatIsAdmittedTwiceOrNotWaitingIsNotChanged() {
        var (sockets, id) = Self.deciding()
        sockets.box.link.admitRequest(ExchangeID(number: 0), of: id, at: sockets.now)
        sockets.send(Self.request, from: .client, id)
        sockets.box.link.admitRequest(ExchangeID(number: 0), of: id, at: sockets.now)
        sockets.send(Self.response, from: .server, id)
        #expect(sockets.socket(.server, id).received == Self.request)
        #expect(sockets.socket(.client, id).received == Self.response)
    }

    /// A body longer than the sample: the decision is made before its end, and before its first byte has left.
    @Test func aLongRequestIsDecidedWhenTheSampleIsComplete() {
        var (sockets, id) = Self.deciding()
        sockets.decide = { _ in FaultRule(point: .beforeRequest, action: .reset) }
        let head = Array("PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n".utf8)
        sockets.send(head, from: .client, id)
        for _ in 0..<50 where !sockets.ended.contains(id) {
            sockets.send([UInt8](repeating: 7, count: 4000), from: .client, id)
        }
        sockets.runToQuiet()
        #expect(sockets.socket(.server, id).received.isEmpty)
        #expect(sockets.socket(.client, id).gotReset && sockets.socket(.server, id).gotReset)
    }

    /// A fault that cannot apply is reported, so that an observer may apply it to a later exchange.
    @Test func aFaultThatCannotApplyIsMissed() {
        var (sockets, id) = Self.sockets(requests: 1)
        #expect(!Self.inject(.reset, at: .beforeRequest, sockets, id))
        sockets.runToQuiet()
        sockets.wait(.milliseconds(1))
        #expect(sockets.allExchangeEvents.contains { "\($0.event)" == "0 fault of rule 7 missed before-request" })
    }
}
