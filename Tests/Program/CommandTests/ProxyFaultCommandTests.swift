import Foundation
import TestSupport
import Testing
import Wire

extension CommandTests {
    /// Faults of `slowlane proxy`, and its reasons to stop.
    @Suite(.serialized) struct ProxyFaultCommandTests {
        /// Responds to each request with 201 and closes the connection.
        private static func server() throws -> (listener: TestSocket, port: Int) {
            let (listener, port) = try TestSocket.listen()
            Thread.detachNewThread { [weak listener] in
                while let current = listener {
                    guard let socket = try? current.accept() else { continue }
                    Thread.detachNewThread {
                        var request: [UInt8] = []
                        while request.firstRange(of: Array("\r\n\r\n".utf8)) == nil {
                            guard let bytes = try? socket.receive(), !bytes.isEmpty else { return }
                            request += bytes
                        }
                        let head = "HTTP/1.1 201 Created\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndone"
                        try? socket.send(Array(head.utf8))
                    }
                }
            }
            return (listener, port)
        }

        /// Starts the proxy and returns it with its port.
        private static func proxy(_ arguments: String..., to upstream: Int) async throws -> (Command, Int) {
            let command = try Command(["proxy", "--upstream", "\(upstream)"] + arguments)
            let line = try await command.output.line(with: "listening on ")
            let address = try #require(line.split(separator: " ").dropFirst(2).first)
            return (command, try #require(address.split(separator: ":").last.flatMap { Int($0) }))
        }

        private static func status(_ port: Int, _ path: String, _ method: String = "POST") async -> Int? {
            await (try? blocking { try HTTPPeer(port: port).ask(method, path) })?.status
        }

        /// A server of a text protocol: it replies to each line with "250 " and its number.
        private static func lineServer() throws -> (listener: TestSocket, port: Int) {
            let (listener, port) = try TestSocket.listen()
            Thread.detachNewThread { [weak listener] in
                while let current = listener {
                    guard let socket = try? current.accept() else { continue }
                    Thread.detachNewThread {
                        try? socket.send(Array("220 ready\r\n".utf8))
                        var lines = 0
                        while let bytes = try? socket.receive(), !bytes.isEmpty {
                            for _ in 0..<bytes.count(where: { $0 == UInt8(ascii: "\n") }) {
                                lines += 1
                                try? socket.send(Array("250 \(lines)\r\n".utf8))
                            }
                        }
                    }
                }
            }
            return (listener, port)
        }

        /// The rule is one of SMTP: the response that follows the client's "." is lost.
        @Test func aFaultOfBytesLosesTheReplyOfATextProtocol() async throws {
            let (listener, upstream) = try Self.lineServer()
            let rule = #"TCP server "250 " after "\r\n.\r\n" nth 2 before-match reset"#
            let (command, port) = try await Self.proxy("--fault", rule, to: upstream)
            let text = try await blocking {
                let socket = try TestSocket.connect(port: port)
                var received: [UInt8] = []
                func wait(_ count: Int) throws {
                    while received.count < count {
                        let bytes = try socket.receive()
                        if bytes.isEmpty { throw CancellationError() }
                        received += bytes
                    }
                }
                try wait(11)
                for mail in 0..<2 {
                    try socket.send(Array("DATA\r\n".utf8))
                    try wait(11 + mail * 21 + 7)
                    try socket.send(Array("\r\n.\r\n".utf8))
                    do { try wait(11 + mail * 21 + 21) } catch { received += Array("error".utf8) }
                }
                return String(decoding: received, as: UTF8.self)
            }
            #expect(text == "220 ready\r\n250 1\r\n250 2\r\n250 3\r\n250 4\r\nerror")
            command.type("quit\n")
            #expect(await command.end() == 0)
            #expect(
                command.errors.text.contains("fault fired: '\(rule)': bytes of the server at before-match after "),
                "\(command.errors.text)")
            #expect(command.output.text.contains("matched 2, fired 1: \(rule)"), "\(command.output.text)")
            withExtendedLifetime(listener) {}
        }

