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

@Suite(.serialized, .timeLimit(.minutes(10))) struct CommandTests {
    /// Starts a proxy in front of a listening socket; gives its port.
    func proxy(_ arguments: String..., upstream: Int) async throws -> (command: Command, port: Int) {
        try await proxy(arguments, upstream: upstream)
    }

    func proxy(_ arguments: [String], upstream: Int) async throws -> (command: Command, port: Int) {
        let command = try Command(["proxy", "--upstream", "\(upstream)"] + arguments)
        let line = try await command.output.line(with: "listening on ")
        let port = try #require(line.firstMatch(of: /listening on 127\.0\.0\.1:(\d+)/)?.1)
        return (command, try #require(Int(port)))
    }

    @Test func commandsAreAnsweredOnceTheyAreInForce() async throws {
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
        #expect(try await command.output.line(with: "egde").contains("did you mean edge?"))
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
        // Read by the proxy, and on its way for some 400 ms more.
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
        #expect(
            result.errors == "error: cannot bind 127.0.0.1:\(port): address already in use (EADDRINUSE); "
                + "choose another port with --listen (port 0 selects a free one)\n")
        _ = listener
    }

    @Test func anUnresolvableUpstreamIsStatus69() async throws {
        let result = try await Command.run("proxy", "--upstream", "no.such.host.invalid:80")
        #expect(result.status == 69)
        #expect(result.errors.contains("cannot resolve the upstream 'no.such.host.invalid'"))
    }

    @Test func anUpstreamThatIsDownIsToldAndTheProxyGoesOn() async throws {
        let upstream = try TestSocket.quietPort()
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
        /// More clients than files: they wait, or are told so by a RST, and once there are files all are served.
        @Test(arguments: [[], ["--profile", "wifi"]])
        func withoutFilesItWaitsAndGoesOn(_ conditions: [String]) async throws {
            let (listener, upstream) = try TestSocket.listen()
            let (command, port) = try await proxy(conditions, upstream: upstream)
            Thread.detachNewThread {
                while let server = try? listener.accept() {
                    Thread.detachNewThread { if let bytes = try? server.receive() { try? server.send(bytes) } }
                }
            }
            @Sendable func ask() throws -> Bool {
                let client = try TestSocket.connect(port: port)
                try client.send([7])
                return try client.receive(exactly: 1) == [7]
            }
            #expect(try await blocking { try ask() })
            let files = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(command.pid)/fd").count
            // Odd and even, since a connection takes two.
            for spare in [6, 7] {
                let limits = "--nofile=\(files + spare):4096"
                let (status, _, complaint) = try runProgram("prlimit", ["--pid", "\(command.pid)", limits])
                #expect(status == 0, "\(complaint)")
                try await blocking { () throws -> Void in
                    let clients = try (0..<20).map { _ in try TestSocket.connect(port: port) }
                    let answered = clients.filter { client in
                        try? client.send([7])
                        return client.isReadable(within: 200) && (try? client.receive()) == [7]
                    }
                    #expect(answered.count < clients.count)
                }
                // Until theirs are closed there may be a file for a client and none for its dial.
                let isServed = try await blocking {
                    for _ in 0..<600 {
                        if (try? ask()) == true { return true }
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
        #expect(result.errors.contains("no profile is called '3gg'; did you mean 3g?"))
    }

    @Test func aTimelineIsFollowedStoppedAndMoved() async throws {
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
        _ = try await command.output.line(with: "error seek needs a time, as 'seek 20s'")
        command.type("resume\ntimeline subway\n")
        _ = try await command.output.line(with: "ok resume at 20.")
        _ = try await command.output.line(with: "ok timeline subway")
        command.type("clear\npause\n")
        _ = try await command.output.line(with: "error no timeline is followed")
        command.type("quit\n")
        #expect(await command.end() == 0)
    }

    @Test func aWrongProfileFileIsStatus65WithItsPlace() async throws {
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
    ]) func wrongArgumentsAreStatus64(_ arguments: [String]) async throws {
        let command = try Command(arguments)
        #expect(await command.end() == 64)
        #expect(!command.errors.text.isEmpty)
    }

    @Test func profilesAreListedShownAndChecked() async throws {
        let list = try await Command.run("profiles", "list")
        #expect(list.status == 0)
        // Two tables with a heading each: every file in profiles/ and timelines/.
        #expect(list.output.split(separator: "\n").count == 2 + 46 + 4)
        #expect(list.output.contains("subway"))
        let show = try await Command.run("profiles", "show", "3g")
        #expect(
            show.output.contains("down.rate") && show.output.contains("780 kbit/s") && show.output.contains("published")
        )
        #expect(show.output.contains("a full queue up adds 1818 ms"))
        let json = try await Command.run("profiles", "show", "edge", "--json")
        let object = try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any]
        #expect((object?["down"] as? [String: Any])?["rate_bps"] as? Int == 240_000)
    }

    @Test func helpHasExamples() async throws {
        for words in [["--help"], ["proxy", "--help"], ["measure", "--help"], ["profiles", "check", "--help"]] {
            let command = try Command(words)
            #expect(await command.end() == 0)
            #expect(command.output.text.contains("slowlane ") && command.output.text.contains("xample"))
        }
    }

    @Test func doctorFindsThisMachineFit() async throws {
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
        // Handshake and exchange: two round trips of 200 ms and some bytes; never earlier, whatever the machine does.
        #expect(try #require(words.last.flatMap { Double($0) }) >= 0.4)
        command.type("quit\n")
        #expect(await command.end() == 0)
    }

    #if os(Linux)
        /// Replies wait in the pipe and in a few places behind it; then commands are not read, and the proxy goes on.
        @Test func outputThatNobodyReadsHoldsTheCommandsUpAndNothingElse() async throws {
            let upstream = try TestSocket.listen()
            let process = try ChildProcess(
                Command.binary.path(),
                ["proxy", "--listen", "127.0.0.1:0", "--upstream", "127.0.0.1:\(upstream.port)"])
            // One line is read, and no other.
            let line = String(decoding: process.output.availableData, as: UTF8.self)
            let port = try #require(
                line.split(separator: " ").dropFirst(2).first?.split(separator: ":").last.flatMap { Int($0) }, "\(line)"
            )
            let before = try Self.residentBytes(process.pid)
            let commands = Flag()
            let input = process.input
            Thread.detachNewThread {
                // Held up for good, until the process ends: then the pipe has no reader any more, which is a signal elsewhere.
                var signals = sigset_t()
                sigemptyset(&signals)
                sigaddset(&signals, SIGPIPE)
                pthread_sigmask(SIG_BLOCK, &signals, nil)
                try? input.write(contentsOf: Data(String(repeating: "help\n", count: 100_000).utf8))
                commands.set()
            }
            var last = 0
            var quiet = 0
            // Until it has taken what it takes.
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

        /// Pages in memory, by /proc.
        private static func residentBytes(_ pid: pid_t) throws -> Int {
            let text = try String(contentsOfFile: "/proc/\(pid)/statm", encoding: .utf8)
            return (Int(text.split(separator: " ")[1]) ?? 0) * 4096
        }

        /// Processor time used.
        private static func processorTicks(_ pid: pid_t) throws -> Int {
            let text = try String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)
            let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(separator: " ")
            return (Int(fields[12]) ?? 0) + (Int(fields[13]) ?? 0)
        }
    #endif
}
