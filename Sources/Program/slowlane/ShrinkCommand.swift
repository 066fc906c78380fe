internal import ArgumentParser
internal import CommandSupport
internal import ConfigFiles
internal import MutantGallery
internal import Scenario
internal import ScenarioRunner

/// `slowlane shrink`.
struct ShrinkCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "shrink",
        abstract: "Find the smallest scenario that fails in the same way as a run, and write it to a file.",
        discussion: """
            Examples:
              slowlane shrink mine.yaml --seed 17
              slowlane shrink commuter-30-minutes --variant none --mutant no-backoff
              slowlane run .slowlane/failures/bounded-retries-a.yaml --mutant no-backoff

            A simulated run that fails is repeated with fewer steps, faults, devices and changes of networks, and with \
            simpler values, as long as the same invariant or expectation fails. Random values of the run become \
            explicit: actions of the workload with their times, faults that fired, changes of flapping links. The \
            result is an ordinary scenario file with a comment on its origin. With the same --mutant options, it fails in \
            the same way as the run. An existing file with another failure is not replaced.

            Equal arguments give equal files, unless --timeout ends the search. docs/how-to/exploration.md has the details.

            Exit status: 0 a failing run was shrunk; 1 no selected run fails; 4 no scenario selected; 64 wrong arguments; \
            65 invalid file; 69 cannot write the file; 70 the file does not fail in the same way (please report); 130 \
            interrupted.
            """)

    @Argument(
        help: ArgumentHelp("Built-in scenarios, files, folders or quoted patterns.", valueName: "scenarios"),
        completion: NameCompletion.scenario)
    var scenarios: [String]

    @Option(
        help: ArgumentHelp(
            "Shrink this variant only; 'none' is the scenario without a variant. (default: all)", valueName: "name"))
    var variant: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Random seed. (default: the seed of the scenario)", valueName: "number"),
        transform: SeedArgument.parse)
    var seed: UInt64?

    @Option(
        name: .customLong("mutant"),
        help: ArgumentHelp(
            "Deliberate defect of the client or the server (repeatable). 'slowlane mutation-test --list' lists them.",
            valueName: "name"), completion: .list(MutantGallery.mutants.map(\.name)))
    var mutants: [String] = []

    @Option(help: ArgumentHelp("Folder of the files.", valueName: "folder"))
    var output = FailureFile.folder

    @Option(help: ArgumentHelp("Greatest number of runs of a search.", valueName: "number"))
    var runs = Shrinker.runsMax

    @Option(help: ArgumentHelp("Greatest time of a search in seconds.", valueName: "seconds"))
    var timeout = 10.0

    @Flag(help: "Print texts of notes that are not part of the scenario file. (default: length and digest)")
    var showText = false

    @Flag(help: "Print JSON, one object per line.")
    var json = false

    @Flag(name: .shortAndLong, help: "Print results only.")
    var quiet = false

    func validate() throws {
        try MutantName.validate(mutants)
        guard timeout > 0, timeout <= 1_000_000 else {
            throw ValidationError("--timeout \(timeout) must be above 0 and at most 1000000 seconds")
        }
        guard (1...1_000_000).contains(runs) else { throw ValidationError("--runs \(runs) must be 1 to 1000000") }
        guard !output.isEmpty else { throw ValidationError("--output needs a folder") }
    }

    func run() async throws {
        var options = ShrinkSession.Options(scenarios: scenarios)
        options.variant = variant
        options.seed = seed
        options.mutants = mutants.map { MutantGallery[$0] }
        options.folder = output
        options.runsMax = runs
        options.timeMax = .seconds(timeout)
        options.showsText = showText
        options.isJSON = json
        options.isQuiet = quiet
        let console = Console(wantsStatusLine: false, hasPrompt: false)
        let session = ShrinkSession(options, console: console)
        try await Interruption.run(console) { try await session.run() }
    }
}