        @Test func faultsFireAreLoggedAndCounted() async throws {
            let (listener, upstream) = try Self.server()
            let (command, port) = try await Self.proxy(
                "--fault", "POST /notes* nth 2 before-response reset", "--fault",
                "GET times 2 before-request respond 503 Retry-After: 7 body busy", to: upstream)
            var statuses: [Int?] = []
            for path in ["/notes", "/notes/1", "/notes"] { statuses.append(await Self.status(port, path)) }
            #expect(statuses == [201, nil, 201])
            let busy = try await blocking { try HTTPPeer(port: port).ask("GET", "/x") }
            #expect(busy.status == 503 && busy.body == "busy" && busy.header("Retry-After") == "7")
            command.type(
                "fault DELETE befor-response reset\nfault DELETE before-response delay 1ms\nfaults\nfault remove 2\n"
                    + "fault clear\n")
            #expect(
                try await command.output.line(with: "error ").hasPrefix(
                    "error column 8: unknown word 'befor-response'; did you mean 'before-response'"))
            #expect(
                try await command.output.line(with: "ok fault 3") == "ok fault 3: DELETE * before-response delay 1ms")
            #expect(
                try await command.output.line(with: "ok faults")
                    == "ok faults: 1 (matched 3, fired 1) POST /notes* nth 2 before-response reset; 2 (matched 1, fired 1) "
                    + "GET * times 2 before-request respond 503 Retry-After: 7 body busy; 3 (matched 0, fired 0) "
                    + "DELETE * before-response delay 1ms")
            #expect(try await command.output.line(with: "removed") == "ok fault 2 removed: matched 1, fired 1")
            #expect(
                try await command.output.line(with: "not 'clear'").hasSuffix(
                    "; 'fault remove N' or 'fault remove all' removes faults"))
            #expect(await Self.status(port, "/x", "GET") == 201)
            command.type("quit\n")
            #expect(await command.end() == 0)
            #expect(
                command.errors.text.contains(
                    "fault fired: 'POST /notes* nth 2 before-response reset': POST /notes/1 at before-response after 0 B of the "
                        + "response (1 so far)\n"), "\(command.errors.text)")
            #expect(
                command.output.text.hasSuffix(
                    "fault 1: matched 3, fired 1: POST /notes* nth 2 before-response reset\n"
                        + "fault 3: matched 0, fired 0: DELETE * before-response delay 1ms\n"), "\(command.output.text)"
            )
            withExtendedLifetime(listener) {}
        }

        @Test func aBodyIsTruncatedAndAResponseIsDelayed() async throws {
            let (listener, upstream) = try Self.server()
            let (command, port) = try await Self.proxy(
                "--fault", "GET /cut mid-response bytes 1 reset", "--fault", "GET /late before-response delay 300ms",
                "--fault", "GET /in before-request portal", to: upstream)
            let text = try await blocking {
                let socket = try TestSocket.connect(port: port)
                try socket.send(Array("GET /cut HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
                var text: [UInt8] = []
                while let bytes = try? socket.receive(), !bytes.isEmpty { text += bytes }
                return String(decoding: text, as: UTF8.self)
            }
            #expect(text.hasSuffix("\r\n\r\nd"), "\(text)")
            let start = ContinuousClock.now
            #expect(await Self.status(port, "/late", "GET") == 201)
            #expect(ContinuousClock.now - start >= .milliseconds(300))
            #expect(try await blocking { try HTTPPeer(port: port).ask("GET", "/in").body }.contains("Sign in"))
            command.type("", andClose: true)
            command.signal(SIGTERM)
            #expect(await command.end() == 0)
            withExtendedLifetime(listener) {}
        }

        @Test func anInvalidRuleIsAnErrorWithItsPlace() async throws {
            let result = try await Command.run("proxy", "--upstream", "1", "--fault", "GET befor-response reset")
            #expect(result.status == 64)
            #expect(
                result.errors.contains("--fault: unknown word 'befor-response'; did you mean 'before-response'")
                    && result.errors.contains("  GET befor-response reset\n      ^"), "\(result.errors)")
        }

        @Test func theEndOfTheInputStopsTheProxyAfterItsCommands() async throws {
            let (listener, upstream) = try TestSocket.listen()
            let command = try Command(["proxy", "--upstream", "\(upstream)", "--until-eof"])
            command.type("outage\nend-outage\nstatus", andClose: true)
            #expect(await command.end() == 0)
            #expect(
                command.output.text.contains("ok outage both\nok end-outage\nok profile none"), "\(command.output.text)"
            )
            withExtendedLifetime(listener) {}
        }

        @Test func theEndOfTheParentStopsTheProxy() async throws {
            let (listener, upstream) = try TestSocket.listen()
            // The shell starts the proxy in the background and ends at once, when its input ends. The command's
            // output ends with the last process that has it open.
            let shell = try Command(
                [
                    "-c", #""$0" proxy --upstream "$1" --exit-with-parent </dev/null & read line"#,
                    Command.binary.path(), "\(upstream)",
                ], binary: URL(filePath: "/bin/sh"))
            _ = try await shell.output.line(with: "listening on ")
            shell.type("end\n", andClose: true)
            _ = await shell.end()
            #expect(shell.errors.text.hasSuffix("stopped\n"), "\(shell.errors.text)")
            withExtendedLifetime(listener) {}
        }

        /// Two proxies that start at different times are at the same position; a future start waits.
        @Test func anAbsoluteStartGivesThePositionOfTheTimeline() async throws {
            func status(_ start: Date) async throws -> String {
                let text = start.ISO8601Format()
                let command = try Command([
                    "proxy", "--upstream", "9", "--timeline", "0s: 3g, 10m: edge, 9h: wifi", "--timeline-start", text,
                ])
                #expect(
                    try await command.output.line(with: "listening on ").hasSuffix(
                        ", timeline inline, start \(text)"))
                command.type("status\nquit\n")
                #expect(await command.end() == 0)
                return String(
                    try #require(command.output.text.split(separator: "\n").first { $0.hasPrefix("ok profile") }))
            }
            func seconds(_ status: String, _ before: String) throws -> Double {
                let rest = try #require(status.range(of: before), "\(status)")
                return try #require(Double(status[rest.upperBound...].prefix { $0.isNumber || $0 == "." }))
            }
            let past = Date(timeIntervalSince1970: Date.now.timeIntervalSince1970.rounded() - 3600)
            for _ in 0..<2 {
                let found = try await status(past)
                let now = Date.now.timeIntervalSince(past)
                // Generous for a machine with other work.
                #expect((now - 20...now + 0.1).contains(try seconds(found, "timeline at ")), "\(found)")
                #expect(found.contains("(edge, wifi in "), "\(found)")
            }
            let future = Date(timeIntervalSince1970: Date.now.timeIntervalSince1970.rounded() + 1000)
            let waiting = try await status(future)
            let left = future.timeIntervalSince(.now)
            #expect((left - 0.1...left + 20).contains(try seconds(waiting, "timeline starts in ")), "\(waiting)")
            #expect(waiting.contains("(3g, edge in "), "\(waiting)")
        }

        @Test(arguments: [
            (["proxy", "--timeline-start", "2026-03-01T12:00:00Z"], "--timeline-start needs --timeline"),
            (["proxy", "--timeline", "subway", "--timeline-start", "noon"], "'noon' must be a time of RFC 3339"),
            (["with", "--timeline-start", "2026-03-01T12:00:00Z", "--", "true"], "--timeline-start needs --timeline"),
            (["link", "p", "edge", "--timeline-start", "2026-03-01T12:00:00Z"], "--timeline-start needs --timeline"),
            (
                ["server", "--timeline-start", "2026-02-30T12:00:00Z"],
                "'2026-02-30T12:00:00Z' must be a time of RFC 3339"
            ),
        ]) func aWrongStartIsAUsageError(_ arguments: [String], _ message: String) async throws {
            let result = try await Command.run(arguments + (arguments[0] == "proxy" ? ["--upstream", "9"] : []))
            #expect(result.status == 64 && result.errors.contains(message), "\(result.errors)")
        }

        /// The proxies of two servers, one of which starts later.
        @Test func theServersOfAFleetPlayTheSameMinute() async throws {
            let folder = try TemporaryFolder()
            let config =
                #"[{"name":"api","listen":"127.0.0.1:0","upstream":"127.0.0.1:9","link":{"timeline":"subway"}}]"#
            try Data(config.utf8).write(to: URL(filePath: folder.path("proxies.json")))
            let start = Date(timeIntervalSince1970: Date.now.timeIntervalSince1970.rounded() - 100_000)
            for _ in 0..<2 {
                let server = try Command([
                    "server", "--port", "0", "--config", folder.path("proxies.json"), "--timeline-start",
                    start.ISO8601Format(),
                ])
                let line = try await server.output.line(with: "listening on ")
                let url = String(try #require(line.split(separator: " ").first { $0.hasPrefix("http://") }))
                let path = "\(url)/slowlane/v1/proxies/api/timeline"
                let (_, data, _) = try await blocking { try runProgram("/usr/bin/curl", ["-sS", path]) }
                let now = Date.now.timeIntervalSince(start) * 1000
                let timeline = try #require(JSONText.parse(data.utf8))
                // The server's monotonic clock may run a little ahead of the clock of the day.
                #expect((now - 20_000...now + 50).contains(timeline["position_ms"].number ?? 0), "\(timeline)")
                let shown = try await Command.run("link", "api", "--json", "--host", url)
                #expect(shown.output.contains(#""start":"\#(start.ISO8601Format())""#), "\(shown)")
                server.signal(SIGTERM)
                #expect(await server.end() == 0)
            }
        }

        @Test func theStatusNamesThePositionOfTheTimeline() async throws {
            let (listener, upstream) = try TestSocket.listen()
            let command = try Command(["proxy", "--upstream", "\(upstream)", "--timeline", "0s: 3g, 1h: edge"])
            command.type("status\npause\nseek 59m\nstatus\nquit\n")
            #expect(await command.end() == 0)
            let lines = command.output.text.split(separator: "\n").filter { $0.hasPrefix("ok profile") }
            #expect(lines.count == 2)
            #expect(lines[0].contains(", timeline at 0."), "\(lines[0])")
            #expect(lines[1].contains("(3g, edge in "), "\(lines[1])")
            withExtendedLifetime(listener) {}
        }
    }
}
