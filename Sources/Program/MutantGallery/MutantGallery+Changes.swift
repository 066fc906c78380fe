internal import Client
internal import Determinism
internal import Scenario
internal import ScenarioRunner
internal import Worlds

/// Mutants of the sync client: the identity of changes and the meaning of responses.
extension MutantGallery {
    /// Identity of changes.
    static let identity: [RunMutant] = [
        .client(
            "posts-again-under-new-id",
            "A creation whose response was lost is sent again under a new identifier.",
            origin: "FieldApp: its issue notes have no identity of their own, and a lost response "
                + "duplicates them",
            by: .invariant(.noDuplicateEffect),
            in: ["post-answer-lost", "create-retried-after-lost-response"]
        ) {
            $0.behavior.replaceOutcomes { $0.isLost && $0.entry.kind == .create ? .createdAgain : nil }
        },
        .client(
            "operation-id-renewed-on-retry",
            "Each attempt of a change has another operation id.",
            origin: "the Idempotency-Key draft: a retry repeats the key",
            by: .expectation(
                scenario: "put-answer-lost",
                "traffic: PUT n1 from A, responses lost 2xx, same body and idempotency-key"),
            broken: .noDuplicateEffect, in: ["put-answer-lost", "half-open"]
        ) {
            let ids = RandomIdentifiers(seed: $0.seed, "gallery/operations")
            var resource = AdaptedResource($0.resource)
            resource.requested = { $0.renewed(ids.uuid()) }
            $0.resource = resource
        },
        .client(
            "operation-id-renewed-on-restart",
            "Changes that are restored at a start get new operation ids.",
            origin: "the Idempotency-Key draft: a retry repeats the key",
            by: .expectation(
                scenario: "post-answer-lost",
                "traffic: POST n1 from A, responses lost 2xx, same body and idempotency-key"),
            broken: .noDuplicateEffect, in: ["post-answer-lost (killed-while-waiting)", "restart-with-queue"]
        ) {
            let ids = RandomIdentifiers(seed: $0.seed, "gallery/operations")
            for index in $0.state.entries.indices { $0.state.entries[index].operation = ids.uuid() }
        },
        .client(
            "drops-on-lost-response",
            "A change whose response was lost is treated as done.",
            origin: "the legacy client: what follows an exchange does not depend on its outcome",
            by: .invariant(.noLostWrite),
            in: ["upload-cut-halfway", "failing-delete-keeps-tombstone"]
        ) { $0.behavior.replaceOutcomes { $0.isLost ? .dropped : nil } },
        .client(
            "deletion-forgotten-on-lost-response",
            "A deletion whose response was lost is forgotten, and the note is shown again.",
            origin: "the legacy client: the tombstone does not survive a failed request",
            by: .invariant(.deletesStick),
            in: ["delete-answer-lost", "failing-delete-keeps-tombstone"]
        ) {
            $0.behavior.replaceOutcomes { attempt in
                guard attempt.isLost, attempt.entry.kind == .delete, var record = attempt.record else { return nil }
                record.isDeleted = false
                return .finished(record)
            }
        },
        .client(
            "edit-folded-into-sent-entry",
            "An edit is merged into a change that was sent already.",
            origin: "Expensify's queue: a change that was tried may exist on the server",
            by: .invariant(.noLostWrite),
            in: ["burst-on-edge", "edit-while-in-flight"]
        ) { $0.behavior.mergesEdit = { _ in true } },
    ]

    /// The meaning of responses.
    static let responses: [RunMutant] = [
        .client(
            "conflict-taken-for-success",
            "A 409 is treated as success.",
            origin: "the legacy client: a 409 to a PUT is ignored",
            by: .invariant(.noLostWrite),
            in: ["edit-vs-edit", "restart-with-queue (orig)"]
        ) { $0.behavior.replaceOutcomes { $0.result == .conflict ? .dropped : nil } },
        .client(
            "overwrites-on-conflict",
            "The change is sent again with the server's revision after a 409, and overwrites it.",
            origin: "the blog of the notes app: last-write-wins is acceptable only where harmless",
            by: .invariant(.noSilentOverwrite),
            in: ["edit-vs-edit", "delete-vs-remote-edit", "clock-jumps"]
        ) {
            $0.behavior.replaceConflictDecisions { conflict in
                guard conflict.theirs.revision != nil, conflict.record.isDeleted || !conflict.areEqual else {
                    return nil
                }
                return .resolved(.mine)
            }
        },
        .client(
            "rejection-retried",
            "A change that the server has rejected with a 4xx is sent again and again.",
            origin: "the legacy client: a PUT with the response 404 is repeated at every sync",
            by: .expectation(
                scenario: "precondition-discipline",
                "traffic: PUT n2 from A at the proxy, responses 400"),
            broken: .boundedRetries, in: ["precondition-discipline", "restart-with-queue"]
        ) {
            $0.behavior.replaceOutcomes { attempt in
                if case .rejected = attempt.result { .repeated } else { nil }
            }
        },
        .client(
            "server-error-is-final",
            "A change is given up after the first 5xx.",
            origin: "Expensify's queue: a write is dropped after a number of retries",
            by: .expectation(
                scenario: "edit-waits-for-create",
                "traffic: POST n1 from A at the proxy, responses 503 503 503 503 201, same body and idempotency-key"
            ),
            broken: .visibleState, in: ["edit-waits-for-create", "retry-after"]
        ) {
            $0.behavior.replaceOutcomes { attempt in
                switch attempt.result {
                case .serverError, .unavailable: .parked("the server has failed")
                default: nil
                }
            }
        },
        .client(
            "missing-note-drops-edit",
            "An edit of a note that the server does not have is dropped.",
            origin: "RFC 9110, 15.5.5: a 404 says nothing of the user's text",
            by: .invariant(.noLostWrite),
            in: ["edit-vs-remote-delete", "conflicts-survive-restart"]
        ) {
            $0.behavior.replaceOutcomes { attempt in
                attempt.entry.kind == .update && attempt.result == .missing ? .finished(nil) : nil
            }
        },
        .client(
            "foreign-success-accepted",
            "Any response with the status 200 is a success, also from a captive portal.",
            origin: "the legacy client: responses are taken without a look at their status",
            by: .invariant(.noLostWrite),
            in: ["captive-portal-write", "failing-delete-keeps-tombstone (portal)"]
        ) {
            $0.behavior.replaceOutcomes { attempt in
                if case .foreign(let error) = attempt.result, error.status == 200 { .dropped } else { nil }
            }
        },
        .client(
            "old-response-overwrites-view",
            "The response to an earlier change replaces the text of a later one on the screen.",
            origin: "the legacy client: the response overwrites the newer text",
            by: .invariant(.readYourWrites),
            in: ["burst-on-edge", "restart-with-queue"]
        ) { $0.policy.laterEdits = .hidden },
    ]
}

extension SyncOperation {
    /// Returns a change with another operation id.
    fileprivate func renewed(_ id: String) -> SyncOperation {
        switch self {
        case .create(let record, let content, _): .create(record, content, operation: id)
        case .update(let record, let content, let base, _): .update(record, content, base: base, operation: id)
        case .delete(let record, let base, _): .delete(record, base: base, operation: id)
        case .probe, .refresh, .index, .contents, .fetch: self
        }
    }
}
