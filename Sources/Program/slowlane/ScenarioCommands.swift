internal import ArgumentParser
internal import CommandSupport
internal import ConfigFiles
internal import ScenarioRunner

/// `slowlane scenarios`.
struct ScenariosCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "scenarios",
        abstract: "List scenarios, and write new ones.",
        discussion: """
            Examples:
              slowlane scenarios
              slowlane scenarios list ./scenarios --json
              slowlane scenarios new edit-in-an-elevator
            """,
        subcommands: [List.self, New.self],
        defaultSubcommand: List.self
    )

    /// `slowlane scenarios list`.
    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the built-in scenarios, or the scenarios of files and folders.",
            discussion: """
                Examples:
                  slowlane scenarios list
                  slowlane scenarios list ./scenarios --json

                Exit status: 0 success; 64 wrong arguments; 65 a file is invalid or cannot be read; the others are listed.
                """)

        @Argument(help: "Paths of files or folders. (default: the built-in scenarios)", completion: NameCompletion.file)
        var paths: [String] = []

        @Flag(help: "Print JSON, one object per line.")
        var json = false

        func run() throws {
            let console = Console()
            var files: [ScenarioFile] = []
            var sources: [String] = []
            var isValid = true
            do {
                let names = paths.isEmpty ? ScenarioCatalogue.names.sorted() : try ScenarioFiles.select(paths).paths
                for name in names {
                    do {
                        let isPath = !paths.isEmpty && !name.contains("/")
                        files.append(try ScenarioCatalogue.scenario(isPath ? "./\(name)" : name))
                        sources.append(name)
                    } catch {
                        console.errors(error)
                        isValid = false
                    }
                }
            } catch {
                console.error(error)
                throw ExitStatus.invalidFile
            }
            if json {
                for (file, source) in zip(files, sources) { console.print(ScenarioText.json(file, source: source)) }
            } else if !files.isEmpty {
                for line in ScenarioText.lines(files, sources: sources, width: Terminal.tableWidth) {
                    console.print(line)
                }
            }
            if !isValid { throw ExitStatus.invalidFile }
        }
    }

    /// `slowlane scenarios new`.
    struct New: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Write a new scenario file with comments.",
            discussion: """
                Examples:
                  slowlane scenarios new edit-in-an-elevator
                  slowlane run edit-in-an-elevator.yaml

                Exit status: 0 success; 1 the file exists or cannot be written; 64 the name is not in kebab-case.
                """)

        @Argument(help: "The name of the scenario, in kebab-case; the file is NAME.yaml in the current folder.")
        var name: String

        func validate() throws {
            let isName =
                !name.isEmpty && name.utf8.allSatisfy { (97...122).contains($0) || (48...57).contains($0) || $0 == 45 }
            guard isName, !name.hasPrefix("-") else {
                throw ValidationError("'\(name.prefix(40))' is not kebab-case, such as 'edit-in-an-elevator'")
            }
        }

        func run() throws {
            let console = Console()
            let path = "\(name).yaml"
            do {
                try ScenarioFiles.create(ScenarioText.skeleton(name: name), at: path)
            } catch {
                console.error(error)
                throw ExitStatus.failed
            }
            console.print(path)
        }
    }
}

/// `slowlane explain`.
struct ExplainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Explain a key of scenario files, or an invariant.",
        discussion: """
            Examples:
              slowlane explain
              slowlane explain point
              slowlane explain expect.traffic.count
              slowlane explain I9

            Exit status: 0 success; 64 no key or invariant has that name.
            """)

    @Argument(
        help: ArgumentHelp(
            "A key, its path in the file (expect.traffic.count), or an invariant. (default: list the keys of a file)"))
    var key: String?

    func run() throws {
        let console = Console()
        guard let key else {
            for line in ScenarioText.overview(width: Terminal.tableWidth) { console.print(line) }
            return
        }
        guard let lines = ScenarioText.explanation(of: key, width: Terminal.tableWidth) else {
            console.error(
                "no key is called '\(key.prefix(60))'\(NearestName.hint(key, in: ScenarioFormat.keyNames)) "
                    + "('slowlane explain' lists the keys of a file)")
            throw ExitStatus.usage
        }
        for line in lines { console.print(line) }
    }
}

/// `slowlane schema`.
struct SchemaCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema",
        abstract: "Print the JSON Schema of scenario files, for editors, or of what commands print with --json.",
        discussion: """
            Examples:
              slowlane schema > scenario-1.schema.json
              slowlane schema output > slowlane-output-1.schema.json

            The first line of a scenario file names the schema for editors with a YAML language server:
            # yaml-language-server: $schema=./scenario-1.schema.json
            """)

    /// A schema.
    enum Document: String, ExpressibleByArgument, CaseIterable {
        case scenario, output
    }

    @Argument(help: "The schema: of scenario files, or of output.") var document = Document.scenario

    func run() throws {
        var text = document == .scenario ? ScenarioSchema.json : OutputSchema.json
        if text.hasSuffix("\n") { text.removeLast() }
        Console().print(text)
    }
}
