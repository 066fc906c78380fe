import Foundation
import Synchronization
import TestSupport
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// `slowlane with`.
@Suite(.tags(.tools), .timeLimit(.minutes(10))) struct WithCommandTests {
    /// Whether connect mode works here.
    static let hasConnectMode: Bool = {
        let doctor = try? runProgram(Command.binary.path(), ["doctor"])
        return doctor?.output.contains("ok    'slowlane with' redirects the connections of every program") == true
    }()

    /// A server that closes each connection after a short response; it counts the connections.
    private final class Server: Sendable {
        let port: Int
        private let listener: TestSocket
        private let count = Atomic(0)

        init() throws {
            (listener, port) = try TestSocket.listen()
            Thread.detachNewThread { [self] in
                while let socket = try? listener.accept() {
                    count.add(1, ordering: .relaxed)
                    Thread.detachNewThread {
                        // Connections of hostile programs send nothing.
                        guard let bytes = try? socket.receive(), !bytes.isEmpty else { return }
                        try? socket.send(
                            Array("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nhi\n".utf8))
                        socket.finish()
                    }
                }
            }
        }

        var connections: Int { count.load(ordering: .relaxed) }
    }

    @Test(arguments: [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)])
    func theStatusIsThatOfTheCommand(_ script: String, status: Int32) async throws {
        let result = try await Command.run("with", "--quiet", "--", "/bin/sh", "-c", script)
        #expect(result.status == status)
        #expect(result.output.isEmpty && result.errors.isEmpty, "\(result.errors)")
    }

    @Test func aCommandThatCannotRunHasTheStatusOfAShell() async throws {
        let missing = try await Command.run("with", "--", "no-such-program-here")
        #expect(missing.status == 127)
        #expect(
            missing.errors.contains("cannot run 'no-such-program-here': there is no such program"), "\(missing.errors)")
        let folder = try await Command.run("with", "--mode", "env", "--", "/tmp")
        #expect(folder.status == 126 && folder.errors.contains("cannot run '/tmp': "), "\(folder.errors)")
        let none = try await Command.run("with")
        #expect(none.status == 64 && none.errors.contains("give the command after '--'"), "\(none.errors)")
    }

    @Test func theStandardStreamsAndTheFolderAreTheCommandsOwn() async throws {
        let result = try await Command.run(
            ["with", "--quiet", "--", "/bin/sh", "-c", "cat; pwd; echo wrong >&2"], input: "text\n")
        let folder = FileManager.default.currentDirectoryPath
        #expect(result.output == "text\n\(folder)\n" && result.errors == "wrong\n")
    }

    @Test func theLimitOfOpenFilesIsNotRaised() async throws {
        let script = "ulimit -Sn 300; \"$0\" with --quiet -- /bin/sh -c 'ulimit -Sn'"
        let result = try runProgram("/bin/sh", ["-c", script, Command.binary.path()])
        #expect(result.output == "300\n", "\(result.errors)")
    }

    @Test(arguments: [SIGTERM, SIGINT, SIGHUP, SIGUSR1]) func aSignalIsForwarded(_ number: Int32) async throws {
        let script = "trap 'echo got; exit 5' TERM INT HUP USR1; echo ready; while :; do sleep 0.05; done"
        let command = try Command(["with", "--quiet", "--", "/bin/sh", "-c", script])
        _ = try await command.output.line(with: "ready")
        command.signal(number)
        #expect(await command.end() == 5)
        #expect(command.output.text == "ready\ngot\n")
    }

    @Test func anIgnoredSignalStaysIgnored() async throws {
        let script = "trap '' HUP; exec \"$0\" with --quiet -- /bin/sh -c 'kill -HUP $$; echo alive'"
        #expect(try runProgram("/bin/sh", ["-c", script, Command.binary.path()]).output == "alive\n")
    }

    @Test func requiredTrafficThatIsMissingIsStatus3() async throws {
        let result = try await Command.run("with", "--require-traffic", "--", "true")
        #expect(result.status == 3)
        #expect(result.errors.hasPrefix("slowlane: the command opened no connection through the proxy: "))
        let failed = try await Command.run("with", "--require-traffic", "--", "false")
        #expect(failed.status == 1)
    }

    @Test func envModeSetsTheVariables() async throws {
        let script = "echo \"$http_proxy $all_proxy [$no_proxy] $NODE_USE_ENV_PROXY\""
        let result = try await Command.run(
            "with", "--quiet", "--mode", "env", "--bypass", "a.test, b.test", "--", "/bin/sh", "-c", script)
        #expect(
            result.output.wholeMatch(
                of: /http:\/\/127\.0\.0\.1:(\d+) http:\/\/127\.0\.0\.1:\1 \[a\.test,b\.test\] 1\n/)
                != nil, "\(result.output)")
    }

    @Test(arguments: ["connect", "env"]) func aClientReachesAServerOfThisMachine(_ mode: String) async throws {
        guard mode == "env" || Self.hasConnectMode else { return }
        let server = try Server()
        let result = try await Command.run(
            "with", "--mode", mode, "--require-traffic", "--", "curl", "-sS", "http://127.0.0.1:\(server.port)/")
        #expect(result.status == 0 && result.output == "hi\n", "\(result.errors)")
        #expect(result.errors.hasPrefix("slowlane: 127.0.0.1:\(server.port)  1 connection  "), "\(result.errors)")
        #expect(server.connections == 1)
    }

    @Test(arguments: ["connect", "env"]) func aMappedNameNeedsNoNameServer(_ mode: String) async throws {
        guard mode == "env" || Self.hasConnectMode else { return }
        let server = try Server()
        let map = "api.test=127.0.0.1:\(server.port)"
        let result = try await Command.run(
            "with", "--mode", mode, "--map", map, "--", "curl", "-sS", "http://api.test:8080/")
        #expect(result.status == 0 && result.output == "hi\n", "\(result.errors)")
        #expect(result.errors.hasPrefix("slowlane: api.test:8080  1 connection  "), "\(result.errors)")
    }

    /// Python's sockets use no variables.
    @Test(.enabled(if: hasConnectMode)) func connectModeHoldsForEveryProgram() async throws {
        let server = try Server()
        let code = """
            import socket, sys, time
            start = time.monotonic()
            s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
            s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
            print(s.recv(100)[:12], time.monotonic() - start > 0.8)
            """
        let result = try await Command.run("with", "--profile", "edge", "--", "python3", "-c", code, "\(server.port)")
        #expect(result.output == "b'HTTP/1.1 200' True\n", "\(result.errors)")
    }

    @Test(.enabled(if: hasConnectMode)) func lookupsFailByRule() async throws {
        let missing = try await Command.run("with", "--to", "a.test=dns-failure", "--", "curl", "-sS", "http://a.test/")
        #expect(missing.status == 6, "\(missing.errors)")
    }

    /// Otherwise a client that tries ::1 first never falls back to 127.0.0.1.
    @Test(.enabled(if: hasConnectMode)) func aPortWithoutListenerRefusesTheConnection() async throws {
        let server = try Server()
        let result = try await Command.run("with", "--", "curl", "-sS", "http://localhost:\(server.port)/")
        #expect(result.output == "hi\n", "\(result.errors)")
        let refused = try await Command.run("with", "--", "curl", "-sS", "http://127.0.0.1:1/")
        #expect(refused.status == 7)
        #expect(refused.errors.contains("it connected only to ports of this machine on which nothing listens"))
    }

    @Test(.enabled(if: hasConnectMode)) func aCommandInsideACommandUsesVariables() async throws {
        let program = Command.binary.path()
        let nested = try await Command.run("with", "--quiet", "--", program, "with", "--", "true")
        #expect(nested.status == 0)
        #expect(
            nested.errors.hasPrefix(
                "slowlane: note: connect mode does not work here: this process belongs to a command in connect mode"),
            "\(nested.errors)")
        let forced = try await Command.run("with", "--quiet", "--", program, "with", "--mode", "connect", "--", "true")
        #expect(forced.status == 69)
    }

    /// The resolver of gRPC does not accept the responses of the proxy.
    @Test(.enabled(if: hasConnectMode)) func callsOfGRPCReachAServerWithAMappedName() async throws {
        let script = """
            import concurrent.futures, os, subprocess, sys, grpc
            server = grpc.server(concurrent.futures.ThreadPoolExecutor(1))
            handler = grpc.unary_unary_rpc_method_handler(lambda request, _: request + b"!")
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("a.A", {"Call": handler}),))
            port = server.add_insecure_port("127.0.0.1:0")
            server.start()
            call = "import grpc; print(grpc.insecure_channel('grpc.test:80').unary_unary('/a.A/Call')(b'text', timeout=20))"
            words = [sys.argv[1], "with", "--mode", "connect", "--map", "grpc.test=127.0.0.1:%d" % port, "--", sys.executable, "-c", call]
            print(subprocess.run(words, capture_output=True, text=True).stdout, end="")
            """
        let python = Repository.root.appending(path: ".build/python/bin/python").path()
        let (status, output, errors) = try await blocking {
            try runProgram(python, ["-c", script, Command.binary.path()])
        }
        #expect(status == 0 && output == "b'text!'\n", "\(output)\(errors)")
    }

    /// 192.0.2.0/24 and 2001:db8::/32 are for documentation (RFC 5737, RFC 3849).
    @Test(.enabled(if: hasConnectMode)) func hostileCallsEndAsTheKernelEndsThem() async throws {
        let server = try Server()
        let result = try await Command.run(
            "with", "--map", "192.0.2.0/24=127.0.0.1:\(server.port)", "--map", "2001:db8::/32=127.0.0.1:\(server.port)",
            "--", "python3",
            Repository.root.appending(path: "Tests/Program/CommandTests/Python/connect_calls.py").path())
        #expect(result.status == 0, "\(result.output)\(result.errors)")
        #expect(result.output.split(separator: "\n").count > 25)
        #expect(result.errors.contains("127.0.0.1:443"), "\(result.errors)")
    }

    @Test(.enabled(if: hasConnectMode)) func processesThatOutliveTheCommandAreReported() async throws {
        let result = try await Command.run("with", "--", "/bin/sh", "-c", "sleep 20 >/dev/null 2>&1 & echo $!")
        #expect(result.errors.contains("processes that the command has started still run"), "\(result.errors)")
        if let process = Int32(result.output.trimmingCharacters(in: .whitespacesAndNewlines)) { kill(process, SIGKILL) }
    }

    @Test func faultsFireAndAreCounted() async throws {
        let server = try Server()
        let result = try await Command.run(
            "with", "--fault", "GET /x before-response respond 503 body busy", "--", "curl", "-sS",
            "http://127.0.0.1:\(server.port)/x")
        #expect(result.output == "busy", "\(result.errors)")
        #expect(result.errors.contains("slowlane: fault 1: matched 1, fired 1: GET /x"), "\(result.errors)")
        #expect(!result.errors.contains("no request matched"), "\(result.errors)")
    }

    @Test func aFaultThatMatchesNoRequestGetsANoteWithTheRequests() async throws {
        let server = try Server()
        let url = "http://127.0.0.1:\(server.port)/x"
        let result = try await Command.run(
            "with", "--fault", "GET /api/x before-response reset", "--fault", "GET /x before-request respond 503", "--",
            "curl", "-sS", url + "?token=secret", url)
        let note = "slowlane: no request matched fault 1; the first requests: GET /x\n"
        #expect(result.errors.contains(note), "\(result.errors)")
    }

    @Test func theReportHasTheSummaryAndTheEvents() async throws {
        let server = try Server()
        let folder = try TemporaryFolder()
        let path = folder.url.appending(path: "out")
        let result = try await Command.run(
            "with", "--quiet", "--report", path.path(), "--", "curl", "-sS", "http://127.0.0.1:\(server.port)/x")
        #expect(result.status == 0 && result.errors.isEmpty, "\(result.errors)")
        let summary = try String(contentsOf: path.appending(path: "summary.json"), encoding: .utf8)
        #expect(summary.contains("\"connections\": 1") || summary.contains("\"connections\":1"), "\(summary)")
        let events = try String(contentsOf: path.appending(path: "events.jsonl"), encoding: .utf8)
        #expect(events.contains("\"exchange\"") && events.contains("/x"), "\(events)")
        let archive = try Data(contentsOf: path.appending(path: "traffic.har"))
        let log = try #require(
            (JSONSerialization.jsonObject(with: archive) as? [String: Any])?["log"] as? [String: Any])
        let entries = try #require(log["entries"] as? [[String: Any]])
        #expect(entries.count == 1)
        let request = try #require(entries.first?["request"] as? [String: Any])
        #expect(request["url"] as? String == "http://127.0.0.1:\(server.port)/x")
        let response = try #require(entries.first?["response"] as? [String: Any])
        #expect(response["status"] as? Int == 200 && response["bodySize"] as? Int == 3)
        let failed = try await Command.run("with", "--report", "/dev/null/x", "--", "true")
        #expect(failed.status == 69 && failed.errors.contains("--report"), "\(failed.errors)")
    }
}
