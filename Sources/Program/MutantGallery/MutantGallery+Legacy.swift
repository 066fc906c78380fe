internal import Client
internal import Determinism
internal import Scenario
internal import ScenarioRunner
internal import Worlds

/// Mutants of the sync client: the legacy client.
extension MutantGallery {
    /// The legacy client.
    static let legacy: [RunMutant] = [
        .client(
            "ghost-note-on-failed-fetch",
            "A failed read of a note adds an empty note to the list.",
            origin: "the legacy client: a body is taken for a note whatever its status",
            by: .invariant(.convergence),
            in: ["edit-vs-remote-delete", "conflicts-survive-restart"],
            LegacyClient.showEmptyNotes),
        .client(
            "merged-conflict-never-sent",
            "A conflict is merged without a decision of the user, with a marker in the title, and "
                + "the result is never sent.",
            origin: "the legacy client: the merged note gets no state, so that no query finds it",
            by: .invariant(.convergence),
            in: ["edit-conflict-after-subway", "clock-jumps"],
            LegacyClient.mergeConflicts),
        .client(
            "own-echo-is-conflict",
            "The client's own change, whose response was lost, is taken for another client's.",
            origin: "the legacy client: the next sync sees a revision that it does not know",
            by: .invariant(.noFalseConflict),
            in: ["half-open (orig)", "put-answer-lost (orig)"],
            LegacyClient.distrustEqualContents),
        .client(
            "edit-in-flight-marked-clean",
            "The response to a change marks a later edit as saved and replaces it.",
            origin: "the legacy client: the response overwrites the newer text",
            by: .invariant(.noLostWrite),
            in: ["burst-on-edge", "edit-while-in-flight"],
            LegacyClient.dropLaterEdits),
        .client(
            "tombstone-dropped-on-failure",
            "A deletion that fails is forgotten, so that the next index brings the note back.",
            origin: "the legacy client: tombstones are removed whatever the outcomes were",
            by: .invariant(.noLostWrite),
            in: ["conflicts-survive-restart", "failing-delete-keeps-tombstone"],
            LegacyClient.forgetFailedDeletions),
        .client(
            "deletion-undone-by-remote-edit",
            "Another client's change undoes the user's deletion without a conflict.",
            origin: "the legacy client: the newer revision overwrites the deleted note and marks "
                + "it clean",
            by: .invariant(.noLostWrite),
            in: ["delete-vs-remote-edit", "conflicts-survive-restart"],
            LegacyClient.undoDeletions),
        .client(
            "remote-deletion-ignored",
            "A note that was deleted on the server stays on the device.",
            origin: "the legacy client: notes missing from the index are left alone",
            by: .invariant(.convergence),
            in: ["edit-vs-remote-delete", "remote-delete-propagates"],
            LegacyClient.ignoreRemoteDeletions),
        .client(
            "missing-note-edited-for-ever",
            "An edit of a note that the server has deleted is sent again for ever.",
            origin: "the legacy client: a PUT with the response 404 is repeated at every sync",
            by: .expectation(
                scenario: "edit-vs-remote-delete",
                "traffic: PUT n1 from A, count 0 to 2"),
            broken: .boundedRetries, in: ["edit-vs-remote-delete", "conflicts-survive-restart"],
            LegacyClient.repeatEditsOfMissingNotes),
    ]
}
