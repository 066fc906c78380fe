import Determinism
import Impairment
import LinkModel
import NIOCore
import TestSupport
import Testing
import Wire

/// Connections with TLS on a link: what is known of them, and the faults of handshakes.
@Suite struct HandshakeFaultTests {
    /// A ClientHello with a name, in one record.
    private static func hello(_ name: String) -> [UInt8] {
        func vector(_ bytes: [UInt8]) -> [UInt8] { [UInt8(bytes.count >> 8), UInt8(bytes.count & 255)] + bytes }
        let names = vector([0] + vector(Array(name.utf8)))
        let body =
            [3, 3] + [UInt8](repeating: 7, count: 32) + [0, 0, 2, 0x13, 1, 1, 0] + vector([0, 0] + vector(names))
        return [22, 3, 1] + vector([1, 0] + vector(body))
    }

    /// The first record of a server with 100 bytes, and further bytes.
    private static let answer: [UInt8] =
        [22, 3, 3, 0, 100] + [UInt8](repeating: 2, count: 100) + [UInt8](repeating: 9, count: 300)
    private static let conditions = Conditions(
        up: DirectionConditions(delay: .milliseconds(20)), down: DirectionConditions(delay: .milliseconds(20)))

    private static func sockets(_ rules: FaultRule..., conditions: Conditions = conditions) -> (VirtualSockets, FlowID)
    {
        var sockets = VirtualSockets(conditions, exchangeTracking: ExchangeTracking(rules: rules))
        let id = sockets.open()
        return (sockets, id)
    }

    private static func name(_ sockets: VirtualSockets, _ id: FlowID) -> String? {
        sockets.box.link.clientHello(of: id)?.serverName
    }

    private static func rules(_ sockets: VirtualSockets) -> [FaultRuleStatus] { sockets.box.link.faultRules }

    private static func events(_ sockets: VirtualSockets) -> [String] {
        sockets.allExchangeEvents.map { "\($0.event)" }
    }

    @Test func aConnectionWithTLSIsKnownByItsName() {
        for piece in [1, 7, 10_000] {
            var (sockets, id) = Self.sockets()
            let hello = Self.hello("API.test")
            for start in stride(from: 0, to: hello.count, by: piece) {
                sockets.send(Array(hello[start..<min(start + piece, hello.count)]), from: .client, id)
            }
            sockets.send([20, 3, 3, 0, 1, 1], from: .client, id)
            sockets.runToQuiet()
            #expect(Self.events(sockets) == ["not HTTP: TLS", "TLS for api.test"])
            let (name, untracked) = (Self.name(sockets, id), sockets.box.link.untrackedConnectionCount)
            #expect(name == "api.test" && untracked == 1)
            #expect(sockets.socket(.server, id).received == hello + [20, 3, 3, 0, 1, 1])
        }
    }

    @Test func bytesThatOnlyBeginLikeTLSPass() {
        var (sockets, id) = Self.sockets()
        let bytes: [UInt8] = [22, 3, 1, 0, 9] + [UInt8](repeating: 5, count: 400)
        sockets.send(bytes, from: .client, id)
        sockets.runToQuiet()
        #expect(Self.events(sockets) == ["not HTTP: TLS"] && sockets.socket(.server, id).received == bytes)
    }

