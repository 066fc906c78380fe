internal import ConfigFiles
internal import Scenario
internal import Worlds

/// A run that must fail, at the end of each shard: it shows that failures reach the merged report.
enum Canary {
    static let source = "canary"

    private static let text = """
        scenario: 1
        name: canary
        about: A run that must fail.
        server: { notes: { n1: { title: Canary, text: one } } }
        devices: { A: { user: ada } }
        network: { A: { 0s: wifi } }
        steps: [{ at: 1s, A: { edit: n1, text: two } }]
        expect: { finally: { server: { n1: { text: three } } } }

        """

    /// Returns whether the run fails, as it must. Blocks until its end.
    static func hasFailed(_ worlds: RunWorlds, seed: UInt64) -> Bool {
        (try? worlds.simulated(run(index: 0, seed: seed), nil))?.verdict.result == .fail
    }

    static func run(index: Int, seed: UInt64) -> PlannedRun {
        // The text is valid: the tests run it.
        let scenario = (try? ScenarioFile(parsing: text, file: source).scenario) ?? Scenario(name: source)
        return PlannedRun(
            index: index, source: source, scenario: scenario, world: .simulated, seed: seed, isCanary: true)
    }
}
