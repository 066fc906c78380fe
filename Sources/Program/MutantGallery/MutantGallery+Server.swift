internal import NotesService
internal import Scenario
internal import ScenarioRunner
internal import Worlds

/// Mutants of the notes server.
extension MutantGallery {
    static let server: [RunMutant] = [
        .server(
            "no-compare-and-swap",
            "A write with a stale base is executed.",
            origin: "the original notes server: parallel writes with one base are accepted",
            by: .invariant(.noSilentOverwrite),
            in: ["edit-vs-edit", "clock-jumps"]
        ) { $0.server.comparesRevisions = false },
        .server(
            "replay-not-idempotent",
            "A repeated operation is executed again, in place of a repeated result.",
            origin: "the original notes server: no operation ids",
            by: .expectation(
                scenario: "put-answer-lost",
                "traffic: PUT n1 from A, responses lost 2xx, same body and idempotency-key"),
            broken: .noDuplicateEffect, in: ["put-answer-lost", "half-open"]
        ) { $0.server.repetition = .executed },
        .server(
            "key-reused-gets-first-result",
            "Another request with a known operation id gets the result of the first.",
            origin: "the Idempotency-Key draft: 422 for another payload",
            by: .expectation(
                scenario: "operation-ids",
                "traffic: POST any from W, responses 201 200 422 409"),
            broken: .noDuplicateEffect, in: ["operation-ids", "deleted-stays-deleted"]
        ) { $0.server.repetition = .trusted },
        .server(
            "deleted-name-created-again",
            "A note that was deleted can be created again.",
            origin: "the original notes server: a POST brings a deleted note back at revision 1",
            by: .expectation(
                scenario: "operation-ids",
                "traffic: POST any from W, responses 201 200 422 409"),
            broken: .deletesStick, in: ["operation-ids", "deleted-stays-deleted"]
        ) { $0.server.reusesIDs = true },
        .server(
            "revision-used-again",
            "A write keeps the revision of the note.",
            origin: "the original notes server: revisions are not monotonic",
            by: .invariant(.monotonicRevision),
            in: ["burst-on-edge", "edit-offline-simple", "half-open"]
        ) { $0.server.changesRevisions = false },
        .server(
            "no-tombstone",
            "A deletion leaves no tombstone, so that other devices do not learn of it.",
            origin: "the original notes server: no tombstones",
            by: .invariant(.convergence),
            in: ["edit-vs-remote-delete", "remote-delete-propagates"]
        ) { $0.server.leavesTombstones = false },
    ]
}
