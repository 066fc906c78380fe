#if os(Linux)
import LinkModel
import NIOCore
import Proxy
import TestSupport
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// One relay without a proxy, tested through its own interface.
@Suite(.tags(.proxies), .serialized, .timeLimit(.minutes(2))) struct RelayTests {
    /// A relay's port between the test's clients and its upstream.
    private final class Port: Sendable {
        let relay: Relay
        let token = Relay.makePortToken()
        /// The address to which clients connect.
        let clientPort: Int
        let upstream: TestSocket
        let slots: ConnectionSlots
        let errors = Errors()

        /// Opens a port. The relay requests the upstream's address for each connection, so that no other relay takes part.
        ///
        /// - Parameters:
        ///   - isUpstreamOpen: Whether the upstream listens.
        ///   - admit: See ``Proxy/Relay/RelayPortConfiguration``.
        init(
            slotsMax: Int = 10, isUpstreamOpen: Bool = true, resetsClientOnDialFailure: Bool = true,
            admit: @escaping @Sendable (CInt) -> RelayPortConfiguration.Admission? = { _ in .init() }
        ) throws {
            let relay = try #require(Relay.all.first)
            let (upstream, upstreamPort) = try TestSocket.listen()
            let closedPort = isUpstreamOpen ? upstreamPort : try TestSocket.unusedPort()
            let address = try SocketAddress(ipAddress: "127.0.0.1", port: closedPort)
            let slots = ConnectionSlots(max: slotsMax)
            let errors = errors
            let configuration = RelayPortConfiguration(
                addresses: nil, connectTimeout: .seconds(5), attemptDelay: .milliseconds(250),
                resetsClientOnDialFailure: resetsClientOnDialFailure, slots: slots,
                numbers: ConnectionNumbers(), seed: 7, bytesHeldMax: { 1 << 20 }, admit: admit,
                configureUpstreamSocket: { _ in }, recordDial: { _, _, _ in nil },
                resolveUpstream: { connection in relay.perform { $0.dial(connection, .success([address])) } },
                onDialFailed: { _ in errors.dial.set() }, onAcceptPaused: { _ in errors.accept.set() })
            let (listener, clientPort) = try Self.makeListener()
            let token = token
            relay.perform { $0.open(token, configuration, acceptor: relay, listener: listener) }
            self.relay = relay
            self.clientPort = clientPort
            self.upstream = upstream
            self.slots = slots
        }

        final class Errors: Sendable {
            let dial = Flag()
            let accept = Flag()
        }

        /// Returns a non-blocking listening socket.
        private static func makeListener() throws -> (OwnedSocket, Int) {
            let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0)
            let address = try SocketAddress(ipAddress: "127.0.0.1", port: 0)
            let isBound = address.withSockAddr { bind(descriptor, $0, socklen_t($1)) } == 0
            try #require(isBound && listen(descriptor, 100) == 0)
            return (OwnedSocket(descriptor), try SystemSocket.localAddress(of: descriptor).port ?? 0)
        }

        func connect() async throws -> TestSocket {
            let port = clientPort
            return try await blocking { try TestSocket.connect(port: port) }
        }

        /// Connects a client and accepts its upstream connection.
        func connectThrough() async throws -> (client: TestSocket, server: TestSocket) {
            let (port, upstream) = (clientPort, upstream)
            return try await blocking { (try TestSocket.connect(port: port), try upstream.accept()) }
        }

        /// Runs a closure on the relay's thread.
        func run<Output: Sendable>(
            _ job: @escaping @Sendable (RelayLoop, RelayToken) -> Output
        ) async -> Output {
            let token = token
            return await withCheckedContinuation { continuation in
                relay.perform { continuation.resume(returning: job($0, token)) }
            }
        }

        /// Closes the port and all connections.
        func close() async {
            while await run({ $0.close($1, .discard, connectionsMax: 100).finalTraffic }) == nil {}
        }
    }

    private func eventually(_ what: String, _ condition: () async -> Bool) async throws {
        let deadline = ContinuousClock.now + .seconds(30)
        while await !condition() {
            try #require(ContinuousClock.now < deadline, "not within 30 s: \(what)")
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    /// Waits until the relay holds bytes and reads no more, because the receiver is full.
    private func waitUntilPaused(_ port: Port) async throws {
        var read = 0
        var unchanged = 0
        try await eventually("reading pauses") {
            let traffic = await port.run { $0.traffic(of: $1) }
            unchanged = traffic.bytesHeld > 0 && traffic.bytesRead.up == read ? unchanged + 1 : 0
            read = traffic.bytesRead.up
            return unchanged >= 100
        }
    }

    @Test func bytesAndFINsPassInBothDirectionsAndAreCounted() async throws {
        let port = try Port()
        let (client, server) = try await port.connectThrough()
        try await blocking { () throws -> Void in
            try client.send([1, 2, 3])
            #expect(try server.receive(exactly: 3) == [1, 2, 3])
        }
        let statuses = await port.run { $0.statuses(of: $1) }
        #expect(statuses.map(\.number) == [0] && statuses.first?.client?.port == client.localPort)
        #expect(statuses.first?.bytesRead == PerDirection(up: 3, down: 0))
        #expect(port.slots.count == 1)
        try await blocking { () throws -> Void in
            client.finish()
            #expect(try server.receiveToEnd().isEmpty)
            try server.send([4])
            server.finish()
            #expect(try client.receiveToEnd() == [4])
        }
        try await eventually("the slot is released") { port.slots.count == 0 }
        let traffic = await port.run { $0.traffic(of: $1) }
        #expect(traffic.accepted == 1 && traffic.bytesHeld == 0)
        #expect(traffic.bytesRead == PerDirection(up: 3, down: 1) && traffic.bytesCarried == traffic.bytesRead)
        await port.close()
    }

    /// The client sends `size` bytes at once, or, if `size` is 0, 1000 bytes at a time.
    @Test(arguments: [30_000_000, 0]) func aDetachedConnectionHasTheHeldBytes(_ size: Int) async throws {
        let port = try Port()
        let (client, server) = try await port.connectThrough()
        server.shrinkReceiveBuffer()
        let sending = Task {
            try? await blocking {
                if size > 0 { return try client.send([UInt8](repeating: 5, count: size)) }
                while true { try client.send([UInt8](repeating: 5, count: 1000)) }
            }
        }
        try await waitUntilPaused(port)
        await port.run { $0.freeze($1) }
        let held = await port.run { $0.traffic(of: $1).bytesHeld }
        let detachment = await port.run { $0.detach(from: $1, upTo: 10) }
        let detached = try #require(detachment.connections.first)
        let traffic = try #require(detachment.finalTraffic, "the port goes with its last connection")
        #expect(detached.pending.up.readableBytes == held && held > 0)
        #expect(detached.pending.up.readableBytesView.allSatisfy { $0 == 5 })
        #expect(detached.seed == 7 && detached.isFinished == PerDirection(up: false, down: false))
        // Held bytes are counted as read where the connection continues.
        #expect(traffic.bytesRead.up == traffic.bytesCarried.up)
        detached.client.reset()
        detached.server?.reset()
        _ = await sending.value
        _ = server
    }

    @Test func aClosingPortDetachesOnlyConnectionsThatHoldBytes() async throws {
        let port = try Port()
        let idle = try await port.connectThrough()
        let (client, server) = try await port.connectThrough()
        server.shrinkReceiveBuffer()
        let sending = Task { try? await blocking { try client.send([UInt8](repeating: 5, count: 30_000_000)) } }
        try await waitUntilPaused(port)
        let detachment = await port.run { $0.close($1, .drain(idleTimeMin: .zero), connectionsMax: 10) }
        #expect(detachment.connections.map(\.status.number) == [1] && detachment.finalTraffic != nil)
        try await blocking { () throws -> Void in
            #expect(try idle.client.receiveToEnd().isEmpty && idle.server.receiveToEnd().isEmpty)
        }
        for connection in detachment.connections {
            connection.client.reset()
            connection.server?.reset()
        }
        _ = await sending.value
    }

    @Test func aClientThatIsNotAdmittedIsReset() async throws {
        let port = try Port(admit: { _ in nil })
        try await blocking { [clientPort = port.clientPort] in
            // The RST may arrive before connect() returns.
            guard let client = try? TestSocket.connect(port: clientPort) else { return }
            #expect(client.receiveToFailure().code == ECONNRESET)
        }
        #expect(port.slots.count == 0)
        await port.close()
    }

    @Test(arguments: [true, false]) func aFailedDialEndsTheClientAsConfigured(_ resets: Bool) async throws {
        let port = try Port(isUpstreamOpen: false, resetsClientOnDialFailure: resets)
        try await blocking { [clientPort = port.clientPort] in
            guard let client = try? TestSocket.connect(port: clientPort) else { return }
            #expect(client.receiveToFailure().code == (resets ? ECONNRESET : 0))
        }
        try await eventually("the failure is reported") { port.errors.dial.isSet && port.slots.count == 0 }
        await port.close()
    }

    @Test func clientsWithoutASlotWaitUntilOneIsReleased() async throws {
        let port = try Port(slotsMax: 1)
        let (client, server) = try await port.connectThrough()
        let waiting = try await port.connect()
        try await eventually("the lack of a slot is reported") { port.errors.accept.isSet }
        #expect(await port.run { $0.traffic(of: $1).accepted } == 1)
        client.finish()
        server.finish()
        let upstream = port.upstream
        try await blocking { () throws -> Void in
            let second = try upstream.accept()
            try waiting.send([9])
            #expect(try second.receive(exactly: 1) == [9])
        }
        await port.close()
    }

    @Test func anAbortedConnectionIsResetOnBothSides() async throws {
        let port = try Port()
        let (client, server) = try await port.connectThrough()
        let token = try #require(await port.run { $0.connectionTokens(of: $1) }.first)
        #expect(await port.run { loop, _ in loop.abort(token) })
        #expect(await port.run { loop, _ in loop.abort(token) } == false, "it is gone")
        try await blocking {
            #expect(client.receiveToFailure().code == ECONNRESET)
            #expect(server.receiveToFailure().code == ECONNRESET)
        }
        await port.close()
    }
}
#endif
