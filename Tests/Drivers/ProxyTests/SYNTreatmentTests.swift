import Impairment
import LinkModel
import TestSupport
import Testing

@testable import Proxy

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

private let dead = Conditions(up: DirectionConditions(loss: .one), down: DirectionConditions(loss: .one))
private let updead = Conditions(up: DirectionConditions(loss: .one), down: .clear)
private let downdead = Conditions(up: .clear, down: DirectionConditions(loss: .one))

/// The methods that this machine supports.
let synDropMethods: [SYNDropMethod] =
    SYNDropMethod.best == .none
    ? [] : SYNDropMethod.best == .socketFilter ? [.socketFilter, .acceptQueue] : [.acceptQueue]

private func with(access: ConnectionPolicy) -> Conditions {
    Conditions(up: .clear, down: .clear, connectionPolicy: access)
}

/// Sends a byte in each direction.
private func exchange(_ client: TestSocket, _ server: TestSocket) throws {
    try client.send([1])
    #expect(try server.receive(exactly: 1) == [1])
    try server.send([2])
    #expect(try client.receive(exactly: 1) == [2])
}

/// Opens a connection and exchanges bytes with the server.
private func connectAndExchange(_ proxy: Proxy, _ listener: TestSocket) throws {
    let client = try TestSocket.connect(port: proxy.address.port)
    try exchange(client, try listener.accept())
}

private func expectRefusal(_ proxy: Proxy) {
    #expect(throws: Failure(call: "connect", code: ECONNREFUSED)) {
        try TestSocket.connect(port: proxy.address.port)
    }
}

private typealias Failure = TestSocket.Failure

