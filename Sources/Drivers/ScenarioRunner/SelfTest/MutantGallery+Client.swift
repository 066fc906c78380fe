internal import Client
internal import Scenario
internal import Worlds

/// Mutants of the client.
extension MutantGallery {
    /// Returns the entry of a mutant of the client.
    static func entry(of mutant: Mutant) -> Entry {
        switch mutant {
        case .ghostNoteOnFailedFetch:
            return Entry(
                .client(mutant),
                "A failed read of a note adds an empty note to the list.",
                origin: "the notes client of 2013: a body is taken for a note whatever its status",
                by: .invariant(.convergence),
                in: ["edit-vs-remote-delete", "conflicts-survive-restart"])
        case .mergedConflictNeverSent:
            return Entry(
                .client(mutant),
                "A conflict is merged without a decision of the user, with a marker in the title, and "
                    + "the result is never sent.",
                origin: "the notes client of 2013: the merged note gets no state, so that no query finds it",
                by: .invariant(.convergence),
                in: ["edit-conflict-after-subway", "clock-jumps"])
        case .ownEchoIsConflict:
            return Entry(
                .client(mutant),
                "The client's own change, whose response was lost, is taken for another client's.",
                origin: "the notes client of 2013: the next sync sees a revision that it does not know",
                by: .invariant(.noFalseConflict),
                in: ["half-open (orig)", "put-answer-lost (orig)"])
        case .editInFlightMarkedClean:
            return Entry(
                .client(mutant),
                "The response to a change marks a later edit as saved and replaces it.",
                origin: "the notes client of 2013: the response overwrites the newer text",
                by: .invariant(.noLostWrite),
                in: ["burst-on-edge", "edit-while-in-flight"])
        case .tombstoneDroppedOnFailure:
            return Entry(
                .client(mutant),
                "A deletion that fails is forgotten, so that the next index brings the note back.",
                origin: "the notes client of 2013: tombstones are removed whatever the outcomes were",
                by: .invariant(.noLostWrite),
                in: ["conflicts-survive-restart", "failing-delete-keeps-tombstone"])
        case .deletionUndoneByRemoteEdit:
            return Entry(
                .client(mutant),
                "Another client's change undoes the user's deletion without a conflict.",
                origin: "the notes client of 2013: the newer revision overwrites the deleted note and marks "
                    + "it clean",
                by: .invariant(.noLostWrite),
                in: ["delete-vs-remote-edit", "conflicts-survive-restart"])
        case .remoteDeletionIgnored:
            return Entry(
                .client(mutant),
                "A note that was deleted on the server stays on the device.",
                origin: "the notes client of 2013: notes missing from the index are left alone",
                by: .invariant(.convergence),
                in: ["edit-vs-remote-delete", "remote-delete-propagates"])
        case .missingNoteEditedForEver:
            return Entry(
                .client(mutant),
                "An edit of a note that the server has deleted is sent again for ever.",
                origin: "the notes client of 2013: a PUT with the response 404 is repeated at every sync",
                by: .expectation(
                    scenario: "edit-vs-remote-delete",
                    "traffic: PUT n1 from A, count 0 to 2"),
                in: ["edit-vs-remote-delete", "conflicts-survive-restart"])
        case .postsAgainUnderNewID:
            return Entry(
                .client(mutant),
                "A creation whose response was lost is sent again under a new identifier.",
                origin: "FieldApp: its issue notes have no identity of their own, and a lost response "
                    + "duplicates them",
                by: .invariant(.noDuplicateEffect),
                in: ["post-answer-lost", "create-retried-after-lost-response"])
        case .operationIDRenewedOnRetry:
            return Entry(
                .client(mutant),
                "Each attempt of a change has another operation id.",
                origin: "the Idempotency-Key draft: a retry repeats the key",
                by: .expectation(
                    scenario: "put-answer-lost",
                    "traffic: PUT n1 from A, responses lost 2xx, same body and idempotency-key"),
                in: ["put-answer-lost", "half-open"])
        case .operationIDRenewedOnRestart:
            return Entry(
                .client(mutant),
                "Changes that are restored at a start get new operation ids.",
                origin: "the Idempotency-Key draft: a retry repeats the key",
                by: .expectation(
                    scenario: "post-answer-lost",
                    "traffic: POST n1 from A, responses lost 2xx, same body and idempotency-key"),
                in: ["post-answer-lost (killed-while-waiting)", "restart-with-queue"])
        case .dropsOnLostResponse:
            return Entry(
                .client(mutant),
                "A change whose response was lost is treated as done.",
                origin: "the notes client of 2013: what follows an exchange does not depend on its outcome",
                by: .invariant(.noLostWrite),
                in: ["upload-cut-halfway", "failing-delete-keeps-tombstone"])
        case .deletionForgottenOnLostResponse:
            return Entry(
                .client(mutant),
                "A deletion whose response was lost is forgotten, and the note is shown again.",
                origin: "the notes client of 2013: the tombstone does not survive a failed request",
                by: .invariant(.deletesStick),
                in: ["delete-answer-lost", "failing-delete-keeps-tombstone"])
        case .editFoldedIntoSentEntry:
            return Entry(
                .client(mutant),
                "An edit is merged into a change that was sent already.",
                origin: "Expensify's queue: a change that was tried may exist on the server",
                by: .invariant(.noLostWrite),
                in: ["burst-on-edge", "edit-while-in-flight"])
        case .conflictTakenForSuccess:
            return Entry(
                .client(mutant),
                "A 409 is treated as success.",
                origin: "the notes client of 2013: a 409 to a PUT is ignored",
                by: .invariant(.noLostWrite),
                in: ["edit-vs-edit", "restart-with-queue (orig)"])
        case .overwritesOnConflict:
            return Entry(
                .client(mutant),
                "The change is sent again with the server's revision after a 409, and overwrites it.",
                origin: "the blog of the notes app: last-write-wins is acceptable only where harmless",
                by: .invariant(.noSilentOverwrite),
                in: ["edit-vs-edit", "delete-vs-remote-edit", "clock-jumps"])
        case .rejectionRetried:
            return Entry(
                .client(mutant),
                "A change that the server has rejected with a 4xx is sent again and again.",
                origin: "the notes client of 2013: a PUT with the response 404 is repeated at every sync",
                by: .expectation(
                    scenario: "precondition-discipline",
                    "traffic: PUT n2 from A at the proxy, responses 400"),
                in: ["precondition-discipline", "restart-with-queue"])
        case .serverErrorIsFinal:
            return Entry(
                .client(mutant),
                "A change is given up after the first 5xx.",
                origin: "Expensify's queue: a write is dropped after a number of retries",
                by: .expectation(
                    scenario: "edit-waits-for-create",
                    "traffic: POST n1 from A at the proxy, responses 503 503 503 503 201, same body and idempotency-key"
                ),
                in: ["edit-waits-for-create", "retry-after"])
        case .missingNoteDropsEdit:
            return Entry(
                .client(mutant),
                "An edit of a note that the server does not have is dropped.",
                origin: "RFC 9110, 15.5.5: a 404 says nothing of the user's text",
                by: .invariant(.noLostWrite),
                in: ["edit-vs-remote-delete", "conflicts-survive-restart"])
        case .foreignSuccessAccepted:
            return Entry(
                .client(mutant),
                "Any response with the status 200 is a success, also that of a captive portal.",
                origin: "the notes client of 2013: responses are taken without a look at their status",
                by: .invariant(.noLostWrite),
                in: ["captive-portal-write", "failing-delete-keeps-tombstone (portal)"])
        case .oldResponseOverwritesView:
            return Entry(
                .client(mutant),
                "The response to an earlier change replaces the text of a later one on the screen.",
                origin: "the notes client of 2013: the response overwrites the newer text",
                by: .invariant(.readYourWrites),
                in: ["burst-on-edge", "restart-with-queue"])
        case .noBackoff:
            return Entry(
                .client(mutant),
                "Failed attempts are repeated at once.",
                origin: "the notes client of 2013: no backoff",
                by: .invariant(.boundedRetries),
                in: ["put-answer-lost", "clock-jumps"])
        case .noJitter:
            return Entry(
                .client(mutant),
                "The delays between attempts are not random.",
                origin: "the published retry policy: each delay is reduced by up to 50 %",
                by: .expectation(
                    scenario: "outage-30-min",
                    "traffic: any from A at the proxy between 10.0 s and 1810.0 s, at least 40, within "
                        + "the retry budget"),
                in: ["outage-30-min", "captive-portal-write"])
        case .noCap:
            return Entry(
                .client(mutant),
                "The delays between attempts double without a limit.",
                origin: "the published retry policy: the longest delay is 60 s",
                by: .expectation(
                    scenario: "outage-30-min",
                    "eventually: A outbox 0, within 1856.0 s of edited"),
                in: ["outage-30-min", "captive-portal-write"])
        case .constantBackoff:
            return Entry(
                .client(mutant),
                "The delays between attempts do not grow.",
                origin: "the published retry policy: each delay is twice the one before",
                by: .invariant(.boundedRetries),
                in: ["clock-jumps", "captive-portal-write"])
        case .pauseIgnoredOnRecovery:
            return Entry(
                .client(mutant),
                "A recovered network or a sync by the user ends the pause that the server has asked "
                    + "for.",
                origin: "RFC 9110, 10.2.3: Retry-After",
                by: .invariant(.boundedRetries),
                in: ["retry-after", "failing-delete-keeps-tombstone (paused)"])
        case .neverPolls:
            return Entry(
                .client(mutant),
                "The index is read only when the user or the network gives a reason.",
                origin: "the notes client of 2013: no timer",
                by: .invariant(.liveness),
                in: ["clock-jumps", "remote-delete-propagates (unasked)", "conflicts-survive-restart"])
        case .poisonEntryBlocksQueue:
            return Entry(
                .client(mutant),
                "A change that fails delays all later ones.",
                origin: "FieldApp: all-or-nothing push, one rejected record blocks all",
                by: .invariant(.liveness),
                in: ["poison-entry", "precondition-discipline"])
        case .tokenRefreshLoop:
            return Entry(
                .client(mutant),
                "Another access token is requested at once and again, whatever the server responds.",
                origin: "RFC 6749, 5.2: after invalid_grant the user signs in again",
                by: .invariant(.boundedRetries),
                in: ["refresh-refused", "new-token-rejected"])
        case .expiredTokenDropsChange:
            return Entry(
                .client(mutant),
                "A change that gets a 401 is dropped.",
                origin: "RFC 9110, 15.5.2: the request may be repeated with other credentials",
                by: .invariant(.noLostWrite),
                in: ["token-expires-offline (online)", "new-token-rejected"])
        case .interfaceIgnored:
            return Entry(
                .client(mutant),
                "Requests are made while the interface is down.",
                origin: "Expensify: nothing is tried while the device is offline",
                by: .invariant(.economy),
                in: ["cold-start-offline", "edit-offline-simple", "delete-offline"])
        case .everythingSentTwice:
            return Entry(
                .client(mutant),
                "The first acknowledgement of a change is ignored, so that it is sent twice.",
                origin: "the notes client of 2013: what was sent is sent again if the app stops before its single save",
                by: .expectation(
                    scenario: "edit-offline-simple",
                    "traffic: PUT n1 from A, responses 200"),
                in: ["edit-offline-simple", "delete-offline"])
        case .editsNotMerged:
            return Entry(
                .client(mutant),
                "Edits of a note that was never sent are sent one after the other.",
                origin: "Expensify: later changes of an unsent one are merged into it",
                by: .expectation(
                    scenario: "create-edit-edit-squash",
                    "traffic: PUT any from A, count 0"),
                in: ["create-edit-edit-squash", "burst-on-edge"])
        case .newestChangeFirst:
            return Entry(
                .client(mutant),
                "The newest change is sent first.",
                origin: "Expensify's queue: first in, first out",
                by: .expectation(
                    scenario: "create-offline-then-heal",
                    "traffic: POST any from A, order n1, n2, n3"),
                in: ["create-offline-then-heal", "outage-30-min"])
        case .changesWaitForPoll:
            return Entry(
                .client(mutant),
                "Changes are sent only after the index has been read.",
                origin: "the notes client of 2013: changes are sent by the next sync, which the user starts",
                by: .expectation(
                    scenario: "edit-while-in-flight",
                    "traffic: PUT n1 from A, responses 200 200"),
                in: ["edit-while-in-flight", "retry-after"])
        case .unchangedNotesFetched:
            return Entry(
                .client(mutant),
                "All notes are read after each index.",
                origin: "the notes client of 2013: every sync reads every note",
                by: .invariant(.economy),
                in: ["edit-offline-simple", "delete-offline"])
        case .conflictSavedAsCopy:
            return Entry(
                .client(mutant),
                "A conflict becomes another note with the user's text, which nobody asked for.",
                origin: "file synchronisers: conflicted copies",
                by: .expectation(
                    scenario: "edit-vs-edit",
                    "traffic: POST any from A, count 0"),
                in: ["edit-vs-edit", "edit-conflict-after-subway"])
        case .deletedNoteRestored:
            return Entry(
                .client(mutant),
                "An edited note that was deleted on the server is created again without a decision of the user.",
                origin: "the notes client of 2013: what is not on the server is new",
                by: .expectation(
                    scenario: "edit-vs-remote-delete",
                    "always: A n1 text '3 l' since edited"),
                in: ["edit-vs-remote-delete", "conflicts-survive-restart"])
        case .unsavedEditHidden:
            return Entry(
                .client(mutant),
                "A change is shown only when the server has acknowledged it.",
                origin: "Expensify, pattern B: a change is shown at once",
                by: .invariant(.readYourWrites),
                in: ["edit-waits-for-create", "edit-offline-simple"])
        case .pendingMarkMissing:
            return Entry(
                .client(mutant),
                "A note with pending changes looks like a saved one.",
                origin: "Expensify, pattern B: pending changes are marked while offline",
                by: .invariant(.visibleState),
                in: ["edit-vs-edit", "delete-offline"])
        case .pendingMarkSticks:
            return Entry(
                .client(mutant),
                "The mark of a pending change stays after the acknowledgement.",
                origin: "the notes client of 2013: its marks change with the next list only",
                by: .invariant(.visibleState),
                in: ["edit-vs-edit", "create-offline-then-heal"])
        case .conflictNotMarked:
            return Entry(
                .client(mutant),
                "A note in conflict looks like a saved one.",
                origin: "the blog of the notes app: the user decides about a conflict",
                by: .expectation(
                    scenario: "edit-vs-edit",
                    "eventually: A n1 icon conflict, by 26.0 s"),
                in: ["edit-vs-edit", "clock-jumps"])
        case .conflictShowsTheirs:
            return Entry(
                .client(mutant),
                "A conflict shows the server's text in place of the user's, and keeps no other.",
                origin: "the notes client of 2013: the newer revision overwrites the local text",
                by: .expectation(
                    scenario: "edit-vs-edit",
                    "always: A n1 keeps '2 l, oat' since edited until decided"),
                in: ["edit-vs-edit", "conflicts-survive-restart"])
        case .conflictLosesTheirs:
            return Entry(
                .client(mutant),
                "A conflict keeps the user's text only.",
                origin: "the blog of the notes app: the user sees both texts",
                by: .expectation(
                    scenario: "edit-vs-edit",
                    "always: A n1 keeps '3 l' since shown until decided"),
                in: ["edit-vs-edit", "delete-vs-remote-edit"])
        case .outboxNotCounted:
            return Entry(
                .client(mutant),
                "The number of pending changes is always shown as 0.",
                origin: "Expensify: the user is told what is still to be sent",
                by: .expectation(
                    scenario: "create-offline-then-heal",
                    "eventually: A outbox 3, within 1.0 s of made"),
                in: ["create-offline-then-heal", "token-expires-offline"])
        case .rejectionShownAsPending:
            return Entry(
                .client(mutant),
                "A change that the server has rejected is shown as pending.",
                origin: "Expensify, pattern B: a rejected change gets an error and a way to dismiss it",
                by: .invariant(.visibleState),
                in: ["precondition-discipline", "poison-entry"])
        case .listEmptyWithoutConnection:
            return Entry(
                .client(mutant),
                "Without a connection no notes are shown.",
                origin: "NDTR: an error page replaces only what could not be read",
                by: .expectation(scenario: "warm-read-offline", "always: A n2 icon none, text dark, title Bread"),
                in: ["warm-read-offline", "outage-30-min"])
        case .deletedNoteStays:
            return Entry(
                .client(mutant),
                "A note stays in the list after its deletion.",
                origin: "the notes client of 2013: a tombstone that is removed shows the note again",
                by: .invariant(.convergence),
                in: ["delete-offline", "delete-answer-lost"])
        case .queueLostOnRestart:
            return Entry(
                .client(mutant),
                "The queue is lost when the client starts again.",
                origin: "Expensify: a write is on disk before it is sent",
                by: .invariant(.noLostWrite),
                in: ["restart-with-queue", "create-delete-collapse (sent)"])
        case .queueReversedOnRestart:
            return Entry(
                .client(mutant),
                "The queue is reversed when the client starts again.",
                origin: "Expensify's queue: first in, first out",
                by: .expectation(
                    scenario: "restart-with-queue",
                    "traffic: any from A between 20.0 s and 60.0 s, order PUT n1, POST n4, DELETE n2"),
                in: ["restart-with-queue", "outage-30-min (restarted)"])
        case .attemptsForgottenOnRestart:
            return Entry(
                .client(mutant),
                "The attempts of changes are forgotten when the client starts again, so that a sent "
                    + "change counts as new.",
                origin: "Expensify's queue: a change that was tried may exist on the server",
                by: .invariant(.noLostWrite),
                in: ["create-delete-collapse (sent)", "restart-with-queue"])
        case .conflictBaseForgottenOnRestart:
            return Entry(
                .client(mutant),
                "The common base of a conflict is forgotten when the client starts again.",
                origin: "Expensify: the pre-image must be kept durably with the queue entry",
                by: .expectation(
                    scenario: "edit-vs-edit",
                    "always: A n1 keeps '2 l' since shown until decided"),
                in: ["edit-vs-edit (restarted)", "conflicts-survive-restart"])
        case .commitsLate:
            return Entry(
                .client(mutant),
                "A change is sent before it is durable.",
                origin: "Expensify: a write is on disk before it is sent",
                by: .expectation(
                    scenario: "kill-everywhere",
                    "traffic: PUT n1 from A, count 1 to 2"),
                in: [
                    "kill-everywhere (contract=orig, point=before-request)", "post-answer-lost (killed-while-waiting)",
                ])
        case .sendsDuringConflict:
            return Entry(
                .client(mutant),
                "An edit of a note in conflict is sent before the user's decision.",
                origin: "the blog of the notes app: the user decides about a conflict",
                by: .expectation(
                    scenario: "edit-vs-edit",
                    "traffic: PUT n1 from A, responses 409 200"),
                in: ["edit-vs-edit (continued)", "conflicts-survive-restart"])
        case .unsentNoteDeletedOnServer:
            return Entry(
                .client(mutant),
                "The deletion of a note that was never sent is sent.",
                origin: "the notes client of 2013: DELETE with '?revision=(null)'",
                by: .expectation(
                    scenario: "create-delete-collapse",
                    "traffic: n1 from A at the proxy, count 0"),
                in: ["create-delete-collapse", "restart-with-queue"])
        case .checkpointBeforeData:
            return Entry(
                .client(mutant),
                "The position in the index is stored before the notes that it lists.",
                origin: "the notes client of 2013: a kill between the responses and their single save",
                by: .invariant(.convergence),
                in: ["kill-while-reading (contract=compat, point=before-response)", "trickle-at-edge (killed)"])
        case .revisionBeforeContent:
            return Entry(
                .client(mutant),
                "The revision of a note is stored before its content has arrived.",
                origin: "RFC 9110, 8.8.3: an ETag belongs to a representation",
                by: .invariant(.convergence),
                in: ["kill-while-reading (contract=compat, point=before-response)", "trickle-at-edge (killed)"])
        case .indexDeletesPendingEdits:
            return Entry(
                .client(mutant),
                "A deletion in the index removes a note with pending changes.",
                origin: "the notes client of 2013: local changes are overwritten by what the index says",
                by: .invariant(.noLostWrite),
                in: ["edit-vs-remote-delete", "conflicts-survive-restart"])
        }
    }
}
