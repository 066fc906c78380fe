import ConfigFiles
import Field
import Scenario
import TestSupport
import Testing
import Worlds

/// The built-in scenarios of the field app.
@Suite struct FieldScenarioTests {
    @Test(arguments: randomSeeds(5, from: 1))
    func filesAreTransferredOneAtATimeWithEachSeed(_ seed: UInt64) throws {
        let scenario = try #require(
            try ScenarioCatalogue.scenario("field-one-file-at-a-time").runs(ofVariant: nil).first)
        let result = try SimulatedRun.run(scenario, seed: seed)
        let failed = result.verdict.checks.filter { if case .pass = $0.outcome { false } else { true } }
        #expect(result.verdict.result == .pass, "\(failed.map { "\($0.description): \($0.outcome)" })")
    }

    /// The user acts again if the app was killed before the commit of an act.
    @Test(arguments: ["field-stitching", "field-poison-record", "field-photo-resumes"])
    func aKillAtACommitBoundaryLeadsToTheSameEnd(_ name: String) throws {
        for scenario in try ScenarioCatalogue.scenario(name).runs(ofVariant: "none") {
            let sweep = try KillSweep(scenario, every: 3)
            #expect(sweep.differences.isEmpty && sweep.kills > 1, "\(sweep.differences)")
        }
    }

    @Test func theFormatKnowsTheValuesOfTheApp() {
        let words = AppVocabulary.field
        #expect(Scenario.App.field.markerField == FieldEngine.markerField)
        #expect(words.screens == ["list", FieldText.loading, FieldText.noWifi, FieldText.failed, FieldText.signIn])
        #expect(words.dialogs.isEmpty && words.toasts.isEmpty)
    }
}
