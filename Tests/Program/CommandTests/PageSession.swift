import Foundation
import TestSupport

/// A reader who follows a page: writes its files into a folder, applies its corrections, and runs its commands one after the other,
/// in as many terminals as they need, on free ports instead of the ports of the page.
final class PageSession {
    /// The ports of the documentation: the server of orders, a proxy, the control API, the demonstration.
    private static let documentedPorts = ["8000", "9000", "8474", "8475"]
    /// Commands that run until they are interrupted, with the ports on which they listen. A new one ends the running one that has
    /// its port.
    private static let kinds: [(name: String, port: String)] = [
        ("slowlane proxy", "9000"), ("slowlane server", "8474"), ("./toxiproxy-server", "8474"),
        ("slowlane demo", "8475"), ("python3 Examples/orders/server.py", "8000"),
        ("python3 Examples/ShoppingList/server.py", "8000"),
    ]
    /// Arguments that give commands with a default port a free one.
    private static let portArguments = [
        "slowlane server": "--port 8474", "./toxiproxy-server": "-port 8474", "slowlane demo": "--port 8475",
        "python3 Examples/orders/server.py": "8000", "python3 Examples/ShoppingList/server.py": "8000",
    ]

    private struct Program {
        let text: String
        let port: String
        let command: Command
    }

    private let page: Page
    private let folder: TemporaryFolder
    private let ports: [String: String]
    private var programs: [Program] = []
    /// A command that waits for what is typed into another terminal.
    private var waiting: Command?
    private var problems: [String] = []

    init(_ page: Page) throws {
        self.page = page
        folder = try TemporaryFolder()
        ports = try Dictionary(
            uniqueKeysWithValues: Self.documentedPorts.map { ($0, String(try TestSocket.unusedPort())) })
    }

    /// Follows the page, and returns what is not as the page says, with its locations.
    func run() async throws -> [String] {
        let blocks = page.blocks.filter { $0.reason == nil && $0.language != "swift" }
        if blocks.isEmpty { return [] }
        defer { for command in programs.map(\.command) + [waiting].compactMap(\.self) { command.signal(SIGKILL) } }
        try prepare()
        if !blocks.contains(where: { $0.text.contains("$ python3 Examples/") }) {
            try await start("python3 Examples/orders/server.py", showing: ["listening on 127.0.0.1:8000"], at: 1)
        }
        for (index, block) in blocks.enumerated() {
            let steps = block.steps
            if !steps.isEmpty {
                let next = index + 1 < blocks.count ? blocks[index + 1].steps.first : nil
                for (number, step) in steps.enumerated() {
                    let isWaiting = number == steps.count - 1 && step.output.isEmpty && next?.isTyped == true
                    try await run(step, at: block.line, isWaiting: isWaiting)
                }
                if steps.contains(where: \.isTyped), let command = waiting {
                    waiting = nil
                    if await command.end() != 0 {
                        report(block.line, "the command before it failed: \(command.output.text)")
                    }
                }
            } else if block.language == "diff" {
                try correct(block)
            } else if let name = block.fileName {
                try write(block.text, name)
                if !blocks.contains(where: { $0.line != block.line && $0.text.contains(name) }) {
                    report(block.line, "no block uses \(name)")
                }
            } else if block.language == "sh" {
                try await run(Page.Step(isTyped: false, text: "set -e\n" + block.text, output: []), at: block.line)
            } else if try !isPartOfAFile(block) {
                report(block.line, "neither run nor a part of a file; write <!-- not run: REASON --> above it")
            }
        }
        for program in programs.reversed() { await end(program, at: page.blocks.last?.line ?? 1) }
        return problems
    }

    private func report(_ line: Int, _ text: String) { problems.append("\(page.path):\(line): \(text)") }

    // MARK: Files

