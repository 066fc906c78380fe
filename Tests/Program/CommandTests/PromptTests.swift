import Foundation
import TestSupport
import Testing

/// What users type: single figures of conditions, words that a shell completes, and keys at the prompt of a proxy.
@Suite(.tags(.commands), .serialized, .timeLimit(.minutes(10))) struct PromptTests {
    /// Returns the conditions with which a proxy starts.
    private func conditions(_ arguments: [String]) async throws -> String {
        let result = try await Command.run(["proxy", "--upstream", "9", "--until-eof"] + arguments)
        #expect(result.status == 0, "\(result.errors)")
        let match = try #require(
            result.output.firstMatch(of: /listening on [^ ]+ -> [^ ]+, (.*)\n/), "\(result.output)")
        return String(match.1)
    }

    @Test(arguments: [
        (["--delay", "200ms", "--rate", "1mbit"], "profile custom (down 1000 kbit/s 200 ms, up 1000 kbit/s 200 ms)"),
        (
            ["--loss", "2%", "--loss-up", "0"],
            "profile custom (down no rate limit 0 ms 2 % loss, up no rate limit 0 ms)"
        ),
        (
            ["--profile", "3g", "--delay-down", "5ms"],
            "profile 3g with delay-down 5ms (down 780 kbit/s 5 ms, up 330 kbit/s 100 ms)"
        ),
        (
            ["--jitter", "20ms normal", "--profile", "4G", "--rate", "none"],
            "profile lte with jitter 20ms normal rate none (down no rate limit 50 ms ±20 ms normal, "
                + "up no rate limit 65 ms ±20 ms normal)"
        ),
        (["--netem-down", "delay 10ms"], "profile netem (down no rate limit 10 ms, up no rate limit 0 ms)"),
        (["--netem-up", "loss 1%"], "profile netem (down no rate limit 0 ms, up no rate limit 0 ms 1 % loss)"),
    ]) func figuresReplaceThoseOfAProfile(_ arguments: [String], text: String) async throws {
        #expect(try await conditions(arguments) == text)
    }

    @Test(arguments: [
        (["--delay", "200"], "--delay: '200' has no unit; expected a time such as '100 ms' or '1.5 s'"),
        (["--rate-up", "fast"], "--rate-up: 'fast' is not a number with a unit; expected a rate such as"),
        (["--loss-down", "120%"], "--loss-down: '120%' is out of range; expected 0 % to 100 %"),
        (["--jitter", "5 kg"], "--jitter: unknown unit 'kg'; expected a time such as"),
        (["--delay", "1ms", "--timeline", "subway"], "give one of --profile (or figures such as --delay), --timeline"),
        (["--loss", "1%", "--netem-down", ""], "give one of --profile (or figures such as --delay), --timeline"),
    ]) func anInvalidFigureIsAnErrorWithItsOption(_ arguments: [String], message: String) async throws {
        for command in [["proxy", "--upstream", "9"], ["model"]] {
            let result = try await Command.run(command + arguments)
            #expect(result.status == 64)
            #expect(result.errors.hasPrefix("error: \(message)"), "\(result.errors)")
        }
    }

    @Test func aDelayIsOneWay() async throws {
        let result = try await Command.run("model", "--delay", "200ms", "--plan", "conn", "--trials", "1")
        #expect(result.output.contains(#""total":400.000"#), "\(result.output) \(result.errors)")
        #expect(result.output.contains(#""p":"custom""#))
    }

    @Test func aServerGetsFigures() async throws {
        let server = try Command(["server", "--port", "0"])
        let line = try await server.output.line(with: "listening on ")
        let url = String(try #require(line.split(separator: " ").first { $0.hasPrefix("http://") }))
        func link(_ arguments: String...) async throws -> String {
            let result = try await Command.run(arguments + ["--host", url])
            return result.output + result.errors
        }
        _ = try await link("create", "p", "--upstream", "9", "--profile", "3g", "--loss-up", "5%")
        let created = try await link("link", "p")
        #expect(created.contains("down 780 kbit/s 100 ms, up 330 kbit/s 100 ms 5 % loss"), "\(created)")
        let changed = try await link("link", "p", "--delay", "200ms", "--jitter-down", "5ms")
        #expect(
            changed.contains("down no rate limit 200 ms ±5 ms uniform, up no rate limit 200 ms"), "\(changed)")
        let both = try await link("link", "p", "edge", "--jitter", "5ms")
        #expect(both.contains("down 240 kbit/s 400 ms ±5 ms uniform, up 200 kbit/s 440 ms ±5 ms uniform"), "\(both)")
        #expect(
            try await link("link", "p", "offline", "--delay", "5ms").contains("p: offline, down no rate limit 5 ms"))
        #expect(try await link("link", "p", "egde", "--delay", "1ms").contains("did you mean 'edge'?"))
        #expect(try await link("link", "p", "--delay", "1").contains("--delay: '1' has no unit"))
        #expect(try await link("link", "p", "--delay", "1ms", "--clear").contains("give one of a profile (or figures"))
        server.signal(SIGTERM)
        #expect(await server.end() == 0)
    }

    /// The script for bash that the program prints.
    private static let completionScript = Task {
        let result = try await Command.run("--generate-completion-script", "bash")
        #expect(result.status == 0)
        return result.output
    }

    /// The words that bash offers at the end of a command line.
    private func completions(_ words: [String], in folder: String? = nil) async throws -> [String] {
        let script = """
            eval "$1" || exit 1
            shift
            COMP_WORDS=("$0" "$@")
            COMP_CWORD=$#
            COMP_LINE="${COMP_WORDS[*]}"
            COMP_POINT=${#COMP_LINE}
            _slowlane "$0" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        let arguments = ["-c", script, Command.binary.path(), try await Self.completionScript.value] + words
        return try await blocking {
            let (status, output, errors) = try runProgram("/bin/bash", arguments, in: folder)
            #expect(status == 0 && errors.isEmpty, "\(errors)")
            return output.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    @Test(arguments: [
        (["proxy", "--profile", "ed"], ["edge", "edge-good", "edge-lossy"]), (["proxy", "--profile", "4"], ["4g"]),
        (["proxy", "--timeline", "su"], ["subway"]), (["proxy", "--upstream", "9", "--client-stack", "a"], ["apple"]),
        (["link", "api", "lt"], ["lte"]), (["create", "--profile", "lt"], ["lte"]), (["measure", "lt"], ["lte"]),
        (["profiles", "show", "sub"], ["subway"]), (["model", "--timeline", "tr"], ["train"]),
        (["run", "edit-conflict-after-sub"], ["edit-conflict-after-subway"]),
        (["explore", "two-device-so"], ["two-device-soak"]), (["run", "--shrink", "valid"], ["validators"]),
    ]) func bashCompletesNames(_ words: [String], expected: [String]) async throws {
        #expect(try await completions(words).sorted() == expected)
    }

    @Test func bashCompletesFilesWhereTheyArePossible() async throws {
        let folder = try TemporaryFolder()
        for name in ["lte-office.yaml", "notes.txt", "links/home.yml"] {
            let file = URL(filePath: folder.path(name))
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data().write(to: file)
        }
        let here = folder.path("")
        #expect(try await completions(["proxy", "--profile", "lt"], in: here).sorted() == ["lte", "lte-office.yaml"])
        #expect(try await completions(["proxy", "--profile", "links/"], in: here) == ["links/home.yml"])
        #expect(
            try await completions(["proxy", "--profile", "./l"], in: here).sorted() == [
                "./links/", "./lte-office.yaml",
            ])
        #expect(try await completions(["link", "api", "lt"], in: here) == ["lte"])
        #expect(try await completions(["run", "no"], in: here).contains("notes.txt") == false)
    }

    @Test func aTerminalEditsLinesAndGetsItsModeBack() async throws {
        let file = Repository.root.appending(path: "Tests/Program/CommandTests/Python/edit_line.py")
        let (status, output) = try await runPython("python", [file.path(), Command.binary.path()])
        #expect(status == 0 && output.split(separator: "\n").count == 4, "\(output)")
    }

    /// The table of `notes watch` is drawn again when the terminal gets another size, and wide characters count twice.
    @Test func aWatchFitsATerminalThatChangesItsSize() async throws {
        let folder = try TemporaryFolder()
        let store = folder.path("notes.db")
        let title = String(repeating: "漢字", count: 40)
        #expect(try await Command.run(["notes", "new", title, "--store", store]).status == 0)
        let file = Repository.root.appending(path: "Tests/Program/CommandTests/Python/watch_resize.py")
        let (status, output) = try await runPython("python", [file.path(), Command.binary.path(), store])
        #expect(status == 0 && output.split(separator: "\n").count == 2, "\(output)")
    }
}
