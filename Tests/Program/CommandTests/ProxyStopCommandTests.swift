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

extension CommandTests {
    /// Signals to `slowlane proxy` during transfers, and the open files that its replies leave.
    @Suite(.serialized) struct ProxyStopCommandTests {
        private static let bytes = [UInt8](repeating: 7, count: 5000)
        /// 5000 bytes take 2.5 s.
        private static let slow = ["--netem-up", "rate 16kbit", "--netem-down", "rate 16kbit"]

        /// Runs `body` with a download or an upload through a slow proxy.
        private static func withTransfer(
            _ arguments: [String], isDownload: Bool,
            _ body: (Command, _ port: Int, _ sender: TestSocket, _ receiver: TestSocket) async throws -> Void
        ) async throws {
            let (listener, upstream) = try TestSocket.listen()
            let (command, port) = try await CommandTests().proxy(slow + arguments, upstream: upstream)
            let (client, server) = try await blocking {
                let client = try TestSocket.connect(port: port)
                return (client, try listener.accept())
            }
            try await body(command, port, isDownload ? server : client, isDownload ? client : server)
        }

        @Test(arguments: [true, false]) func aSlowTransferIsCompletedAfterSIGTERM(isDownload: Bool) async throws {
            try await Self.withTransfer(["--grace", "60"], isDownload: isDownload) { command, port, sender, receiver in
                try await blocking { try sender.send(Self.bytes.prefix(4096)) }
                async let received = blocking {
                    // The server responds to an upload with its FIN; the client of a download keeps its socket open.
                    defer { if !isDownload { receiver.finish() } }
                    return try receiver.receiveToEnd()
                }
                command.signal(SIGTERM)
                try await blocking { try TestSocket.waitForRefusal(port: port) }
                try await blocking {
                    try sender.send(Self.bytes.dropFirst(4096))
                    sender.finish()
                }
                #expect(try await received.count == 5000)
                #expect(await command.end() == 0 && command.errors.text.hasSuffix("stopped\n"))
            }
        }

        @Test(arguments: [true, false]) func aTransferThatOutlastsTheGracePeriodIsReset(isDownload: Bool) async throws {
            try await Self.withTransfer(["--grace", "1"], isDownload: isDownload) { command, _, sender, receiver in
                try await blocking { try sender.send(Self.bytes) }
                command.signal(SIGTERM)
                #expect(try await blocking { receiver.receiveToFailure() }.code == ECONNRESET)
                #expect(await command.end() == 0 && command.errors.text.contains("dropped"))
            }
        }

        /// The kernel would close the sockets of the ended process with a FIN.
        @Test(arguments: [true, false]) func aSecondSignalResetsOpenTransfers(isDownload: Bool) async throws {
            try await Self.withTransfer(["--grace", "60"], isDownload: isDownload) { command, port, sender, receiver in
                try await blocking {
                    try sender.send(Self.bytes)
                    _ = try receiver.receive(exactly: 1)
                }
                command.signal(SIGTERM)
                try await blocking { try TestSocket.waitForRefusal(port: port) }
                command.signal(SIGTERM)
                let (count, code) = try await blocking { receiver.receiveToFailure() }
                #expect(code == ECONNRESET && count < 5000)
                #expect(await command.end() == 130)
            }
        }

        #if os(Linux)
        @Test func closingRepliesLeaveNoFileOpen() async throws {
            let (listener, upstream) = try TestSocket.listen()
            let (command, port) = try await CommandTests().proxy(
                "--fault", "GET times unlimited before-request respond 503", upstream: upstream)
            func files() throws -> Int {
                try FileManager.default.contentsOfDirectory(atPath: "/proc/\(command.pid)/fd").count
            }
            let before = try files()
            let clients = try await blocking {
                try (0..<100).map { number in
                    let client = try TestSocket.connect(port: port)
                    let request =
                        number.isMultiple(of: 2)
                        ? "GET / HTTP/1.0\r\n\r\n" : "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
                    try client.send(Array(request.utf8))
                    #expect(
                        try client.receiveToEnd().starts(with: Array("HTTP/1.1 503 Service Unavailable\r\n".utf8)))
                    return client
                }
            }
            for client in clients { client.finish() }
            let deadline = ContinuousClock.now + .seconds(60)
            while try files() > before + 10, ContinuousClock.now < deadline {
                try await Task.sleep(for: .milliseconds(20))
            }
            #expect(try files() <= before + 10, "100 connections take 200 files")
            command.signal(SIGTERM)
            #expect(await command.end() == 0)
            withExtendedLifetime(listener) {}
        }
        #endif
    }

    /// Options that are given twice, and a port that is taken.
    @Suite struct OptionTests {
        @Test(arguments: [
            (["proxy", "--upstream", "8000", "--upstream", "8001"], "--upstream", "slowlane proxy"),
            (["proxy", "--upstream=8000", "--upstream", "8001"], "--upstream", "slowlane proxy"),
            (["proxy", "--upstream", "8000", "--seed", "1", "--seed", "1"], "--seed", "slowlane proxy"),
            (["server", "--port", "0", "--port=0"], "--port", "slowlane server"),
            (["toxic", "add", "-t", "latency", "-t", "noop", "x"], "-t", "slowlane toxic add"),
        ]) func anOptionWithOneValueIsRefusedTwice(_ arguments: [String], _ option: String, _ command: String)
            async throws
        {
            let result = try await Command.run(arguments)
            #expect(result.status == 64)
            let message = "error: \(option) is given twice; '\(command)' takes one"
            // A proxy for each of several servers is a job for another command.
            let hint =
                option == "--upstream"
                ? ", because a proxy has one upstream; for several, start 'slowlane server'" : "\n"
            #expect(result.errors.hasPrefix(message + hint), "\(result.errors)")
        }

        @Test func repeatableOptionsMayBeGivenTwice() async throws {
            let command = try Command([
                "proxy", "--upstream", "8000", "--fault", "GET before-response reset", "--fault",
                "PUT before-response reset", "-q",
                "-q",
            ])
            _ = try await command.output.line(with: "listening on ")
            command.signal(SIGTERM)
            #expect(await command.end() == 0)
        }

        @Test func aSecondDemoNamesTheFirstAndTheRemedy() async throws {
            let port = try TestSocket.unusedPort()
            let first = try Command(["demo", "--port", "\(port)"])
            _ = try await first.output.line(with: "open it in a browser")
            let second = try await Command.run("demo", "--port", "\(port)")
            #expect(second.status == 69)
            #expect(
                second.errors
                    == "error: cannot bind 127.0.0.1:\(port): address already in use (EADDRINUSE); if another "
                    + "'slowlane demo' runs, open http://127.0.0.1:\(port)/ or stop it; otherwise choose another port with "
                    + "--port, such as --port 0\n")
            first.signal(SIGTERM)
            #expect(await first.end() == 0)
        }
    }
}
