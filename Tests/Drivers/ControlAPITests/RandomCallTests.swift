import ControlAPI
import Foundation
import NIOCore
import NIOPosix
import TestSupport
import Testing
import Wire

/// Random API calls on a server with live traffic: 1000 calls; `SLOWLANE_SEEDS` adds calls.
@Suite(.tags(.servers), .timeLimit(.minutes(15))) struct RandomCallTests {
    private static let calls = TestSettings.work(1000, soak: 100_000)
    private static let callsPerCaller = calls / callers / batch * batch
    private static let callers = 4
    /// The number of pipelined requests.
    private static let batch = 50

    @Test func randomCallsDisturbNoOtherConnection() async throws {
        let upstream = try Upstream.echo()
        var limits = ServerLimits()
        limits.proxiesMax = 12
        limits.toxicsMax = 6
        // A slicer with pieces of one byte keeps its loop busy, so this test has a loop of its own.
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        try await withServer(seed: 3, limits: limits, metrics: .init(proxies: true, process: true), on: group) {
            (call, _) async throws in
            let live = try await call.proxy("live", to: upstream.port)
            let target = try await call.proxy("target", to: upstream.port)
            let isOver = Flag()
            // One connection of a proxy that no call changes, and clients of one that the calls change.
            let quiet = Task {
                try await blocking { try Self.exchangeMessages(live, until: isOver) }
            }
            let tried = Task {
                try await blocking { Self.connectRepeatedly(target, until: isOver) }
            }
            let statuses = try await withThrowingTaskGroup(of: [Int: Int].self) { group in
                for caller in 0..<Self.callers {
                    group.addTask {
                        try await blocking {
                            try Self.call(call.port, seed: UInt64(caller), upstream: upstream.port)
                        }
                    }
                }
                return try await group.reduce(into: [:]) { sum, part in sum.merge(part) { $0 + $1 } }
            }
            isOver.set()
            #expect(statuses.values.reduce(0, +) == Self.callers * Self.callsPerCaller)
            // The calls are varied enough to get every status.
            for status in [200, 201, 204, 400, 404, 409] {
                #expect(statuses[status, default: 0] > Self.calls / 1000, "\(statuses)")
            }
            let allowed: Set = [200, 201, 204, 301, 400, 403, 404, 405, 409, 500]
            #expect(Set(statuses.keys).isSubset(of: allowed), "\(statuses)")
            #expect(try await quiet.value > Self.calls / 100)
            try await tried.value
            // The server and the other proxy are unaffected.
            #expect(try await call("GET", "/proxies/live/toxics").body == "[]")
            #expect(try await call("POST", "/reset").status != 400)
        }
        try await group.shutdownGracefully()
    }

    /// Exchanges messages on one connection, and returns their number.
    private static func exchangeMessages(_ port: Int, until isOver: Flag) throws -> Int {
        let client = try TestSocket.connect(port: port)
        var count = 0
        while !isOver.isSet {
            let message = (0..<1000).map { UInt8(truncatingIfNeeded: count &+ $0) }
            try client.send(message)
            let echo = try client.receive(exactly: message.count)
            if echo != message { throw TestSocket.Failure(call: "the echo of message \(count)", code: 0) }
            count += 1
        }
        return count
    }

    /// Connects and sends repeatedly; errors are expected.
    private static func connectRepeatedly(_ port: Int, until isOver: Flag) {
        var open: [TestSocket] = []
        while !isOver.isSet {
            if let client = try? TestSocket.connect(port: port) {
                try? client.send([UInt8](repeating: 7, count: 1000))
                open.append(client)
            }
            if open.count > 20 { open.removeFirst() }
            usleep(10_000)
        }
    }

    /// Sends requests in batches on one connection, and returns the number of responses by status. Throws for a 5xx response
    /// that is not about a listen address.
    private static func call(_ port: Int, seed: UInt64, upstream: Int) throws -> [Int: Int] {
        var random = SeededGenerator(seed: seed)
        var statuses: [Int: Int] = [:]
        let client = try TestSocket.connect(port: port)
        for _ in 0..<callsPerCaller / batch {
            var text = ""
            for _ in 0..<batch { text += request(&random, upstream) }
            try client.send(Array(text.utf8))
            var received: [UInt8] = []
            var responses = 0
            while responses < batch {
                guard let (status, body, rest) = response(received) else {
                    let more = try client.receive()
                    if more.isEmpty { throw TestSocket.Failure(call: "the server closed after \(responses)", code: 0) }
                    received += more
                    continue
                }
                received = Array(rest)
                responses += 1
                statuses[status, default: 0] += 1
                if status >= 400 && status != 404 && status != 405 && status != 403 {
                    let object = JSONText.parse(body)?.object
                    guard object?["status"] == .integer(Int64(status)), let text = object?["error"]?.text,
                        status < 500 || ["listen tcp", "address ", "lookup "].contains(where: text.hasPrefix)
                    else {
                        throw TestSocket.Failure(call: "\(status): \(String(decoding: body, as: UTF8.self))", code: 0)
                    }
                }
            }
        }
        return statuses
    }

    /// Returns the first complete response.
    private static func response(_ bytes: [UInt8]) -> (status: Int, body: ArraySlice<UInt8>, rest: ArraySlice<UInt8>)? {
        let mark = Array("\r\n\r\n".utf8)
        guard let end = bytes.firstRange(of: mark) else { return nil }
        let head = String(decoding: bytes[..<end.lowerBound], as: UTF8.self)
        let lines = head.split(separator: "\r\n")
        let length =
            lines.first { $0.lowercased().hasPrefix("content-length: ") }.flatMap { Int($0.dropFirst(16)) } ?? 0
        guard let status = lines.first?.split(separator: " ").dropFirst().first.flatMap({ Int($0) }),
            bytes.count >= end.upperBound + length
        else { return nil }
        return (status, bytes[end.upperBound..<end.upperBound + length], bytes[(end.upperBound + length)...])
    }

    // MARK: Random requests

    private static func request(_ random: inout SeededGenerator, _ upstream: Int) -> String {
        func any(_ values: [String]) -> String { values[Int.random(in: 0..<values.count, using: &random)] }
        let proxy = any(
            Int.random(in: 0..<8, using: &random) == 0
                ? ["none", "%", "..", "", "%2F"] : ["target", "target", "target", "a", "b", "c", "%C3%A4", "a%20b"])
        let toxic = any(["t1", "t2", "t3", "t1", "t2", "t3", "latency_downstream", "none"])
        let routes: [(path: String, methods: [String])] = [
            ("/proxies", ["GET", "POST", "POST", "POST"]),
            ("/proxies/\(proxy)", ["GET", "PATCH", "POST", "DELETE"]),
            ("/proxies/\(proxy)/toxics", ["GET", "POST", "POST", "POST"]),
            ("/proxies/\(proxy)/toxics/\(toxic)", ["GET", "PATCH", "POST", "DELETE"]),
            ("/populate", ["POST"]), ("/version", ["GET"]), ("/metrics", ["GET"]),
            ("/slowlane/v1/proxies/\(proxy)/link", ["GET", "PUT", "DELETE"]),
            ("/slowlane/v1/proxies/\(proxy)/seed", ["GET", "PUT"]),
            ("/slowlane/v1/proxies/\(proxy)/connections", ["GET"]),
            ("/slowlane/v1/proxies/\(proxy)/connections/1", ["DELETE"]), ("/slowlane/v1/proxies/\(proxy)", ["GET"]),
            ("/\(toxic)", ["GET"]), ("//x/../y", ["GET"]),
        ]
        // The first four routes get half of the requests.
        let route = routes[Int.random(in: 0..<(Bool.random(using: &random) ? 4 : routes.count), using: &random)]
        let path = route.path
        let isOdd = Int.random(in: 0..<10, using: &random) == 0
        let method = any(isOdd ? ["GET", "POST", "PATCH", "DELETE", "PUT", "OPTIONS"] : route.methods)
        // Resets are rare, since they remove the toxics.
        let isReset = Int.random(in: 0..<400, using: &random) == 0
        let body =
            isReset
            ? ""
            : any([
                object(&random, upstream), object(&random, upstream), "[\(object(&random, upstream))]", "", "{", "null",
            ])
        return "\(isReset ? "POST /reset" : "\(method) \(path)") HTTP/1.1\r\nHost: localhost\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    private static func object(_ random: inout SeededGenerator, _ upstream: Int) -> String {
        let names = [
            "name", "listen", "upstream", "enabled", "toxics", "type", "stream", "toxicity", "attributes", "link",
            "seed",
            "profile", "netem", "NAME", "unknown",
        ]
        var members: [String] = []
        for name in names where Int.random(in: 0..<6, using: &random) > (name == name.lowercased() ? 0 : 3) {
            members.append("\"\(name)\":\(value(name.lowercased(), &random, upstream))")
        }
        return "{\(members.joined(separator: ","))}"
    }

    private static func value(_ name: String, _ random: inout SeededGenerator, _ upstream: Int) -> String {
        func any(_ values: [String]) -> String { values[Int.random(in: 0..<values.count, using: &random)] }
        if Int.random(in: 0..<30, using: &random) == 0 {
            return any([
                "null", "true", "-1", "0", "1e400", "9223372036854775807", "-9223372036854775808",
                "18446744073709551616",
                "\"\"", "\"\\u0000\"", "[]", "{}", "[[[[[[]]]]]]", "\"\(String(repeating: "x", count: 300))\"", "1.5",
                "NaN",
            ])
        }
        let figure = any([
            "0", "1", "5", "100", "0", "1", "5", "100", "1000000000000", "-1", "9223372036854775807",
            "-9223372036854775808", "2.5",
        ])
        switch name {
        case "name": return any(["\"a\"", "\"b\"", "\"c\"", "\"ä\"", "\"a b\"", "\"t1\"", "\"t2\"", "\"t3\""])
        case "listen":
            return any([
                "\"127.0.0.1:0\"", "\"127.0.0.1:0\"", "\"localhost:0\"", "\"127.0.0.1:99999\"", "\"256.1.1.1:1\"",
                "\"[::1\"", "\"[::1]:0\"",
            ])
        case "upstream": return any(["\"127.0.0.1:\(upstream)\"", "\"127.0.0.1:1\"", "\"x\"", "\":\"", "\"[::1]:1\""])
        case "enabled": return any(["true", "true", "true", "false"])
        case "type":
            return any([
                "\"latency\"", "\"bandwidth\"", "\"slow_close\"", "\"timeout\"", "\"reset_peer\"", "\"slicer\"",
                "\"limit_data\"", "\"packet_loss\"", "\"noop\"", "\"none\"",
            ])
        case "stream": return any(["\"upstream\"", "\"downstream\"", "\"UPSTREAM\"", "\"sideways\""])
        case "toxicity": return any(["0", "0.5", "1", "1", "7", "-1", "1e39"])
        case "attributes":
            return
                "{\"latency\":\(figure),\"jitter\":\(figure),\"rate\":\(figure),\"delay\":\(figure),\"timeout\":\(figure),\"average_size\":\(figure),\"size_variation\":\(figure),\"bytes\":\(figure),\"loss_rate\":\(any(["0.1", "1", "-1", "7"])),\"correlation\":0.5}"
        case "profile": return any(["\"edge\"", "\"3g\"", "\"100-loss\"", "\"offline\"", "\"none\""])
        case "toxics": return any(["null", "[]", "[]", "[{\"type\":\"noop\"}]", "[7]"])
        case "link":
            return any([
                "null", "{\"profile\":\"wifi\"}", "{\"profile\":\"3g\"}", "{}",
                "{\"netem\":{\"up\":\"delay 1ms\",\"down\":\"loss 5%\"}}",
            ])
        case "netem": return any(["{\"up\":\"delay 1ms\",\"down\":\"rate 1mbit\"}", "{\"up\":\"rate\"}"])
        case "seed": return any(["0", "7", "9", "-1"])
        default: return figure
        }
    }
}
