import Foundation
import TestSupport
import Testing

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
                "fault DELETE befor-response reset\nfault DELETE before-response delay 1ms\nfaults\nfault remove 2\n")
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
