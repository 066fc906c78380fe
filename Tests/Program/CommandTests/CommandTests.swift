import Foundation
import TestSupport
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

@Suite(.tags(.commands), .serialized, .timeLimit(.minutes(10))) struct CommandTests {
    /// Starts a proxy in front of a listening socket and returns its port.
    func proxy(_ arguments: String..., upstream: Int) async throws -> (command: Command, port: Int) {
        try await proxy(arguments, upstream: upstream)
    }

    func proxy(_ arguments: [String], upstream: Int) async throws -> (command: Command, port: Int) {
        let command = try Command(["proxy", "--upstream", "\(upstream)"] + arguments)
        let line = try await command.output.line(with: "listening on ")
        let port = try #require(line.firstMatch(of: /listening on 127\.0\.0\.1:(\d+)/)?.1)
        return (command, try #require(Int(port)))
    }

    @Test(arguments: [
        ("nonsense", "error unknown command 'nonsense'"), ("# a comment", "error unknown command '# a comment'"),
        ("x\\377y", "error the line is not valid UTF-8"), ("profile 3g\\0", "error the line contains a control"),
        ("\\001", "error the line contains a control"), ("\\033[A", "error the line contains a control"),
        ("$(head -c 5000 /dev/zero | tr '\\0' a)", "error the line is longer than 4096 bytes"),
        ("profile $(head -c 4080 /dev/zero | tr '\\0' a)", "error "), ("fault", "error fault needs a rule"),
        ("fault GET * committed", "error "), ("\\342\\200\\250", "error "), ("status\\tx", "error "),
        ("  STATUS  ", "ok profile none"), ("help\\r", "ok commands: "), ("profile\\t3g", "ok profile 3g"),
    ]) func everyLineGetsOneReply(_ line: String, reply: String) async throws {
        let script = "printf \"\(line)\\n\\n   \\nfaults\\n\(line)\\nquit\" | \"$0\" proxy --upstream 9 --quiet"
        let command = try Command(["-c", script, Command.binary.path()], binary: URL(filePath: "/bin/bash"))
        #expect(await command.end() == 0)
        let replies = command.output.text.split(separator: "\n", omittingEmptySubsequences: false).dropFirst()
            .dropLast()
        #expect(replies.count == 4, "\(replies)")
        #expect(replies.first?.hasPrefix(reply) == true && replies.first == replies.dropFirst(2).first, "\(replies)")
        #expect(replies.dropFirst().first == "ok faults: none" && replies.last == "ok quit", "\(replies)")
    }

    @Test func anUnknownCommandGetsEachKnownOneOnce() async throws {
        let (command, _) = try await proxy("--until-eof", upstream: 9)
        command.type("nonsense\n", andClose: true)
        let reply = try await command.output.line(with: "error unknown command")
        let names = try #require(reply.firstMatch(of: /\((.*)\)/)).1.split(separator: ", ")
        #expect(names.count == Set(names).count && names.contains("fault") && names.contains("faults"), "\(names)")
        #expect(await command.end() == 0)
    }

    @Test func repliesComeWhenCommandsHaveTakenEffect() async throws {
        let (listener, upstream) = try TestSocket.listen()
        let (command, port) = try await proxy(upstream: upstream)
        let (client, server) = try await blocking {
            let client = try TestSocket.connect(port: port)
            return (client, try listener.accept())
        }
        command.type("profile 100-loss\n")
        _ = try await command.output.line(with: "ok profile 100-loss")
        try await blocking { try client.send(Array("hello".utf8)) }
        #expect(!server.isReadable(within: 200))
        command.type("status\n")
        #expect(try await command.output.line(with: "(stalled)").contains("new connections "))

        command.type("profile edge\n")
        #expect(
            try await command.output.line(with: "ok profile edge").contains("ok profile edge: down 240 kbit/s 400 ms"))
        command.type("profile egde\n")
        #expect(try await command.output.line(with: "egde").contains("did you mean 'edge'?"))
        command.type("profile very-bad-network\n")
        #expect(try await command.output.line(with: "very-bad").contains("10 % loss"))
        command.type("profile edge\n")
        command.type("stauts\n")
        #expect(try await command.output.line(with: "stauts").contains("did you mean 'status'?"))
        command.type("status\n")
        #expect(try await command.output.line(with: "ok profile edge,").contains("1 open of 1 accepted"))
        command.type("clear\n")
        _ = try await command.output.line(with: "ok clear")
        let received = try await blocking { try server.receive(exactly: 5) }
        #expect(received == Array("hello".utf8))
        command.type("quit\n")
        #expect(await command.end() == 0)
        _ = client
    }

    @Test(arguments: [SIGTERM, SIGINT]) func aSignalStopsItGracefully(_ signal: Int32) async throws {
        let (listener, upstream) = try TestSocket.listen()
        let (command, port) = try await proxy("--profile", "3g", upstream: upstream)
        let (client, server) = try await blocking {
            let client = try TestSocket.connect(port: port)
            try client.send(Array("hello".utf8))
            return (client, try listener.accept())
        }
        // The proxy has read the data; it stays in flight for another 400 ms.
        while !command.output.text.contains(" 5 B held") {
            command.type("status\n")
            try await Task.sleep(for: .milliseconds(2))
        }
        command.signal(signal)
        let received = try await blocking { try server.receiveToEnd() }
        #expect(received == Array("hello".utf8))
        #expect(await command.end() == 0)
        _ = client
    }

    @Test func theEndOfStandardInputDoesNotStopIt() async throws {
        let (listener, upstream) = try TestSocket.listen()
        let (command, port) = try await proxy(upstream: upstream)
        command.type("", andClose: true)
        try await blocking {
            let client = try TestSocket.connect(port: port)
            try client.send([1])
            let server = try listener.accept()
            #expect(try server.receive(exactly: 1) == [1])
        }
        command.signal(SIGTERM)
        #expect(await command.end() == 0)
    }

    @Test func aTakenPortIsStatus69() async throws {
        let (listener, port) = try TestSocket.listen()
        let result = try await Command.run("proxy", "--listen", "\(port)", "--upstream", "1")
        #expect(result.status == 69)
        #expect(result.errors.hasPrefix("error: cannot ") && result.errors.contains("127.0.0.1:\(port)"))
        #expect(result.errors.contains("address already in use") && result.errors.contains("--listen"))
        _ = listener
    }

    @Test func anUnresolvableUpstreamIsStatus69() async throws {
        let result = try await Command.run("proxy", "--upstream", "no.such.host.invalid:80")
        #expect(result.status == 69)
        #expect(result.errors.contains("cannot resolve the upstream 'no.such.host.invalid'"))
    }

    @Test func anUnreachableUpstreamIsReportedAndTheProxyContinues() async throws {
        let upstream = try TestSocket.unusedPort()
        let (command, port) = try await proxy(upstream: upstream)
        try await blocking {
            let client = try TestSocket.connect(port: port)
            #expect(throws: TestSocket.Failure(call: "recv", code: ECONNRESET)) { try client.receive() }
        }
        let line = try await command.errors.line(with: "upstream")
        #expect(line.contains("upstream 127.0.0.1:\(upstream): connection refused (ECONNREFUSED); start it"))
        command.type("quit\n")
        #expect(await command.end() == 0)
    }

    #if os(Linux)
    /// Clients beyond the limit of open files wait or get a RST; when files are free again, new ones are served.
    @Test(arguments: [[], ["--profile", "wifi"]])
    func atTheFileLimitClientsWaitAndTheProxyRecovers(_ conditions: [String]) async throws {
        let (listener, upstream) = try TestSocket.listen()
        let (command, port) = try await proxy(conditions, upstream: upstream)
        Thread.detachNewThread {
            while let server = try? listener.accept() {
                Thread.detachNewThread { if let bytes = try? server.receive() { try? server.send(bytes) } }
            }
        }
        @Sendable func exchange() throws -> Bool {
            let client = try TestSocket.connect(port: port)
            try client.send([7])
            return try client.receive(exactly: 1) == [7]
        }
        #expect(try await blocking { try exchange() })
        let files = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(command.pid)/fd").count
        // An odd and an even number, since a connection needs two files.
        for spare in [6, 7] {
            let limits = "--nofile=\(files + spare):4096"
            let (status, _, errors) = try runProgram("prlimit", ["--pid", "\(command.pid)", limits])
            #expect(status == 0, "\(errors)")
            try await blocking { () throws -> Void in
                let clients = try (0..<20).map { _ in try TestSocket.connect(port: port) }
                for client in clients { try? client.send([7]) }
                var waits = 10
                let answered = clients.filter { client in
                    while !client.isReadable(within: waits > 0 ? 100 : 0) {
                        guard waits > 0 else { return false }
                        waits -= 1
                    }
                    return (try? client.receive()) == [7]
                }
                #expect(answered.count < clients.count)
            }
            // Until those connections are closed, a client may get a file while its upstream connection gets none.
            let isServed = try await blocking {
                for _ in 0..<600 {
                    if (try? exchange()) == true { return true }
                    usleep(100_000)
                }
                return false
            }
            #expect(isServed)
        }
        _ = try await command.errors.line(with: "too many open files")
        command.type("quit\n")
        #expect(await command.end() == 0)
    }
    #endif

    @Test func anUnknownProfileIsAUsageErrorWithTheNearestNames() async throws {
        let result = try await Command.run("proxy", "--upstream", "1", "--profile", "3gg")
        #expect(result.status == 64)
        #expect(result.errors.contains("no profile is called '3gg'; did you mean '3g'?"))
    }

    @Test func aTimelineRunsPausesAndSeeks() async throws {
        let (_, upstream) = try TestSocket.listen()
        let (command, _) = try await proxy("--timeline", "0s: edge, 20s: 100-loss, 30s: 3g", upstream: upstream)
        #expect(command.output.text.contains("timeline inline"))
        command.type("status\n")
        #expect(!(try await command.output.line(with: "ok profile inline").contains("stalled")))
        command.type("seek 20s\n")
        _ = try await command.output.line(with: "ok seek at 20.0 s")
        command.type("pause\n")
        _ = try await command.output.line(with: "ok pause at 20.")
        command.type("status\n")
        _ = try await command.output.line(with: "ok profile inline (stalled)")
        command.type("seek soon\n")
        _ = try await command.output.line(with: "error seek needs a time, such as 'seek 20s'")
        command.type("resume\ntimeline subway\n")
        _ = try await command.output.line(with: "ok resume at 20.")
        _ = try await command.output.line(with: "ok timeline subway")
        command.type("clear\npause\n")
        _ = try await command.output.line(with: "error no timeline is running")
        command.type("quit\n")
        #expect(await command.end() == 0)
    }

    @Test func anInvalidProfileFileIsStatus65WithItsSourceLocation() async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).yaml")
        try "profile: 1\nname: A\ndown: { rate: fast }\nup: {}\n".write(to: file, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(at: file) }
        for arguments in [["profiles", "check", file.path()], ["proxy", "--upstream", "1", "--profile", file.path()]] {
            let command = try Command(arguments)
            #expect(await command.end() == 65)
            #expect(
                command.errors.text.contains("\(file.path()):3:15: 'down.rate': 'fast' is not a number with a unit"))
        }
    }

    @Test(arguments: [
        ["proxy"], ["proxy", "--upstream", "nonsense"], ["proxy", "--upstream", "1", "--listen", "x:y"],
        ["proxy", "--upstream", "1", "--max-connections", "0"], ["proxy", "--upstream", "1", "--grace", "nan"],
        ["proxy", "--upstream", "9000", "--listen", "0.0.0.0:9000"],
        ["no-such-command"], ["measure", "100-loss"],
        ["toxic", "add", "-t", "latency", "--toxicity", "1.5", "p"],
    ]) func wrongArgumentsAreStatus64(_ arguments: [String]) async throws {
        let command = try Command(arguments)
        #expect(await command.end() == 64)
        #expect(!command.errors.text.isEmpty)
    }

    @Test func profilesAreListedShownAndChecked() async throws {
        let list = try await Command.run("profiles", "list")
        #expect(list.status == 0)
        // Two tables with a header each: all files of profiles/ and timelines/.
        let lines = list.output.split(separator: "\n")
        #expect(lines.count == 58, "two headers, 52 profiles and 4 timelines")
        #expect(list.output.contains("subway"))
        let show = try await Command.run("profiles", "show", "3g")
        #expect(
            show.output.contains("down.rate") && show.output.contains("780 kbit/s") && show.output.contains("published")
        )
        #expect(show.output.contains("delay of a full queue up: 1818 ms"))
        let json = try await Command.run("profiles", "show", "edge", "--json")
        let object = try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any]
        #expect((object?["down"] as? [String: Any])?["rate_bps"] as? Int == 240_000)
    }

    @Test func doctorPassesOnThisMachine() async throws {
        let result = try await Command.run("doctor")
        #expect(result.status == 0)
        #expect(result.output.contains("can listen on 127.0.0.1"))
    }

    @Test func curlSeesTheDelay() async throws {
        let (listener, upstream) = try TestSocket.listen()
        let (command, port) = try await proxy("--profile", "3g", upstream: upstream)
        let curl = try ChildProcess("curl", ["-s", "-w", " %{time_total}", "http://127.0.0.1:\(port)/"])
        try await blocking {
            let server = try listener.accept()
            _ = try server.receive()
            try server.send(Array("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello".utf8))
            server.finish()
            #expect(try server.receiveToEnd().isEmpty)
        }
        let words = try String(decoding: curl.output.readToEnd() ?? Data(), as: UTF8.self).split(separator: " ")
        #expect(words.first == "hello")
        // The handshake and the exchange take two round trips of 200 ms; a busy machine only makes it longer.
        #expect(try #require(words.last.flatMap { Double($0) }) >= 0.4)
        command.type("quit\n")
        #expect(await command.end() == 0)
    }

    #if os(Linux)
    /// When replies are not read, the pipe fills and commands are no longer read; the proxy continues.
    @Test func unreadOutputDelaysCommandsAndNothingElse() async throws {
        let upstream = try TestSocket.listen()
        let process = try ChildProcess(
            Command.binary.path(),
            ["proxy", "--listen", "127.0.0.1:0", "--upstream", "127.0.0.1:\(upstream.port)"])
        // Only the first line is read.
        let line = String(decoding: process.output.availableData, as: UTF8.self)
        let port = try #require(
            line.split(separator: " ").dropFirst(2).first?.split(separator: ":").last.flatMap { Int($0) }, "\(line)"
        )
        let before = try Self.residentBytes(process.pid)
        let commands = Flag()
        let input = process.input
        Thread.detachNewThread {
            // Blocks until the process ends; the write to the closed pipe then raises SIGPIPE.
            var signals = sigset_t()
            sigemptyset(&signals)
            sigaddset(&signals, SIGPIPE)
            pthread_sigmask(SIG_BLOCK, &signals, nil)
            try? input.write(contentsOf: Data(String(repeating: "help\n", count: 100_000).utf8))
            commands.set()
        }
        var last = 0
        var quiet = 0
        // Waits until the process no longer reads.
        while quiet < 10 {
            try await Task.sleep(for: .milliseconds(100))
            let ticks = try Self.processorTicks(process.pid)
            quiet = ticks == last ? quiet + 1 : 0
            last = ticks
        }
        let growth = try Self.residentBytes(process.pid) - before
        #expect(growth < 8 << 20, "grew by \(growth) bytes")
        #expect(!commands.isSet)
        try await blocking {
            let client = try TestSocket.connect(port: port)
            let server = try upstream.socket.accept()
            try client.send([1, 2])
            #expect(try server.receive(exactly: 2) == [1, 2])
        }
        process.signal(SIGTERM)
        #expect(process.wait() == 0)
    }

    /// Returns the resident memory from /proc.
    private static func residentBytes(_ pid: pid_t) throws -> Int {
        let text = try String(contentsOfFile: "/proc/\(pid)/statm", encoding: .utf8)
        return (Int(text.split(separator: " ")[1]) ?? 0) * 4096
    }

    /// Returns the processor time from /proc in clock ticks.
    private static func processorTicks(_ pid: pid_t) throws -> Int {
        let text = try String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)
        let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(separator: " ")
        return (Int(fields[12]) ?? 0) + (Int(fields[13]) ?? 0)
    }
    #endif
}
