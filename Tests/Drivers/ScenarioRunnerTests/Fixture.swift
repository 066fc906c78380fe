import ConfigFiles
import Determinism
import MutantGallery
import Scenario
import Worlds

@testable import ScenarioRunner

/// Scenarios and histories for tests.
enum Fixture {
    /// A scenario in which A edits the note n1 on Wi-Fi.
    static let short = """
        scenario: 1
        name: short
        server: { notes: { n1: { title: Milk, text: two } } }
        devices: { A: { user: ada } }
        writers: { W: { user: ada } }
        network: { A: { 0s: wifi } }
        steps: [{ at: 200ms, A: { edit: n1, text: three }, mark: edited }]

        """

    /// That scenario with an expectation that holds.
    static let passing = short + "expect: { finally: { server: { count: 1 } } }\n"

    /// Returns a run of the scenario in a text.
    static func run(
        _ text: String, variant: String? = nil, index: Int = 0, source: String = "short.yaml",
        world: RunWorld = .simulated, seed: UInt64? = nil, mutant: String? = nil
    ) throws -> PlannedRun {
        let file = try ScenarioFile(parsing: text, file: source)
        let scenario = file.runs(ofVariant: variant ?? "none")[0]
        return PlannedRun(
            index: index, source: source, scenario: scenario, world: world, seed: seed,
            mutants: mutant.map { [MutantGallery[$0]] } ?? [])
    }

    /// Returns the finished run in virtual time, without a repetition.
    static func finished(_ run: PlannedRun) throws -> FinishedRun {
        FinishedRun(
            run: run, outcome: .result(try RunWorlds.standard.simulated(run, nil)), repetition: .none,
            wallTime: .milliseconds(12))
    }

    /// Returns the summary of a run in virtual time.
    static func summary(_ run: PlannedRun, showsText: Bool = false, isTraced: Bool = false) throws -> RunSummary {
        RunSummary(try finished(run), showsText: showsText, isTraced: isTraced)
    }

    /// Returns the result of a run with a given history.
    static func result(_ history: History, eventCount: Int = 1, scenario: Scenario = Scenario(name: "s")) -> RunResult {
        RunResult(
            verdict: Verdict(scenario, history), history: history, eventCount: eventCount)
    }

    /// Returns a history of events, one per millisecond.
    static func history(_ events: [History.Event]) -> History {
        var history = History()
        for (index, event) in events.enumerated() { history.append(event, at: .milliseconds(Int64(index))) }
        return history
    }
}
