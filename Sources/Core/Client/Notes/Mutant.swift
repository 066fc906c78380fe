/// A deliberate defect of the client. A scenario must fail with it.
public enum Mutant: String, CaseIterable, Sendable {
    // The client of 2013.

    /// A failed read of a note adds an empty note.
    case ghostNoteOnFailedFetch = "ghost-note-on-failed-fetch"
    /// A conflict is merged without a decision of the user, and the result is never sent.
    case mergedConflictNeverSent = "merged-conflict-never-sent"
    /// The client's own change, whose response was lost, is taken for another client's.
    case ownEchoIsConflict = "own-echo-is-conflict"
    /// The response to a change marks a later edit as saved.
    case editInFlightMarkedClean = "edit-in-flight-marked-clean"
    /// A failed deletion is forgotten.
    case tombstoneDroppedOnFailure = "tombstone-dropped-on-failure"
    /// A change by another client undoes the user's deletion.
    case deletionUndoneByRemoteEdit = "deletion-undone-by-remote-edit"
    /// A note that was deleted on the server stays on the device.
    case remoteDeletionIgnored = "remote-deletion-ignored"
    /// An edit of a note that the server has deleted is sent again for ever.
    case missingNoteEditedForEver = "missing-note-edited-for-ever"

    // Identity of changes.

    /// Retries a creation whose response was lost, under a new identifier.
    case postsAgainUnderNewID = "posts-again-under-new-id"
    /// Each attempt of a change has another operation id.
    case operationIDRenewedOnRetry = "operation-id-renewed-on-retry"
    /// The changes restored at a start get new operation ids.
    case operationIDRenewedOnRestart = "operation-id-renewed-on-restart"
    /// A change whose response was lost is treated as done.
    case dropsOnLostResponse = "drops-on-lost-response"
    /// A deletion whose response was lost is forgotten, and the note shown again.
    case deletionForgottenOnLostResponse = "deletion-forgotten-on-lost-response"
    /// An edit is merged into a change that was sent already.
    case editFoldedIntoSentEntry = "edit-folded-into-sent-entry"

    // The meaning of responses.

    /// A 409 is treated as success.
    case conflictTakenForSuccess = "conflict-taken-for-success"
    /// Overwrites the server's revision after a 409.
    case overwritesOnConflict = "overwrites-on-conflict"
    /// A change that the server has rejected is sent again and again.
    case rejectionRetried = "rejection-retried"
    /// A change is parked after the first server error.
    case serverErrorIsFinal = "server-error-is-final"
    /// An edit of a note that the server does not have is dropped.
    case missingNoteDropsEdit = "missing-note-drops-edit"
    /// A response with the status 200 is a success, whoever sends it.
    case foreignSuccessAccepted = "foreign-success-accepted"
    /// The response to an earlier change replaces the text of a later one on the screen.
    case oldResponseOverwritesView = "old-response-overwrites-view"

    // Retries.

    /// Repeats failed attempts at once.
    case noBackoff = "no-backoff"
    /// Delays between attempts are not random.
    case noJitter = "no-jitter"
    /// Delays between attempts double without a limit.
    case noCap = "no-cap"
    /// Delays between attempts do not grow.
    case constantBackoff = "constant-backoff"
    /// A recovered network or a sync by the user ends the pause that the server has asked for.
    case pauseIgnoredOnRecovery = "pause-ignored-on-recovery"
    /// The index is never read without a reason.
    case neverPolls = "never-polls"
    /// A change that fails delays all later ones.
    case poisonEntryBlocksQueue = "poison-entry-blocks-queue"

    // Access tokens.

    /// Asks for another access token at once, also after the server has refused one or has rejected a new one.
    case tokenRefreshLoop = "token-refresh-loop"

    /// A change that gets a 401 is dropped.
    case expiredTokenDropsChange = "expired-token-drops-change"

    // What is sent.

    /// Requests are made while the interface is down.
    case interfaceIgnored = "interface-ignored"
    /// The first acknowledgement of a change is ignored, so that it is sent twice.
    case everythingSentTwice = "everything-sent-twice"
    /// Edits of a note that was never sent are sent one after the other.
    case editsNotMerged = "edits-not-merged"
    /// The newest change is sent first.
    case newestChangeFirst = "newest-change-first"
    /// Changes are sent only after the index has been read.
    case changesWaitForPoll = "changes-wait-for-poll"
    /// All notes are read after each index.
    case unchangedNotesFetched = "unchanged-notes-fetched"
    /// A conflict becomes another note with the user's text.
    case conflictSavedAsCopy = "conflict-saved-as-copy"
    /// An edited note that was deleted on the server is created again.
    case deletedNoteRestored = "deleted-note-restored"

    // What is shown.

    /// A change is shown only when the server has acknowledged it.
    case unsavedEditHidden = "unsaved-edit-hidden"
    /// A note with pending changes has no mark.
    case pendingMarkMissing = "pending-mark-missing"
    /// The mark of a pending change stays after the acknowledgement.
    case pendingMarkSticks = "pending-mark-sticks"
    /// A note in conflict has no mark.
    case conflictNotMarked = "conflict-not-marked"
    /// A conflict shows the server's text in place of the user's.
    case conflictShowsTheirs = "conflict-shows-theirs"
    /// A conflict keeps the user's text only.
    case conflictLosesTheirs = "conflict-loses-theirs"
    /// The number of pending changes is always 0.
    case outboxNotCounted = "outbox-not-counted"
    /// A rejected change is shown as pending.
    case rejectionShownAsPending = "rejection-shown-as-pending"
    /// Without a connection no notes are shown.
    case listEmptyWithoutConnection = "list-empty-without-connection"
    /// A note stays after its deletion.
    case deletedNoteStays = "deleted-note-stays"

    // The queue.

    /// The queue is lost at a restart.
    case queueLostOnRestart = "queue-lost-on-restart"
    /// The queue is reversed at a restart.
    case queueReversedOnRestart = "queue-reversed-on-restart"
    /// The attempts of changes are forgotten at a restart.
    case attemptsForgottenOnRestart = "attempts-forgotten-on-restart"
    /// The base of conflicts is forgotten at a restart.
    case conflictBaseForgottenOnRestart = "conflict-base-forgotten-on-restart"
    /// A change is sent before it is durable.
    case commitsLate = "commits-late"
    /// An edit of a note in conflict is sent before the user's decision.
    case sendsDuringConflict = "sends-during-conflict"
    /// The deletion of a note that was never sent is sent.
    case unsentNoteDeletedOnServer = "unsent-note-deleted-on-server"

    // The index.

    /// The position in the index is stored before the notes listed there.
    case checkpointBeforeData = "checkpoint-before-data"
    /// The revision of a note is stored before its content.
    case revisionBeforeContent = "revision-before-content"
    /// A deletion in the index removes a note with pending changes.
    case indexDeletesPendingEdits = "index-deletes-pending-edits"
}

extension Set<Mutant> {
    /// The defects of the notes client of 2013.
    public static let legacy: Set<Mutant> = [
        .ghostNoteOnFailedFetch, .mergedConflictNeverSent, .ownEchoIsConflict, .editInFlightMarkedClean,
        .tombstoneDroppedOnFailure, .deletionUndoneByRemoteEdit, .remoteDeletionIgnored, .missingNoteEditedForEver,
    ]
}
