import Foundation
import TestSupport
import Testing

/// The commands, programs and files that README.md, docs/start and docs/how-to print.
@Suite(.tags(.tools), .timeLimit(.minutes(3))) struct PageTests {
    private static let pages = Result { try Page.all() }

    /// The pages wait more than they compute, so they run beside each other.
    @Test func eachPageDoesWhatItSays() async throws {
        let problems = try await withThrowingTaskGroup(of: [String].self) { group in
            for page in try Self.pages.get() { group.addTask { try await PageSession(page).run() } }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        for problem in problems.sorted() { Issue.record("\(problem)") }
    }

    @Test func theOutputOfAPageIsComparedLineByLine() {
        let shown = ShownOutput(["seed 6226785360256299, took 1.5 s", "...", "  mine: pass"])
        #expect(shown.matches("seed 12345678, took 0.25 s\nmore\nand more\n  mine:  pass\n"))
        #expect(shown.matches("seed 12345678, took 0.25 s\nmine: pass\n"))
        for text in [
            "", "seed 12345678, took 0.25 s\nmine: fail\n", "seed 12345678, took 0.25 s\nmine: pass\nmore\n",
            "more\nseed 12345678, took 0.25 s\nmine: pass\n", "seed 7, took 0.25 s\nmine: pass\n",
        ] { #expect(!shown.matches(text), "\(text)") }
        #expect(ShownOutput(["a"]).matches("a\nb\n", isBeginning: true))
        #expect(!ShownOutput(["a"]).matches("a\nb\n") && !ShownOutput(["b"]).matches("a\nb\n", isBeginning: true))
    }

    @Test func aBlockThatIsNotRunHasAReason() throws {
        let blocks = try Self.pages.get().flatMap { page in page.blocks.map { (page.path, $0) } }
        #expect(blocks.count > 80)
        for (path, block) in blocks {
            guard let reason = block.reason else { continue }
            #expect(
                Page.reasons.contains(reason),
                "\(path):\(block.line): '\(reason)' is none of the reasons of Page.reasons")
        }
    }

    /// Blocks in Swift are parts of files that the compiler reads. `...` stands for the parts that a reader adds.
    @Test func blocksInSwiftAreCompiled() throws {
        func compact(_ text: some StringProtocol) -> String { String(text.filter { !$0.isWhitespace }) }
        let folder = Repository.root.appending(path: "Tests/Program/SlowlaneTestingTests")
        let examples = ["ShoppingList/ShoppingList.swift", "Expenses/Expenses.swift"].map {
            Repository.root.appending(path: "Examples/ShoppingList/Sources/\($0)")
        }
        let files = try (["PageExamples.swift", "OrderTests.swift"].map { folder.appending(path: $0) } + examples).map {
            file in
            compact(
                try String(contentsOf: file, encoding: .utf8)
                    .replacing("import TestSupport\n", with: "").replacing(".tags(.services), ", with: "")
                    .replacing("{ try await OrdersServer.address }", with: "\"127.0.0.1:8000\""))
        }
        for page in try Self.pages.get() {
            for block in page.blocks where block.language == "swift" && block.reason == nil {
                let corrected = page.blocks.filter { $0.language == "diff" }.reduce(block.text) { text, diff in
                    func lines(_ sign: String) -> String {
                        diff.lines.filter { $0.hasPrefix(sign) }.map { $0.dropFirst() + "\n" }.joined()
                    }
                    return text.replacing(lines("-"), with: lines("+"))
                }
                let parts = corrected.split(separator: "...").map(compact)
                #expect(
                    files.contains { file in
                        var rest = file[...]
                        return parts.allSatisfy { part in
                            guard let range = rest.range(of: part) else { return false }
                            rest = rest[range.upperBound...]
                            return true
                        }
                    }, "\(page.path):\(block.line) is in none of the files of \(folder.path())")
            }
        }
    }

    /// Fragments that are not run have no mistakes of syntax.
    @Test func fragmentsHaveTheSyntaxOfTheirLanguage() async throws {
        let folder = try TemporaryFolder()
        var files: [String] = []
        for page in try Self.pages.get() {
            for block in page.blocks
            where block.reason != nil && ["python", "yaml", "js", "sh"].contains(block.language) {
                let name = "\(page.path.replacing("/", with: "-"))-\(block.line).\(block.language)"
                try Data(block.text.utf8).write(to: folder.url.appending(path: name))
                files.append(folder.path(name))
            }
        }
        let code = """
            import ast, subprocess, sys, yaml
            for path in sys.argv[1:]:
                text = open(path).read()
                try:
                    if path.endswith(".python"): ast.parse(text)
                    elif path.endswith(".yaml"): list(yaml.safe_load_all(text))
                    elif path.endswith(".sh"): subprocess.run(["sh", "-n", path], check=True)
                    else: subprocess.run(["node", "--check", "-"], input=text.encode(), check=True)
                except Exception as error:
                    print(path, error)
            """
        #expect(files.count > 10)
        let (status, output) = try await runPython("python", ["-c", code] + files)
        #expect(status == 0 && output.isEmpty, "\(output)")
    }

    /// The manifests need a cluster; their configuration file and arguments are tested without one.
    @Test func theServerReadsTheFileAndTheArgumentsOfTheManifests() async throws {
        let lines = try Page("docs/how-to/kubernetes.md").blocks.flatMap(\.lines)
        let start = try #require(lines.firstIndex { $0.hasSuffix("proxies.json: |") })
        let file = lines[(start + 1)...].prefix { $0.hasPrefix("    ") }.joined(separator: "\n")
        let folder = try TemporaryFolder()
        try Data(file.replacing("127.0.0.1:9000", with: "127.0.0.1:0").utf8)
            .write(to: folder.url.appending(path: "proxies.json"))
        let server = try Command(["server", "--port", "0", "--config", folder.path("proxies.json")])
        #expect(try await server.output.line(with: "listening on http").hasSuffix("proxies api"))
        server.signal(SIGTERM)
        #expect(await server.end() == 0)

        let calls = lines.compactMap { line in
            line.firstMatch(of: /args: \[(.*)\]$/)?.1.split(separator: ", ").map(String.init)
        }
        #expect(calls.count == 3)
        for words in calls {
            let help = try await Command.run(words[0], "--help").output
            for option in words where option.hasPrefix("--") {
                #expect(help.contains(" \(option) ") || help.contains(" \(option)\n"), "\(words[0]) \(option)")
            }
        }
    }
}
