import ConfigFiles
import Reader
import Scenario
import Testing
import Worlds

/// The built-in scenarios of the network-first reader.
@Suite struct ReaderScenarioTests {
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
        #expect(Scenario.App.reader.markerField == ReaderEngine.markerField)
        #expect(words.dialogs == [ReaderText.notSaved, ReaderText.notSent, ReaderText.sending])
        let problems = ReaderProblem.allCases.map(\.rawValue)
        #expect(words.toasts == (problems + [ReaderText.sent, ReaderText.sentLater]).sorted())
    }
}
