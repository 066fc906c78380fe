/// Deliberate defects of the client. A scenario proves its worth by failing on the mutant it was written for.
public enum Mutant: String, CaseIterable, Sendable {
    /// Repeats a creation whose response was lost as a new note.
    case postsAgainUnderNewID = "posts-again-under-new-id"
    /// Overwrites the server's revision after a 409.
    case overwritesOnConflict = "overwrites-on-conflict"
    /// Treats a change whose response was lost as done.
    case dropsOnLostAnswer = "drops-on-lost-answer"
}
