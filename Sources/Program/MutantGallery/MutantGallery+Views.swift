internal import Client
internal import Determinism
internal import Scenario
internal import ScenarioRunner
internal import Worlds

/// Mutants of the sync client: what is shown.
extension MutantGallery {
    /// What is shown.
    static let views: [RunMutant] = [
        .client(
            "unsaved-edit-hidden",
            "A change is shown only when the server has acknowledged it.",
            origin: "Expensify, pattern B: a change is shown at once",
            by: .invariant(.readYourWrites),
            in: ["edit-waits-for-create", "edit-offline-simple"]
        ) {
            $0.behavior.presentation.changeRows { row, state in
                if row.icon == .upload, let base = state.record.baseContent { row.content = base }
            }
        },
        .client(
            "pending-mark-missing",
            "A note with pending changes looks like a saved one.",
            origin: "Expensify, pattern B: pending changes are marked while offline",
            by: .invariant(.visibleState),
            in: ["edit-vs-edit", "delete-offline"]
        ) {
            $0.behavior.presentation.changeRows { row, _ in
                if row.icon == .upload { row.icon = .none }
            }
        },
        .client(
            "pending-mark-sticks",
            "The mark of a pending change stays after the acknowledgement.",
            origin: "the legacy client: its marks change with the next list only",
            by: .invariant(.visibleState),
            in: ["edit-vs-edit", "create-offline-then-heal"]
        ) {
            $0.behavior.presentation.changeRows { row, state in
                if row.icon == .none, state.record.edits > 0 { row.icon = .upload }
            }
        },
        .client(
            "conflict-not-marked",
            "A note in conflict looks like a saved one.",
            origin: "the blog of the notes app: the user decides about a conflict",
            by: .expectation(
                scenario: "edit-vs-edit",
                "eventually: A n1 icon conflict, by 26.0 s"),
            in: ["edit-vs-edit", "clock-jumps"]
        ) {
            $0.behavior.presentation.changeRows { row, _ in
                if row.icon == .conflict { row.icon = .none }
            }
        },
        .client(
            "conflict-shows-theirs",
            "A conflict shows the server's text in place of the user's, and keeps no other.",
            origin: "the legacy client: the newer revision overwrites the local text",
            by: .expectation(
                scenario: "edit-vs-edit",
                "always: A n1 keeps '2 l, oat' since edited until decided"),
            in: ["edit-vs-edit", "conflicts-survive-restart"]
        ) {
            $0.behavior.presentation.changeRows { row, state in
                guard row.icon == .conflict, let theirs = state.record.theirs?.content else { return }
                row.content = theirs
                row.kept = [theirs]
            }
        },
        .client(
            "conflict-loses-theirs",
            "A conflict keeps the user's text only.",
            origin: "the blog of the notes app: the user sees both texts",
            by: .expectation(
                scenario: "edit-vs-edit",
                "always: A n1 keeps '3 l' since shown until decided"),
            broken: .noSilentOverwrite, in: ["edit-vs-edit", "delete-vs-remote-edit"]
        ) {
            $0.behavior.presentation.changeRows { row, state in
                if row.icon == .conflict { row.kept = [state.record.mine] }
            }
        },
        .client(
            "outbox-not-counted",
            "The number of pending changes is always shown as 0.",
            origin: "Expensify: the view shows the pending changes",
            by: .expectation(
                scenario: "create-offline-then-heal",
                "eventually: A outbox 3, within 1.0 s of made"),
            broken: .visibleState, in: ["create-offline-then-heal", "token-expires-offline"]
        ) { $0.behavior.presentation.count = { _, _ in 0 } },
        .client(
            "rejection-shown-as-pending",
            "A change that the server has rejected is shown as pending.",
            origin: "Expensify, pattern B: a rejected change gets an error and a way to dismiss it",
            by: .invariant(.visibleState),
            in: ["precondition-discipline", "poison-entry"]
        ) {
            $0.behavior.presentation.changeRows { row, _ in
                if row.icon == .error { row.icon = .upload }
            }
        },
        .client(
            "list-empty-without-connection",
            "Without a connection no notes are shown.",
            origin: "network-first apps: an error page in place of stored content",
            by: .expectation(scenario: "warm-read-offline", "always: A n2 icon none, text dark, title Bread"),
            broken: .noBlocking, in: ["warm-read-offline", "outage-30-min"]
        ) {
            $0.behavior.presentation.dependsOnConnectivity = true
            $0.behavior.presentation.row = { [earlier = $0.behavior.presentation.row] state in
                switch state.connectivity {
                case .interfaceDown, .unreachable: nil
                case .unknown, .online, .suspected, .interfaceNotAllowed: earlier(state)
                }
            }
        },
        .client(
            "deleted-note-stays",
            "A note stays in the list after its deletion.",
            origin: "the legacy client: a tombstone that is removed shows the note again",
            by: .invariant(.convergence),
            in: ["delete-offline", "delete-answer-lost"]
        ) {
            $0.behavior.replaceOutcomes { attempt in
                guard attempt.entry.kind == .delete, attempt.result == .done || attempt.result == .missing,
                    var record = attempt.record
                else { return nil }
                record.isDeleted = false
                record.base = nil
                record.theirs = nil
                return .finished(record)
            }
        },
    ]
}

extension RecordPresentation {
    /// Changes the rows of records.
    fileprivate mutating func changeRows(_ change: @escaping @Sendable (inout RecordRow, State) -> Void) {
        row = { [earlier = row] state in
            guard var row = earlier(state) else { return nil }
            change(&row, state)
            return row
        }
    }
}
