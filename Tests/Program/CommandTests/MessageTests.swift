import Foundation
import TestSupport
import Testing

/// The messages of commands: what failed, why, and advice that the command can follow.
@Suite(.tags(.commands), .timeLimit(.minutes(10))) struct MessageTests {
    @Test func adviceForATakenPortNamesTheOptionOfTheCommand() async throws {
        let (listener, port) = try TestSocket.listen()
        let proxy = try await Command.run("proxy", "--upstream", "9", "--dashboard", "\(port)", "--until-eof")
        #expect(proxy.status == 69)
        #expect(proxy.errors.contains("choose another port with --dashboard"), "\(proxy.errors)")
        #expect(!proxy.errors.contains("--port"))
        let server = try await Command.run("server", "--port", "\(port)")
        #expect(server.status == 69)
        #expect(server.errors.hasSuffix("(EADDRINUSE); choose another port with --port\n"), "\(server.errors)")
        let listening = try await Command.run("proxy", "--upstream", "9", "--listen", "\(port)")
        #expect(listening.errors.contains("choose another port with --listen"), "\(listening.errors)")
        _ = listener
    }

    /// RFC 5737 reserves 192.0.2.1 for documentation.
    @Test(arguments: [
        (["proxy", "--upstream", "9", "--listen", "192.0.2.1:9000"], "--listen"),
        (["server", "--host", "192.0.2.1", "--port", "9000", "--no-token"], "--host"),
        (["notes-server", "--listen", "192.0.2.1:9000", "--user", "ada:secret"], "--listen"),
    ]) func anAddressOfAnotherMachineIsNoTakenPort(_ arguments: [String], option: String) async throws {
        let result = try await Command.run(arguments)
        #expect(result.status == 69)
        #expect(
            result.errors.contains("(EADDRNOTAVAIL); choose an address of this machine with \(option)"),
            "\(result.errors)")
        #expect(!result.errors.contains("another port"))
    }

    @Test(arguments: [
        ["proxy", "--upstream", "9", "--seed"], ["server", "--seed"], ["run", "validators", "--seed"],
        ["shrink", "validators", "--seed"], ["model", "--profile", "3g", "--seed"],
        ["explore", "validators", "--seed"],
    ]) func aNegativeSeedIsAnErrorWithTheRange(_ arguments: [String]) async throws {
        // All commands have the same reader.
        for seed in arguments[0] == "run" ? ["-1", "18446744073709551616", "x"] : ["-1"] {
            let result = try await Command.run(arguments + [seed])
            #expect(result.status == 64)
            #expect(result.errors.hasPrefix("error: "), "\(result.errors)")
            #expect(
                result.errors.contains("'\(seed)'")
                    && result.errors.contains("a whole number from 0 to 18446744073709551615"), "\(result.errors)")
        }
    }

    @Test(arguments: [
        ("http://localhost:8000/path", "localhost:8000"), ("wss://example.org", "example.org:443"),
        ("http://example.org/", "example.org:80"), ("redis://cache", "HOST:PORT"), ("://", "HOST:PORT"),
    ]) func aURLAsUpstreamIsRefusedWithTheAddress(_ url: String, address: String) async throws {
        for arguments in [["proxy", "--upstream", url], ["create", "web", "--upstream", url]] {
            let result = try await Command.run(arguments)
            #expect(result.status == 64)
            #expect(
                result.errors.contains("--upstream '\(url)' is a URL; give the address only: --upstream \(address)\n"),
                "\(result.errors)")
        }
    }

    @Test(arguments: [
        ("http://localhost:8000/notes/?q=1", "The path belongs to the client's URL: http://HOST:PORT/notes/?q=1, with"),
        ("wss://example.org:8443", "For TLS between the proxy and the server: --upstream https://example.org:8443"),
        ("http://localhost:8000/", nil), ("redis://cache/0", nil),
    ]) func aURLAsUpstreamGetsTheURLForTheClient(_ url: String, hint: String?) async throws {
        let errors = try await Command.run("proxy", "--upstream", url).errors
        if let hint {
            #expect(errors.contains(hint), "\(errors)")
        } else {
            #expect(!errors.contains("HOST:PORT of the proxy"), "\(errors)")
        }
    }

    @Test func commandsOfAClientSuggestExplainAndWarn() async throws {
        let server = try Command(["server", "--port", "0"])
        let line = try await server.output.line(with: "listening on ")
        let url = String(try #require(line.split(separator: " ").first { $0.hasPrefix("http://") }))
        let made = try await Command.run("create", "web", "--upstream", "nowhere", "--host", url)
        #expect(made.status == 0)
        #expect(
            made.errors == "warning: upstream: address nowhere: missing port in address; every connection to it fails\n"
        )
        let misspelt = try await Command.run("toxic", "add", "-t", "latncy", "web", "--host", url)
        #expect(misspelt.status == 1)
        #expect(
            misspelt.errors.hasPrefix(
                "error: cannot add toxic: HTTP 400: invalid toxic type; did you mean 'latency'? (Slowlane has latency, "
            ),
            "\(misspelt.errors)")
        _ = try await Command.run("toxic", "add", "-t", "latency", "-n", "l", "web", "--host", url)
        let update = ["toxic", "update", "-n", "l", "-a", "latency=100ms", "web", "--host", url]
        for arguments in [["toxic", "add", "-t", "latency", "-a", "latency=100ms", "web", "--host", url], update] {
            let result = try await Command.run(arguments)
            #expect(result.status == 64)
            #expect(
                result.errors.hasPrefix(
                    "error: -a 'latency=100ms': the value is a number without a unit (milliseconds), such as latency=100\n"
                ), "\(result.errors)")
        }
        server.signal(SIGTERM)
        #expect(await server.end() == 0)
    }

    /// Every command that reports the failure itself or leaves it to ArgumentParser.
    @Test(arguments: [
        ["frobnicate"], ["proxy"], ["proxy", "--upstream", "x"], ["proxy", "--frobnicate"],
        ["list", "--host", "ftp://x"],
        ["list", "--host", "127.0.0.1:1"], ["events", "--host", "127.0.0.1:1"], ["profiles", "show", "nonsense"],
        ["profiles", "check", "/nowhere.yaml"], ["scenarios", "list", "/nowhere.yaml"], ["fmt", "/nowhere.yaml"],
        ["run", "nonsense"], ["run", "./nowhere.yaml"], ["explore", "nonsense"], ["shrink", "nonsense"],
        ["mutation-test", "nonsense"], ["explain", "nonsense"], ["model", "3g"], ["measure", "nonsense"],
        ["capture", "--port", "0"], ["notes-server", "--listen", "x"], ["merge-reports", "/nowhere"],
    ]) func errorsHaveOnePrefix(_ arguments: [String]) async throws {
        let result = try await Command.run(arguments)
        #expect(result.status != 0)
        #expect(result.errors.hasPrefix("error: "), "\(arguments): '\(result.errors)'")
    }

    @Test func aFileWithTwoProblemsHasThePrefixTwice() async throws {
        let folder = try TemporaryFolder()
        let file = folder.path("broken.yaml")
        try Data("scenario: x\nnonsense: y\nfurther: z\n".utf8).write(to: URL(filePath: file))
        for arguments in [["run", file], ["scenarios", "list", file]] {
            let lines = try await Command.run(arguments).errors.split(separator: "\n").filter { $0.contains(file) }
            #expect(lines.count >= 2)
            #expect(lines.allSatisfy { $0.hasPrefix("error: \(file):") }, "\(lines)")
        }
    }

    #if os(Linux)
    /// The limit of open files, and the number of connections that the note names; `nil` if a proxy cannot run.
    @Test(arguments: [8, 16, 32, 48, 64, 128, 256]) func aLowLimitOfOpenFilesIsReported(_ files: Int) async throws {
        let wanted = 100_000
        let command = try Command(
            [
                "-c", "ulimit -n \(files); exec \"$0\" \"$@\"", Command.binary.path(), "proxy", "--upstream", "9",
                "--until-eof", "--quiet", "--max-connections", "\(wanted)",
            ], binary: URL(filePath: "/bin/sh"))
        command.type("status\n", andClose: true)
        let status = await command.end()
        let errors = command.errors.text
        if status == 69 {
            #expect(
                errors.hasPrefix("error: the limit of open files (ulimit -n) is \(files), and a proxy needs at"))
            let least = try #require(errors.firstMatch(of: /at least (\d+)/).flatMap { Int($0.1) })
            #expect(least > files)
        } else {
            #expect(status == 0, "\(errors)")
            let note = try #require(errors.firstMatch(of: /is (\d+), so --max-connections is (\d+)/))
            let connections = try #require(Int(note.2))
            #expect(Int(note.1) == files)
            // Two files a connection, and some for the rest.
            #expect(connections >= 1 && 2 * connections + 24 <= files, "\(connections)")
            #expect(command.output.text.contains("ok "))
        }
    }

    @Test func tablesFitTheTerminal() async throws {
        func widths(_ columns: String, _ arguments: [String]) async throws -> [Int] {
            let script = """
                import os, pty, sys
                os.environ.update(COLUMNS=sys.argv[1], LC_ALL='C')
                sys.exit(pty.spawn(sys.argv[2:]) >> 8)
                """
            let (status, output) = try await runPython(
                "python", ["-c", script, columns, Command.binary.path()] + arguments)
            #expect(status == 0, "\(output)")
            return output.split(whereSeparator: \.isNewline).map(\.count)
        }
        let folder = try TemporaryFolder()
        let store = ["--store", folder.path("notes.db")]
        let note = try await Command.run(
            ["notes", "new", String(repeating: "long title ", count: 20)] + store)
        #expect(note.status == 0, "\(note.errors)")
        for arguments in [["profiles"], ["explain"], ["profiles", "show", "subway"], ["notes", "list"] + store] {
            let whole = try await Command.run(arguments).output.split(separator: "\n").map(\.count)
            let longest = try #require(whole.max())
            #expect(try await widths("80", arguments).max() ?? 0 <= 80, "\(arguments)")
            #expect(try await widths("100000", arguments).max() ?? 0 >= longest, "\(arguments)")
            // Without a usable COLUMNS, the terminal's own width counts: 80 if it has none.
            for columns in ["0", "99999999999999999999"] {
                #expect(try await widths(columns, arguments).max() ?? 0 <= 80, "\(arguments) \(columns)")
            }
            #expect(try await widths("1", arguments).count >= whole.count, "\(arguments)")
        }
    }
    #endif
}
