internal import ArgumentParser
internal import CommandSupport
internal import Foundation
internal import ScenarioRunner

/// `slowlane merge-reports`.
struct MergeReportsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "merge-reports",
        abstract: "Merge the results of all shards of a batch into one report.",
        discussion: """
            Examples:
              slowlane run scenarios --shard 1/4 --results out/1.jsonl
              slowlane merge-reports out
              slowlane merge-reports out --junit results.xml
              slowlane merge-reports out/*.jsonl --tap
              slowlane explore two-device-soak --shard 1/4 --results out/1.jsonl

            The files must be the complete results of all shards of one batch: of the same version of the program, the \
            same scenario files and the same seeds. Each shard has a canary, a run that must fail: its failure shows that \
            failures reach this report. Failures of one kind are printed once, with the run that has the fewest events. \
            For the shards of an exploration, the report is the one that a single process would print, as text or with --json.

            Exit status: the worst of all runs, as with 'slowlane run'; 65 if a shard is missing or the files do not belong \
            together, such as after an edit of a scenario file between two shards; 4 if there is no file; 64 wrong \
            arguments.
            """)

    @Argument(help: ArgumentHelp("Files of results, or folders with files *.jsonl.", valueName: "paths"))
    var paths: [String]

    /// The forms of the results on standard output.
    enum Output: String, EnumerableFlag {
        case text, json, tap

        static func help(for value: Output) -> ArgumentHelp? {
            switch value {
            case .text: "Print failures and counts as text."
            case .json: "Print results as JSON lines."
            case .tap: "Print results in TAP, version 14."
            }
        }
    }

    @Flag(exclusivity: .exclusive)
    var output = Output.text

    @Option(help: ArgumentHelp("Write results to a JUnit XML file.", valueName: "file"))
    var junit: String?

    @Flag(help: "Print annotations for GitHub Actions. (default: if GITHUB_ACTIONS is true)")
    var github = false

    func run() throws {
        let environment = ProcessInfo.processInfo.environment
        var options = MergedResults.Options(paths: paths)
        options.output =
            switch output {
            case .text: .text
            case .json: .json
            case .tap: .tap
            }
        options.junitPath = junit
        options.isOnGitHub = github || environment["GITHUB_ACTIONS"] == "true"
        options.githubSummaryPath = environment["GITHUB_STEP_SUMMARY"].flatMap { $0.isEmpty ? nil : $0 }
        let status = MergedResults(options, console: Console()).run()
        if status != 0 { throw ExitCode(status) }
    }
}
