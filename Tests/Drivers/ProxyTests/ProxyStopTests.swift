import Determinism
import Impairment
import LinkModel
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import Proxy

/// Stopping during transfers: all bytes and then a FIN within the grace period, otherwise a RST.
@Suite(.tags(.proxies), .serialized, .timeLimit(.minutes(5))) struct ProxyStopTests {
    /// The way of the bytes.
    enum Path: CaseIterable { case slow, observed, tracked, fast }

    /// A link on which 5000 bytes take 2.5 s.
    private static let slow: Conditions = {
        let rate = DirectionConditions(rate: Rate(bitsPerSecond: 16_000), delay: .milliseconds(20))
        return Conditions(up: rate, down: rate)
    }()

    private static let bytes = (0..<5000).map { UInt8(truncatingIfNeeded: $0 &* 31) }

    private func withConnection(
        _ path: Path, uploadsOnly: Bool = false, idleTimeMin: TimeAmount = .minutes(1),
        _ body: @escaping (Proxy, _ sender: TestSocket, _ receiver: TestSocket) async throws -> Void
    ) async throws {
        for sendsToServer in uploadsOnly ? [true] : [false, true] {
            try await withProxy(
                path == .slow ? Self.slow : .clear, allowsFastPath: path == .fast,
                { configuration in
                    // A busy machine may pause a transfer for longer than the default.
                    configuration.idleTimeMin = idleTimeMin
                    if path == .tracked { configuration.exchangeTracking = ExchangeTracking() }
                }
            ) { proxy, listener in
                let (client, server) = try await blocking {
                    let client = try TestSocket.connect(port: proxy.address.port)
                    return (client, try listener.accept())
                }
                try await body(proxy, sendsToServer ? client : server, sendsToServer ? server : client)
            }
        }
    }

    /// Waits until a stop has begun: the proxy no longer listens.
    private static func stopHasBegun(_ proxy: Proxy) async throws {
        let port = proxy.address.port
        try await blocking { try TestSocket.waitForRefusal(port: port) }
    }

    /// The sender's last bytes follow after the stop has begun, with a pause in which nothing is in flight.
    @Test(arguments: Path.allCases) func bytesSentDuringTheGracePeriodArriveBeforeTheFIN(_ path: Path) async throws {
        try await withConnection(path) { proxy, sender, receiver in
            try await blocking { try sender.send(Self.bytes.prefix(4096)) }
            async let received = blocking {
                defer { receiver.finish() }
                return try receiver.receiveToEnd()
            }
            async let stopped = proxy.stop(grace: .seconds(60))
            try await Task.sleep(for: .milliseconds(path == .slow ? 2500 : 300))
            try await blocking {
                try sender.send(Self.bytes.dropFirst(4096))
                sender.finish()
            }
            #expect(try await received == Self.bytes)
            #expect(await stopped)
        }
    }

    @Test(arguments: Path.allCases) func aTransferThatOutlastsTheGracePeriodEndsWithARST(_ path: Path) async throws {
        try await withConnection(path) { proxy, sender, receiver in
            try await blocking { try sender.send(Self.bytes.prefix(4096)) }
            async let failure = blocking { receiver.receiveToFailure() }
            #expect(await proxy.stop(grace: .milliseconds(500)) == false)
            let (count, code) = try await failure
            #expect(code == ECONNRESET && count <= 4096)
        }
    }

    /// The response to a client that has half-closed its connection is outstanding.
    @Test(arguments: Path.allCases) func aHalfClosedConnectionGetsItsResponse(_ path: Path) async throws {
        try await withConnection(path, uploadsOnly: true) { proxy, client, server in
            try await blocking {
                try client.send([1, 2, 3])
                client.finish()
                #expect(try server.receiveToEnd() == [1, 2, 3])
            }
            async let stopped = proxy.stop(grace: .seconds(60))
            try await Task.sleep(for: .milliseconds(1500))
            try await blocking {
                try server.send([4, 5])
                server.finish()
                #expect(try client.receiveToEnd() == [4, 5])
            }
            #expect(await stopped)
        }
    }

    @Test func aSecondStopShortensTheGracePeriod() async throws {
        try await withConnection(.slow) { proxy, sender, receiver in
            try await blocking { try sender.send(Self.bytes) }
            async let stopped = proxy.stop(grace: .hours(1))
            try await Self.stopHasBegun(proxy)
            #expect(await proxy.stop(grace: .zero) == false)
            #expect(await stopped == false)
            #expect(try await blocking { receiver.receiveToFailure() }.code == ECONNRESET)
        }
    }

    /// The last response of a tracked connection has been delivered, and the next request is in the proxy's socket. The FIN
    /// of an idle connection would drop it, and the response to it.
    @Test func bytesInTheSocketsAtTheTimeOfTheStopAreRead() async throws {
        for _ in 0..<20 {
            try await withConnection(.tracked, uploadsOnly: true) { proxy, client, server in
                let request = Array("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8)
                let response = Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8)
                try await blocking {
                    try client.send(request)
                    _ = try server.receive(exactly: request.count)
                    try server.send(response)
                    _ = try client.receive(exactly: response.count)
                    try client.send(request)
                }
                async let stopped = proxy.stop(grace: .seconds(60))
                try await blocking {
                    _ = try server.receive(exactly: request.count)
                    try server.send(response)
                    let received = try client.receiveToEnd()
                    #expect(received == response)
                }
                #expect(await stopped)
            }
        }
    }

    /// A stop does not wait for what an outage holds until a call ends it.
    @Test func duringAnOutageConnectionsWithBytesAreResetAtOnce() async throws {
        let dead = Conditions(up: DirectionConditions(loss: .one), down: DirectionConditions(loss: .one))
        try await withConnection(.slow) { proxy, sender, receiver in
            try await blocking {
                try sender.send([1])
                _ = try receiver.receive(exactly: 1)
            }
            await proxy.setConditions(dead)
            try await blocking { try sender.send(Self.bytes) }
            try await eventually("the proxy holds bytes") { await proxy.status().link.bytesHeld > 0 }
            #expect(await proxy.stop(grace: .hours(1)) == false)
            #expect(try await blocking { receiver.receiveToFailure() } == (0, ECONNRESET))
        }
    }

    @Test(arguments: Path.allCases) func anIdleConnectionIsClosedWithAFIN(_ path: Path) async throws {
        try await withConnection(path, idleTimeMin: .milliseconds(100)) { proxy, sender, receiver in
            try await blocking {
                try sender.send([1])
                _ = try receiver.receive(exactly: 1)
            }
            #expect(await proxy.stop(grace: .hours(1)))
            try await blocking { () throws -> Void in
                #expect(try receiver.receiveToEnd().isEmpty && sender.receiveToEnd().isEmpty)
            }
        }
    }

    // MARK: Replies that close the connection

    /// Each request leaves no socket open: the client sees the FIN after the reply.
    @Test(arguments: [true, false]) func aReplyToAClosingRequestClosesBothSockets(_ isPortal: Bool) async throws {
        var conditions = Conditions.clear
        if isPortal { conditions.connectionPolicy = .portal }
        try await withProxy(
            conditions,
            { configuration in
                if isPortal { return }
                configuration.faultRules = [
                    FaultRule(times: 1...Int.max, point: .beforeRequest, action: .respond(FaultResponse(status: 503)))
                ]
            }
        ) { proxy, listener in
            for start in ["GET / HTTP/1.0\r\n", "GET / HTTP/1.1\r\nConnection: close\r\n"] {
                for _ in 0..<20 {
                    try await blocking {
                        let client = try TestSocket.connect(port: proxy.address.port)
                        try client.send(Array("\(start)Host: h\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
                        let text = String(decoding: try client.receiveToEnd(), as: UTF8.self)
                        #expect(
                            text.hasPrefix(isPortal ? "HTTP/1.1 200 OK\r\n" : "HTTP/1.1 503 Service Unavailable\r\n"))
                        #expect(text.matches(of: /HTTP\/1\.1 \d/).count == 1)
                    }
                }
            }
            try await eventually("no connection is open") { await proxy.status().connectionsOpen == 0 }
            _ = listener
        }
    }
}
