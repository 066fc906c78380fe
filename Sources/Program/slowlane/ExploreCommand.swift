internal import ArgumentParser
internal import CommandSupport
internal import ConfigFiles
internal import Determinism
internal import Foundation
internal import MutantGallery
internal import Scenario
internal import ScenarioRunner

/// `slowlane explore`.
struct ExploreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explore",
        abstract: "Search for failing runs of a scenario over many seeds.",
        discussion: """
            Examples:
              slowlane explore two-device-soak
              slowlane explore two-device-soak --seeds '0..<2000' --jobs 8
              slowlane explore scenarios/mine.yaml --time 10m
              slowlane explore two-device-soak --seed commit --time 1h
              slowlane explore two-device-soak --seed 17
              slowlane explore two-device-soak --mutant no-backoff
              slowlane explore two-device-soak --all-mutants
              slowlane explore two-device-soak --shard 2/4 --results out/2.jsonl
              slowlane explore scenarios/mine.yaml --vary network,faults

            Each seed draws a run from the scenario: links, faults, actions of users, kills, the server's contract, and the \
            delays of the clients. Each class of faults is off in half of the seeds. After ten simulated minutes all \
            faults end, and the devices must converge, except a device whose link stays dead. Only the invariants of the \
            scenario are checked, not its other expectations; but each 'sometimes' must be reached by at least one \
            seed. docs/how-to/exploration.md has the details.

            A seed always draws the same run. Failing seeds and one in twenty of the others run twice, and must have the \
            same events. Failures are grouped by the failed check and the kind of its subject (a note, a device or the run); the first of each group is \
            explained, with the command that repeats it, and shrunk for at most 10 s to a scenario file in \
            .slowlane/failures. Shards need no communication: 'slowlane merge-reports' makes one report of their files.

            Exit status: 0 every seed passes; 1 a seed fails; 3 a 'sometimes' was never reached; 4 no scenario selected; 64 \
            wrong arguments; 65 invalid file; 70 equal runs differed (please report); 130 interrupted.
            """)

    @Argument(
        help: ArgumentHelp("Built-in scenario, or a file.", valueName: "scenario"),
        completion: NameCompletion.scenario)
    var scenario: String

    @Option(help: ArgumentHelp("Variant of the scenario. (default: none)", valueName: "name"))
    var variant: String?

    @Option(
        help: ArgumentHelp(
            "Seeds: '0..<1000', '1000+200' or '200'. (default: as many as the scenario says, else 200, from seed 0)",
            valueName: "range"))
    var seeds: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Run this seed only and print its configuration. 'commit': run many seeds, beginning at the number of the current "
                + "git commit.", valueName: "number|commit"))
    var seed: String?

    @Option(help: ArgumentHelp("Begin no seed after this time, such as 10m.", valueName: "duration"))
    var time: String?

    @Option(
        help: ArgumentHelp(
            "Parts that are drawn: workload, network, faults and config, separated by commas. (default: the parts of "
                + "the scenario, or all)", valueName: "parts"))
    var vary: String?

    @Option(
        help: ArgumentHelp(
            "Classes of faults to draw in nine of ten seeds, separated by commas; --verbose prints their names. 'auto' "
                + "chooses, after every 50 seeds, the classes whose faults no seed has applied to a change yet. (default: none)",
            valueName: "auto|classes"))
    var bias: String?

    @Option(
        name: .customLong("mutant"),
        help: ArgumentHelp(
            "Deliberate defect of the client or the server (repeatable). 'slowlane mutation-test --list' lists them.",
            valueName: "name"))
    var mutants: [String] = []

    @Flag(help: "Run each mutant until a seed detects it, and print the numbers of seeds.")
    var allMutants = false

    @Flag(help: "Print what the runs have reached: states of clients, results by states of notes, faults.")
    var coverage = false

    @Flag(
        help:
            "Do not shrink: by default, the first failure of each group becomes a scenario file in .slowlane/failures.")
    var noShrink = false

    @OptionGroup var sharding: ShardOptions

    @Flag(help: "Print every event of the run of --seed with its time, one per line.")
    var trace = false

    @Option(help: ArgumentHelp("Threads. (default: number of CPUs)", valueName: "number"))
    var jobs: Int?

    @Flag(help: "Print JSON, one object per line.")
    var json = false

    @Flag(help: "Print texts of notes that are not part of the scenario. (default: length and digest)")
    var showText = false

    @Flag(name: .shortAndLong, help: "Print the configuration of every seed.")
    var verbose = false

    @Flag(name: .shortAndLong, help: "Print results only.")
    var quiet = false

    private static let commit = "commit"
    private static let automatic = "auto"

    func validate() throws {
        try MutantName.validate(mutants)
        if let seeds, SeedRange(seeds) == nil {
            throw ValidationError("--seeds '\(seeds.prefix(40))' must be a range such as 0..<1000, 1000+200 or 200")
        }
        if let seed, seed != Self.commit {
            guard UInt64(seed) != nil else {
                throw ValidationError(
                    "--seed '\(seed.prefix(40))' must be a whole number from 0 to \(UInt64.max), or commit")
            }
            if seeds != nil || time != nil || allMutants {
                throw ValidationError("--seed \(seed) is one seed; it excludes --seeds, --time and --all-mutants")
            }
        }
        if let time, duration(time) == nil {
            throw ValidationError("--time '\(time.prefix(40))' must be a duration above 0, such as 90s, 10m or 1h")
        }
        if let bias, Self.bias(bias) == nil {
            let known = SwarmClass.allCases.map(\.rawValue).joined(separator: ", ")
            throw ValidationError("--bias '\(bias.prefix(60))' must be auto, or a list of \(known)")
        }
        if sharding.shard != nil, bias == Self.automatic {
            throw ValidationError("--bias auto depends on the results of earlier seeds; it excludes --shard")
        }
        if sharding.shard != nil || sharding.results != nil {
            if time != nil || allMutants || (seed != nil && seed != Self.commit) {
                throw ValidationError("--shard and --results exclude --time, --all-mutants and a single --seed")
            }
            if sharding.shard != nil, sharding.results == nil {
                throw ValidationError("--shard needs --results, the file that 'slowlane merge-reports' reads")
            }
        }
        if allMutants && time != nil { throw ValidationError("--all-mutants and --time exclude each other") }
        if trace && (json || seed.map { $0 == Self.commit } ?? true) {
            throw ValidationError("--trace prints the events of one seed as text: it needs --seed and excludes --json")
        }
        if let jobs, !(1...1024).contains(jobs) { throw ValidationError("--jobs \(jobs) must be 1 to 1024") }
        if let vary, parts(vary) == nil {
            let known = Scenario.Exploration.Part.allCases.map(\.rawValue).joined(separator: ", ")
            throw ValidationError("--vary '\(vary.prefix(60))' must be a list of \(known), separated by commas")
        }
    }

    private static func bias(_ text: String) -> Explorer.Bias? {
        if text == automatic { return .automatic }
        let names = text.split(separator: ",", omittingEmptySubsequences: false)
        let found = names.compactMap { SwarmClass(rawValue: String($0)) }
        return found.count == names.count ? .classes(found) : nil
    }

    private func duration(_ text: String) -> Duration? {
        TimelineFile.time(text).flatMap { $0.count > 0 ? .nanoseconds($0.count) : nil }
    }

    private func parts(_ text: String) -> [Scenario.Exploration.Part]? {
        let names = text.split(separator: ",", omittingEmptySubsequences: false)
        let found = names.compactMap { Scenario.Exploration.Part(rawValue: String($0)) }
        return found.count == names.count ? found : nil
    }

    private func options(_ console: Console) throws -> Explorer.Options {
        var options = Explorer.Options(scenario: scenario)
        options.variant = variant
        options.seeds = seeds.flatMap { SeedRange($0) }
        options.seed = seed.flatMap { UInt64($0) }
        options.isFromCommit = seed == Self.commit
        options.time = time.flatMap { duration($0) }
        options.parts = vary.flatMap { parts($0) }
        options.mutants = mutants.map { MutantGallery[$0] }
        options.jobs = jobs
        options.isJSON = json
        options.isQuiet = quiet
        options.isVerbose = verbose
        options.showsCoverage = coverage
        options.showsText = showText
        options.shrinksGallery = !noShrink
        if !noShrink { options.onFailure = { FailureAddition.shrinking($0) } }
        options.bias = bias.flatMap(Self.bias) ?? Explorer.Bias.none
        options.resultsPath = sharding.results
        options.shard = try sharding.resolved(console)
        options.isTraced = trace
        return options
    }

    func run() async throws {
        let console = Console(wantsStatusLine: !quiet && !json, hasPrompt: false)
        let explorer = Explorer(try options(console), console: console)
        let isGallery = allMutants
        try await Interruption.run(console) {
            isGallery ? try await explorer.run(gallery: MutantGallery.mutants) : try await explorer.run()
        }
    }
}
