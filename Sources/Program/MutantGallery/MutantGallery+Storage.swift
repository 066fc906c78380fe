internal import Client
internal import Determinism
internal import Scenario
internal import ScenarioRunner
internal import Worlds

/// Mutants of the sync client: the queue and the index.
extension MutantGallery {
    /// The queue.
    static let queue: [RunMutant] = [
        .client(
            "queue-lost-on-restart",
            "The queue is lost when the client starts again.",
            origin: "Expensify: a write is on disk before it is sent",
            by: .invariant(.noLostWrite),
            in: ["restart-with-queue", "create-delete-collapse (sent)"]
        ) { $0.state.entries = [] },
        .client(
            "queue-reversed-on-restart",
            "The queue is reversed when the client starts again.",
            origin: "Expensify's queue: first in, first out",
            by: .expectation(
                scenario: "restart-with-queue",
                "traffic: any from A between 20.0 s and 60.0 s, order PUT n1, POST n4, DELETE n2"),
            broken: .order, in: ["restart-with-queue", "outage-30-min (restarted)"]
        ) {
            let queue = $0.state.entries.sorted { $0.sequence < $1.sequence }
            $0.state.entries = zip(queue, queue.reversed()).map { $1.numbered($0.sequence) }
        },
        .client(
            "attempts-forgotten-on-restart",
            "The attempts of changes are forgotten when the client starts again, so that a sent "
                + "change counts as new.",
            origin: "Expensify's queue: a change that was tried may exist on the server",
            by: .invariant(.noLostWrite),
            in: ["create-delete-collapse (sent)", "restart-with-queue"]
        ) {
            for index in $0.state.entries.indices {
                $0.state.entries[index].attempts = 0
                $0.state.entries[index].mayBeCommitted = false
            }
        },
        .client(
            "conflict-base-forgotten-on-restart",
            "The common base of a conflict is forgotten when the client starts again.",
            origin: "Expensify: the pre-image must be kept durably with the queue entry",
            by: .expectation(
                scenario: "edit-vs-edit",
                "always: A n1 keeps '2 l' since shown until decided"),
            broken: .crashAtomicity, in: ["edit-vs-edit (restarted)", "conflicts-survive-restart"]
        ) {
            for index in $0.state.records.indices where $0.state.records[index].theirs != nil {
                $0.state.records[index].baseContent = nil
            }
        },
        .client(
            "commits-late",
            "A change is sent before it is durable.",
            origin: "Expensify: a write is on disk before it is sent",
            by: .expectation(
                scenario: "kill-everywhere",
                "traffic: PUT n1 from A, count 1 to 2"),
            in: [
                "kill-everywhere (contract=orig, point=before-request)", "post-answer-lost (killed-while-waiting)",
            ]
        ) { $0.policy.durability = .afterExchanges },
        .client(
            "sends-during-conflict",
            "An edit of a note in conflict is sent before the user's decision.",
            origin: "the blog of the notes app: the user decides about a conflict",
            by: .expectation(
                scenario: "edit-vs-edit",
                "traffic: PUT n1 from A, responses 409 200"),
            broken: .noSilentOverwrite, in: ["edit-vs-edit (continued)", "conflicts-survive-restart"]
        ) { $0.policy.holdsConflicts = false },
        .client(
            "unsent-note-deleted-on-server",
            "The deletion of a note that was never sent is sent.",
            origin: "the legacy client: DELETE with '?revision=(null)'",
            by: .expectation(
                scenario: "create-delete-collapse",
                "traffic: n1 from A at the proxy, count 0"),
            broken: .order, in: ["create-delete-collapse", "restart-with-queue"]
        ) { $0.behavior.deletionBase = { $0.base ?? RecordRevision("(null)") } },
    ]

    /// The index.
    static let index: [RunMutant] = [
        .client(
            "checkpoint-before-data",
            "The position in the index is stored before the notes that it lists.",
            origin: "the legacy client: a kill between the responses and their single save",
            by: .invariant(.convergence),
            in: ["kill-while-reading (contract=compat, point=before-response)", "trickle-at-edge (killed)"]
        ) { $0.policy.checkpoint = .afterIndex },
        .client(
            "revision-before-content",
            "The revision of a note is stored before its content has arrived.",
            origin: "RFC 9110, 8.8.3: an ETag belongs to a representation",
            by: .invariant(.convergence),
            in: ["kill-while-reading (contract=compat, point=before-response)", "trickle-at-edge (killed)"]
        ) {
            $0.behavior.listing = { record, entry in
                guard record.theirs == nil else { return nil }
                var record = record
                record.base = entry.revision
                return record
            }
        },
        .client(
            "index-deletes-pending-edits",
            "A deletion in the index removes a note with pending changes.",
            origin: "the legacy client: local changes are overwritten by what the index says",
            by: .invariant(.noLostWrite),
            in: ["edit-vs-remote-delete", "conflicts-survive-restart"]
        ) {
            $0.behavior.replaceAbsenceDecisions { absence in
                guard absence.hasChanges, absence.record.base != nil, absence.record.theirs == nil else { return nil }
                return absence.isAdopting ? .conflict : .removed
            }
        },
    ]
}
