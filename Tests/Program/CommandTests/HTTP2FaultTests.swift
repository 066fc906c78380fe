import Foundation
import TestSupport
import Testing

extension CommandTests {
    /// Faults on the streams of HTTP/2: curl and Python's httpx, `slowlane proxy`, and a server of Python's h2.
    @Suite(.serialized) struct HTTP2FaultTests {
        private static let python = Repository.root.appending(path: ".build/python/bin/python")

        private static func peer(_ arguments: String...) throws -> Command {
            try #require(FileManager.default.isExecutableFile(atPath: python.path()), "run scripts/setup --tests")
            let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Python/http2_peer.py")
            return try Command([script.path()] + arguments, binary: python)
        }

        /// Starts the server, and a proxy with faults. Returns both, and the port of the proxy.
        private static func start(
            _ faults: [String], _ options: [String] = []
        ) async throws -> (server: Command, proxy: Command, port: String) {
            let server = try peer("serve")
            let upstream = try await server.output.line(with: "port ").dropFirst(5)
            let proxy = try Command(
                ["proxy", "--upstream", String(upstream)] + options + faults.flatMap { ["--fault", $0] })
            let line = try await proxy.output.line(with: "listening on ")
            let address = try #require(line.split(separator: " ").dropFirst(2).first)
            return (server, proxy, String(try #require(address.split(separator: ":").last)))
        }

        @Test(arguments: [[], ["--profile", "wifi"]])
        func theResponseToTheThirdPostIsLostAfterTheServerHasExecutedIt(_ options: [String]) async throws {
            let rule = "POST /notes/* nth 3 before-response stall"
            let (server, proxy, port) = try await Self.start([rule], options)
            defer { server.signal(SIGKILL) }
            let client = try Self.peer("post", port, "5")
            #expect(await client.end() == 0, "\(client.errors.text)")
            #expect(
                client.output.text
                    == [201, 201, 0, 201, 201].enumerated().map { index, status in
                        "result \(index + 1) \(status == 0 ? "ReadTimeout" : "\(status) 100000")\n"
                    }.joined())
            // The server has executed all of them, and has sent its whole response to the third one.
            let lines = Set(server.output.text.split(separator: "\n").map(String.init))
            for number in 1...5 {
                #expect(lines.contains("request \(2 * number - 1) POST /notes/\(number) 12000"))
                #expect(lines.contains("responded \(2 * number - 1)"))
            }
            proxy.type("faults\n")
            #expect(try await proxy.output.line(with: "ok faults") == "ok faults: 1 (matched 5, fired 1) \(rule)")
            proxy.type("quit\n")
            #expect(await proxy.end() == 0)
            #expect(
                proxy.errors.text.contains(
                    "fault fired: '\(rule)': POST /notes/3 (stream 5) at before-response after 0 B of the response "
                        + "(1 so far)\n"), "\(proxy.errors.text)")
            #expect(proxy.output.text.hasSuffix("fault 1: matched 5, fired 1: \(rule)\n"), "\(proxy.output.text)")
        }

        @Test func otherRequestsOvertakeADelayedOne() async throws {
            let (server, proxy, port) = try await Self.start(["POST /notes/2 before-request delay 1s"])
            defer { server.signal(SIGKILL) }
            let client = try Self.peer("post", port, "5")
            #expect(await client.end() == 0, "\(client.errors.text)")
            #expect(client.output.text == (1...5).map { "result \($0) 201 100000\n" }.joined())
            let requests = server.output.text.split(separator: "\n").filter { $0.hasPrefix("request ") }
                .map { $0.split(separator: " ") }
            // The client's stream 3 has a greater identifier at the server, whose stream 5 the client has opened before.
            let ids = Dictionary(uniqueKeysWithValues: requests.map { (String($0[3]), Int($0[1]) ?? 0) })
            #expect(requests.count == 5 && ids["/notes/3"] == 5, "\(requests)")
            #expect(ids["/notes/2"].map { $0 > 5 } == true, "\(requests)")
            proxy.type("quit\n")
            #expect(await proxy.end() == 0)
        }

