import Determinism
import NIOCore
import TestSupport
import Testing

@testable import Wire

/// Random requests, acceptances, peers and faults in virtual time: no byte is lost or written twice, and each exchange
/// finishes exactly once, with the response to its own request.
@Suite(.timeLimit(.minutes(20))) struct HTTPClientPropertyTests {
    /// The driver and all peers.
    private final class World {
        struct Request {
            let bytes: ByteBuffer
            let pool: Int
            var written = 0
            var connection: Int?
            var isFinished = false
        }

        struct Connection {
            var isEstablished = false
            /// The pool of the first exchange.
            var pool: Int?
            /// Requests in the order of their first bytes.
            var requests: [Int] = []
            /// The sizes of the writes that the kernel has not accepted completely.
            var pieces: [Int] = []
            /// Accepted bytes that the server has read.
            var server = HTTPParser(.requests)
            var unaccepted = ByteBuffer()
            /// The number of requests that the server has read completely.
            var readCount = 0
            var respondedCount = 0
            /// Bytes that the client will receive.
            var response = ByteBuffer()
            /// Whether the server closes the connection after the response.
            var closesAfterResponse = false
        }

        static let connectionsMax = 2
        /// The bodies are parts of these bytes.
        static let pattern: [UInt8] = {
            var generator = SeededGenerator(seed: 0)
            return (0..<130_000).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
        }()
        var generator: SeededGenerator
        var machine = HTTPClientMachine(host: "h", connectionsMax: connectionsMax)
        var now = Instant.start
        var requests: [Request] = []
        var open: [Int: Connection] = [:]
        var openedCount = 0
        var lastClosedByPeer: Int?
        var problems: [String] = []
        var successes = 0
        var early = 0
        var reuses = 0
        var divided = 0

        init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

        func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &generator) }
        func oneIn(_ count: Int) -> Bool { number(1...count) == 1 }

        func check(_ isTrue: Bool, _ problem: @autoclosure () -> String) {
            if !isTrue { problems.append(problem()) }
        }

        // MARK: The client's side

        func start() {
            let index = requests.count
            let size = [0, number(0...100), number(0...20_000), number(16_000...17_000), number(0...120_000)][
                number(0...4)]
            let offset = number(0...(Self.pattern.count - size))
            let body = Array(Self.pattern[offset..<(offset + size)])
            var bytes = ByteBuffer(string: "PUT /\(index) HTTP/1.1\r\nHost: h\r\nContent-Length: \(size)\r\n\r\n")
            bytes.writeBytes(body)
            let pool = number(0...2)
            requests.append(Request(bytes: bytes, pool: pool))
            let id = machine.start(
                HTTPClientRequest(method: "PUT", target: "/\(index)", body: body), pool: pool, at: now)
            check(id.number == index, "exchange \(id.number) instead of \(index)")
        }

        func drain() {
            while let action = machine.takeAction() {
                switch action {
                case .connect(let id):
                    check(id.number == openedCount, "connection \(id.number) after \(openedCount)")
                    open[id.number] = Connection()
                    openedCount += 1
                    check(open.count <= 3 * Self.connectionsMax, "\(open.count) connections")
                case .write(let id, let bytes): write(bytes, on: id.number)
                case .close(let id, _):
                    let isOpen = open.removeValue(forKey: id.number) != nil
                    check(isOpen || id.number == lastClosedByPeer, "connection \(id.number) is closed twice")
                case .piece: check(false, "no request streams")
                case .finished(let id, let result): finish(id.number, result)
                }
            }
        }

        private func write(_ piece: ByteBuffer, on number: Int) {
            guard var connection = open[number], connection.isEstablished else {
                return problems.append("a write on connection \(number), which is not established")
            }
            check((1...16_384).contains(piece.readableBytes), "a piece of \(piece.readableBytes) bytes")
            let current = connection.requests.last
            if current.map({ requests[$0].written == requests[$0].bytes.readableBytes }) ?? true {
                // The first piece of a request contains its target.
                let text = String(decoding: piece.readableBytesView.prefix(20), as: UTF8.self)
                guard let index = Int(text.dropFirst(5).prefix { $0 != " " }), requests.indices.contains(index) else {
                    return problems.append("a request begins with \(text)")
                }
                check(requests[index].connection == nil, "request \(index) is sent twice")
                check(connection.pool ?? requests[index].pool == requests[index].pool, "pools share a connection")
                check(connection.pieces.isEmpty, "a request follows one that is not accepted")
                connection.pool = requests[index].pool
                connection.requests.append(index)
                requests[index].connection = number
                if connection.requests.count > 1 { reuses += 1 }
            } else {
                divided += 1
            }
            guard let index = connection.requests.last else { return }
            let expected = requests[index].bytes.getSlice(at: requests[index].written, length: piece.readableBytes)
            check(piece == expected, "request \(index) differs after byte \(requests[index].written)")
            requests[index].written += piece.readableBytes
            connection.pieces.append(piece.readableBytes)
            check(connection.pieces.count <= 2, "\(connection.pieces.count) writes are outstanding")
            connection.unaccepted.writeImmutableBuffer(piece)
            open[number] = connection
        }

        private func finish(_ index: Int, _ result: Result<HTTPClientResponse, HTTPClientError>) {
            check(!requests[index].isFinished, "exchange \(index) finishes twice")
            requests[index].isFinished = true
            let request = requests[index]
            switch result {
            case .success(let response):
                successes += 1
                check(response.body.starts(with: Array("\(index):".utf8)), "exchange \(index) has another response")
                if request.written < request.bytes.readableBytes { early += 1 }
            case .failure(let error):
                check((error.phase == .notSent) == (request.connection == nil), "exchange \(index): \(error.phase)")
            }
        }

        // MARK: The peer's side

        func accept(_ number: Int) {
            guard var connection = open[number], !connection.pieces.isEmpty else { return }
            let outstanding = connection.pieces.reduce(0, +)
            let count = oneIn(2) ? outstanding : self.number(1...outstanding)
            var rest = count
            while rest > 0 {
                let taken = min(rest, connection.pieces[0])
                rest -= taken
                connection.pieces[0] -= taken
                if connection.pieces[0] == 0 { connection.pieces.removeFirst() }
            }
            if let bytes = connection.unaccepted.readSlice(length: count) { connection.server.received(bytes) }
            do {
                while let part = try connection.server.takePart() {
                    if case .end = part { connection.readCount += 1 }
                }
            } catch {
                problems.append("the server reads: \(error)")
            }
            open[number] = connection
            machine.written(count, on: HTTPConnectionID(number: number), at: now)
        }

        /// Responds to a request that was read completely, or early to one that was not.
        func respond(_ number: Int) {
            guard var connection = open[number], connection.respondedCount < connection.requests.count else { return }
            guard connection.respondedCount < connection.readCount || oneIn(8) else { return }
            let index = connection.requests[connection.respondedCount]
            connection.respondedCount += 1
            let body = "\(index):" + String(repeating: "r", count: self.number(0...3_000))
            switch self.number(0...19) {
            case 0: connection.response.writeString("<html>\r\n")
            case 1: connection.response.writeString("HTTP/1.1 OK\r\n\r\n")
            case 2:
                connection.response.writeString("HTTP/1.1 200 OK\r\n\r\n\(body)")
                connection.closesAfterResponse = true
            case 3:
                connection.response.writeString(
                    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
            case 4...8:
                let size = String(body.utf8.count, radix: 16)
                connection.response.writeString(
                    "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                        + "\(size)\r\n\(body)\r\n0\r\n\r\n")
            default:
                connection.response.writeString(
                    "HTTP/1.1 404 Not Found\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
            }
            open[number] = connection
        }

        func deliver(_ number: Int) {
            guard var connection = open[number], connection.response.readableBytes > 0 else { return }
            let count =
                oneIn(2) ? connection.response.readableBytes : self.number(1...connection.response.readableBytes)
            guard let bytes = connection.response.readSlice(length: count) else { return }
            let closes = connection.closesAfterResponse && connection.response.readableBytes == 0
            open[number] = connection
            machine.received(bytes, on: HTTPConnectionID(number: number), at: now)
            drain()
            if closes { close(number, .fin) }
        }

        func close(_ number: Int, _ how: HTTPCloseReason) {
            guard open.removeValue(forKey: number) != nil else { return }
            // The machine closes the connection, too, if the end of the stream is the end of a response.
            lastClosedByPeer = number
            machine.closed(HTTPConnectionID(number: number), how: how, at: now)
            drain()
        }

        // MARK: Steps

        func pass(_ time: Nanoseconds) {
            let end = now + time
            while let deadline = machine.nextDeadline, deadline <= end {
                now = max(now, deadline)
                machine.advance(to: now)
                drain()
                guard machine.nextDeadline.map({ $0 > now }) ?? true else {
                    return problems.append("the deadline does not move")
                }
            }
            now = end
        }

        func step() {
            let number = open.keys.sorted().randomElement(using: &generator)
            switch self.number(0...99) {
            case 0..<8: start()
            case 8..<9:
                if let index = requests.indices.randomElement(using: &generator) {
                    machine.cancel(HTTPExchangeID(number: index), at: now)
                }
            case 9..<30:
                guard let number, open[number]?.isEstablished == false else { return }
                if oneIn(8) {
                    open[number] = nil
                    machine.connectFailed(HTTPConnectionID(number: number), reason: .refused, at: now)
                } else {
                    open[number]?.isEstablished = true
                    machine.connected(HTTPConnectionID(number: number), at: now)
                }
            case 30..<60: if let number { accept(number) }
            case 60..<75: if let number { respond(number) }
            case 75..<88: if let number { deliver(number) }
            case 88:
                guard let number, oneIn(3) else { return }
                if oneIn(2) { return close(number, oneIn(2) ? .reset : .fin) }
                guard open[number]?.isEstablished == true, open[number]?.response.readableBytes == 0 else { return }
                // Bytes that belong to no response.
                machine.received(ByteBuffer(string: "?"), on: HTTPConnectionID(number: number), at: now)
            default:
                let times: [Nanoseconds] = [
                    .zero, .milliseconds(1), .milliseconds(200), .seconds(1), .seconds(3),
                    oneIn(6) ? .seconds(40) : .zero,
                ]
                pass(times[self.number(0...5)])
            }
            drain()
        }
    }

    @Test func noByteIsLostAndEachExchangeFinishesOnce() {
        var (successes, early, reuses, divided, failures) = (0, 0, 0, 0, 0)
        let seeds = randomSeeds(100)
        for seed in seeds {
            let world = World(seed: seed)
            for _ in 0..<600 where world.problems.isEmpty { world.step() }
            // Nothing happens any more: the timeouts end every exchange.
            world.pass(.seconds(100_000))
            world.check(world.machine.nextDeadline == nil, "a deadline remains")
            world.check(world.machine.poolCount == 0, "a pool remains")
            world.check(world.open.isEmpty, "connections remain: \(world.open.keys.sorted())")
            for (index, request) in world.requests.enumerated() where !request.isFinished {
                world.problems.append("exchange \(index) never finishes")
            }
            #expect(world.problems.isEmpty, "seed \(seed): \(world.problems.prefix(3))")
            successes += world.successes
            early += world.early
            reuses += world.reuses
            divided += world.divided
            failures += world.requests.count - world.successes
        }
        // The runs reach all kinds of ends.
        let count = seeds.count
        #expect(successes > 5 * count, "\(successes)")
        #expect(failures > 5 * count, "\(failures)")
        #expect(early > count / 15, "\(early)")
        #expect(reuses > 2 * count, "\(reuses)")
        #expect(divided > 10 * count, "\(divided)")
    }
}
