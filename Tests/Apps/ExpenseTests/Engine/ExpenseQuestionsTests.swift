import Expense
import Testing

/// The flow chart as a table: one line for each answer to the first four questions, one letter for each answer to the
/// last two. `-` none, A optimistic, B optimistic with pending UI, C blocking form, D blocking page.
@Suite struct ExpenseQuestionsTests {
    /// The columns: server, access, stale data accepted, result anticipated; then form/must know: no/no, no/yes, yes/no,
    /// yes/yes.
    private static let table = """
        no  read  no  no   ----
        no  read  no  yes  ----
        no  read  yes no   ----
        no  read  yes yes  ----
        no  write no  no   ----
        no  write no  yes  ----
        no  write yes no   ----
        no  write yes yes  ----
        yes read  no  no   DDCC
        yes read  no  yes  DDCC
        yes read  yes no   ----
        yes read  yes yes  ----
        yes write no  no   DDCC
        yes write no  yes  ABAB
        yes write yes no   DDCC
        yes write yes yes  ABAB
        """

    private static let letters: [Character: OfflinePattern] = [
        "-": .none, "A": .optimistic, "B": .optimisticWithPendingUI, "C": .blockingForm, "D": .blockingPage,
    ]

    private static let rows: [(questions: ExpenseQuestions, expected: OfflinePattern)] = table.split(separator: "\n")
        .flatMap { line in
            let words = line.split(separator: " ")
            return words[4].enumerated().map { index, letter in
                (
                    ExpenseQuestions(
                        interactsWithServer: words[0] == "yes", access: words[1] == "read" ? .read : .write,
                        acceptsStaleData: words[2] == "yes", anticipatesResult: words[3] == "yes", isForm: index >= 2,
                        mustKnowResult: index % 2 == 1), letters[letter]!
                )
            }
        }

    @Test func eachOfThe64RowsHasItsPattern() {
        #expect(Set(Self.rows.map(\.questions)).count == 64)
        for (questions, expected) in Self.rows { #expect(questions.pattern == expected, "\(questions)") }
    }

    @Test func movingMoneyIsAlwaysABlockingForm() {
        for var (questions, _) in Self.rows {
            questions.movesMoney = true
            #expect(questions.pattern == .blockingForm, "\(questions)")
        }
    }

    @Test func theOperationsOfTheExpenseAppHaveTheirPatterns() {
        let app = AppModel.expense
        for action in PendingAction.allCases {
            #expect(app.pattern(of: action, kind: "expense") == .optimisticWithPendingUI)
        }
        #expect(app.pattern(of: .update, kind: "chat") == .optimistic)
        #expect(app.pattern(of: .delete, kind: "report") == nil)
        #expect(app.forms.map(\.questions.pattern) == [.blockingForm, .blockingForm])
        #expect(app.pages.map(\.questions.pattern) == [.blockingPage, .blockingPage, .none])
    }
}
