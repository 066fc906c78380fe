import Determinism
import LinkModel
import TestSupport
import Testing

@testable import Impairment

/// Reports that a connection is established, for a proxy whose client waits for a reply.
@Suite struct EstablishmentTests {
    private static let delay = Nanoseconds.milliseconds(100)
    private static let slow = Conditions(
        up: DirectionConditions(delay: delay), down: DirectionConditions(delay: delay), dnsDelay: .seconds(3))

    @Test func theReportFollowsOneRoundTrip() {
        var sockets = VirtualSockets(Self.slow)
        let id = sockets.open(reportsEstablishment: true, looksUpName: false)
        sockets.wait(Self.delay + Self.delay - .milliseconds(1))
        #expect(sockets.established[id] == nil)
        sockets.wait(.milliseconds(2))
        #expect(sockets.established[id]?.sinceStart == Self.delay + Self.delay)
    }

    @Test func aLookupPrecedesTheHandshake() {
        var sockets = VirtualSockets(Self.slow)
        let id = sockets.open(reportsEstablishment: true)
        sockets.runToQuiet()
        #expect(sockets.established[id]?.sinceStart == .seconds(3) + Self.delay + Self.delay)
    }

    @Test func theReportWaitsForTheUpstream() {
        var sockets = VirtualSockets(Self.slow)
        let id = sockets.open(connected: false, reportsEstablishment: true, looksUpName: false)
        sockets.wait(.seconds(1))
        #expect(sockets.established[id] == nil)
        sockets.report(.connected, id)
        #expect(sockets.established[id]?.sinceStart == .seconds(1))
    }

    @Test func nothingReachesTheClientBeforeTheReport() {
        for conditions in [Conditions.clear, Self.slow] {
            var sockets = VirtualSockets(conditions)
            let id = sockets.open(connected: false, reportsEstablishment: true, looksUpName: false)
            sockets.wait(.seconds(1))
            sockets.report(.connected, id)
            sockets.send(Array("220 ready".utf8), from: .server, id)
            sockets.report(.inputClosed(.server), id)
            sockets.runToQuiet()
            let socket = sockets.socket(.client, id)
            #expect(socket.received == Array("220 ready".utf8) && socket.gotFin)
            #expect(sockets.established[id]?.sinceStart == .seconds(1))
        }
    }

    @Test func aRefusalTakesOneRoundTripAndIsNotAnEstablishment() {
        var sockets = VirtualSockets(Self.slow)
        let id = sockets.open(connected: false, reportsEstablishment: true, looksUpName: false)
        sockets.report(.gone(.server), id)
        sockets.wait(Self.delay + Self.delay - .milliseconds(1))
        #expect(!sockets.socket(.client, id).gotReset)
        sockets.wait(.milliseconds(2))
        #expect(sockets.socket(.client, id).gotReset && sockets.established[id] == nil)
    }

    @Test func duringAnOutageTheReportWaitsForARepetitionOfTheSYN() {
        var sockets = VirtualSockets(Self.slow)
        sockets.box.link.setOutage(PerDirection(up: true, down: true), at: sockets.now)
        let id = sockets.open(reportsEstablishment: true, looksUpName: false)
        sockets.wait(.milliseconds(1500))
        sockets.box.link.setOutage(PerDirection(up: false, down: false), at: sockets.now)
        #expect(sockets.established[id] == nil)
        sockets.wait(.seconds(3))
        // Linux repeats a SYN after 1, 2, 3 and 4 s (tcp_syn_linear_timeouts); the one after 2 s is the first that passes.
        let time = sockets.established[id]?.sinceStart ?? .zero
        #expect(time > .seconds(2) && time < .milliseconds(2_300))
    }
}