    /// Gives the folder what a copy of the repository and an installation have.
    private func prepare() throws {
        let manager = FileManager.default
        let links = [
            "bin/slowlane": Command.binary,
            "Examples": Repository.root.appending(path: "Examples"),
            "node_modules/slowlane": Repository.root.appending(path: "Integrations/npm"),
            "scenarios/mine.yaml": Repository.root.appending(path: "scenarios/edit-offline-simple.yaml"),
            "scenarios/other.yaml": Repository.root.appending(path: "scenarios/create-offline-then-heal.yaml"),
        ]
        for name in ["bin", "node_modules", "scenarios"] {
            try manager.createDirectory(at: folder.url.appending(path: name), withIntermediateDirectories: true)
        }
        for (name, target) in links {
            try manager.createSymbolicLink(at: folder.url.appending(path: name), withDestinationURL: target)
        }
        // Toxiproxy's library has no setting for the port of the server.
        try write(
            """
            try:
                from toxiproxy.api import APIConsumer
                APIConsumer.port = 8474
            except ImportError:
                pass

            """, "conftest.py")
        // A response with an error is a failed command.
        try write("fail\n", ".curlrc")
        // A reader's own scenario, which fails, and a suite of tests.
        try write(Self.failingScenario, "mine.yaml")
        try write("#!/bin/sh\nexec curl -sS http://127.0.0.1:8000/orders\n", "bin/npm")
        let (shopping, expenses) = (
            Command.built("ShoppingListExample").path(), Command.built("ExpensesExample").path()
        )
        try write("#!/bin/sh\nexec '\(shopping)' --server http://127.0.0.1:9000 \"$@\"\n", "bin/shopping")
        try write(
            "#!/bin/sh\n: ${EXPENSES_SERVER:=http://127.0.0.1:9000}\nexport EXPENSES_SERVER\nexec '\(expenses)' \"$@\"\n",
            "bin/expenses")
        for name in ["bin/npm", "bin/shopping", "bin/expenses"] {
            try manager.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.path(name))
        }
    }

    private static let failingScenario = """
        scenario: 1
        name: mine
        about: A note is sent once, and the file expects two requests.
        limit: 1m
        devices:
          A: { user: ada }
        network:
          A: { 0s: wifi }
        steps:
          - { at: 1s, A: { create: n1, title: Milk, text: "2 l" } }
          - { at: 2s, A: { edit: n1, text: "3 l" } }
        expect:
          traffic:
            - { request: POST any, from: A, count: 2 }

        """

    private func write(_ text: String, _ name: String) throws {
        try Data(withFreePorts(text).utf8).write(to: folder.url.appending(path: name))
    }

    /// Applies the correction of a block `diff` to the file that has its old lines.
    private func correct(_ block: Page.Block) throws {
        func lines(_ sign: String) -> String {
            withFreePorts(block.lines.filter { $0.hasPrefix(sign) }.map { $0.dropFirst() + "\n" }.joined())
        }
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.url.path()) {
            let file = folder.url.appending(path: name)
            guard let text = try? String(contentsOf: file, encoding: .utf8), text.contains(lines("-")) else { continue }
            return try Data(text.replacing(lines("-"), with: lines("+")).utf8).write(to: file)
        }
        if !page.blocks.contains(where: { $0.language == "swift" && $0.text.contains(lines("-")) }) {
            report(block.line, "no file has the lines to correct")
        }
    }

    /// Whether a file that a command of the page has written has the text of a block.
    private func isPartOfAFile(_ block: Page.Block) throws -> Bool {
        let names = try FileManager.default.subpathsOfDirectory(atPath: folder.url.path())
        return names.contains { name in
            guard name.hasSuffix(block.language), name != "mine.yaml" else { return false }
            return (try? String(contentsOfFile: folder.path(name), encoding: .utf8))?.contains(block.text) == true
        }
    }

    private func withFreePorts(_ text: String) -> String {
        text.replacing(/\b[0-9]{4}\b/) { ports[String($0.output)] ?? String($0.output) }
    }

    private func withDocumentedPorts(_ text: String) -> String {
        ports.reduce(text) { $0.replacing($1.value, with: $1.key) }
    }

    // MARK: Commands

    private static func kind(of command: String) -> (name: String, port: String)? {
        kinds.first { command == $0.name || command.hasPrefix($0.name + " -") && !command.contains("--record") }
    }

    /// Returns a command with less work for searches over many runs.
    private static func reduced(_ command: String) -> String {
        command.replacing(/explore two-device-soak$/, with: "explore two-device-soak --seeds 1")
            .replacing("explore two-device-soak", with: "explore edit-offline-simple --vary network")
            .replacing("explore scenarios/mine.yaml", with: "explore scenarios/mine.yaml --vary network")
            .replacing("--seeds 1000", with: "--seeds 4").replacing("'0..<2000'", with: "'0..<1'")
            .replacing("--time 10m", with: "--time 1ms").replacing("--timeout 60", with: "--timeout 1")
    }

    /// Starts a command in a shell of its own.
    private func shell(_ text: String, isProgram: Bool = false) throws -> Command {
        var text = Self.reduced(text)
        if let kind = Self.kind(of: text), let port = Self.portArguments[kind.name] {
            text = text.replacing(kind.name, with: "\(kind.name) \(port)")
        }
        text = withFreePorts(text)
        let root = Repository.root.path()
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let plugins = ["cacheprovider", "schemathesis", "hypothesispytest", "anyio"].map { "-p no:\($0)" }
        let server = "http://127.0.0.1:\(ports["8474"] ?? "")"
        let environment = [
            "PATH=\(folder.path("bin")):\(root).build/python/bin:\(path)", "SLOWLANE_URL=\(server)",
            "TOXIPROXY_URL=\(server)", "CURL_HOME=\(folder.url.path())", "SLOWLANE_PROGRAM=\(Command.binary.path())",
            "PYTHONPATH=\(root)Integrations/pytest/src",
            "PYTEST_ADDOPTS=-p slowlane_pytest \(plugins.joined(separator: " "))",
        ]
        let script = "cd '\(folder.url.path())' && exec 2>&1\n\(isProgram ? "exec " : "")\(text)"
        let command = try Command(environment + ["/bin/sh", "-c", script], binary: URL(filePath: "/usr/bin/env"))
        if !isProgram { command.type("", andClose: true) }
        return command
    }

    private func run(_ step: Page.Step, at line: Int, isWaiting: Bool = false) async throws {
        if step.isTyped {
            guard let program = programs.last(where: { $0.port == "9000" }) else {
                return report(line, "no proxy runs that reads '\(step.text)'")
            }
            let offset = program.command.output.text.utf8.count
            program.command.type(step.text + "\n")
            await expect(step.output, of: program.command, from: offset, at: line)
            if step.text == "quit" { await end(program, at: line, isEnding: true) }
        } else if Self.kind(of: step.text) != nil {
            try await start(step.text, showing: step.output, at: line)
        } else if isWaiting {
            waiting = try shell(step.text)
        } else {
            let command = try shell(step.text)
            let status = await command.end()
            let text = withDocumentedPorts(command.output.text)
            if step.output.isEmpty {
                if status != 0 { report(line, "'\(step.text)' has status \(status): \(text)") }
            } else if !ShownOutput(step.output).matches(text) {
                report(line, "'\(step.text)' prints another text:\n\(text)")
            }
        }
    }

    /// Starts a command that runs until it is interrupted, and connects to it.
    private func start(_ text: String, showing output: [String], at line: Int) async throws {
        guard let port = Self.kind(of: text)?.port, let free = ports[port].flatMap(Int.init) else { return }
        for program in programs where program.port == port { await end(program, at: line) }
        let command = try shell(text, isProgram: true)
        programs.append(Program(text: text, port: port, command: command))
        await expect(output, of: command, from: 0, at: line)
        await command.output.wait { $0.text.contains(":\(free)") || $0.isFinished }
        do {
            try await blocking { _ = try TestSocket.connect(port: free) }
        } catch {
            report(line, "'\(text)' accepts no connection: \(error)\n\(command.output.text)")
        }
    }

    private func expect(_ output: [String], of command: Command, from offset: Int, at line: Int) async {
        let shown = ShownOutput(output)
        func text(_ data: Data) -> String {
            // A proxy prints its status whenever it changes, also before the response to a command.
            withDocumentedPorts(String(decoding: data.dropFirst(offset), as: UTF8.self))
                .replacing(/(?m)^profile .* open of .*\n/, with: "")
        }
        let size = LastSize()
        await command.output.wait {
            $0.isFinished || size.isNew($0.data.count) && shown.matches(text($0.data), isBeginning: true)
        }
        let seen = text(Data(command.output.text.utf8))
        if !shown.matches(seen, isBeginning: true) { report(line, "another text is printed:\n\(seen)") }
    }

    /// Interrupts a program, or waits for one that ends, and expects status 0 of Slowlane's commands.
    private func end(_ program: Program, at line: Int, isEnding: Bool = false) async {
        programs.removeAll { $0.command === program.command }
        if !isEnding { program.command.signal(SIGINT) }
        let status = await program.command.end()
        if status != 0, !program.text.hasPrefix("python3") {
            report(line, "'\(program.text)' has status \(status): \(program.command.output.text)")
        }
    }

    /// The size of an output when it was last compared.
    private final class LastSize {
        private var size = -1

        func isNew(_ newSize: Int) -> Bool {
            defer { size = newSize }
            return newSize != size
        }
    }
}
