import Determinism
import Impairment
import LinkModel
import NIOCore
import TCPModel
import TestSupport
import Testing
import Wire

@testable import Proxy

/// Observers of a running proxy.
@Suite(.tags(.proxies), .timeLimit(.minutes(2))) struct ProxyObservationTests {
    private static func connect(_ proxy: Proxy, _ listener: TestSocket) async throws -> (TestSocket, TestSocket) {
        try await blocking { (try TestSocket.connect(port: proxy.address.port), try listener.accept()) }
    }

    private static func send(_ bytes: [UInt8], _ client: TestSocket, _ server: TestSocket) async throws {
        try await blocking {
            try client.send(bytes)
            #expect(try server.receive(exactly: bytes.count) == bytes)
        }
    }

    @Test func observingPacketsMovesConnectionsOffTheFastPath() async throws {
        try await withProxy(.clear) { proxy, listener in
            let (client, server) = try await Self.connect(proxy, listener)
            try await Self.send([1], client, server)
            let observation = await proxy.observe(.packets)
            #expect(observation.connectionsMoved == (Proxy.hasFastPath ? 1 : 0))
            try await Self.send([2, 3], client, server)
            for await event in observation.events {
                guard case .packet(let packet) = event, packet.record.payloadBytes == 2 else { continue }
                #expect(packet.record.direction == .up && packet.payload.map { Array($0.readableBytesView) } == [2, 3])
                break
            }
            #expect(observation.eventsDropped == 0)
        }
    }

    @Test func afterAnObservationNewConnectionsUseTheFastPath() async throws {
        guard Proxy.hasFastPath else { return }
        try await withProxy(.clear) { proxy, listener in
            var observation: ProxyObservation? = await proxy.observe([.packets, .exchanges])
            let during = try await Self.connect(proxy, listener)
            try await eventually("the connection is open") { await proxy.connections().count == 1 }
            let isOnLink = if case .link = await proxy.connections()[0].id.carrier { true } else { false }
            #expect(isOnLink)
            observation = nil
            _ = observation
            try await eventually("a new connection is on the fast path") {
                let pair = try await Self.connect(proxy, listener)
                try await Self.send([1], pair.0, pair.1)
                return await proxy.connections().contains { if case .relay = $0.id.carrier { true } else { false } }
            }
            _ = during
        }
    }

    /// The tracker of a connection from the fast path starts inside a message, which is not HTTP to it.
    @Test func observingExchangesDoesNotDelayAMessageUnderWay() async throws {
        try await withProxy(.clear) { proxy, listener in
            let (client, server) = try await Self.connect(proxy, listener)
            try await Self.send(Array("PUT / HTTP/1.1\r\nContent-Length: 10\r\n\r\n12345".utf8), client, server)
            let observation = await proxy.observe([.exchanges])
            try await Self.send(Array("67890".utf8), client, server)
            try await Self.send(Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8), server, client)
            #expect(observation.eventsDropped == 0)
        }
    }

    @Test func observingExchangesReportsThoseOfNewConnections() async throws {
        try await withProxy(.clear) { proxy, listener in
            let observation = await proxy.observe([.exchanges])
            let (client, server) = try await Self.connect(proxy, listener)
            try await Self.send(Array("GET /a HTTP/1.1\r\nHost: a\r\n\r\n".utf8), client, server)
            for await event in observation.events {
                guard case .exchange(.requested(_, let head, _, _), _, _) = event else { continue }
                #expect(head.method == "GET" && head.target == "/a")
                break
            }
        }
    }

    @Test func aFullStreamCountsTheEventsThatItDrops() async throws {
        try await withProxy(delayed) { proxy, listener in
            let observation = await proxy.observe(.packets, bufferedEventsMax: 4)
            let (client, server) = try await Self.connect(proxy, listener)
            try await Self.send([UInt8](repeating: 1, count: 50_000), client, server)
            try await eventually("events were dropped") { observation.eventsDropped > 20 }
            var events = observation.events.makeAsyncIterator()
            for _ in 0..<4 {
                guard case .packet = await events.next() else {
                    Issue.record("not a packet")
                    return
                }
            }
            // The marker takes the position of the dropped events.
            try await Self.send([1], client, server)
            guard case .dropped(let count) = await events.next() else {
                Issue.record("no marker")
                return
            }
            #expect(count > 20 && count <= observation.eventsDropped)
        }
    }

    @Test func changesOfConditionsAreObservedWithoutLeavingTheFastPath() async throws {
        try await withProxy(.clear) { proxy, listener in
            let (client, server) = try await Self.connect(proxy, listener)
            let observation = await proxy.observe([.conditions, .status])
            #expect(observation.connectionsMoved == 0)
            var events = observation.events.makeAsyncIterator()
            guard case .status(let status) = await events.next() else {
                Issue.record("no status")
                return
            }
            #expect(status.connectionsOpen == 1)
            await proxy.setConditions(delayed)
            while let event = await events.next() {
                guard case .conditions(let conditions, .open) = event else { continue }
                #expect(conditions == delayed)
                break
            }
            _ = (client, server)
        }
    }

    @Test func statusesOfAnIdleProxyAreLeftOut() async {
        let (events, continuation) = AsyncStream.makeStream(of: ProxyEvent.self)
        let observer = ProxyObserver(
            .status, statusInterval: .milliseconds(100), continuation, ProxyObservation.DropCounter())
        var link = SharedLink()
        var status = ProxyStatus(link: LinkStatus(&link))
        let sent = ProxyObservation.equalStatusesMax + 1
        for _ in 0..<sent { #expect(observer.send(status) == .milliseconds(100)) }
        for _ in 0..<100 { #expect(observer.send(status) == ProxyObservation.idleStatusInterval) }
        status.connectionsOpen = 1
        for _ in 0..<sent { #expect(observer.send(status) == .milliseconds(100)) }
        #expect(observer.send(status) == ProxyObservation.idleStatusInterval)
        observer.finish()
        var open: [Int] = []
        for await case .status(let status) in events { open.append(status.connectionsOpen) }
        #expect(open == Array(repeating: 0, count: sent) + Array(repeating: 1, count: sent))
    }

    @Test func aProxyThatStopsEndsItsObservations() async throws {
        try await withProxy(.clear) { proxy, _ in
            let observation = await proxy.observe([.packets])
            await proxy.stop(grace: .zero)
            for await _ in observation.events {}
        }
    }
}
