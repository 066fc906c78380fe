internal import Client
internal import Expense
internal import Scenario
internal import ScenarioRunner
internal import Worlds

/// Mutants of the expense app.
extension MutantGallery {
    static let expense: [RunMutant] = [
        .expense(
            "no-pending-look",
            "A record with a pending change looks finished while the device is offline.",
            origin: "pattern B: offline, a pending record is grey, and a deletion struck through",
            by: .expectation(
                scenario: "pattern-b-add-fails",
                "always: X e2 opacity 0.5 since added until 30.0 s"),
            in: ["pattern-b-add-fails", "pattern-b-delete-fails"]
        ) {
            $0.expense.look = { [earlier = $0.expense.look] isOffline, pending, hasErrors in
                earlier(isOffline, hasErrors ? pending : nil, hasErrors)
            }
        },
        .expense(
            "pending-look-online",
            "A record with a pending change is grey while the device is online.",
            origin: "pattern B: no flicker, online the look of a pending record never appears",
            by: .expectation(
                scenario: "pattern-b-no-flicker",
                "always: X e2 opacity 1"),
            in: ["pattern-b-no-flicker", "pattern-b-delete-fails (online)"]
        ) {
            $0.expense.look = { [earlier = $0.expense.look] _, pending, hasErrors in
                earlier(true, pending, hasErrors)
            }
        },
        .expense(
            "pending-action-kept",
            "A record that was added stays pending after the server has accepted it.",
            origin: "pattern B: the response to an addition does not end its pending action",
            by: .expectation(
                scenario: "pattern-b-add-fails",
                "always: X e2 opacity 1 since 40.0 s until 60.0 s"),
            in: ["pattern-b-add-fails (accepted)", "expense-queue"]
        ) { $0.expense.endsPendingAdditions = false },
        .expense(
            "queue-drained-in-parallel",
            "All queued writes are sent at once.",
            origin: "the write queue: one write at a time, in the order of the acts",
            by: .expectation(
                scenario: "expense-missed-updates",
                "traffic: PATCH e2 from X at the proxy between 30.0 s and 35.0 s, count 0"),
            in: ["expense-missed-updates", "expense-queue"]
        ) { $0.expense.writesAtOnce = 6 },
        .expense(
            "reads-before-writes",
            "After an outage the client reads before it has sent the queued writes.",
            origin: "the write queue: on reconnect writes first, then reads",
            by: .expectation(
                scenario: "expense-missed-updates",
                "traffic: any from X at the proxy between 30.0 s and 60.0 s, order PATCH e1, PATCH e2, GET any"),
            in: ["expense-missed-updates", "expense-queue"]
        ) { $0.expense.readsFirst = true },
        .expense(
            "original-value-lost",
            "The original value of a record is lost when an update of it is rejected.",
            origin: "pattern B: the failure data of an update are the value that the server confirmed last",
            by: .expectation(
                scenario: "pattern-b-update-fails",
                "always: X e1 text 12.00 since rejected"),
            in: ["pattern-b-update-fails", "expense-queue (rejected)"]
        ) { $0.expense.confirmedAfterRejection = { $0.merging($1) } },
        .expense(
            "error-path-missing",
            "The ancestors of a record with an error have no mark.",
            origin: "pattern B: a red path leads from the root to each error",
            by: .expectation(
                scenario: "pattern-b-add-fails",
                "always: X r1 marker red since rejected until dismissed"),
            in: ["pattern-b-add-fails", "pattern-b-update-fails"]
        ) { $0.expense.marksPathToErrors = false },
        .expense(
            "form-sent-after-outage",
            "A form that was submitted offline is sent after the outage.",
            origin: "pattern C: a form is never queued for later",
            by: .expectation(
                scenario: "pattern-c-form-corrected",
                "traffic: POST any from X at the proxy between 10.0 s and 45.0 s, count 0"),
            in: ["pattern-c-form-corrected", "pattern-c-form"]
        ) { $0.expense.keepsFormsOffline = true },
        .expense(
            "form-sent-again",
            "A form whose response was lost is sent again under another operation id.",
            origin: "pattern C: no silent repetition, the result is asked for by operation id",
            by: .expectation(
                scenario: "pattern-c-form",
                "finally: server has 1 note"),
            in: ["pattern-c-form (lost)", "pattern-c-form-corrected"]
        ) { $0.expense.repeatsLostForms = true },
        .expense(
            "stale-page-offline",
            "A page shows stored data while the device is offline.",
            origin: "pattern D: no stale content while the device is offline",
            by: .expectation(
                scenario: "pattern-d-page",
                "always: X field not balance=100.00 since 5.5 s until retried"),
            in: ["pattern-d-page", "pattern-c-form-corrected"]
        ) { $0.expense.keepsPagesOffline = true },
        .expense(
            "writes-lost-on-restart",
            "The write queue is lost when the app starts again.",
            origin: "the write queue: a write is stored before it is sent",
            by: .expectation(
                scenario: "pattern-a-pin",
                "traffic: PATCH c1 from X, responses 200"),
            in: ["pattern-a-pin", "expense-queue"]
        ) { $0.adapt(.expense) { _, state in state = state.without("write/") } },
        .expense(
            "store-shared-by-accounts",
            "The accounts of a device have one store, so that one user's queue is sent with the credentials of another.",
            origin: "sign-out: what belongs to an account stays with the account",
            by: .expectation(
                scenario: "account-switch-with-queue",
                "traffic: PUT e2 from X between 0.0 s and returned, count 0"),
            in: ["account-switch-with-queue", "expense-sign-in"]
        ) { $0.sharesStores = true },
        .expense(
            "history-ignored",
            "The client goes on with its numbers of updates after the server was restored from a backup.",
            origin: "a restored server: the numbers of updates begin again, and mean something else",
            by: .expectation(
                scenario: "server-restored",
                "eventually: X e2 present false, within 5.0 s of edited"),
            in: ["server-restored", "restored-between-changes"]
        ) { $0.expense.comparesHistories = false },
        .expense(
            "forbidden-write-repeated",
            "A write that the server forbids is repeated for ever, and blocks the queue.",
            origin: "the write queue: 403 says something about the write, so it ends it",
            by: .expectation(
                scenario: "expense-forbidden-write",
                "traffic: PATCH e1 from X at the proxy, count 1"),
            in: ["expense-forbidden-write", "expense-sign-in"]
        ) { $0.expense.repeatsForbiddenWrites = true },
    ]
}

extension RunMutant {
    /// Creates a mutant of the expense app.
    fileprivate static func expense(
        _ name: String, _ defect: String, origin: String, by detector: Detector, in runs: [String],
        _ change: @escaping @Sendable (inout RunBehavior) -> Void
    ) -> RunMutant {
        RunMutant(
            name, of: .app(.expense), defect, origin: origin, by: detector, broken: .visibleState, in: runs,
            change: change)
    }
}
