import Foundation
import Impairment
import NIOCore
import NIOPosix
import NotesServer
import NotesService
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Proxy

/// Exchange tracking with independent HTTP clients and servers: every request and response is recognised.
@Suite(.tags(.proxies), .serialized, .timeLimit(.minutes(10))) struct ExchangePeerTests {
    private struct Seen {
        var methods: [String] = []
        var statuses: [Int] = []
        var other: [String] = []
    }

    private static func through(_ upstream: Int, _ body: (Int) async throws -> Void) async throws -> Seen {
        let seen = Mutex(Seen())
        let onExchange: @Sendable (ExchangeEvent) -> Void = { event in
            seen.withLock { seen in
                switch event {
                case .requested(_, let head, _, _): seen.methods.append(head.method)
                case .responseDelivered(_, let status, _): seen.statuses.append(status)
                case .interrupted, .notHTTP, .faultInjected: seen.other.append("\(event)")
                case .requestDelivered, .responseRead, .requestStarted, .requestRead, .responseStarted,
                    .responseSampled,
                    .faultMissed, .pings, .protocolSwitched, .tls, .handshakeFault, .streamFault:
                    break
                }
            }
        }
        var configuration = ProxyConfiguration(
            listen: Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "127.0.0.1", port: upstream))
        configuration.exchangeTracking = ExchangeTracking()
        configuration.onExchange = onExchange
        let proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
        do { try await body(proxy.address.port) } catch {
            await proxy.stop(grace: .zero)
            throw error
        }
        await proxy.stop(grace: .zero)
        return seen.withLock { $0 }
    }

    private static func withNotes(_ body: (Int) async throws -> Void) async throws {
        let service = NotesService(store: try NotesStore(path: nil), users: ["ada": "secret"])
        let server = try await NotesServer.start(service, host: "127.0.0.1", port: 0)
        do { try await body(server.port) } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    /// Runs a program and returns its output.
    @discardableResult
    private static func run(_ arguments: String..., input: String = "") async throws -> String {
        try await blocking {
            let (status, output, _) = try runProgram(
                arguments[0], Array(arguments.dropFirst()), input: input, standardError: .discarded)
            #expect(status == 0, "\(arguments)")
            return output
        }
    }

    @Test func curlAgainstTheNotesServer() async throws {
        try await Self.withNotes { (server: Int) async throws -> Void in
            let seen = try await Self.through(server) { (port: Int) async throws -> Void in
                let url = "http://127.0.0.1:\(port)/api/notes/"
                // Two requests on one connection, a chunked body, a body after 100 Continue, a response without a body.
                try await Self.run("curl", "-s", "-u", "ada:secret", url, url)
                let chunked = try await Self.run(
                    "curl", "-s", "-u", "ada:secret", "-H", "Transfer-Encoding: chunked", "-H",
                    "Content-Type: application/json", "--data-binary", "@-", url, input: #"{"title":"Milk"}"#)
                #expect(chunked.contains("Milk"))
                try await Self.run(
                    "curl", "-s", "-u", "ada:secret", "-H", "Expect: 100-continue", "-H",
                    "Content-Type: application/json", "--data-binary", "@-", url,
                    input: #"{"text":"\#(String(repeating: "x", count: 500_000))"}"#)
                try await Self.run("curl", "-s", "-I", "-u", "ada:secret", url)
            }
            #expect(seen.methods == ["GET", "GET", "POST", "POST", "HEAD"])
            #expect(seen.statuses == [200, 200, 201, 201, 200])
            #expect(seen.other.isEmpty)
        }
    }

    @Test func pythonsClientAgainstTheNotesServer() async throws {
        try await Self.withNotes { (server: Int) async throws -> Void in
            let seen = try await Self.through(server) { (port: Int) async throws -> Void in
                let printed = try await Self.run(
                    "python3", "-", "\(port)",
                    input: """
                        import http.client, json, sys
                        c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
                        h = {"Authorization": "Basic YWRhOnNlY3JldA==", "Content-Type": "application/json"}
                        c.request("POST", "/api/notes/", json.dumps({"title": "Milk"}), h)
                        note = json.loads(c.getresponse().read())
                        # http.client sends a body of unknown length in chunks.
                        c.request("PATCH", "/api/notes/" + note["uuid"] + "/",
                                  iter([b'{"title": "Bread",', b'"revision": "%s"}' % note["revision"].encode()]), h)
                        print(c.getresponse().read().decode())
                        c.request("GET", "/api/none", headers=h)
                        print(c.getresponse().read().decode())

                        """)
                #expect(printed.contains("Bread"))
            }
            #expect(seen.methods == ["POST", "PATCH", "GET"])
            #expect(seen.statuses == [201, 200, 404])
            #expect(seen.other.isEmpty)
        }
    }

    @Test func curlAgainstPythonsServerWhoseResponsesEndWithTheConnection() async throws {
        let folder = try TemporaryFolder()
        try Data(repeating: 7, count: 100_000).write(to: URL(filePath: folder.path("file")))
        let server = try ChildProcess(
            "python3",
            [
                "-u", "-c",
                """
                import http.server, sys
                class H(http.server.SimpleHTTPRequestHandler):
                    def send_header(self, key, value):
                        if key != "Content-Length": super().send_header(key, value)
                s = http.server.HTTPServer(("127.0.0.1", 0), H)
                print(s.server_port)
                s.serve_forever()
                """,
            ], in: folder.url.path(), standardError: .discarded)
        defer { server.signal(SIGTERM) }
        let line = try await blocking { String(decoding: server.output.availableData, as: UTF8.self) }
        let upstream = try #require(Int(line.trimmingCharacters(in: .whitespacesAndNewlines)))
        let seen = try await Self.through(upstream) { (port: Int) async throws -> Void in
            let url = "http://127.0.0.1:\(port)/file"
            let size = try await Self.run("curl", "-s", "-o", folder.path("copy"), "-w", "%{size_download}", url)
            #expect(size == "100000")
        }
        #expect(seen.methods == ["GET"])
        #expect(seen.statuses == [200])
        #expect(seen.other.isEmpty)
    }

    @Test func wrkAgainstTheNotesServer() async throws {
        try await Self.withNotes { (server: Int) async throws -> Void in
            let seen = try await Self.through(server) { (port: Int) async throws -> Void in
                let report = try await Self.run(
                    "wrk", "-t1", "-c8", "-d2s", "-H", "Authorization: Basic YWRhOnNlY3JldA==",
                    "http://127.0.0.1:\(port)/api/notes/")
                #expect(report.contains("requests in"))
                #expect(!report.contains("Non-2xx"))
            }
            // wrk stops with one request under way on each of its connections.
            #expect(!seen.statuses.isEmpty)
            #expect(seen.methods.count - seen.statuses.count <= 8)
            #expect(seen.statuses.allSatisfy { $0 == 200 })
            #expect(seen.other.allSatisfy { $0.hasSuffix(" interrupted") })
        }
    }
}
