internal import ArgumentParser
internal import CommandSupport
internal import ConfigFiles
internal import LiveWorld
internal import ScenarioModel
internal import ScenarioWorld
internal import SimulatedWorld
internal import SyncEngine
internal import Synchronization

/// `slowlane run`.
struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Run scenarios and report whether every expectation held.",
        discussion: """
            Examples:
              slowlane run edit-conflict-after-subway
              slowlane run scenarios/*.yaml
              slowlane run create-retried-after-lost-response --variant orig
              slowlane run edit-conflict-after-subway --live

            With --mutant the client has a deliberate defect, and the scenario must fail:
              slowlane run edit-conflict-after-subway \\
                  --mutant overwrites-on-conflict

            Each scenario and each of its variants runs in virtual time, in milliseconds. The scenario and the seed determine \
            every event: equal runs have equal digests. With --live a run takes as long as the scenario says: it starts a \
            notes server, and a proxy and a sync client for each device, on free ports of this machine.

            Exit status: 0 pass; 1 an expectation failed; 3 inconclusive (a fault did not fire, a state was not reached, or \
            the system paused the process); 64 wrong arguments; 65 invalid file; 69 cannot bind a port; 130 interrupted.
            """)

    @Argument(help: "Built-in scenarios or paths of scenario files.")
    var scenarios: [String]

    /// The ways to run a scenario.
    enum World: String, EnumerableFlag {
        case simulated, live, both

        static func help(for value: World) -> ArgumentHelp? {
            switch value {
            case .simulated: "Run in virtual time, without sockets and files. (default)"
            case .live: "Run in real time over real sockets."
            case .both: "Run in virtual time and in real time, and fail if the verdicts differ."
            }
        }
    }

    @Flag(exclusivity: .exclusive)
    var world = World.simulated

    @Option(
        help: ArgumentHelp(
            "Run this variant only; 'none' is the scenario without a variant. (default: all)", valueName: "name"))
    var variant: String?

    @Option(help: ArgumentHelp("Random seed. (default: the seed of the scenario)", valueName: "number"))
    var seed: UInt64?

    @Option(
        help: ArgumentHelp(
            "Deliberate defect of the client: \(Mutant.allCases.map(\.rawValue).joined(separator: ", ")).",
            valueName: "name"))
    var mutant: String?

    @Flag(name: .shortAndLong, help: "Print results only.")
    var quiet = false

    func validate() throws {
        if let mutant, Mutant(rawValue: mutant) == nil {
            let names = Mutant.allCases.map(\.rawValue)
            throw ValidationError(
                "--mutant '\(mutant.prefix(40))' must be one of \(names.joined(separator: ", "))"
                    + NearestName.hint(mutant, in: names))
        }
    }

    func run() async throws {
        let console = Console()
        let events = ForegroundEvents()
        let plan = try selected(console)
        // A signal cancels the run, which removes its temporary folder.
        let running = Task { try await run(plan, console) }
        let watching = Task {
            if await events.next() != nil { running.cancel() }
        }
        defer { watching.cancel() }
        let status: Int32
        do {
            status = try await running.value
        } catch is CancellationError {
            console.print("interrupted", to: .progress)
            throw ExitStatus.interrupted
        } catch {
            console.error("\(error)")
            throw error is SetupError
                ? ExitStatus.invalidFile : ExitStatus.unavailable
        }
        if status != 0 { throw ExitCode(status) }
    }

    private func selected(_ console: Console) throws -> [Scenario] {
        var plan: [Scenario] = []
        var isValid = true
        for name in scenarios {
            do {
                plan += try ScenarioCatalogue.scenario(name).runs(ofVariant: variant)
            } catch {
                console.print("\(error)", to: .progress)
                if case .unknown = error { throw ExitStatus.usage }
                isValid = false
            }
        }
        if !isValid { throw ExitStatus.invalidFile }
        if plan.isEmpty {
            console.error("no scenario has a variant '\(variant ?? "")'")
            throw ExitStatus.usage
        }
        return plan
    }

    /// Runs scenarios one after the other and returns the worst exit status.
    private func run(_ plan: [Scenario], _ console: Console) async throws -> Int32 {
        var results: [Verdict.Result] = []
        var worldsAgree = true
        for scenario in plan {
            var result: Verdict.Result?
            if world != .live {
                let verdict = try runSimulated(scenario, console)
                result = verdict.result
                results.append(verdict.result)
            }
            if world != .simulated {
                let verdict = try await runLive(scenario, console)
                if let result, result != verdict.result {
                    console.print(
                        "\(scenario.fullName): the verdicts differ: simulated \(result.rawValue), live "
                            + verdict.result.rawValue)
                    worldsAgree = false
                }
                results.append(verdict.result)
            }
        }
        if results.count > 1 {
            console.print("\(results.count { $0 == .pass }) of \(results.count) runs passed")
        }
        return Verdict.Result.worst(of: worldsAgree ? results : [.fail]).exitStatus
    }

    private var deliberateDefect: Mutant? { mutant.flatMap(Mutant.init(rawValue:)) }

    private func announce(_ scenario: Scenario, _ world: World, _ console: Console) {
        if quiet { return }
        console.print("\(scenario.fullName), seed \(seed ?? scenario.seed), \(world.rawValue)", to: .progress)
        if !scenario.about.isEmpty { console.print(TextTable.wrapped(scenario.about), to: .progress) }
    }

    private func runSimulated(_ scenario: Scenario, _ console: Console) throws -> Verdict {
        announce(scenario, .simulated, console)
        var log = RunLog()
        let result = try SimulatedRun.run(scenario, mutant: deliberateDefect, seed: seed) { entry in
            if !quiet, let line = log.line(entry) { console.print(line, to: .progress) }
        }
        try Task.checkCancellation()
        if !quiet { console.print("", to: .progress) }
        var lines = VerdictText.lines(result.verdict, of: scenario.fullName, showsPasses: !quiet)
        if !quiet {
            lines.insert("  digest \(result.digestText), \(result.eventCount) events", at: max(0, lines.count - 1))
        }
        for line in lines { console.print(line) }
        return result.verdict
    }

    private func runLive(_ scenario: Scenario, _ console: Console) async throws -> Verdict {
        announce(scenario, .live, console)
        let isQuiet = quiet
        let log = Mutex(RunLog())
        let verdict = try await LiveRun.run(scenario, mutant: deliberateDefect, seed: seed) { entry in
            let line = log.withLock { $0.line(entry) }
            if !isQuiet, let line { console.print(line, to: .progress) }
        }.verdict
        try Task.checkCancellation()
        if !quiet { console.print("", to: .progress) }
        for line in VerdictText.lines(verdict, of: scenario.fullName, showsPasses: !quiet) { console.print(line) }
        return verdict
    }
}
