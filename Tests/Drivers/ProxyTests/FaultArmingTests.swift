import Impairment
import LinkModel
import NIOCore
import Synchronization
import TestSupport
import Testing

@testable import Proxy

/// Faults that are armed and disarmed at random moments while 64 connections carry bodies that contain request lines.
///
/// `SLOWLANE_SEEDS=1000` arms 100 000 times.
@Suite(.tags(.proxies), .timeLimit(.minutes(20))) struct FaultArmingTests {
    /// A text that is a request for the fault, or the beginning of another message, if it is taken for the start of one.
    private static let fragments = [
        "POST /trap HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello", "GET /trap HTTP/1.1\r\nHost: h\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "\r\n\r\n", "GET /trap HTTP/1.1\r\n",
        "5\r\nabcde\r\n0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ].map { Array($0.utf8) }

    /// The results of all clients.
    private final class Results: Sendable {
        let exchanges = Atomic(0)
        let problems = Mutex<[String]>([])

        func record(_ problem: String) { problems.withLock { if $0.count < 10 { $0.append(problem) } } }
    }

    @Test(arguments: randomSeeds(1)) func noBodyIsTakenForRequestsWhileFaultsAreArmedAndDisarmed(
        _ seed: UInt64
    ) async throws {
        // A busy host may not run the proxy for seconds, which is not what this test is about.
        try await withProxy(.clear, connectionsMax: 1000) {
            $0.connectTimeout = .seconds(60)
        } _: { proxy, listener in
            let (stopped, finished, results) = (Flag(), Flag(), Results())
            let port = proxy.address.port
            async let served: Void = Self.serve(listener, finished, results)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for client in 0..<64 {
                    group.addTask {
                        try await blocking { Self.run(port, seed: seed << 8 + UInt64(client), stopped, results) }
                    }
                }
                try await Self.arm(proxy, seed: seed)
                stopped.set()
                try await group.waitForAll()
            }
            // Ends the accepting thread.
            finished.set()
            _ = try? TestSocket.connect(port: listener.localPort)
            _ = try await served
            #expect(results.problems.withLock { $0 } == [], "seed \(seed)")
            #expect(results.exchanges.load(ordering: .relaxed) >= 64, "seed \(seed)")
        }
    }

    /// Arms and disarms a fault 100 times, now and then after an observation has begun.
    private static func arm(_ proxy: Proxy, seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let points: [FaultPoint] = [.beforeRequest, .beforeRequestEnd, .beforeResponse]
        for round in 0..<100 {
            let isObserved = Int.random(in: 0..<8, using: &generator) == 0
            let observation = isObserved ? await proxy.observe(.exchanges) : nil
            let point = points.randomElement(using: &generator) ?? .beforeRequest
            let number = try await proxy.addFaultRule(
                FaultRule(path: "/trap", point: point, action: .respond(FaultResponse(status: 503))))
            for _ in 0..<Int.random(in: 0..<20, using: &generator) { await Task.yield() }
            let rule = await proxy.faultRules().first
            #expect(rule?.matched == 0 && rule?.fired == 0, "round \(round) of seed \(seed)")
            await proxy.removeFaultRules([number])
            withExtendedLifetime(observation) {}
            for _ in 0..<Int.random(in: 0..<20, using: &generator) { await Task.yield() }
        }
    }

    // MARK: Peers

    /// Sends requests with random bodies over several connections, and compares the responses.
    private static func run(_ port: Int, seed: UInt64, _ stopped: Flag, _ results: Results) {
        var generator = SeededGenerator(seed: seed)
        do {
            while !stopped.isSet {
                let socket = try TestSocket.connect(port: port)
                for _ in 0..<Int.random(in: 1...4, using: &generator) {
                    let body = randomBody(&generator)
                    let head = Array("POST /ok HTTP/1.1\r\nHost: h\r\nContent-Length: \(body.count)\r\n\r\n".utf8)
                    var rest = ArraySlice(head + body)
                    while !rest.isEmpty {
                        let count = Int.random(in: 1...max(1, rest.count), using: &generator)
                        try socket.send(rest.prefix(count))
                        rest = rest.dropFirst(count)
                        // A pause leaves the body incomplete for a while, and the CPU to the proxy.
                        if !rest.isEmpty { _ = socket.isReadable(within: .random(in: 1...10, using: &generator)) }
                    }
                    let expected = Array("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\n\r\n".utf8) + body
                    let received = try socket.receive(exactly: expected.count)
                    if received != expected {
                        return results.record(
                            "seed \(seed): the response has \(received.count) of \(expected.count) bytes, or others: "
                                + String(decoding: received.prefix(40), as: UTF8.self))
                    }
                    results.exchanges.add(1, ordering: .relaxed)
                }
            }
        } catch {
            results.record("seed \(seed): \(error)")
        }
    }

    private static func randomBody(_ generator: inout SeededGenerator) -> [UInt8] {
        var body: [UInt8] = []
        let count = Int.random(in: 0...[100, 3000, 20_000].randomElement(using: &generator)!, using: &generator)
        while body.count < count {
            if Bool.random(using: &generator) {
                body += fragments.randomElement(using: &generator)!
            } else {
                body += (0..<Int.random(in: 1...400, using: &generator)).map { _ in
                    .random(in: 0...255, using: &generator)
                }
            }
        }
        return body
    }

    /// Accepts connections until the clients have finished.
    private static func serve(_ listener: TestSocket, _ finished: Flag, _ results: Results) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            while !finished.isSet {
                let socket = try await blocking { try listener.accept() }
                group.addTask { try await blocking { respond(socket, results) } }
            }
            try await group.waitForAll()
        }
    }

    /// Responds to each `POST /ok` with its body.
    private static func respond(_ socket: TestSocket, _ results: Results) {
        do {
            var received: [UInt8] = []
            while true {
                while received.firstRange(of: Array("\r\n\r\n".utf8)) == nil {
                    let bytes = try socket.receive()
                    if bytes.isEmpty {
                        if !received.isEmpty { results.record("the server received an incomplete request") }
                        return
                    }
                    received += bytes
                }
                let end = received.firstRange(of: Array("\r\n\r\n".utf8))!.upperBound
                let head = String(decoding: received[..<end], as: UTF8.self)
                guard head.hasPrefix("POST /ok HTTP/1.1\r\nHost: h\r\nContent-Length: "),
                    let count = Int(
                        head.dropFirst("POST /ok HTTP/1.1\r\nHost: h\r\nContent-Length: ".count).dropLast(2))
                else { return results.record("the server received the head \(head.prefix(60))") }
                received.removeSubrange(..<end)
                while received.count < count {
                    let bytes = try socket.receive()
                    if bytes.isEmpty {
                        return results.record("the server received \(received.count) of \(count) bytes")
                    }
                    received += bytes
                }
                try socket.send(
                    Array("HTTP/1.1 200 OK\r\nContent-Length: \(count)\r\n\r\n".utf8) + received.prefix(count))
                received.removeSubrange(..<count)
            }
        } catch {
            results.record("the server: \(error)")
        }
    }
}
