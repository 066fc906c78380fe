internal import ArgumentParser
internal import CommandSupport
internal import ConfigFiles
internal import Scenario
internal import ScenarioRunner

/// `slowlane lint`.
struct LintCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "lint",
        abstract: "Check scenario files and print every problem with file:line:column.",
        discussion: """
            Examples:
              slowlane lint mine.yaml
              slowlane lint scenarios
              slowlane lint --strict scenarios/*.yaml

            In a folder and its subfolders, all YAML files with a line 'scenario:' are checked.

            A warning is about a valid file that is probably not what its author means: a mark that is never used, a \
            window that is empty, a network entry after the end, an 'eventually' that holds before any step.

            Exit status: 0 no error; 64 wrong arguments; 65 a file has an error or cannot be read (with --strict: or a \
            warning).
            """)

    @Argument(help: "Paths of files or folders. (default: the current folder)", completion: NameCompletion.file)
    var paths: [String] = []

    @Flag(help: "Treat warnings as errors.")
    var strict = false

    @Flag(name: .shortAndLong, help: "Print problems only.")
    var quiet = false

    func run() throws {
        let console = Console()
        let selection: ScenarioFiles.Selection
        do {
            selection = try ScenarioFiles.select(paths.isEmpty ? ["."] : paths)
        } catch {
            console.error(error)
            throw ExitStatus.invalidFile
        }
        var counts = (errors: 0, warnings: 0)
        for path in selection.paths {
            let text: String
            do {
                text = try ScenarioFiles.read(path)
            } catch {
                console.print("error: \(error)")
                counts.errors += 1
                continue
            }
            let source = text.split(separator: "\n", omittingEmptySubsequences: false)
            for problem in ScenarioFile.problems(
                in: text, file: path, warnings: EarlyExpectations.warnings)
            {
                let isHere = problem.location.file == path
                for line in ScenarioText.lines(problem, source: isHere ? source : []) { console.print(line) }
                if problem.severity == .error { counts.errors += 1 } else { counts.warnings += 1 }
            }
        }
        if !quiet {
            if selection.otherCount > 0 {
                let count = TextTable.count(selection.otherCount, "YAML file")
                console.print("\(count) without a line 'scenario:' not checked", to: .progress)
            }
            console.print(
                ScenarioText.summary(
                    files: selection.paths.count, errors: counts.errors, warnings: counts.warnings), to: .progress)
        }
        if counts.errors > 0 || (strict && counts.warnings > 0) { throw ExitStatus.invalidFile }
    }
}
