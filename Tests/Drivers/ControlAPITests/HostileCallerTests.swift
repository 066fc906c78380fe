import ControlAPI
import Foundation
import TestSupport
import Testing

/// API clients that do not read, do not finish their requests, or use HTTP/1.0. A client with the token is served meanwhile.
@Suite(.tags(.servers), .serialized, .timeLimit(.minutes(10))) struct HostileCallerTests {
    private static let owner = ["Authorization: Bearer secret"]

    /// The resident memory of this process in bytes.
    private static var residentBytes: Int {
        let words = (try? String(contentsOfFile: "/proc/self/statm", encoding: .ascii))?.split(separator: " ") ?? []
        return words.count > 1 ? (Int(words[1]) ?? 0) * sysconf(Int32(_SC_PAGESIZE)) : 0
    }

    /// The behavior of a caller without the token.
    enum Hostility: CaseIterable, Sendable {
        /// Sends requests and reads no responses.
        case pipelines
        /// Sends a part of a request head.
        case neverFinishes
        /// Sends nothing.
        case connects
        /// Sends a request head without the body.
        case withholdsBody
    }

    @Test(arguments: Hostility.allCases) func threeHundredUnauthenticatedClientsDoNotBlockTheOwner(hostility: Hostility)
        async throws
    {
        try await withServer(token: "secret") { (call, _) async throws in
            let port = call.port
            let before = Self.residentBytes
            let (strangers, slowest) = try await blocking {
                let request: String
                switch hostility {
                case .pipelines:
                    request = String(repeating: "GET /proxies HTTP/1.1\r\nHost: localhost\r\n\r\n", count: 100)
                case .neverFinishes: request = "GET /proxies HTTP/1.1\r\nHost: local"
                case .connects: request = ""
                case .withholdsBody: request = "POST /proxies HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"
                }
                var strangers: [TestSocket] = []
                var slowest = Duration.zero
                let kept = HTTPPeer(port: port)
                func ask(_ peer: HTTPPeer) throws {
                    let start = ContinuousClock.now
                    #expect(try peer.ask("GET", "/version", "", Self.owner).status == 200)
                    slowest = max(slowest, ContinuousClock.now - start)
                }
                try ask(kept)
                for number in 0..<300 {
                    let socket = try TestSocket.connect(port: port)
                    strangers.append(socket)
                    socket.shrinkReceiveBuffer()
                    // The clients without the token do not read, so a blocking send would never return.
                    socket.sendNonblocking(Array(request.utf8))
                    if number % 50 == 49 { try ask(HTTPPeer(port: port)) }
                }
                for _ in 0..<20 { try ask(HTTPPeer(port: port)) }
                // The first connection with the token has kept its slot.
                try ask(kept)
                return (strangers, slowest)
            }
            #expect(slowest < .seconds(5), "\(slowest)")
            #expect(Self.residentBytes - before < 300 << 20)
            withExtendedLifetime(strangers) {}
        }
    }

    @Test func withoutATokenTheNewestClientIsServed() async throws {
        try await withServer { (call, _) async throws in
            let port = call.port
            try await blocking {
                let strangers = try (0..<300).map { _ in
                    let socket = try TestSocket.connect(port: port)
                    socket.sendNonblocking(Array("GET /version HTTP/1.1\r\nHost".utf8))
                    return socket
                }
                for _ in 0..<20 { #expect(try HTTPPeer(port: port).ask("GET", "/version").status == 200) }
                withExtendedLifetime(strangers) {}
            }
        }
    }

    /// Every route, and the next request on the same connection.
    @Test func everyRouteRespondsToHEADAndHTTP10() async throws {
        try await withServer(metrics: .init(proxies: true, process: true)) { (call, _) async throws in
            _ = try await call.proxy("p", to: 1)
            _ = try await call("POST", "/proxies/p/toxics", #"{"type":"latency","name":"t"}"#)
            let port = call.port
            try await blocking {
                for path in [
                    "/version", "/metrics", "/populate", "/reset", "/proxies", "/proxies/p", "/proxies/p/toxics",
                    "/proxies/p/toxics/t", "/slowlane/v1/version", "/slowlane/v1/metrics", "/slowlane/v1/profiles",
                    "/slowlane/v1/proxies/p", "/slowlane/v1/proxies/p/link", "/slowlane/v1/proxies/p/seed",
                    "/slowlane/v1/proxies/p/connections", "/slowlane/v1/proxies/p/connections/0", "/none", "/",
                ] {
                    let peer = HTTPPeer(port: port)
                    // All routes but the metrics refuse HEAD, as Toxiproxy's do.
                    let head = try peer.ask("HEAD", path)
                    #expect([200, 404, 405].contains(head.status), "\(path): \(head.status)")
                    let get = try peer.ask("GET", path)
                    #expect(try peer.ask("GET", "/version").status == 200, "\(path)")
                    for keepAlive in ["", "Connection: keep-alive\r\n"] {
                        let old = try HTTPPeer(port: port).raw("GET \(path) HTTP/1.0\r\n\(keepAlive)\r\n")
                        #expect(old.status == get.status, "\(path)")
                        #expect(old.header("Connection") == (keepAlive.isEmpty ? "close" : "keep-alive"), "\(path)")
                    }
                    let socket = try TestSocket.connect(port: port)
                    try socket.send(Array("HEAD \(path) HTTP/1.0\r\n\r\n".utf8))
                    #expect(String(decoding: try socket.receiveToEnd(), as: UTF8.self).hasSuffix("\r\n\r\n"), "\(path)")
                }
            }
        }
    }

    @Test func apacheBenchGetsItsResponses() async throws {
        try await withServer { (call, _) async throws in
            try await ApacheBench.expectResponses(
                "http://127.0.0.1:\(call.port)/version", requests: 200, headStatus: 405)
            try await ApacheBench.expectResponses(
                "http://127.0.0.1:\(call.port)/proxies", requests: 200, headStatus: 405)
        }
    }

    @Test func ambiguousRequestsAreRefused() async throws {
        try await withServer { (call, _) async throws in
            for (fields, status) in [
                ("", 400), ("Host: localhost\r\nHost: localhost\r\n", 400),
                ("Host: localhost\r\nTransfer-Encoding: gzip, chunked\r\n", 501),
                ("Host: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n", 400),
                ("Host: localhost\r\nContent-Length: 2000000\r\n", 413),
            ] {
                let response = try await call.raw("POST /reset HTTP/1.1\r\n\(fields)\r\n")
                #expect(response.status == status, "\(fields)")
                #expect(response.header("Connection") == "close")
            }
        }
    }
}
