internal import ArgumentParser
internal import CommandSupport
internal import ConfigFiles
internal import Foundation
internal import MutantGallery
internal import ScenarioRunner
internal import Synchronization

/// `slowlane run`.
struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Run scenarios and report whether every expectation held.",
        discussion: """
            Examples:
              slowlane run edit-conflict-after-subway
              slowlane run scenarios
              slowlane run 'scenarios/**/sync-*.yaml' --jobs 4
              slowlane run create-retried-after-lost-response --variant orig
              slowlane run edit-conflict-after-subway --live
              slowlane run edit-conflict-after-subway --report report
              slowlane run scenarios --junit results.xml
              slowlane run scenarios --shard 2/4 --results out/2.jsonl
              slowlane run scenarios --live --tag outage --timeout 600
              slowlane run scenarios/mine.yaml --watch
              slowlane run scenarios/mine.yaml --seed 17 --shrink
              slowlane run scenarios/mine.yaml --device A='node app.js'

            With --mutant the client or the server has a deliberate defect, and the scenario must fail ('slowlane \
            mutation-test --list' describes the mutants):
              slowlane run edit-conflict-after-subway \\
                  --mutant overwrites-on-conflict

            Each scenario and each of its variants runs in simulation, in milliseconds. The scenario and the seed determine \
            every event: equal runs have equal digests. A run that does not pass is repeated, and its failure explained \
            with a command that replays it. With --live a run takes as long as the scenario says: it starts a notes \
            server, and a proxy and a sync client for each device, on free ports of this machine. A scenario with a \
            program of yours, as the server or as the client of a device, always runs live; docs/reference/adapter.md \
            describes what such a program reads and writes.

            Results go to standard output, progress to standard error. NO_COLOR has no effect: there are no colors.

            Exit status: 0 pass; 1 an expectation failed, or with --both the verdicts differ; 3 inconclusive (a fault \
            did not fire, a \
            state was not reached, or the system paused the process); 4 no scenario selected; 64 wrong arguments; 65 \
            invalid file; 69 cannot bind a port or write a file; 70 equal runs differed (please report); 124 the time \
            limit has passed; 130 interrupted. Of several runs the worst counts: 70, 1, 69, 65, 3, 0.
            """)

    @Argument(
        help: ArgumentHelp(
            "Built-in scenarios, files, folders (searched for *.yaml and *.yml with the key 'scenario'), or quoted patterns.",
            valueName: "scenarios"),
        completion: NameCompletion.scenario)
    var scenarios: [String]

    /// The ways to run a scenario.
    enum World: String, EnumerableFlag {
        case simulated, live, both

        static func help(for value: World) -> ArgumentHelp? {
            switch value {
            case .simulated:
                "Run in simulation, without sockets and files. (default, unless a program is part of the run)"
            case .live: "Run live, over real sockets."
            case .both: "Run simulated and live, and fail if the verdicts differ."
            }
        }

        var worlds: [RunWorld] {
            switch self {
            case .simulated: [.simulated]
            case .live: [.live]
            case .both: [.simulated, .live]
            }
        }
    }

    @Flag(exclusivity: .exclusive)
    var world: World?

    @Option(
        help: ArgumentHelp(
            "Run this variant only; 'none' is the scenario without a variant. (default: all)", valueName: "name"))
    var variant: String?

    @Option(
        help: ArgumentHelp(
            "Run only scenarios and variants with this tag (repeatable: with any of the tags).", valueName: "name"))
    var tag: [String] = []

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Random seed. (default: the seed of the scenario)", valueName: "number"),
        transform: SeedArgument.parse)
    var seed: UInt64?

    @Option(
        name: .customLong("mutant"),
        help: ArgumentHelp(
            "Deliberate defect of the client or the server (repeatable). 'slowlane mutation-test --list' lists them.",
            valueName: "name"))
    var mutants: [String] = []

    @Option(
        help: ArgumentHelp(
            "Runs at the same time. (default: number of CPUs; 1 with --live or --both)", valueName: "number"))
    var jobs: Int?

    @Option(help: ArgumentHelp("Time limit of all runs, in seconds. (default: none)", valueName: "seconds"))
    var timeout: Double?

    @Flag(help: "Repeat every run in simulation and compare all events. (default: runs that do not pass)")
    var checkDeterminism = false

    /// The forms of the results on standard output.
    enum Output: String, EnumerableFlag {
        case text, trace, json, tap

        static func help(for value: Output) -> ArgumentHelp? {
            switch value {
            case .text: "Print results as text."
            case .trace: "Print every event of each run with its time, one per line."
            case .json: "Print results as JSON lines."
            case .tap: "Print results in TAP, version 14."
            }
        }
    }

    @Flag(exclusivity: .exclusive)
    var output = Output.text

    @Option(
        name: .customLong("device"),
        help: ArgumentHelp(
            "Program to run as the client of a device, for instance --device A='python3 app.py' (repeatable).",
            valueName: "name=command"))
    var devices: [DeviceProgram] = []

    @Flag(help: "Print approximations and skipped checks, and run nothing.")
    var dryRun = false

    @Flag(
        name: .customLong("shrink"),
        help: "Shrink the first 3 failing runs in simulation to scenario files in .slowlane/failures.")
    var shrinks = false

    @OptionGroup var sharding: ShardOptions

    @Option(
        help: ArgumentHelp(
            "Write a page with the history of the run (report.html) and its data (result.json). Several runs have a "
                + "folder each.", valueName: "folder"))
    var report: String?

    @Option(help: ArgumentHelp("Write results to a JUnit XML file.", valueName: "file"))
    var junit: String?

    @Flag(help: "Print annotations for GitHub Actions. (default: if GITHUB_ACTIONS is true)")
    var github = false

    @Flag(help: "Print texts of notes that are not part of the scenario file. (default: length and digest)")
    var showText = false

    @Flag(help: "Run again whenever a file changes, until interrupted.")
    var watch = false

    @Flag(name: .shortAndLong, help: "Print results only.")
    var quiet = false

    func validate() throws {
        try MutantName.validate(mutants)
        if let timeout {
            guard timeout > 0, timeout <= 1_000_000 else {
                throw ValidationError("--timeout \(timeout) must be above 0 and at most 1000000 seconds")
            }
            if watch { throw ValidationError("--timeout and --watch exclude each other") }
        }
        if shrinks, [.tap, .trace].contains(output) {
            throw ValidationError("--shrink has no output in the form of --tap and --trace")
        }
        if sharding.shard != nil, watch { throw ValidationError("--shard and --watch exclude each other") }
        if let jobs, !(1...1024).contains(jobs) { throw ValidationError("--jobs \(jobs) must be 1 to 1024") }
    }

    private func options(_ console: Console) throws -> RunSession.Options {
        let environment = ProcessInfo.processInfo.environment
        var options = RunSession.Options(scenarios: scenarios)
        options.variant = variant
        options.tags = tag
        options.worlds = world?.worlds
        for program in devices { options.clients[program.device] = program.program }
        options.isDryRun = dryRun
        options.shrinks = shrinks
        options.seed = seed
        options.mutants = mutants.map { MutantGallery[$0] }
        options.jobs = jobs
        options.checksDeterminism = checkDeterminism
        options.isQuiet = quiet
        options.showsText = showText
        options.output =
            switch output {
            case .text: .text
            case .trace: .trace
            case .json: .json
            case .tap: .tap
            }
        options.shard = try sharding.resolved(console)
        options.resultsPath = sharding.results
        options.reportFolder = report
        options.junitPath = junit
        options.isOnGitHub = github || environment["GITHUB_ACTIONS"] == "true"
        options.githubSummaryPath = environment["GITHUB_STEP_SUMMARY"].flatMap { $0.isEmpty ? nil : $0 }
        return options
    }

    /// Whether the time limit has passed.
    private final class TimeLimit: Sendable {
        let hasPassed = Mutex(false)
    }

    func run() async throws {
        let console = Console(wantsStatusLine: !quiet, hasPrompt: false)
        let limit = TimeLimit()
        var options = try options(console)
        options.hasTimedOut = { limit.hasPassed.withLock { $0 } }
        let session = RunSession(options, console: console)
        let isWatching = watch
        let time = timeout.map { seconds in
            Interruption.Limit(seconds: seconds) { limit.hasPassed.withLock { $0 = true } }
        }
        try await Interruption.run(console, limit: time) {
            isWatching ? try await session.watch() : try await session.run()
        }
    }
}
