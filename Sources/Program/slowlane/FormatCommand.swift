internal import ArgumentParser
internal import CommandSupport
internal import ConfigFiles
internal import ScenarioRunner

/// `slowlane fmt`.
struct FormatCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fmt",
        abstract: "Rewrite scenario files in canonical form.",
        discussion: """
            Examples:
              slowlane fmt mine.yaml
              slowlane fmt --check scenarios

            Keys get their canonical order, and indentation and spaces are unified. Comments stay with their values. Not \
            kept: the alignment of comments, empty lines after them, more than one empty line in a row, line breaks within braces and folded texts, \
            and single quotes where double quotes do. Files with anchors, aliases or tags are refused.

            Of a folder, all YAML files with a line 'scenario:' are rewritten, those of its subfolders included.

            Exit status: 0 success; 1 with --check: a file is not in canonical form; 64 wrong arguments; 65 a file is not \
            valid YAML or cannot be read.
            """)

    @Argument(help: "Paths of files or folders.")
    var paths: [String]

    @Flag(help: "Change nothing; list the files that are not in canonical form.")
    var check = false

    func run() throws {
        let console = Console()
        var isValid = true
        var changed = 0
        do {
            for path in try ScenarioFiles.select(paths).paths {
                let text = try ScenarioFiles.read(path)
                let result: String
                do {
                    result = try ScenarioFormatter.format(text, file: path)
                } catch {
                    console.errors(error)
                    isValid = false
                    continue
                }
                if result == text { continue }
                changed += 1
                console.print(path)
                if !check { try ScenarioFiles.write(result, to: path) }
            }
        } catch {
            console.error(error)
            throw ExitStatus.invalidFile
        }
        if !isValid { throw ExitStatus.invalidFile }
        if check && changed > 0 { throw ExitStatus.failed }
    }
}
