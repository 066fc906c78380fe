import Foundation
import TestSupport
import Testing

/// The tutorials of docs/start: the programs, tests and scenarios that they print, before and after their corrections.
@Suite(.tags(.servers), .timeLimit(.minutes(2))) struct TutorialTests {
    /// A page of docs/start.
    private struct Page {
        let text: String

        init(_ name: String) throws {
            text = try String(contentsOf: Repository.root.appending(path: "docs/start/\(name).md"), encoding: .utf8)
        }

        /// Returns the fenced blocks of a language.
        func blocks(_ language: String) -> [String] {
            text.components(separatedBy: "```\(language)\n").dropFirst().map {
                String($0.prefix(upTo: $0.range(of: "```")?.lowerBound ?? $0.endIndex))
            }
        }

        /// Returns a program with the correction of the page for it: the lines of a `diff` block.
        func corrected(_ program: String) throws -> String {
            for block in blocks("diff") {
                let lines = block.split(separator: "\n")
                let old = lines.filter { $0.hasPrefix("-") }.map { $0.dropFirst() + "\n" }.joined()
                let new = lines.filter { $0.hasPrefix("+") }.map { $0.dropFirst() + "\n" }.joined()
                if program.contains(old) { return program.replacing(old, with: new) }
            }
            throw CocoaError(.fileReadUnknown, userInfo: [NSDebugDescriptionErrorKey: "no block 'diff' for \(program)"])
        }
    }

    /// Runs a test program of the page twice, before and after its correction, against a server of its own.
    private static func run(
        _ language: String, as name: String, _ run: (TemporaryFolder) async throws -> (Int32, String)
    ) async throws -> [(status: Int32, output: String)] {
        let page = try Page("lost-response")
        let (server, address) = try startServer()
        defer { server.signal(SIGKILL) }
        let folder = try TemporaryFolder()
        var results: [(Int32, String)] = []
        let program = try #require(page.blocks(language).first { $0.contains("127.0.0.1:8000") })
        for text in [program, try page.corrected(program)] {
            try Data(text.replacing("127.0.0.1:8000", with: address).utf8).write(to: folder.url.appending(path: name))
            results.append(try await run(folder))
        }
        return results
    }

    /// Starts the server of the tutorials on a free port, and returns its address.
    private static func startServer() throws -> (server: ChildProcess, address: Substring) {
        let server = try ChildProcess(
            "python3", [Repository.root.appending(path: "Examples/orders/server.py").path(), "0"])
        let line = String(decoding: server.output.availableData, as: UTF8.self)
        return (server, try #require(line.firstMatch(of: /listening on ([0-9.:]+)/)).1)
    }

    @Test func theCommandOfTheREADMEOrdersTwice() async throws {
        let readme = try String(contentsOf: Repository.root.appending(path: "README.md"), encoding: .utf8)
        let line = try #require(readme.split(separator: "\n").first { $0.hasPrefix("$ slowlane with --fault") })
        let (server, address) = try Self.startServer()
        defer { server.signal(SIGKILL) }
        let command = line.dropFirst("$ slowlane".count).replacing("localhost:8000", with: address)
        let result = try await blocking {
            try runProgram(
                "/bin/sh", ["-c", "'\(Command.binary.path())'\(command)"], standardError: .withOutput)
        }
        for part in ["Connection reset by peer", "{\"order\": 2}", "fault 1: matched 2, fired 1"] {
            #expect(readme.contains(part) && result.output.contains(part), "'\(part)' in \(result.output)")
        }
    }

    @Test func theTestInPythonFindsTheSecondOrder() async throws {
        let results = try await Self.run("python", as: "test_orders.py") { folder in
            let plugin = Repository.root.appending(path: "Integrations/pytest/src").path()
            return try await runPython(
                "python",
                [
                    "-c", "import sys, pytest; sys.path.insert(0, sys.argv[1]); sys.exit(pytest.main(sys.argv[2:]))",
                    plugin, "-q", "-p", "slowlane_pytest",
                ] + ["cacheprovider", "schemathesis", "hypothesispytest", "anyio"].flatMap { ["-p", "no:\($0)"] } + [
                    "--slowlane-program=\(Command.binary.path())", "test_orders.py",
                ], in: folder.url.path())
        }
        #expect(results.map(\.status) == [1, 0], "\(results)")
        #expect(results[0].output.contains("['milk', 'milk'] == ['milk']"))
    }

    @Test func theTestInJavaScriptFindsTheSecondOrder() async throws {
        let results = try await Self.run("js", as: "orders.test.js") { folder in
            let modules = folder.url.appending(path: "node_modules")
            try FileManager.default.createDirectory(at: modules, withIntermediateDirectories: true)
            try? FileManager.default.createSymbolicLink(
                at: modules.appending(path: "slowlane"),
                withDestinationURL: Repository.root.appending(path: "Integrations/npm"))
            return try await blocking {
                let result = try runProgram(
                    "/usr/bin/env", ["SLOWLANE_PROGRAM=\(Command.binary.path())", "node", "--test", "orders.test.js"],
                    in: folder.url.path(), standardError: .withOutput)
                return (result.status, result.output)
            }
        }
        #expect(results.map(\.status) == [1, 0], "\(results)")
        #expect(results[0].output.contains("Expected values to be strictly deep-equal"))
    }

    @Test(arguments: [("order", [Int32(1), 0]), ("app", [0])])
    func theScenariosOfTheTutorialEndAsItSays(_ name: String, statuses: [Int32]) async throws {
        let page = try Page("own-app")
        let folder = try TemporaryFolder()
        try FileManager.default.createSymbolicLink(
            at: folder.url.appending(path: "Examples"), withDestinationURL: Repository.root.appending(path: "Examples"))
        let scenario = try #require(page.blocks("yaml").first { $0.contains("python3, \(name).py") })
        try Data(scenario.utf8).write(to: folder.url.appending(path: "\(name).yaml"))
        let program = try #require(page.blocks("python").first { $0.contains("stdin") == (name == "app") })
        var results: [Command.Result] = []
        for (index, _) in statuses.enumerated() {
            let text = index == 0 ? program : try page.corrected(program)
            try Data(text.utf8).write(to: folder.url.appending(path: "\(name).py"))
            results.append(try await Command.run("run", folder.path("\(name).yaml")))
        }
        #expect(results.map(\.status) == statuses, "\(results)")
    }
}
