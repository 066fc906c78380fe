internal import ArgumentParser
internal import CommandSupport
internal import ConfigFiles
internal import ScenarioRunner

/// `slowlane fmt`.
struct FormatCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fmt",
        abstract: "Rewrite scenario files in canonical form, or with the new names of renamed words.",
        discussion: """
            Examples:
              slowlane fmt mine.yaml
              slowlane fmt --check scenarios
              slowlane fmt --migrate mine.yaml results.jsonl

            Keys get their canonical order, and indentation and spaces are unified. Comments stay with their values. Not \
            kept: the alignment of comments, empty lines after them, more than one empty line in a row, line breaks within braces and folded texts, \
            and single quotes where double quotes are possible. Files with anchors, aliases or tags are refused.

            In a folder and its subfolders, all YAML files with a line 'scenario:' are rewritten.

            --migrate replaces only the words that have been renamed, in scenarios and saved failures, in timelines and \
            profiles, and in files of --results; comments and layout stay. It prints each replacement with its location. \
            The files that a scenario extends are migrated too. 'refuse' becomes 'offline' with 'signalled: false', so that \
            the run stays the same.

            Exit status: 0 success; 1 with --check: a file would be changed; 64 wrong arguments; 65 a file is not \
            valid YAML or cannot be read.
            """)

    @Argument(help: "Paths of files or folders.", completion: NameCompletion.file)
    var paths: [String]

    @Flag(help: "Change nothing; list the files, or with --migrate the words, that would be changed.")
    var check = false

    @Flag(help: "Replace the words that have been renamed, and nothing else.")
    var migrate = false

    /// The keys of the files of a folder that are migrated.
    private static let migratedKeys = ["scenario", "timeline", "profile"]

    func run() throws {
        if migrate { return try migrateFiles() }
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

    private func migrateFiles() throws {
        let console = Console()
        var isValid = true
        var hasChanges = false
        do {
            var left = try ScenarioFiles.select(paths, keys: Self.migratedKeys).paths
            var seen: Set<String> = []
            while let path = left.first {
                left.removeFirst()
                guard seen.insert(path).inserted else { continue }
                let text = try ScenarioFiles.readWhole(path)
                let result: FileMigration
                do {
                    result = try FileMigration(text, file: path)
                } catch {
                    console.errors(error)
                    isValid = false
                    continue
                }
                for warning in result.warnings { console.print("\(warning)", to: .progress) }
                for replacement in result.replacements { console.print("\(replacement)") }
                if let extended = result.extended { left.append(ScenarioFiles.path(extended, namedIn: path)) }
                if result.text == text { continue }
                hasChanges = true
                if !check { try ScenarioFiles.write(result.text, to: path) }
            }
        } catch {
            console.error(error)
            throw ExitStatus.invalidFile
        }
        if !isValid { throw ExitStatus.invalidFile }
        if check && hasChanges { throw ExitStatus.failed }
    }
}
