import Impairment
import LinkModel
import NIOConcurrencyHelpers
import NIOCore
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

/// Connections on the fast path, and their move to the link when conditions apply.
///
/// Serialized: the tests share the relays, and some block them.
@Suite(.tags(.proxies), .serialized, .timeLimit(.minutes(10))) struct FastPathTests {
    private static let latency = Toxic(
        name: "late", stream: .down, effect: .latency(latency: 60, jitter: 0))

    /// Returns bytes that repeat with a period other than any buffer's size, so that a lost or repeated buffer is detected.
    private static func pattern(_ count: Int, _ seed: UInt8) -> [UInt8] {
        let piece = (0..<65_537).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) &+ seed }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + piece.count)
        while bytes.count < count { bytes += piece }
        bytes.removeLast(bytes.count - count)
        return bytes
    }

    /// Compares as memory, which is fast in a debug build.
    private static func isSame(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.count == right.count
            && left.withUnsafeBytes { left in
                right.withUnsafeBytes { right in
                    left.isEmpty || memcmp(left.baseAddress!, right.baseAddress!, left.count) == 0
                }
            }
    }

    private static func isOnRelay(_ proxy: Proxy) async -> Bool {
        await proxy.connections().allSatisfy { if case .relay = $0.id.carrier { true } else { false } }
    }

    private static func connect(_ proxy: Proxy, _ listener: TestSocket) async throws -> (TestSocket, TestSocket) {
        let port = proxy.address.port
        return try await blocking { (try TestSocket.connect(port: port), try listener.accept()) }
    }

    /// Waits until nothing more is read from the server, because the receiver is full or `all` bytes are read; returns the
    /// bytes read. A full receiver shows only in that time passes without a byte.
    private static func bytesReadWhenPaused(_ proxy: Proxy, all: Int = .max) async throws -> Int {
        var read = 0
        var times = 0
        while times < 8 {
            try await Task.sleep(for: .milliseconds(50))
            let now = await proxy.status().link.bytesRead.down
            if now == all { return now }
            times = now == read && now > 0 ? times + 1 : 0
            read = now
        }
        return read
    }

    @Test func withoutConditionsTheRelayForwardsConnections() async throws {
        try await withProxy(.clear) { proxy, listener in
            let (client, server) = try await Self.connect(proxy, listener)
            try await blocking {
                try client.send([1, 2, 3])
                #expect(try server.receive(exactly: 3) == [1, 2, 3])
            }
            let connections = await proxy.connections()
            #expect(connections.count == 1 && connections[0].number == 0)
            #expect(connections.first?.bytesRead == PerDirection(up: 3, down: 0))
            #expect(connections.first?.client?.host == "127.0.0.1")
            #if os(Linux)
            #expect(await Self.isOnRelay(proxy))
            #endif
            await proxy.add(Self.latency)
            #expect(!(await Self.isOnRelay(proxy)))
            let after = await proxy.connections()
            #expect(after.map(\.number) == [0] && after.first?.bytesRead == PerDirection(up: 3, down: 0))
            #expect(await proxy.status().connectionsOpen == 1)
            // A connection made after the conditions are gone uses the fast path.
            await proxy.removeToxics(["late"])
            let others = try await Self.connect(proxy, listener)
            #if os(Linux)
            let places = await proxy.connections().map(\.id.carrier)
            #expect(places.count == 2)
            if case .relay = places.last {} else { Issue.record("\(places)") }
            #endif
            #expect(await proxy.connections().map(\.number) == [0, 1])
            _ = (client, server, others)
        }
    }

    /// Bytes that the relay holds for a receiver that does not read arrive in order, and are counted once.
    @Test(arguments: [1_000, 100_000, 20_000_000])
    func bytesHeldByTheRelayArriveFirst(_ size: Int) async throws {
        try await withProxy(.clear) { proxy, listener in
            let (client, server) = try await Self.connect(proxy, listener)
            let bytes = Self.pattern(size, 1)
            let more = Self.pattern(5_000, 2)
            let sending = Task {
                try await blocking {
                    try server.send(bytes)
                    try server.send(more)
                    server.finish()
                }
            }
            _ = try await Self.bytesReadWhenPaused(proxy, all: size + 5_000)
            if size > 10_000_000 { #expect(await proxy.status().link.bytesHeld > 0) }
            await proxy.add(Self.latency)
            let isWhole = try await blocking { Self.isSame(try client.receiveToEnd(), bytes + more) }
            #expect(isWhole)
            try await sending.value
            try await blocking { () throws -> Void in
                client.finish()
                #expect(try server.receiveToEnd().isEmpty)
            }
            let link = await proxy.status().link
            #expect(link.bytesRead.down == size + 5_000 && link.bytesCarried.down == size + 5_000)
            #expect(link.bytesHeld == 0)
        }
    }

    @Test func aPausedSenderStaysPausedWhenConditionsApply() async throws {
        try await withProxy(.clear) { proxy, listener in
            let (client, server) = try await Self.connect(proxy, listener)
            let sending = Task {
                try? await blocking { while true { try server.send([UInt8](repeating: 9, count: 100_000)) } }
            }
            let read = try await Self.bytesReadWhenPaused(proxy)
            #expect(await proxy.status().link.bytesHeld > 0)
            await proxy.setConditions(delayed)
            // Time in which a sender that is not paused exceeds the limit.
            try await Task.sleep(for: .milliseconds(500))
            // The modelled send buffer and what the relay held.
            #expect(await proxy.status().link.bytesHeld <= 2 << 20)
            let link = await proxy.status().link
            let more = link.bytesRead.down - read
            #expect(more <= 4 << 20, "\(more), \(link)")
            await proxy.stop(grace: .zero)
            _ = await sending.value
            _ = client
        }
    }

    #if os(Linux)
    /// Bytes after urgent data arrive, whether they are copied or spliced, and before a FIN.
    @Test(arguments: [3, 20_000, 500_000]) func urgentDataDoNotStopForwarding(_ size: Int) async throws {
        try await withProxy(.clear) { proxy, listener in
            let (client, server) = try await Self.connect(proxy, listener)
            let (first, second) = (Self.pattern(size, 1), Self.pattern(size, 2))
            try await blocking {
                try client.send(first)
                client.sendUrgent(88)
                try client.send(second)
                client.finish()
            }
            let isWhole = try await blocking { Self.isSame(try server.receiveToEnd(), first + second) }
            // A plain read does not return the urgent byte, because it is out of band.
            #expect(isWhole)
        }
    }
    #endif

    /// Toxics and conditions are added and removed while bytes flow both ways: every byte arrives once and in order.
    @Test(arguments: 0..<6 as Range<UInt8>) func changesDuringTransfersLoseNoBytes(_ seed: UInt8) async throws {
        try await withProxy(.clear) { proxy, listener in
            let streams = 4
            // Some directions end long before the others.
            func size(_ number: Int, _ direction: Direction) -> Int {
                direction == .up ? 700_000 * (number + 1) : 700_000 * (streams - number)
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<streams {
                    let (client, server) = try await Self.connect(proxy, listener)
                    for (sender, receiver, direction) in [(client, server, Direction.up), (server, client, .down)] {
                        let size = size(number, direction)
                        let bytes = Self.pattern(size, seed &+ UInt8(direction == .up ? number : number + 100))
                        group.addTask {
                            try await blocking {
                                var start = 0
                                var piece = 1
                                while start < size {
                                    let end = min(size, start + piece)
                                    try sender.send(bytes[start..<end])
                                    start = end
                                    piece = piece * 7 % 300_007 + 1
                                }
                                sender.finish()
                            }
                        }
                        group.addTask {
                            let isWhole = try await blocking { Self.isSame(try receiver.receiveToEnd(), bytes) }
                            #expect(isWhole)
                        }
                    }
                }
                group.addTask {
                    var random = SeededGenerator(seed: UInt64(seed))
                    for round in 0..<25 {
                        try await Task.sleep(for: .milliseconds(Int.random(in: 0...20, using: &random)))
                        if round.isMultiple(of: 2) {
                            await proxy.add(Toxic(name: "t", stream: .down, effect: .latency(latency: 2, jitter: 0)))
                            await proxy.removeToxics(["t"])
                        } else {
                            await proxy.setConditions(delayed)
                            await proxy.setConditions(.clear)
                        }
                        // New connections start on the fast path and on the link.
                        _ = try await Self.connect(proxy, listener)
                    }
                }
                try await group.waitForAll()
            }
            let link = await proxy.status().link
            let all = 700_000 * (1...streams).reduce(0, +)
            #expect(link.bytesCarried == PerDirection(up: all, down: all))
            #expect(link.bytesRead == link.bytesCarried)
        }
    }

    /// The client's FIN passes at the relay, the server's last bytes on the link.
    @Test(arguments: [0, 5]) func aHalfClosedConnectionEndsInOrder(_ pause: Int) async throws {
        try await withProxy(.clear) { proxy, listener in
            let (client, server) = try await Self.connect(proxy, listener)
            try await blocking { () throws -> Void in
                client.finish()
                #expect(try server.receiveToEnd().isEmpty)
                try server.send([1, 2, 3])
            }
            if pause > 0 { try await Task.sleep(for: .milliseconds(pause)) }
            // The relay or the link reads these bytes.
            async let added: Void = proxy.add(Self.latency)
            try await blocking {
                try server.send([4, 5, 6])
                server.finish()
            }
            await added
            try await blocking { () throws -> Void in #expect(try client.receiveToEnd() == [1, 2, 3, 4, 5, 6]) }
            try await eventually("the session is over") { await proxy.status().connectionsOpen == 0 }
        }
    }

    /// The receiver does not read until the sender has ended.
    @Test(arguments: [false, true]) func aPausedSendersFINOrRSTReachesTheReceiver(_ isReset: Bool) async throws {
        try await withProxy(.clear) { proxy, listener in
            let (client, server) = try await Self.connect(proxy, listener)
            let bytes = Self.pattern(20_000_000, 3)
            let sending = Task { try await blocking { try server.send(bytes) } }
            let read = try await Self.bytesReadWhenPaused(proxy)
            #expect(read < bytes.count)
            if isReset {
                server.reset()
                _ = await sending.result
                try await blocking { () throws -> Void in #expect(client.receiveToFailure().code == ECONNRESET) }
            } else {
                let received = Task { try await blocking { try client.receiveToEnd() } }
                try await sending.value
                server.finish()
                let all = try await received.value
                #expect(Self.isSame(all, bytes))
                client.finish()
            }
            try await eventually("the connection is over") { await proxy.status().connectionsOpen == 0 }
        }
    }

    #if os(Linux)
    /// Connections are numbered, and their upstream connections opened, in accept order, whichever relay forwards them.
    @Test func theRelaysShareConnections() async throws {
        try await withProxy(.clear) { proxy, listener in
            let relays = Relay.all.count
            let port = proxy.address.port
            var clients: [TestSocket] = []
            var relayIndices: [Int] = []
            // Connections are opened until each relay has some; the relays may also have connections of other tests.
            repeat {
                clients += try await blocking { try (0..<8).map { _ in try TestSocket.connect(port: port) } }
                let count = clients.count
                try await eventually("they are accepted") { await proxy.connections().count == count }
                relayIndices = await proxy.connections().map {
                    if case .relay(let token) = $0.id.carrier { token.relay } else { -1 }
                }
            } while Set(relayIndices).count < relays && clients.count < 400
            #expect(Set(relayIndices) == Set(0..<relays))
            let numbers = Array(0..<clients.count)
            let connections = await proxy.connections()
            #expect(connections.map(\.number) == numbers)
            #expect(connections.map { $0.client?.port } == clients.map(\.localPort))
            #expect(await proxy.status().connectionsAccepted == clients.count)
            let ends = clients
            let servers = try await blocking { () throws -> [TestSocket] in
                let servers = try numbers.map { _ in try listener.accept() }
                for number in numbers {
                    try ends[number].send([UInt8(number % 256)])
                    #expect(try servers[number].receive(exactly: 1) == [UInt8(number % 256)])
                }
                return servers
            }
            // The last connection of each relay is aborted.
            let last = Dictionary(zip(relayIndices, 0...)) { $1 }
            for number in last.values {
                #expect(await proxy.closeConnection(connections[number].id, abortively: true))
                #expect(!(await proxy.closeConnection(connections[number].id, abortively: true)))
            }
            let left = numbers.filter { !last.values.contains($0) }
            #expect(await proxy.connections().map(\.number) == left)
            await proxy.add(Self.latency)
            try await eventually("all are on the link") {
                await proxy.connections().allSatisfy { if case .link = $0.id.carrier { true } else { false } }
            }
            #expect(await proxy.connections().map(\.number) == left)
            try await blocking { () throws -> Void in
                for number in left {
                    try ends[number].send([2])
                    #expect(try servers[number].receive(exactly: 1) == [2])
                }
                for number in last.values { #expect(ends[number].receiveToFailure().code == ECONNRESET) }
            }
        }
    }

    @Test func aSlotFreedAtOneRelayIsUsedByAnother() async throws {
        try await withProxy(.clear, connectionsMax: 4) { proxy, listener in
            var open: [(TestSocket, TestSocket)] = []
            for _ in 0..<4 { open.append(try await Self.connect(proxy, listener)) }
            for _ in 0..<8 {
                let port = proxy.address.port
                let waiting = try await blocking { try TestSocket.connect(port: port) }
                #expect(await proxy.status().isFull)
                let (client, server) = open.removeFirst()
                client.finish()
                server.finish()
                open.append((waiting, try await blocking { try listener.accept() }))
            }
            #expect(await proxy.status().connectionsAccepted == 12)
        }
    }

    /// A client that is accepted after the accepting relay was reseeded and before the others were keeps its number.
    @Test func reseedingRestartsNumbersOnce() async throws {
        try await withProxy(.clear) { proxy, listener in
            var sockets = [try await Self.connect(proxy, listener)]
            let flags = Relay.all.map { _ in Flag() }
            defer { for flag in flags { flag.set() } }
            for (relay, flag) in zip(Relay.all, flags) { try await Self.block([relay], until: flag) }
            async let reseeded: Void = proxy.reseed(9)
            // The accepting relay gets the request first.
            try await eventually("a relay has the request") { Relay.all.contains(where: \.hasJobs) }
            let first = Relay.all.first(where: \.hasJobs)
            let acceptor = try #require(first)
            flags[acceptor.index].set()
            try await eventually("the other relays have the request") {
                Relay.all.allSatisfy { $0 === acceptor || $0.hasJobs }
            }
            let port = proxy.address.port
            let client = try await blocking { try TestSocket.connect(port: port) }
            let isAccepted = Flag()
            acceptor.perform { _ in isAccepted.set() }
            try await eventually("the client is accepted") { isAccepted.isSet }
            for flag in flags { flag.set() }
            await reseeded
            sockets.append((client, try await blocking { try listener.accept() }))
            sockets.append(try await Self.connect(proxy, listener))
            #expect(await proxy.connections().map(\.number) == [0, 0, 1])
            _ = sockets
        }
    }

    /// Blocks the threads of relays until a flag is set.
    private static func block(_ relays: [Relay], until flag: Flag) async throws {
        let areBlocked = relays.map { _ in Flag() }
        for (relay, isBlocked) in zip(relays, areBlocked) {
            relay.perform { _ in
                isBlocked.set()
                while !flag.isSet { usleep(500) }
            }
        }
        try await eventually("the relays are blocked") { areBlocked.allSatisfy(\.isSet) }
    }

    /// The server has accepted a connection, and the relay has not handled the event when conditions apply.
    @Test func anEstablishedDialIsKeptWhenConditionsApply() async throws {
        let relays = Relay.all
        try #require(!relays.isEmpty)
        try await withProxy(.clear) { proxy, listener in
            let mayContinue = Flag()
            defer { mayContinue.set() }
            try await Self.block(relays, until: mayContinue)
            let client = try await blocking { try TestSocket.connect(port: proxy.address.port) }
            // The relay then accepts the client and dials; then, before it calls epoll again, it gets the change.
            async let changed: Void = proxy.setConditions(delayed)
            try await eventually("the change has been requested") { relays.contains(where: \.hasJobs) }
            mayContinue.set()
            await changed
            try await blocking { () throws -> Void in
                let server = try listener.accept()
                try client.send([1])
                #expect(try server.receive(exactly: 1) == [1])
                #expect(!listener.isReadable(within: 50), "the server gets one connection")
            }
        }
    }

    /// The status waits for the relays only if there was a connection since the last status.
    @Test func theStatusOfAnIdleProxyDoesNotWaitForTheRelays() async throws {
        let relays = Relay.all
        try #require(!relays.isEmpty)
        try await withProxy(.clear) { proxy, listener in
            for count in 0..<3 {
                #expect(await proxy.status().connectionsAccepted == count)
                let mayContinue = Flag()
                defer { mayContinue.set() }
                try await Self.block(relays, until: mayContinue)
                let status = await proxy.status()
                #expect(!mayContinue.isSet && status.connectionsOpen == 0)
                #expect(status.connectionsAccepted == count && status.link.bytesRead.up == count)
                mayContinue.set()
                let (client, server) = try await Self.connect(proxy, listener)
                try await blocking {
                    try client.send([1])
                    #expect(try server.receive(exactly: 1) == [1])
                }
                let open = await proxy.status()
                #expect(open.connectionsOpen == 1 && open.connectionsAccepted == count + 1)
                #expect(open.link.bytesRead.up == count + 1)
                try await blocking { () throws -> Void in
                    client.finish()
                    #expect(try server.receiveToEnd().isEmpty)
                    server.finish()
                    #expect(try client.receiveToEnd().isEmpty)
                }
                try await eventually("the connection is closed") { await proxy.status().connectionsOpen == 0 }
            }
        }
    }
    #endif

    @Test func aToxicAppliesToAnIdleConnection() async throws {
        try await withProxy(.clear) { proxy, listener in
            let (client, server) = try await Self.connect(proxy, listener)
            let start = ContinuousClock.now
            await proxy.add(Toxic(name: "end", stream: .down, effect: .timeout(timeout: 300)))
            try await blocking { () throws -> Void in
                #expect(try client.receiveToEnd().isEmpty)
                #expect(try server.receiveToEnd().isEmpty)
            }
            #expect(ContinuousClock.now - start >= .milliseconds(300))
        }
    }

    /// A toxic that is removed before all connections have moved to the link still applies to all of them.
    @Test func aTimeoutToxicRemovedAtOnceClosesAllConnections() async throws {
        try await withProxy(.clear, connectionsMax: 500) { proxy, listener in
            var ends: [TestSocket] = []
            for _ in 0..<100 {
                let (client, server) = try await Self.connect(proxy, listener)
                try await blocking { () throws -> Void in
                    try client.send([1])
                    #expect(try server.receive(exactly: 1) == [1])
                }
                ends += [client, server]
            }
            await proxy.add(Toxic(name: "hold", stream: .down, effect: .timeout(timeout: 0)))
            await proxy.removeToxics(["hold"])
            let all = ends
            // A read without a result fails after a minute.
            try await blocking { () throws -> Void in
                for end in all { #expect(try end.receiveToEnd().isEmpty) }
            }
            // The toxic does not apply to a later connection.
            let (client, server) = try await Self.connect(proxy, listener)
            try await blocking { () throws -> Void in
                try server.send([2])
                #expect(try client.receive(exactly: 1) == [2])
            }
        }
    }

    @Test func refusingClientsAbortsAllConnections() async throws {
        try await withProxy(.clear, connectionsMax: 500) { proxy, listener in
            var ends: [TestSocket] = []
            for _ in 0..<100 {
                let (client, server) = try await Self.connect(proxy, listener)
                ends += [client, server]
            }
            var refused = Conditions.clear
            refused.connectionPolicy = .offline
            await proxy.setConditions(refused)
            let all = ends
            try await blocking { for end in all { #expect(end.receiveToFailure().code == ECONNRESET) } }
            #expect(throws: TestSocket.Failure.self) { () throws -> Void in
                _ = try TestSocket.connect(port: proxy.address.port)
            }
            #expect(await proxy.status().connectionsOpen == 0)
        }
    }

    @Test func singleConnectionsAreClosedByRSTOrFIN() async throws {
        try await withProxy(.clear) { proxy, listener in
            let first = try await Self.connect(proxy, listener)
            let second = try await Self.connect(proxy, listener)
            let third = try await Self.connect(proxy, listener)
            let ids = await proxy.connections().map(\.id)
            #expect(ids.count == 3)
            #expect(await proxy.closeConnection(ids[0], abortively: true))
            #expect(await proxy.closeConnection(ids[1], abortively: false))
            #expect(!(await proxy.closeConnection(ids[0], abortively: true)))
            try await blocking { () throws -> Void in
                #expect(first.0.receiveToFailure().code == ECONNRESET)
                #expect(first.1.receiveToFailure().code == ECONNRESET)
                #expect(try second.0.receiveToEnd().isEmpty && second.1.receiveToEnd().isEmpty)
                try third.0.send([1])
                #expect(try third.1.receive(exactly: 1) == [1])
            }
            await proxy.abortConnections()
            try await blocking { #expect(third.0.receiveToFailure().code == ECONNRESET) }
        }
    }

    /// Random streams depend on a connection's number, whether the connections before it used the fast path or not.
    @Test func aConnectionsRandomStreamDoesNotDependOnTheFastPath() async throws {
        let toxicHalf = Toxic(name: "half", stream: .down, toxicity: 0.5, effect: .limitData(bytes: 1))
        /// Returns which of twelve connections get one byte of two, with the toxic added before connection `first`.
        func short(from first: Int, allowsFastPath: Bool = true) async throws -> [Bool] {
            let all = NIOLockedValueBox<[Bool]>([])
            try await withProxy(.clear, allowsFastPath: allowsFastPath) {
                $0.seed = 7
            } _: { proxy, listener in
                var found: [Bool] = []
                for number in 0..<12 {
                    if number == first { await proxy.add(toxicHalf) }
                    let (client, server) = try await Self.connect(proxy, listener)
                    found.append(
                        try await blocking {
                            try server.send([1, 2])
                            return try client.receive(exactly: 2).count == 1
                        })
                }
                let result = found
                all.withLockedValue { $0 = result }
            }
            return all.withLockedValue { $0 }
        }
        let whole = try await short(from: 0)
        #expect(whole.contains(true) && whole.contains(false))
        #expect(try await short(from: 0, allowsFastPath: false) == whole)
        #expect(try await short(from: 5).suffix(7) == whole.suffix(7))
    }

    @Test func theConnectionLimitCountsFastPathAndLinkTogether() async throws {
        try await withProxy(.clear, connectionsMax: 3) { proxy, listener in
            var sockets = [try await Self.connect(proxy, listener)]
            await proxy.add(Self.latency)
            sockets.append(try await Self.connect(proxy, listener))
            await proxy.removeToxics(["late"])
            sockets.append(try await Self.connect(proxy, listener))
            #expect(await proxy.status().isFull)
            let waiting = try await blocking { try TestSocket.connect(port: proxy.address.port) }
            #expect(!listener.isReadable(within: 200), "the fourth waits")
            // A connection on the link ends, and the relay accepts the next client.
            sockets.removeFirst()
            let server = try await blocking { try listener.accept() }
            try await blocking {
                try waiting.send([7])
                #expect(try server.receive(exactly: 1) == [7])
            }
            #expect(await proxy.status().connectionsOpen == 3)
            _ = sockets
        }
    }

    /// A client's RST is detected while the bytes that it sent before cannot be written.
    @Test func aRSTIsDetectedBehindAFullPipe() async throws {
        try await withProxy(.clear) { proxy, listener in
            let (client, server) = try await Self.connect(proxy, listener)
            server.shrinkReceiveBuffer()
            let sending = Task { try? await blocking { try client.send([UInt8](repeating: 1, count: 20_000_000)) } }
            try await eventually("the relay holds bytes") { await proxy.status().link.bytesHeld > 0 }
            client.reset()
            _ = await sending.value
            try await eventually("the session is over") { await proxy.status().connectionsOpen == 0 }
            #expect(await proxy.status().link.bytesHeld == 0)
            _ = server
        }
    }
}