    /// The bytes that both peers get, and the end of the connection, for each point and action, in pieces of any size.
    @Test(arguments: [Conditions.clear, conditions], [1, 3, 64, 10_000])
    func aFaultFiresAtItsByte(_ conditions: Conditions, piece: Int) {
        let points: [(HandshakePoint, bytes: Int64?, down: Int)] = [
            (.afterClientHello, nil, 0), (.midServerHello, nil, 55), (.afterServerHello, nil, 105),
            (.midStream, 300, 300),
        ]
        let hello = Self.hello("api.test")
        for (point, bytes, down) in points {
            for action in [FaultAction.reset, .close, .stall] {
                let rule = FaultRule(handshake: point, serverName: "*.test", bytes: bytes, action: action)
                var (sockets, id) = Self.sockets(rule, conditions: conditions)
                for side in [Side.client, .server] {
                    let sent = side == .client ? hello : Self.answer
                    for start in stride(from: 0, to: sent.count, by: piece) {
                        sockets.send(Array(sent[start..<min(start + piece, sent.count)]), from: side, id)
                    }
                    sockets.runToQuiet()
                }
                let (client, server) = (sockets.socket(.client, id), sockets.socket(.server, id))
                #expect(client.received == Array(Self.answer.prefix(down)), "\(point) \(action)")
                #expect(server.received == hello, "\(point) \(action)")
                #expect(
                    client.gotReset == (action == .reset) && server.gotReset == (action == .reset), "\(point) \(action)"
                )
                if action == .close { #expect(client.gotFin || client.isClosed, "\(point)") }
                if action == .stall { #expect(!client.gotFin && !client.isClosed, "\(point)") }
                #expect(Self.rules(sockets).first?.fired == 1, "\(point) \(action)")
                #expect(Self.events(sockets).last?.hasPrefix("fault of rule 0 at \(point.rawValue) after ") == true)
            }
        }
    }

    @Test func aDelayHoldsTheHandshake() {
        let rule = FaultRule(handshake: .afterServerHello, action: .delay(.seconds(5)))
        var (sockets, id) = Self.sockets(rule)
        sockets.send(Self.hello("a"), from: .client, id)
        sockets.send(Self.answer, from: .server, id)
        sockets.wait(.seconds(4))
        #expect(sockets.socket(.client, id).received.count == 105)
        sockets.wait(.seconds(2))
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).received == Self.answer)
    }

    @Test func aRuleSelectsByNameAndNumber() {
        let rules = [
            FaultRule(handshake: .afterClientHello, serverName: "*.cdn.test", action: .reset),
            FaultRule(handshake: .afterClientHello, serverName: "api.test", nth: 2, action: .reset),
            FaultRule(method: "GET", times: 1...Int.max, point: .beforeRequest, action: .reset),
        ]
        var sockets = VirtualSockets(Self.conditions, exchangeTracking: ExchangeTracking(rules: rules))
        var resets: [Bool] = []
        for name in ["api.test", "www.test", "a.cdn.test", "api.test", "b.cdn.test"] {
            let id = sockets.open()
            sockets.send(Self.hello(name), from: .client, id)
            sockets.runToQuiet()
            resets.append(sockets.socket(.client, id).gotReset)
        }
        #expect(resets == [false, false, true, true, false])
        #expect(Self.rules(sockets).map(\.matched) == [2, 2, 0])
        // A request is not a handshake.
        let id = sockets.open()
        sockets.send(Array("GET / HTTP/1.1\r\n\r\n".utf8), from: .client, id)
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).gotReset && Self.rules(sockets).map(\.fired) == [1, 1, 1])
        let seesRequests = sockets.box.link.hasRequestFaultRules
        #expect(seesRequests)
    }

    @Test func aRemovedRuleDoesNotFire() {
        let rule = FaultRule(handshake: .afterServerHello, action: .reset)
        var (sockets, id) = Self.sockets(rule)
        sockets.send(Self.hello("a"), from: .client, id)
        sockets.runToQuiet()
        sockets.box.link.removeFaultRule(0, at: sockets.now)
        sockets.send(Self.answer, from: .server, id)
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).received == Self.answer)
    }

    @Test func rulesThatCannotBeUsedHaveAProblem() {
        #expect(FaultRule(handshake: .midStream, action: .reset).problem != nil)
        #expect(FaultRule(handshake: .afterServerHello, bytes: 5, action: .reset).problem != nil)
        #expect(FaultRule(handshake: .afterServerHello, action: .throttle(bytesPerSecond: 5)).problem != nil)
        #expect(FaultRule(handshake: .afterServerHello, side: .client, action: .delay(.seconds(1))).problem != nil)
        #expect(FaultRule(handshake: .midStream, bytes: 5, side: .client, action: .reset).problem == nil)
    }

    @Test func anyBytesAfterTheFirstOneNeverTrap() {
        for seed in randomSeeds(300, soak: 20_000) {
            var random = SeededGenerator(seed: seed)
            let points = HandshakePoint.allCases
            let rules = points.map { point in
                FaultRule(
                    handshake: point, bytes: point == .midStream ? Int64.random(in: 0...500, using: &random) : nil,
                    action: [.reset, .close, .stall, .delay(.seconds(1))].randomElement(using: &random) ?? .reset)
            }
            var sockets = VirtualSockets(
                exchangeTracking: ExchangeTracking(rules: [rules.randomElement(using: &random) ?? rules[0]]))
            let id = sockets.open()
            var hello = Self.hello("a.test")
            if Bool.random(using: &random) {
                hello[Int.random(in: 1..<hello.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            let streams = PerDirection(
                up: hello, down: (0..<400).map { _ in UInt8.random(in: 0...255, using: &random) })
            for side in [Side.client, .server] {
                var rest = streams[side.sendDirection][...]
                while !rest.isEmpty {
                    let count = Int.random(in: 1...min(rest.count, 60), using: &random)
                    sockets.send(Array(rest.prefix(count)), from: side, id)
                    rest = rest.dropFirst(count)
                }
            }
            sockets.runToQuiet()
            let received = sockets.socket(.client, id).received
            #expect(received == Array(streams.down.prefix(received.count)), "seed \(seed)")
        }
    }
}
