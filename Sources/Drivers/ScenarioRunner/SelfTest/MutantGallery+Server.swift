internal import NotesService
internal import Scenario
internal import Worlds

/// Mutants of the server.
extension MutantGallery {
    /// Returns the entry of a mutant of the server.
    static func entry(of mutant: ServerMutant) -> Entry {
        switch mutant {
        case .noCompareAndSwap:
            return Entry(
                .server(mutant),
                "A write with a stale base is executed.",
                origin: "the notes server of 2013: parallel writes with one base are accepted",
                by: .invariant(.noSilentOverwrite),
                in: ["edit-vs-edit", "clock-jumps"])
        case .replayNotIdempotent:
            return Entry(
                .server(mutant),
                "A repeated operation is executed again, in place of a repeated result.",
                origin: "the notes server of 2013: no operation ids",
                by: .expectation(
                    scenario: "put-answer-lost",
                    "traffic: PUT n1 from A, responses lost 2xx, same body and idempotency-key"),
                in: ["put-answer-lost", "half-open"])
        case .keyReusedGetsFirstResult:
            return Entry(
                .server(mutant),
                "Another request with a known operation id gets the result of the first.",
                origin: "the Idempotency-Key draft: 422 for another payload",
                by: .expectation(
                    scenario: "operation-ids",
                    "traffic: POST any from W, responses 201 200 422 409"),
                in: ["operation-ids", "deleted-stays-deleted"])
        case .deletedNameCreatedAgain:
            return Entry(
                .server(mutant),
                "A note that was deleted can be created again.",
                origin: "the notes server of 2013: a POST brings a deleted note back at revision 1",
                by: .expectation(
                    scenario: "operation-ids",
                    "traffic: POST any from W, responses 201 200 422 409"),
                in: ["operation-ids", "deleted-stays-deleted"])
        case .revisionUsedAgain:
            return Entry(
                .server(mutant),
                "A write keeps the revision of the note.",
                origin: "the notes server of 2013: revisions are not monotonic",
                by: .invariant(.monotonicRevision),
                in: ["burst-on-edge", "edit-offline-simple", "half-open"])
        case .noTombstone:
            return Entry(
                .server(mutant),
                "A deletion leaves no tombstone, so that other devices do not learn of it.",
                origin: "the notes server of 2013: no tombstones",
                by: .invariant(.convergence),
                in: ["edit-vs-remote-delete", "remote-delete-propagates"])
        }
    }
}