/// The treatment of new connections: SYN dropped, refused, served by a captive portal.
@Suite(.tags(.proxies), .timeLimit(.minutes(10))) struct SYNTreatmentTests {
    @Test(arguments: synDropMethods) func duringAnOutageSYNsAreDropped(_ method: SYNDropMethod) async throws {
        try await withThrowingTaskGroup(of: Void.self) { outages in
            for conditions in [dead, updead, downdead] {
                outages.addTask { try await Self.expectDroppedSYNs(conditions, method) }
            }
            try await outages.waitForAll()
        }
    }

    private static func expectDroppedSYNs(_ conditions: Conditions, _ method: SYNDropMethod) async throws {
        try await withProxy(.clear, synDropMethod: method) { proxy, listener in
            let (old, oldServer) = try await blocking {
                (try TestSocket.connect(port: proxy.address.port), try listener.accept())
            }
            await proxy.setConditions(conditions)
            #expect(await proxy.status().synDropMethod == method)
            try await blocking { () throws -> Void in
                // Neither a SYN-ACK nor a RST.
                for _ in 0..<3 {
                    #expect(throws: Failure(call: "connect", code: EINPROGRESS)) {
                        try TestSocket.connect(port: proxy.address.port, within: 150)
                    }
                }
            }
            // The kernel repeats the SYN of this connection after a second.
            async let late = blocking { try TestSocket.connect(port: proxy.address.port) }
            try await Task.sleep(for: .milliseconds(300))
            await proxy.setConditions(.clear)
            let client = try await late
            try await blocking {
                try exchange(client, try listener.accept())
                try exchange(old, oldServer)
            }
            let status = await proxy.status()
            #expect(status.synDropMethod == nil)
            #expect(status.connectionsAccepted == 2, "a filler connection is not counted")
        }
    }

    @Test func withoutASYNDropMethodAConnectionStallsUntilTheOutageEnds() async throws {
        try await withProxy(dead, synDropMethod: SYNDropMethod.none) { proxy, listener in
            let client = try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                try client.send([1])
                return client
            }
            let server = try await blocking { try listener.accept() }
            #expect(!server.isReadable(within: 200))
            await proxy.setConditions(.clear)
            try await blocking { () throws -> Void in #expect(try server.receive(exactly: 1) == [1]) }
            _ = client
        }
    }

    @Test func aRefusalResetsConnectionsAndNewSYNs() async throws {
        for access in [ConnectionPolicy.offline, .dns] {
            try await withProxy(.clear) { proxy, listener in
                let (client, server) = try await blocking {
                    (try TestSocket.connect(port: proxy.address.port), try listener.accept())
                }
                try await blocking { try exchange(client, server) }
                await proxy.setConditions(with(access: access))
                try await blocking { () throws -> Void in
                    #expect(throws: Failure(call: "recv", code: ECONNRESET)) { try client.receive() }
                    #expect(throws: Failure(call: "recv", code: ECONNRESET)) { try server.receive() }
                    for _ in 0..<3 { expectRefusal(proxy) }
                }
                await proxy.setConditions(.clear)
                try await blocking { try connectAndExchange(proxy, listener) }
            }
        }
    }

    @Test func aProxyThatRefusesFromTheStartReservesItsPort() async throws {
        try await withProxy(with(access: .offline)) { proxy, listener in
            #expect(proxy.address.port > 0)
            try await blocking { expectRefusal(proxy) }
            await proxy.setConditions(.clear)
            try await blocking { try connectAndExchange(proxy, listener) }
        }
    }

    @Test func aPortalRespondsInsteadOfTheServer() async throws {
        try await withProxy(with(access: .portal)) { proxy, listener in
            try await blocking { () throws -> Void in
                let client = try TestSocket.connect(port: proxy.address.port)
                // Two pipelined requests, the second a HEAD; the third closes the connection.
                try client.send(
                    Array("GET /notes HTTP/1.1\r\nHost: a\r\n\r\nHEAD / HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
                try client.send(
                    Array("PUT /notes/1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi".utf8))
                let response = String(decoding: try client.receiveToEnd(), as: UTF8.self)
                #expect(response.hasPrefix("HTTP/1.1 200 OK\r\n"))
                #expect(response.matches(of: /HTTP\/1\.1 200 OK/).count == 3)
                #expect(response.matches(of: /Sign in to this network<\/h1>/).count == 2)
                #expect(response.contains("Content-Type: text/html"))
                #expect(!listener.isReadable(within: 50), "nothing reaches the server")
            }
            try await blocking { () throws -> Void in
                let tls = try TestSocket.connect(port: proxy.address.port)
                try tls.send([22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3, 13, 10, 13, 10])
                #expect(throws: Failure(call: "recv", code: ECONNRESET)) { try tls.receive() }
            }
            let kept = try await blocking { () throws -> TestSocket in
                let client = try TestSocket.connect(port: proxy.address.port)
                try client.send(Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
                _ = try client.receive()
                return client
            }
            await proxy.setConditions(.clear)
            try await blocking { () throws -> Void in
                #expect(kept.receiveToFailure().code == ECONNRESET)
                try connectAndExchange(proxy, listener)
            }
        }
    }

    @Test func abortingConnectionsAffectsOpenConnectionsOnly() async throws {
        try await withProxy(.clear) { proxy, listener in
            let (client, server) = try await blocking {
                (try TestSocket.connect(port: proxy.address.port), try listener.accept())
            }
            await proxy.abortConnections()
            try await blocking { () throws -> Void in
                #expect(throws: Failure(call: "recv", code: ECONNRESET)) { try client.receive() }
                #expect(throws: Failure(call: "recv", code: ECONNRESET)) { try server.receive() }
                try connectAndExchange(proxy, listener)
            }
        }
    }

    @Test(arguments: [SYNDropMethod?.none] + synDropMethods) func ofManyQuickChangesTheLastOneTakesEffect(
        _ method: SYNDropMethod?
    ) async throws {
        let conditions = [
            dead, .clear, with(access: .offline), updead, with(access: .portal), with(access: .dns), downdead,
        ]
        try await withProxy(.clear, synDropMethod: method) { proxy, listener in
            await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    for number in 0..<200 { await proxy.setConditions(conditions[number * 5 % conditions.count]) }
                }
                group.addTask {
                    for _ in 0..<20 {
                        _ = try? await blocking { try TestSocket.connect(port: proxy.address.port, within: 5) }
                    }
                }
            }
            await proxy.setConditions(.clear)
            try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                try client.send([7])
                // The queue also holds connections that were opened and closed before.
                while (try? listener.accept().receive(atMost: 1)) != [7] {}
            }
        }
    }
}
