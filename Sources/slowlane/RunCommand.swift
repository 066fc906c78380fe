internal import ArgumentParser
internal import ConfigFiles
internal import Foundation
internal import ScenarioModel
internal import ScenarioRunner
internal import SyncEngine

/// `slowlane run`.
struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Plays scenarios and says whether everything was true that must be.",
        discussion: """
            Each file is played with all its variants, live: a real server, a real proxy and a real client a device, on free
            ports of this machine.

            Examples:
              slowlane run edit-conflict-after-subway
              slowlane run scenarios/*.yaml --live
              slowlane run create-retried-after-lost-response --variant orig
              slowlane run edit-conflict-after-subway --mutant overwrites-on-conflict    # must fail

            Exit status: 0 pass; 1 an expectation failed; 3 inconclusive (a fault never fired, something was never
            reached, or came too late on a machine that stood still); 64 wrong arguments; 65 a file is invalid; 69 a
            port cannot be had; 130 interrupted.
            """)

    @Argument(help: "Built-in scenarios by name, or paths to files.")
    var scenarios: [String]

    @Flag(help: "In real time over real sockets; the only world there is so far.")
    var live = false

    @Option(help: "Only this variant; 'none' is the scenario itself.")
    var variant: String?

    @Option(help: "Where chance comes from, instead of the file's seed.")
    var seed: UInt64?

    @Option(help: "A deliberate defect of the client: \(Mutant.allCases.map(\.rawValue).joined(separator: ", ")).")
    var mutant: String?

    @Flag(name: .shortAndLong, help: "Print results only.")
    var quiet = false

    func validate() throws {
        if let mutant, Mutant(rawValue: mutant) == nil {
            throw ValidationError(
                "--mutant '\(mutant.prefix(40))' is none of \(Mutant.allCases.map(\.rawValue).joined(separator: ", "))")
        }
    }

    func run() async throws {
        let console = Console()
        let happenings = Happenings()
        let plan = try selected(console)
        // A signal ends everything; the temporary folder goes with it.
        let playing = Task { try await play(plan, console) }
        let watching = Task {
            if await happenings.next() != nil { playing.cancel() }
        }
        defer { watching.cancel() }
        let status: Int32
        do {
            status = try await playing.value
        } catch is CancellationError {
            console.print("interrupted", to: .progress)
            throw ExitStatus.interrupted
        } catch {
            console.print("error: \(error)", to: .progress)
            throw error is LiveRun.SetupError ? ExitStatus.invalidFile : ExitStatus.unavailable
        }
        if status != 0 { throw ExitCode(status) }
    }

    private func selected(_ console: Console) throws -> [Scenario] {
        var plan: [Scenario] = []
        var isValid = true
        for name in scenarios {
            do {
                let file = try ScenarioCatalogue.scenario(name)
                plan += ([file.scenario] + file.variants).filter { variant == nil || ($0.variant ?? "none") == variant }
            } catch {
                console.print("\(error)", to: .progress)
                if case .unknown = error { throw ExitStatus.usage }
                isValid = false
            }
        }
        if !isValid { throw ExitStatus.invalidFile }
        if plan.isEmpty {
            console.print("error: no scenario has a variant '\(variant ?? "")'", to: .progress)
            throw ExitStatus.usage
        }
        return plan
    }

    /// Plays one after the other; gives the worst status.
    private func play(_ plan: [Scenario], _ console: Console) async throws -> Int32 {
        var words: [Verdict.Result] = []
        for scenario in plan {
            if !quiet {
                console.print("\(scenario.fullName), seed \(seed ?? scenario.seed), live", to: .progress)
                if !scenario.about.isEmpty { console.print(Self.folded(scenario.about), to: .progress) }
            }
            let isQuiet = quiet
            let (verdict, _) = try await LiveRun.run(
                scenario, mutant: mutant.flatMap(Mutant.init(rawValue:)), seed: seed
            ) { line in
                if !isQuiet { console.print(line, to: .progress) }
            }
            try Task.checkCancellation()
            tell(verdict, scenario, console)
            words.append(verdict.result)
        }
        if words.count > 1 {
            let passed = words.count { $0 == .pass }
            console.print("\(passed) of \(words.count) pass")
        }
        if words.contains(.fail) { return 1 }
        return words.contains(.inconclusive) ? 3 : 0
    }

    private func tell(_ verdict: Verdict, _ scenario: Scenario, _ console: Console) {
        if !quiet { console.print("", to: .progress) }
        for result in verdict.checks {
            let (word, reason): (String, String) =
                switch result.outcome {
                case .pass: ("ok  ", "")
                case .fail(let reason): ("FAIL", reason)
                case .inconclusive(let reason): ("?   ", reason)
                }
            if quiet && reason.isEmpty { continue }
            console.print("  \(word)  \(result.description)")
            if !reason.isEmpty { console.print("        \(reason) (\(result.location))") }
        }
        console.print("\(scenario.fullName): \(verdict.result.rawValue)")
    }

    /// In lines of at most 100 characters.
    private static func folded(_ text: String) -> String {
        var lines = [""]
        for word in text.split(whereSeparator: \.isWhitespace) {
            let last = lines[lines.count - 1]
            if last.isEmpty {
                lines[lines.count - 1] = String(word)
            } else if last.count + 1 + word.count <= 100 {
                lines[lines.count - 1] += " \(word)"
            } else {
                lines.append(String(word))
            }
        }
        return lines.joined(separator: "\n")
    }
}
