public import LinkModel

/// When a failed exchange is tried again, and what is not.
public struct RetryPolicy: Hashable, Sendable {
    /// The first pause.
    public var first: Nanoseconds
    /// The longest; pauses double until then. Each is shortened by chance to between half and all of it.
    public var longest: Nanoseconds
    /// How long after the last look at the server the next one is due.
    public var poll: Nanoseconds
    /// How often something is tried that the server fails to do (500).
    public var serverErrorsMax: Int

    /// Creates a policy.
    public init(
        first: Nanoseconds = .seconds(1), longest: Nanoseconds = .seconds(60), poll: Nanoseconds = .seconds(60),
        serverErrorsMax: Int = 5
    ) {
        self.first = first
        self.longest = longest
        self.poll = poll
        self.serverErrorsMax = serverErrorsMax
    }

    /// The pause after so many failures in a row.
    func pause(after failures: Int, chance: inout RandomStream) -> Nanoseconds {
        var whole = first.count
        var doublings = failures - 1
        while doublings > 0 && whole < longest.count {
            whole *= 2
            doublings -= 1
        }
        whole = min(whole, longest.count)
        return Nanoseconds(whole - chance.integer(below: whole / 2 + 1))
    }
}

/// Deliberate defects, to prove that scenarios find them.
public enum Mutant: String, CaseIterable, Sendable {
    /// A creation whose answer was lost is posted again as a new note.
    case postsAgainUnderNewID = "posts-again-under-new-id"
    /// A 409 is answered by writing over what the server has.
    case overwritesOnConflict = "overwrites-on-conflict"
    /// A change whose answer was lost is taken for done.
    case dropsOnLostAnswer = "drops-on-lost-answer"
}
