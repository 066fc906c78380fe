import Foundation
import TestSupport
import Testing
import Wire

/// The program under the names of Toxiproxy's server, and its environment variables.
@Suite(.tags(.tools), .timeLimit(.minutes(10))) struct ToxiproxyServerTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// Starts the program under a name, with environment variables.
    private func start(_ name: String, _ arguments: [String], _ variables: [String: String] = [:]) throws -> Command {
        let link = folder.url.appending(path: name)
        if !FileManager.default.fileExists(atPath: link.path()) {
            try FileManager.default.createSymbolicLink(at: link, withDestinationURL: Command.binary)
        }
        return try Command(
            variables.map { "\($0)=\($1)" } + [link.path()] + arguments, binary: URL(filePath: "/usr/bin/env"))
    }

    /// Returns the log line with `message`.
    private func line(_ message: String, _ server: Command) async throws -> JSONObject {
        let line = try await server.output.line(with: "\"message\":\"\(message)\"")
        return try #require(JSONText.parse(Array(line.utf8))?.object)
    }

    private func end(_ server: Command) async {
        server.signal(SIGTERM)
        #expect(await server.end() == 0)
    }

    @Test(arguments: ["toxiproxy", "toxiproxy-server"])
    func onEveryInterfaceItNeedsNoTokenAndAcceptsAnyHost(_ name: String) async throws {
        let server = try start(name, ["-host=0.0.0.0", "-port=0", "-seed=7"])
        let started = try await line("Starting Toxiproxy HTTP server", server)
        #expect(started["level"] == .text("info") && started["seed"] == .text("7"))
        let address = try #require(started["address"]?.text)
        let port = try #require(address.split(separator: ":").last.flatMap { Int($0) })
        let warning = try await server.output.line(with: "\"level\":\"warn\"")
        #expect(warning.contains("can open ports and connections"))
        for host in ["toxiproxy:8474", "anything.example", "10.1.2.3"] {
            let response = try await call(port, "GET /version", host)
            #expect(response.status == 200 && response.body == "{\"version\": \"2.12.0\"}\n", "\(host)")
        }
        // Requests of a DNS-rebinding page are refused, also on Slowlane's routes.
        for path in ["/proxies", "/slowlane/v1/version"] {
            let response = try await call(port, "GET \(path)", "rebound.example", "User-Agent: Mozilla/5.0\r\n")
            #expect(response.status == 403, "\(path)")
        }
        await end(server)
        #expect(server.errors.text.isEmpty)
    }

    private func call(_ port: Int, _ line: String, _ host: String, _ more: String = "") async throws -> HTTPReply {
        try await blocking {
            try HTTPPeer(port: port).raw("\(line) HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\(more)\r\n")
        }
    }

    @Test func itAcceptsTheFlagsOfTheOriginal() async throws {
        func run(_ arguments: String...) async throws -> (status: Int32, output: String, errors: String) {
            let command = try start("toxiproxy-server", arguments)
            return (await command.end(), command.output.text, command.errors.text)
        }
        let version = try await run("-version")
        #expect(version.status == 0 && version.output == "toxiproxy-server version 2.12.0\n")
        let unknown = try await run("-nonsense")
        #expect(unknown.status == 2 && unknown.errors.contains("-nonsense") && unknown.errors.contains("Usage"))
        let notABool = try await run("-version=maybe")
        #expect(notABool.status == 2 && notABool.errors.contains("invalid boolean value \"maybe\" for -version"))
        #expect(try await run("--help").status == 0)
        let server = try start(
            "toxiproxy-server",
            ["-host", "localhost", "--port=0", "-seed=7", "-proxy-metrics=true", "-config", "/none.json", "stray"])
        let started = try await line("Starting Toxiproxy HTTP server", server)
        #expect(started["address"]?.text?.hasPrefix("127.0.0.1:") == true && started["seed"] == .text("7"))
        #expect(try await server.output.line(with: "/none.json").contains("\"level\":\"error\""))
        await end(server)
    }

    /// The lines and fields of Toxiproxy 2.12.
    @Test func itLogsTheProxiesOfItsConfigurationAsTheOriginalDoes() async throws {
        let file = folder.url.appending(path: "proxies.json")
        let proxies =
            #"{"name":"b","listen":"127.0.0.1:0","upstream":"127.0.0.1:2"},{"name":"c","upstream":"127.0.0.1:3","enabled":false}"#
        try Data(#"[{"name":"a","listen":"127.0.0.1:0","upstream":"127.0.0.1:1"},\#(proxies)]"#.utf8).write(to: file)
        let server = try start("toxiproxy-server", ["-port=0", "-config", file.path()])
        _ = try await line("Starting Toxiproxy HTTP server", server)
        let lines = server.output.text.split(separator: "\n").compactMap { JSONText.parse(Array($0.utf8))?.object }
        let messages = lines.compactMap { $0["message"]?.text }
        #expect(
            messages == [
                "Starting Toxiproxy", "Started proxy", "Started proxy", "Populated proxies from file",
                "Starting Toxiproxy HTTP server",
            ])
        for (index, name) in [(1, "a"), (2, "b")] {
            #expect(lines[index]["level"] == .text("info") && lines[index]["name"] == .text(name))
            #expect(lines[index]["upstream"] == .text("127.0.0.1:\(index)"))
            #expect(lines[index]["listen"]?.text?.hasPrefix("127.0.0.1:") == true)
        }
        #expect(lines[3]["proxies"] == .integer(3) && lines[3]["level"] == .text("info"))
        await end(server)
        try Data("[{".utf8).write(to: file)
        let broken = try start("toxiproxy-server", ["-port=0", "-config", file.path()])
        let failure = try await line("Failed to populate proxies from file", broken)
        #expect(failure["level"] == .text("error") && failure["error"]?.text?.isEmpty == false)
        await end(broken)
        let missing = try start("toxiproxy-server", ["-port=0", "-config", "/none.json"])
        let unread = try await line("Error reading config file", missing)
        #expect(unread["level"] == .text("error") && unread["config"] == .text("/none.json"))
        await end(missing)
    }

    @Test func atLogLevelErrorNothingIsPrinted() async throws {
        let port = try TestSocket.unusedPort()
        for (name, arguments) in [("toxiproxy-server", [String]()), ("slowlane", ["server"])] {
            let server = try start(name, arguments + ["--port", "\(port)"], ["LOG_LEVEL": "error"])
            try await waitForServer(port)
            await end(server)
            #expect(server.output.text.isEmpty && server.errors.text.isEmpty, "\(name)")
        }
        let server = try start("toxiproxy-server", ["-port", "0"], ["LOG_LEVEL": "loud"])
        _ = try await line("Starting Toxiproxy HTTP server", server)
        #expect(server.output.text.contains("unknown LOG_LEVEL value"))
        await end(server)
    }

    /// Waits until a server responds on a port.
    private func waitForServer(_ port: Int) async throws {
        let deadline = ContinuousClock.now + .seconds(60)
        while (try? await call(port, "GET /version", "localhost"))?.status != 200 {
            try #require(ContinuousClock.now < deadline, "no server within a minute")
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    @Test func theEnvironmentAllowsRequestsWithoutTokenAndNamesHosts() async throws {
        let refused = try start("slowlane", ["server", "--host", "0.0.0.0", "--port", "0"], ["SLOWLANE_NO_TOKEN": "0"])
        #expect(await refused.end() == 64 && refused.errors.text.contains("SLOWLANE_NO_TOKEN"))
        let server = try start(
            "slowlane", ["server", "--host", "0.0.0.0", "--port", "0"],
            ["SLOWLANE_NO_TOKEN": "1", "SLOWLANE_ALLOW_HOST": "one,two"])
        let line = try await server.output.line(with: "listening on ")
        let port = try #require(line.split(separator: " ")[2].split(separator: ":").last.flatMap { Int($0) })
        for (host, status) in [("one", 200), ("two:8474", 200), ("three", 403)] {
            #expect(try await call(port, "GET /version", host).status == status, "\(host)")
        }
        await end(server)
        let wrong = try start("slowlane", ["server", "--port", "0"], ["SLOWLANE_NO_TOKEN": "perhaps"])
        #expect(await wrong.end() == 64 && wrong.errors.text.contains("SLOWLANE_NO_TOKEN"))
    }

    /// "Every interface" includes IPv4 and IPv6 in each of its spellings.
    @Test(arguments: ["", "::", "[::]"]) func everyInterfaceListensOnIPv4AndIPv6(_ host: String) async throws {
        let server = try start("slowlane", ["server", "--host", host, "--port", "0", "--no-token"])
        let line = try await server.output.line(with: "listening on ")
        let port = try #require(line.split(separator: " ")[2].split(separator: ":").last.flatMap { Int($0) })
        #expect(try await call(port, "GET /version", "localhost").status == 200)
        if line.contains("[::]") {
            let result = try runProgram(
                "python3",
                [
                    "-c",
                    "import urllib.request as u; print(u.urlopen('http://[::1]:\(port)/version').read().decode())",
                ])
            #expect(result.output.contains("2.12.0"), "\(result.errors)")
        }
        await end(server)
    }
}
