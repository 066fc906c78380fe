internal import CommandSupport
internal import ConfigFiles
internal import Scenario
internal import Wire
internal import Worlds

/// What is printed below the first failure of a class, as text or as a JSON line.
public struct FailureAddition: Sendable {
    /// The lines of the text.
    public var lines: [String]
    /// The JSON line; `nil` if there is none.
    public var json: String?

    /// Creates an addition.
    public init(lines: [String], json: String? = nil) {
        self.lines = lines
        self.json = json
    }
}

extension FailureAddition {
    /// Shrinks a failing run of an exploration, writes the scenario file, and returns the file with the command that
    /// repeats it. Blocks.
    public static func shrinking(
        _ failure: SeedFailure, to folder: String = FailureFile.folder, timeMax: Duration = RunShrinker.timeMax,
        worlds: RunWorlds = .standard
    ) -> FailureAddition {
        var shrinker = RunShrinker(worlds: worlds)
        shrinker.check = failure.check
        shrinker.timeMax = timeMax
        guard let shrunk = shrinker.shrink(failure.run) else {
            return FailureAddition(lines: ["  not shrunk: the run without draws does not fail in the same way"])
        }
        let path: String
        let scenario: Scenario
        do {
            path = try FailureFile(shrunk).write(to: folder)
            scenario = try ScenarioCatalogue.scenario(path.contains("/") ? path : "./\(path)").scenario
        } catch {
            return FailureAddition(lines: ["  not shrunk: \(error)"])
        }
        let replay = PlannedRun(
            index: 0, source: path, scenario: scenario, world: .simulated, mutants: failure.run.mutants)
        let result = try? worlds.simulated(replay, nil)
        let isSame = (result?.verdict.checks ?? []).contains { check in
            guard case .fail = check.outcome else { return false }
            return check.description == shrunk.result.violation.description
        }
        return FailureAddition(shrunk, replay, isSame: isSame)
    }

    private init(_ shrunk: ShrunkRun, _ replay: PlannedRun, isSame: Bool) {
        let result = shrunk.result
        let arguments = ReplayCommand.arguments(replay)
        lines = [
            "  shrunk to \(ShrunkRun.size(result.scenario)) (\(TextTable.count(result.runs, "run")), "
                + "\(shrunk.seconds)): \(replay.source)" + (result.isComplete ? "" : "; a limit ended the search"),
            "  replay: \(arguments.map(ReplayCommand.quoted).joined(separator: " "))",
        ]
        if !isSame { lines.append("  the file does not fail in the same way (please report)") }
        json = JSONText.object([
            ("type", JSONText.string("shrunk_failure")), ("seed", JSONText.string("\(shrunk.run.seed)")),
            ("check", JSONText.string(result.violation.description)), ("file", JSONText.string(replay.source)),
            ("steps", "\(result.scenario.steps.count)"), ("faults", "\(result.scenario.faults.count)"),
            ("runs", "\(result.runs)"), ("complete", result.isComplete ? "true" : "false"),
            ("reproducible", isSame ? "true" : "false"),
            ("wall_ms", "\(Int64((shrunk.wallTime / .milliseconds(1)).rounded()))"),
            ("replay", ExplorationReport.strings(arguments)),
        ])
    }
}
