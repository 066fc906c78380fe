import ConfigFiles
import Expense
import Scenario
import Testing
import Worlds

/// The built-in scenarios of the expense app.
@Suite struct ExpenseScenarioTests {
    private static let names = [
        "account-switch-with-queue", "expense-forbidden-write", "expense-missed-updates", "expense-queue",
        "expense-sign-in", "pattern-a-pin", "pattern-pages-and-forms", "restored-between-changes", "server-restored",
        "pattern-b-add-fails", "pattern-b-delete-fails",
        "pattern-b-no-flicker", "pattern-b-update-fails", "pattern-c-form", "pattern-c-form-corrected",
        "pattern-d-page",
    ]

    @Test(arguments: names) func allRunsPassWithTheSameEventsAgain(_ name: String) throws {
        for scenario in try ScenarioCatalogue.scenario(name).runs(ofVariant: nil) {
            let first = try SimulatedRun.run(scenario)
            let failed = first.verdict.checks.filter { if case .pass = $0.outcome { false } else { true } }
            #expect(first.verdict.result == .pass, "\(scenario.fullName): \(failed.map(\.description))")
            #expect(try SimulatedRun.run(scenario).digest == first.digest, "\(scenario.fullName)")
        }
    }

    /// The user acts again if the app was killed before the commit of an act.
    @Test(arguments: ["pattern-a-pin", "pattern-b-update-fails", "pattern-b-delete-fails"])
    func aKillAtACommitBoundaryLeadsToTheSameEnd(_ name: String) throws {
        for scenario in try ScenarioCatalogue.scenario(name).runs(ofVariant: "none") {
            let sweep = try KillSweep(scenario)
            #expect(sweep.differences.isEmpty && sweep.kills > 1, "\(sweep.differences)")
        }
    }

    @Test func theFormatKnowsTheValuesOfTheApp() {
        #expect(AppVocabulary.expense.dialogs == [ExpenseText.sending, ExpenseText.unknownResult])
        #expect(AppVocabulary.expense.toasts == [ExpenseText.sent])
        let app = AppModel.expense
        #expect(Scenario.App.expense.markerField == app.markerField)
        #expect(AppVocabulary.expense.screens == ["list"] + app.forms.map(\.name) + app.pages.map(\.name))
        #expect(AppVocabulary.expense.call("fill")?.arguments == app.forms.flatMap(\.fields))
    }
}