        /// The program and the server of a scenario speak HTTP/2: its faults fire on the stream of the request.
        @Test(
            arguments: [
                ("before-request", "2xx"), ("before-request-end", "2xx"), ("before-response", "lost 2xx"),
                ("after-response-head", "lost 2xx"),
            ])
        func aFaultOfAScenarioFiresOnAStream(_ point: String, _ responses: String) async throws {
            try #require(
                FileManager.default.isExecutableFile(atPath: Self.python.path()), "run scripts/setup --tests")
            let folder = try TemporaryFolder()
            let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Python/http2_peer.py")
            let words = "\(Self.python.path()), \(script.path())"
            let scenario = """
                scenario: 1
                name: order
                about: The first order meets a fault on its stream.
                limit: 1m
                server: { run: [\(words), serve] }
                devices:
                  A: { user: ada, starts: empty, client: { run: [\(words), order], adapter: none } }
                network:
                  A: { 0s: wifi }
                faults:
                  - { request: POST any, point: \(point), then: reset }
                expect:
                  traffic:
                    - { request: POST any, from: A, responses: [\(responses.replacing(" ", with: ", "))] }

                """
            let path = URL(filePath: folder.path("order.yaml"))
            try Data(scenario.utf8).write(to: path)
            let run = try Command(["run", path.path()])
            // A request that has not reached the server has no response there.
            #expect(await run.end() == 0, "\(run.output.text)\(run.errors.text)")
            #expect(
                run.output.text.contains("ok    traffic: POST any from A, responses \(responses)"),
                "\(run.output.text)"
            )
            #expect(run.output.text.contains("no-duplicate-effect (I2)"))
        }

        /// `curl --http2` on http:// asks for an upgrade: its request is stream 1 (RFC 7540, section 3.2).
        @Test func anUpgradedRequestOfCurlMeetsAFault() async throws {
            let (server, proxy, port) = try await Self.start([
                "POST /lost before-response reset", "POST /cut mid-response bytes 50000 reset REFUSED_STREAM",
            ])
            defer { server.signal(SIGKILL) }
            var rows: [String] = []
            for path in ["/kept", "/lost", "/cut", "/kept"] {
                let curl = try Command(
                    [
                        "-s", "--http2", "--max-time", "20", "-d", "text", "-o", "/dev/null", "-w",
                        "%{http_code} %{exitcode} %{http_version}", "http://127.0.0.1:\(port)\(path)",
                    ], binary: URL(filePath: "/usr/bin/curl"))
                _ = await curl.end()
                rows.append(curl.output.text)
            }
            #expect(rows[0] == "201 0 2" && rows[3] == "201 0 2", "\(rows)")
            // 92: an error of the stream.
            #expect(rows[1].split(separator: " ").dropFirst().first == "92", "\(rows)")
            // curl 7.88 reports a reset in the middle of a response to an upgrade as a failure to receive (56).
            #expect(rows[2].hasPrefix("201 ") && rows[2].split(separator: " ").dropFirst().first != "0", "\(rows)")
            #expect(
                server.output.text.split(separator: "\n").filter { $0.hasPrefix("upgraded POST") }.map(String.init)
                    == ["/kept", "/lost", "/cut", "/kept"].map { "upgraded POST \($0) 4" })
            proxy.type("quit\n")
            #expect(await proxy.end() == 0)
            #expect(proxy.output.text.split(separator: "\n").filter { $0.contains("fired 1: ") }.count == 2)
        }

        /// One curl per request, because curl 7.88 cannot use a connection of prior knowledge twice.
        @Test func curlMeetsFaultsOnStreams() async throws {
            let (server, proxy, port) = try await Self.start([
                "POST * nth 3 before-response reset", "POST /busy before-request respond 503 Retry-After: 7 body busy",
                "POST /late before-response delay 1s", "POST /cut mid-response bytes 50000 reset",
                "POST /conn after-response-head reset connection",
            ])
            defer { server.signal(SIGKILL) }
            func post(_ path: String) async throws -> [String] {
                let curl = try Command(
                    [
                        "-s", "--http2-prior-knowledge", "--max-time", "20", "-d", "text", "-o", "/dev/null", "-w",
                        "%{http_code} %{size_download} %{exitcode} %{http_version} %{time_total}",
                        "http://127.0.0.1:\(port)\(path)",
                    ], binary: URL(filePath: "/usr/bin/curl"))
                _ = await curl.end()
                return curl.output.text.split(separator: " ").map(String.init)
            }
            // 92: an error of the stream.
            for path in ["/1", "/2", "/3", "/4"] {
                let row = try await post(path).prefix(3).joined(separator: " ")
                #expect(row == (path == "/3" ? "000 0 92" : "201 100000 0"), "\(path)")
            }
            #expect(try await post("/busy").prefix(4) == ["503", "4", "0", "2"])
            let late = try await post("/late")
            #expect(late.prefix(4) == ["201", "100000", "0", "2"])
            #expect(try #require(late.last.flatMap { Double($0) }) >= 1)
            // curl discards what it has not read when a stream or a connection is reset.
            let cut = try await post("/cut")
            #expect(cut[2] == "92" && Int(cut[1]).map { $0 <= 50_000 } == true, "\(cut)")
            let conn = try await post("/conn")
            #expect(conn[1] == "0" && conn[2] != "0" && conn[2] != "92", "\(conn)")
            let served = server.output.text.split(separator: "\n").filter { $0.hasPrefix("request ") }
                .compactMap { $0.split(separator: " ").dropFirst(3).first }
            #expect(served == ["/1", "/2", "/3", "/4", "/late", "/cut", "/conn"])
            proxy.type("quit\n")
            #expect(await proxy.end() == 0)
            #expect(
                proxy.output.text.split(separator: "\n").filter { $0.contains("fired 1: ") }.count == 5,
                "\(proxy.output.text)"
            )
        }
    }
}
