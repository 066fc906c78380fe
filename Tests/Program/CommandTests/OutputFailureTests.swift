#if os(Linux)
import Foundation
import TestSupport
import Testing

/// Standard output that cannot be written: a full disk (/dev/full), a closed descriptor, a reader that has gone.
@Suite(.tags(.tools), .serialized, .timeLimit(.minutes(10))) struct OutputFailureTests {
    private static let fullDisk =
        "error: cannot write standard output: no space left on device (ENOSPC)"

    /// Commands that need no server and no file.
    private static let commands: [[String]] = [
        ["--help"], ["--version"], ["help", "run"], ["proxy", "--help"], ["--generate-completion-script", "bash"],
        ["profiles"], ["profiles", "list", "--json"], ["profiles", "show", "3g"], ["profiles", "show", "subway"],
        ["scenarios"], ["scenarios", "list", "--json"], ["explain"], ["explain", "I1"], ["schema"],
        ["mutation-test", "--list"], ["doctor"], ["doctor", "--json"],
        ["model", "--profile", "edge", "--trials", "1"],
        ["model", "--profile", "edge", "--trials", "1", "--summary"],
        ["run", "validators", "--variant", "none"], ["run", "validators", "--variant", "none", "--json"],
        ["run", "validators", "--variant", "none", "--trace"], ["run", "validators", "--variant", "none", "--tap"],
        ["explore", "two-device-soak", "--seed", "3"], ["explore", "two-device-soak", "--seed", "3", "--json"],
        ["demo", "patterns"], ["demo", "patterns", "--at", "5"], ["proxy", "--upstream", "9", "--until-eof"],
    ]

    /// Runs a program with a redirection of the shell.
    private static func run(
        _ arguments: [String], _ redirection: String, binary: String = Command.binary.path()
    ) async throws -> Command.Result {
        let command = try Command(
            ["-c", "exec \"$0\" \"$@\" \(redirection)", binary] + arguments, binary: URL(filePath: "/bin/sh"))
        command.type("", andClose: true)
        let status = await command.end()
        return Command.Result(status: status, output: command.output.text, errors: command.errors.text)
    }

    private static func expectFullDisk(_ result: Command.Result, _ arguments: [String]) {
        let name = arguments.joined(separator: " ")
        #expect(result.status == 69, "\(name): \(result.errors)")
        let reports = result.errors.split(separator: "\n").filter { $0 == fullDisk }
        #expect(reports.count == 1, "\(name): \(result.errors)")
    }

    @Test(arguments: commands) func aFullDiskIsAnErrorOfEachCommand(_ arguments: [String]) async throws {
        Self.expectFullDisk(try await Self.run(arguments, "> /dev/full"), arguments)
    }

    @Test func aFullDiskIsAnErrorOfCommandsForFiles() async throws {
        let folder = try TemporaryFolder()
        let scenario = folder.path("unformatted.yaml")
        try Data("scenario:   x\nabout:   y\n".utf8).write(to: URL(filePath: scenario))
        Self.expectFullDisk(try await Self.run(["fmt", scenario], "> /dev/full"), ["fmt"])
        let broken = folder.path("broken.yaml")
        try Data("scenario: x\nnonsense: y\n".utf8).write(to: URL(filePath: broken))
        let linted = try await Self.run(["lint", broken], "> /dev/full")
        #expect(linted.status == 65 && linted.errors.contains(Self.fullDisk), "\(linted.errors)")
        let store = folder.path("store")
        for words in [["new", "a"], ["list"], ["list", "--json"], ["status"], ["conflicts"]] {
            let arguments = ["notes"] + words + ["--store", store]
            let result = try await Self.run(arguments, "> /dev/full")
            // Some print to standard error only.
            if result.status != 0 || result.errors.contains(Self.fullDisk) {
                Self.expectFullDisk(result, arguments)
            } else {
                let plain = try await Command.run(arguments)
                #expect(plain.output.isEmpty, "\(arguments) lost '\(plain.output)'")
            }
        }
    }

    @Test func aFullDiskIsAnErrorOfServersAndTheirClients() async throws {
        let server = try Command(["server", "--port", "0"])
        let line = try await server.output.line(with: "listening on ")
        let url = String(try #require(line.split(separator: " ").first { $0.hasPrefix("http://") }))
        for words in [
            "create web --upstream 127.0.0.1:9", "list", "list --json", "inspect web --json",
            "toxic add -t latency -a latency=1 web", "inspect web",
            "toxic update -n latency_downstream -a latency=2 web", "toxic remove -n latency_downstream web",
            "link web edge", "link web", "toggle web", "events", "events --json", "reset", "delete web",
        ] {
            let arguments = words.split(separator: " ").map(String.init) + ["--host", url]
            Self.expectFullDisk(try await Self.run(arguments, "> /dev/full"), arguments)
        }
        server.signal(SIGTERM)
        #expect(await server.end() == 0)
    }

    @Test(arguments: [
        ["server", "--port", "0"], ["notes-server", "--listen", "127.0.0.1:0"], ["proxy", "--upstream", "9"],
        ["demo", "--port", "0"],
    ]) func aServerWithoutOutputRunsAndFailsAtItsEnd(_ arguments: [String]) async throws {
        let server = try Command(
            ["-c", "exec \"$0\" \"$@\" > /dev/full", Command.binary.path()] + arguments,
            binary: URL(filePath: "/bin/sh"))
        _ = try await server.errors.line(with: Self.fullDisk)
        server.signal(SIGTERM)
        #expect(await server.end() == 69)
    }

    @Test func aFullDiskIsAnErrorOfToxiproxysPrograms() async throws {
        let folder = try TemporaryFolder()
        for (name, arguments) in [
            ("toxiproxy-cli", ["--help"]), ("toxiproxy-cli", ["--version"]), ("toxiproxy-server", ["-version"]),
            ("toxiproxy-server", ["-help"]),
        ] {
            let program = folder.path(name)
            try? FileManager.default.createSymbolicLink(
                atPath: program, withDestinationPath: Command.binary.path())
            let result = try await Self.run(arguments, "> /dev/full", binary: program)
            Self.expectFullDisk(result, [name] + arguments)
        }
    }

    @Test func aClosedStandardOutputIsAnError() async throws {
        let result = try await Self.run(["profiles"], ">&-")
        #expect(result.status == 69)
        #expect(result.errors == "error: cannot write standard output: bad file descriptor (EBADF)\n")
    }

    @Test func aClosedStandardInputIsAnEmptyOne() async throws {
        let result = try await Self.run(["proxy", "--upstream", "9", "--until-eof", "--quiet"], "<&-")
        #expect(result.status == 0, "\(result.errors)")
        #expect(result.output.hasPrefix("listening on "))
    }

    @Test(arguments: [["profiles"], ["run", "validators"], ["schema"], ["--help"]])
    func aReaderThatHasGoneIsNoError(_ arguments: [String]) async throws {
        let script = "\"$0\" \"$@\" | head -n 1; echo \"status ${PIPESTATUS[0]}\""
        let command = try Command(
            ["-c", script, Command.binary.path()] + arguments, binary: URL(filePath: "/bin/bash"))
        command.type("", andClose: true)
        _ = await command.end()
        let status = try await command.output.line(with: "status ")
        // 141 is the end by SIGPIPE.
        #expect(["status 0", "status 141"].contains(status))
        #expect(!command.errors.text.contains("error"), "\(command.errors.text)")
    }

    @Test func eventsEndWithTheirReader() async throws {
        let server = try Command(["server", "--port", "0"])
        let line = try await server.output.line(with: "listening on ")
        let url = String(try #require(line.split(separator: " ").first { $0.hasPrefix("http://") }))
        let script = "\"$0\" events --host \(url) --json | head -n 1; echo \"status ${PIPESTATUS[0]}\""
        let events = try Command(["-c", script, Command.binary.path()], binary: URL(filePath: "/bin/bash"))
        _ = try await events.output.line(with: "hello")
        for number in 0..<2 {
            let name = "p\(number)"
            #expect(try await Command.run("create", name, "--upstream", "9", "--host", url).status == 0)
        }
        #expect(try await events.output.line(with: "status") == "status 0")
        #expect(events.errors.text.isEmpty, "\(events.errors.text)")
        server.signal(SIGTERM)
        #expect(await server.end() == 0)
    }
}
#endif
