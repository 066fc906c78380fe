import ConfigFiles
import ReaderEngine
import ScenarioModel
import ScenarioWorld
import SimulatedWorld
import Testing

/// The built-in scenarios of the network-first reader.
@Suite struct ReaderScenarioTests {
    private static let names = [
        "reader-bad-server", "reader-blocking-form", "reader-cold-start-offline", "reader-commute",
        "reader-data-saver", "reader-non-blocking-form", "reader-page-load", "reader-received-data",
        "reader-save-state", "reader-short-cache", "reader-ttl-cache", "reader-user-started-get",
    ]

    @Test(arguments: names) func allRunsPassWithTheSameEventsAgain(_ name: String) throws {
        for scenario in try ScenarioCatalogue.scenario(name).runs(ofVariant: nil) {
            let first = try SimulatedRun.run(scenario)
            let failed = first.verdict.checks.filter { if case .pass = $0.outcome { false } else { true } }
            #expect(first.verdict.result == .pass, "\(scenario.fullName): \(failed.map(\.description))")
            #expect(try SimulatedRun.run(scenario).digest == first.digest, "\(scenario.fullName)")
        }
    }

    @Test(arguments: ReaderMutant.allCases) func aScenarioDetectsEachMutant(_ mutant: ReaderMutant) throws {
        let runs = try Self.names.flatMap { try ScenarioCatalogue.scenario($0).runs(ofVariant: nil) }
        let failed = try runs.filter { try SimulatedRun.run($0, mutants: [.reader(mutant)]).verdict.result == .fail }
        #expect(Set(failed.map(\.name)).count >= 2, "\(failed.map(\.fullName))")
    }

    /// The user acts again if the app was killed before the commit of an act.
    @Test(arguments: ["reader-save-state", "reader-received-data"])
    func aKillAtACommitBoundaryLeadsToTheSameEnd(_ name: String) throws {
        for scenario in try ScenarioCatalogue.scenario(name).runs(ofVariant: "none") {
            let sweep = try KillSweep(scenario)
            #expect(sweep.differences.isEmpty && sweep.kills > 1, "\(sweep.differences)")
        }
    }

    @Test func theFormatKnowsTheValuesOfTheApp() {
        let words = AppVocabulary.reader
        #expect(words.dialogs == [ReaderText.notSaved, ReaderText.notSent, ReaderText.sending])
        let problems = ReaderProblem.allCases.map(\.rawValue)
        #expect(words.toasts == (problems + [ReaderText.sent, ReaderText.sentLater]).sorted())
    }
}
