/// A deliberate defect of the notes server. A scenario must fail with it.
public enum ServerMutant: String, CaseIterable, Sendable {
    /// A write with a stale base is executed.
    case noCompareAndSwap = "no-compare-and-swap"
    /// A repeated operation is executed again.
    case replayNotIdempotent = "replay-not-idempotent"
    /// Another request with a known operation id gets the result of the first.
    case keyReusedGetsFirstResult = "key-reused-gets-first-result"
    /// A deleted note can be created again.
    case deletedNameCreatedAgain = "deleted-name-created-again"
    /// A write keeps the revision of the note.
    case revisionUsedAgain = "revision-used-again"
    /// A note whose deletion is requested is removed without a tombstone.
    case noTombstone = "no-tombstone"
}
