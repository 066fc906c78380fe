internal import Client
internal import Determinism
internal import Scenario
internal import ScenarioRunner
internal import Worlds

/// Mutants of the sync client: retries, credentials, and what is sent.
extension MutantGallery {
    /// Retries.
    static let retries: [RunMutant] = [
        .client(
            "no-backoff",
            "Failed attempts are repeated at once.",
            origin: "the legacy client: no backoff",
            by: .invariant(.boundedRetries),
            in: ["put-answer-lost", "clock-jumps"]
        ) {
            $0.policy.firstDelay = .zero
            $0.policy.longestDelay = .zero
        },
        .client(
            "no-jitter",
            "The delays between attempts are not random.",
            origin: "the published retry policy: each delay is reduced by up to 50 %",
            by: .expectation(
                scenario: "outage-30-min",
                "traffic: any from A at the proxy between 10.0 s and 1810.0 s, at least 40, within "
                    + "the retry budget"),
            broken: .boundedRetries, in: ["outage-30-min", "captive-portal-write"]
        ) { $0.policy.hasJitter = false },
        .client(
            "no-cap",
            "The delays between attempts double without a limit.",
            origin: "the published retry policy: the longest delay is 60 s",
            by: .expectation(
                scenario: "outage-30-min",
                "eventually: A outbox 0, within 1856.0 s of edited"),
            broken: .liveness, in: ["outage-30-min", "captive-portal-write"]
        ) { $0.policy.longestDelay = .seconds(1 << 30) },
        .client(
            "constant-backoff",
            "The delays between attempts do not grow.",
            origin: "the published retry policy: each delay is twice the one before",
            by: .invariant(.boundedRetries),
            in: ["clock-jumps", "captive-portal-write"]
        ) { $0.policy.longestDelay = $0.policy.firstDelay },
        .client(
            "pause-ignored-on-recovery",
            "A recovered network or a sync by the user ends the pause that the server has asked "
                + "for.",
            origin: "RFC 9110, 10.2.3: Retry-After",
            by: .invariant(.boundedRetries),
            in: ["retry-after", "failing-delete-keeps-tombstone (paused)"]
        ) { $0.policy.keepsPauses = false },
        .client(
            "never-polls",
            "The index is read only when the user or the network gives a reason.",
            origin: "the legacy client: no timer",
            by: .invariant(.liveness),
            in: ["clock-jumps", "remote-delete-propagates (unasked)", "conflicts-survive-restart"]
        ) { $0.policy.poll = .seconds(1 << 30) },
        .client(
            "poison-entry-blocks-queue",
            "A change that fails delays all later ones.",
            origin: "FieldApp: all-or-nothing push, one rejected record blocks all",
            by: .invariant(.liveness),
            in: ["poison-entry", "precondition-discipline"]
        ) { $0.policy.order = .strict },
    ]

    /// Access tokens.
    static let tokens: [RunMutant] = [
        .client(
            "token-refresh-loop",
            "Another access token is requested at once and again, whatever the server responds.",
            origin: "RFC 6749, 5.2: after invalid_grant the user signs in again",
            by: .invariant(.boundedRetries),
            in: ["refresh-refused", "new-token-rejected"]
        ) { $0.behavior.tokenRejection = { _ in .refreshed } },
        .client(
            "expired-token-drops-change",
            "A change that gets a 401 is dropped.",
            origin: "RFC 9110, 15.5.2: the request may be repeated with other credentials",
            by: .invariant(.noLostWrite),
            in: ["token-expires-offline (online)", "new-token-rejected"]
        ) {
            $0.behavior.replaceOutcomes { attempt in
                if case .unauthorized = attempt.result { .dropped } else { nil }
            }
        },
    ]

    /// What is sent.
    static let sending: [RunMutant] = [
        .client(
            "interface-ignored",
            "Requests are made while the interface is down.",
            origin: "Expensify: nothing is tried while the device is offline",
            by: .invariant(.economy),
            in: ["cold-start-offline", "edit-offline-simple", "delete-offline"]
        ) { $0.policy.ignoresInterface = true },
        .client(
            "everything-sent-twice",
            "The first acknowledgement of a change is ignored, so that it is sent twice.",
            origin: "the legacy client: what was sent is sent again if the app stops before its single save",
            by: .expectation(
                scenario: "edit-offline-simple",
                "traffic: PUT n1 from A, responses 200"),
            broken: .noDuplicateEffect, in: ["edit-offline-simple", "delete-offline"]
        ) {
            $0.behavior.replaceOutcomes { attempt in
                switch attempt.result {
                case .record where attempt.entry.attempts == 1, .done where attempt.entry.attempts == 1: .repeatedAtOnce
                default: nil
                }
            }
        },
        .client(
            "edits-not-merged",
            "Edits of a note that was never sent are sent one after the other.",
            origin: "Expensify: later changes of an unsent one are merged into it",
            by: .expectation(
                scenario: "create-edit-edit-squash",
                "traffic: PUT any from A, count 0"),
            broken: .economy, in: ["create-edit-edit-squash", "burst-on-edge"]
        ) { $0.behavior.mergesEdit = { _ in false } },
        .client(
            "newest-change-first",
            "The newest change is sent first.",
            origin: "Expensify's queue: first in, first out",
            by: .expectation(
                scenario: "create-offline-then-heal",
                "traffic: POST any from A, order n1, n2, n3"),
            broken: .order, in: ["create-offline-then-heal", "outage-30-min"]
        ) { $0.policy.order = .newestFirst },
        .client(
            "changes-wait-for-poll",
            "Changes are sent only after the index has been read.",
            origin: "the legacy client: changes are sent by the next sync, which the user starts",
            by: .expectation(
                scenario: "edit-while-in-flight",
                "traffic: PUT n1 from A, responses 200 200"),
            broken: .liveness, in: ["edit-while-in-flight", "retry-after"]
        ) { $0.policy.indexAgeMax = .seconds(1) },
        .client(
            "unchanged-notes-fetched",
            "All notes are read after each index.",
            origin: "the legacy client: every sync reads every note",
            by: .invariant(.economy),
            in: ["edit-offline-simple", "delete-offline"]
        ) { $0.policy.reads = .allRecords },
        .client(
            "conflict-saved-as-copy",
            "A conflict creates a second note with the user's text.",
            origin: "file synchronisers: conflicted copies",
            by: .expectation(
                scenario: "edit-vs-edit",
                "traffic: POST any from A, count 0"),
            broken: .noDuplicateEffect, in: ["edit-vs-edit", "edit-conflict-after-subway"]
        ) {
            $0.behavior.replaceConflictDecisions { conflict in
                guard conflict.theirs.content != nil, !conflict.record.isDeleted, !conflict.areEqual else { return nil }
                return .copied
            }
        },
        .client(
            "deleted-note-restored",
            "An edited note that was deleted on the server is created again without a decision of the user.",
            origin: "the legacy client: a note that is missing on the server is new",
            by: .expectation(
                scenario: "edit-vs-remote-delete",
                "always: A n1 text '3 l' since edited"),
            broken: .deletesStick, in: ["edit-vs-remote-delete", "conflicts-survive-restart"]
        ) {
            $0.behavior.replaceConflictDecisions { conflict in
                conflict.theirs.content == nil && !conflict.record.isDeleted ? .resolved(.mine) : nil
            }
        },
    ]
}
