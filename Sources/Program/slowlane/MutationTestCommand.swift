internal import ArgumentParser
internal import CommandSupport
internal import ConfigFiles
internal import MutantGallery
internal import Scenario
internal import ScenarioRunner

/// `slowlane mutation-test`.
struct MutationTestCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mutation-test",
        abstract: "Prove that the scenarios detect deliberate defects of clients and servers.",
        discussion: """
            Examples:
              slowlane mutation-test
              slowlane mutation-test --list
              slowlane mutation-test --mutant no-backoff --mutant no-jitter --all
              slowlane mutation-test --json > mutation-test.jsonl
              slowlane mutation-test --shrink
              slowlane mutation-test scenarios/mine.yaml

            A mutant is a client (the sync client, or the \
            \(ScenarioFormat.text(of: .choice(Scenario.App.allCases.map(\.rawValue)))) app) or a server with one deliberate \
            defect. Every built-in scenario must \
            pass without mutants, in simulation and with all API contracts. Each mutant must be detected by the \
            invariant or expectation that '--list' names, and by at least two scenarios. It runs in one scenario after \
            the other until two have detected it; with --all, it runs in all of them.

            With scenarios of yours, a mutant is detected if any check of any of them fails: mutants that are not \
            detected show which defects of a client your scenarios would miss.

            With --shrink, the first run that detects each mutant is shrunk ('slowlane shrink --help'): the table has the \
            numbers of steps and faults that are left.

            Exit status: 0 all scenarios pass, and all mutants are detected (with --shrink also: at most 10 steps and 2 \
            faults are left); 1 otherwise; 4 no scenario selected; 64 \
            wrong arguments; 65 invalid file; 130 interrupted.
            """)

    @Argument(
        help: ArgumentHelp(
            "Built-in scenarios, files, folders or quoted patterns. (default: all built-in scenarios)",
            valueName: "scenarios"),
        completion: NameCompletion.scenario)
    var scenarios: [String] = []

    @Flag(help: "List the mutants, and run nothing.")
    var list = false

    @Option(
        name: .customLong("mutant"),
        help: ArgumentHelp("Name of a mutant (repeatable). (default: all)", valueName: "name"),
        completion: .list(MutantGallery.mutants.map(\.name)))
    var mutants: [String] = []

    @Flag(name: .customLong("all"), help: "Run each mutant in all scenarios, even after two have detected it.")
    var isExhaustive = false

    @Flag(
        name: .customLong("shrink"),
        help: "Shrink the first run that detects each mutant, and do not look for a second one.")
    var shrinks = false

    @Option(help: ArgumentHelp("Runs at the same time. (default: number of CPUs)", valueName: "number"))
    var jobs: Int?

    @Flag(help: "Print JSON, one object per line.")
    var json = false

    @Flag(name: .shortAndLong, help: "Print results only.")
    var quiet = false

    func validate() throws {
        try MutantName.validate(mutants)
        if let jobs, !(1...1024).contains(jobs) { throw ValidationError("--jobs \(jobs) must be 1 to 1024") }
    }

    func run() async throws {
        var options = MutationTest.Options()
        options.scenarios = scenarios
        options.mutants = mutants.isEmpty ? MutantGallery.mutants : mutants.map { MutantGallery[$0] }
        options.isExhaustive = isExhaustive
        options.shrinks = shrinks
        options.jobs = jobs
        options.isJSON = json
        options.isQuiet = quiet
        let console = Console(wantsStatusLine: !quiet && !json, hasPrompt: false)
        let test = MutationTest(options, console: console)
        if list { return test.list() }
        try await Interruption.run(console) { try await test.run() }
    }
}

/// Names of mutants as arguments.
enum MutantName {
    /// Throws if a name is not that of a mutant.
    static func validate(_ names: [String]) throws {
        for name in names where MutantGallery.mutant(named: name) == nil {
            throw ValidationError(
                "--mutant '\(name.prefix(40))' is not the name of a mutant"
                    + NearestName.hint(name, in: MutantGallery.mutants.map(\.name))
                    + " ('slowlane mutation-test --list' lists them)")
        }
    }
}
