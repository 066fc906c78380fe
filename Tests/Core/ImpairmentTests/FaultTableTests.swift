import Determinism
import LinkModel
import NIOCore
import TestSupport
import Testing

@testable import Impairment

/// The table of faults on a link in virtual time.
@Suite struct FaultTableTests {
    static func action(_ name: String) -> FaultAction {
        switch name {
        case "reset": .reset
        case "close": .close
        case "stall": .stall
        case "delay": .delay(.milliseconds(200))
        case "throttle": .throttle(bytesPerSecond: 2000)
        case "respond": .respond(FaultResponse(status: 503, body: Array("later".utf8)))
        default: .report(hold: .seconds(10))
        }
    }

    @Test func theTableHasEveryActionThatIsPossible() {
        for point in FaultPoint.allCases {
            let expected = ["reset", "close", "stall", "delay", "throttle", "respond", "kill"].filter {
                Self.action($0).problem(at: point) == nil
            }
            #expect(FaultTable.rows.filter { $0.point == point.rawValue }.map(\.action) == expected)
        }
        #expect(FaultTable.rows.filter { $0.point == "stored" }.map(\.action) == ["reset", "close", "kill"])
    }

    @Test(arguments: FaultTable.rows) func aFaultFiresAtTheBytesOfItsRow(_ row: FaultTable.Row) {
        let way = DirectionConditions(delay: .milliseconds(20))
        for conditions in [Conditions(up: way, down: way), .clear] {
            var sockets = VirtualSockets(conditions, exchangeTracking: ExchangeTracking(awaitsDecisions: true))
            let id = sockets.open()
            sockets.decide = { _ in
                FaultPoint(rawValue: row.point).map { FaultRule(point: $0, action: Self.action(row.action)) }
            }
            sockets.send(FaultTable.request, from: .client, id)
            var hasResponded = false
            var isKilled = false
            while true {
                if !hasResponded, sockets.socket(.server, id).received == FaultTable.request {
                    hasResponded = true
                    if !sockets.socket(.server, id).gotReset, !sockets.socket(.server, id).isClosed {
                        sockets.send(FaultTable.response, from: .server, id)
                    }
                }
                let hasFired = sockets.allExchangeEvents.contains {
                    if case .faultInjected = $0.event { true } else { false }
                }
                let isStored = row.point == "stored" && sockets.socket(.client, id).received == FaultTable.response
                if !isKilled, row.client == .killed, hasFired || isStored {
                    isKilled = true
                    // What has arrived by then.
                    #expect(
                        sockets.socket(.client, id).received == FaultTable.bytes(row.response, isRequest: false))
                    sockets.report(.inputClosed(.client), id)
                } else if isStored, row.action != "kill", sockets.box.link.connections.contains(id), !isKilled {
                    isKilled = true
                    sockets.box.link.closeConnection(id, abortively: row.action == "reset", at: sockets.now)
                    sockets.wait(.zero)
                }
                guard let deadline = sockets.box.link.nextDeadline else { break }
                sockets.wait(max(deadline, sockets.now) - sockets.now)
            }
            #expect(sockets.socket(.server, id).received == FaultTable.bytes(row.request, isRequest: true))
            Self.expect(sockets.socket(.server, id), row.server)
            if row.client == .killed { continue }
            #expect(sockets.socket(.client, id).received == FaultTable.bytes(row.response, isRequest: false))
            Self.expect(sockets.socket(.client, id), row.client)
        }
    }

    private static func expect(_ socket: VirtualSockets.Socket, _ end: FaultTable.End) {
        let isClosed = socket.gotFin || socket.isClosed
        switch end {
        case .open: #expect(!socket.gotReset && !isClosed)
        case .closed: #expect(isClosed && !socket.gotReset)
        case .reset: #expect(socket.gotReset)
        case .ended: #expect(isClosed || socket.gotReset)
        case .killed: break
        }
    }
}
