/// Deliberate defects of the client. A scenario must fail on the mutant that it was written for.
public enum Mutant: String, CaseIterable, Sendable {
    /// Retries a creation whose response was lost, under a new identifier.
    case postsAgainUnderNewID = "posts-again-under-new-id"
    /// Overwrites the server's revision after a 409.
    case overwritesOnConflict = "overwrites-on-conflict"
    /// Treats a change whose response was lost as done.
    case dropsOnLostResponse = "drops-on-lost-response"
    /// Repeats failed attempts at once.
    case noBackoff = "no-backoff"
}
