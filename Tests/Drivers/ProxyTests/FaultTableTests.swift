import Determinism
import Impairment
import LinkModel
import NIOCore
import NIOPosix
import Synchronization
import TestSupport
import Testing

@testable import Proxy

/// The table of faults with sockets: a client and a server around a proxy.
@Suite(.tags(.proxies), .timeLimit(.minutes(1))) struct FaultTableTests {
    /// What a peer has seen.
    private struct Seen: Sendable {
        var bytes: [UInt8] = []
        var end = FaultTable.End.open
    }

    /// What the threads of a row share.
    private final class Progress: Sendable {
        private let fired = Mutex(false)

        var hasFired: Bool { fired.withLock { $0 } }

        func fire() { fired.withLock { $0 = true } }
    }

    /// The time after which a connection that has delivered its bytes counts as open; longer than a hold.
    private static let openMilliseconds = 600
    /// The time without a byte after which a read is given up.
    private static let patienceMilliseconds = 20_000

    private static func action(_ name: String) -> FaultAction {
        switch name {
        case "reset": .reset
        case "close": .close
        case "stall": .stall
        case "delay": .delay(.milliseconds(100))
        case "throttle": .throttle(bytesPerSecond: 2000)
        case "respond": .respond(FaultResponse(status: 503, body: Array("later".utf8)))
        default: .report(hold: .seconds(10))
        }
    }

    /// All rows side by side: each waits for most of its time.
    @Test func aFaultFiresAtTheBytesOfItsRow() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for row in FaultTable.rows { group.addTask { try await Self.check(row) } }
            try await group.waitForAll()
        }
    }

    /// A client that acts upon a response, for example by closing the connection, acts after the event of the response.
    @Test(arguments: [FaultAction.reset, .close, nil])
    func aResponseIsReportedBeforeItsClientReceivesIt(_ action: FaultAction?) async throws {
        let client = Mutex<TestSocket?>(nil)
        let wasEarly = Mutex<Bool?>(nil)
        try await withProxy(.clear) { configuration in
            configuration.exchangeTracking = ExchangeTracking(awaitsDecisions: true)
            configuration.exchangeController = { event, _ in
                switch event {
                case .requested: return action.map { .init(rule: 0, point: .afterResponse, action: $0) }
                case .responseDelivered:
                    let isReadable = client.withLock { $0?.isReadable(within: 0) }
                    wasEarly.withLock { $0 = isReadable.map { !$0 } }
                default: break
                }
                return nil
            }
        } _: { proxy, listener in
            try await blocking { [port = proxy.address.port] in
                let socket = try TestSocket.connect(port: port)
                client.withLock { $0 = socket }
                try socket.send(FaultTable.request)
                let server = try listener.accept()
                _ = try server.receive(exactly: FaultTable.request.count)
                // The response and the FIN may arrive together.
                try server.send(FaultTable.response)
                server.finish()
                _ = socket.receiveToFailure()
            }
        }
        #expect(wasEarly.withLock { $0 } == true)
    }

    private static func check(_ row: FaultTable.Row) async throws {
        let (listener, serverPort) = try TestSocket.listen()
        var configuration = ProxyConfiguration(
            listen: Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "127.0.0.1", port: serverPort))
        configuration.exchangeTracking = ExchangeTracking(awaitsDecisions: true)
        let progress = Progress()
        configuration.exchangeController = { event, _ in
            switch event {
            case .requested:
                return FaultPoint(rawValue: row.point).map { .init(rule: 0, point: $0, action: action(row.action)) }
            case .faultInjected: progress.fire()
            default: break
            }
            return nil
        }
        let proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
        async let server = blocking { try serve(listener, row) }
        let client = try await blocking { [port = proxy.address.port] in
            let socket = try TestSocket.connect(port: port)
            try socket.send(FaultTable.request)
            return socket
        }
        var seen = Seen()
        if row.point == "stored", row.action != "kill" {
            seen = try await blocking { read(client, row, until: { $0.bytes == FaultTable.response }) }
            let connection = try #require(await proxy.connections().first)
            _ = await proxy.closeConnection(connection.id, abortively: row.action == "reset")
        }
        seen = try await blocking { [seen] in
            read(client, row, seen) { seen in
                guard row.client == .killed else { return false }
                if row.point == "stored" { return seen.bytes == FaultTable.response }
                // The fault may fire before what the link has delivered is read.
                return progress.hasFired && seen.bytes.count >= FaultTable.bytes(row.response, isRequest: false).count
            }
        }
        if row.client == .killed {
            // The kernel of a killed process sends a FIN.
            client.finish()
            seen.end = .killed
        }
        let (received, serverSocket) = try await server
        let comment = Comment(rawValue: "\(row)")
        #expect(received.bytes == FaultTable.bytes(row.request, isRequest: true), comment)
        #expect(seen.bytes == FaultTable.bytes(row.response, isRequest: false), comment)
        expect(received.end, row.server, comment)
        expect(seen.end, row.client, comment)
        // Both sockets stay open until both peers have seen what they wait for.
        withExtendedLifetime((client, serverSocket)) {}
        await proxy.stop(grace: .zero)
    }

    private static func serve(_ listener: TestSocket, _ row: FaultTable.Row) throws -> (seen: Seen, socket: TestSocket)
    {
        let socket = try listener.accept()
        let seen = read(socket, row, isServer: true, settling: 0) { $0.bytes == FaultTable.request }
        guard seen.end == .open, seen.bytes == FaultTable.request else { return (seen, socket) }
        try? socket.send(FaultTable.response)
        return (read(socket, row, seen, isServer: true), socket)
    }

    /// Reads until the connection ends, until `isDone` and nothing has arrived for some milliseconds, or until nothing more can
    /// be expected: for ``openMilliseconds`` if the connection stays open and all bytes of the row have arrived.
    private static func read(
        _ socket: TestSocket, _ row: FaultTable.Row, _ earlier: Seen = Seen(), isServer: Bool = false,
        settling: Int = 50,
        until isDone: (Seen) -> Bool = { _ in false }
    ) -> Seen {
        let count = FaultTable.bytes(isServer ? row.request : row.response, isRequest: isServer).count
        let staysOpen = (isServer ? row.server : row.client) == .open
        var seen = earlier
        var idle = 0
        while idle < (staysOpen && seen.bytes.count >= count ? openMilliseconds : patienceMilliseconds) {
            if idle >= settling, isDone(seen) { return seen }
            guard socket.isReadable(within: 10) else {
                idle += 10
                continue
            }
            idle = 0
            do {
                let piece = try socket.receive()
                seen.bytes += piece
                if piece.isEmpty { seen.end = .closed }
            } catch {
                seen.end = .reset
            }
            if seen.end != .open { return seen }
        }
        return seen
    }

    private static func expect(_ seen: FaultTable.End, _ expected: FaultTable.End, _ comment: Comment) {
        if expected == .ended {
            #expect(seen == .closed || seen == .reset, comment)
        } else {
            #expect(seen == expected, comment)
        }
    }
}
