public import Scenario

/// What failing seeds have in common: the check that failed, and the kind of its subject.
public struct FailureGroup: Hashable, Sendable, CustomStringConvertible {
    /// A kind of subject.
    public enum Subject: String, Sendable {
        /// A note.
        case note
        /// A device or writer.
        case device
        /// The run as a whole.
        case run
    }

    /// The check in one line, such as `no-lost-write (I1)`.
    public let check: String
    /// The kind of the subject.
    public let subject: Subject

    /// Creates the class of a failed check.
    public init(_ check: Verdict.Check, _ context: FailureContext) {
        self.check = check.title
        subject = !context.rows.isEmpty ? .note : context.actors.isEmpty ? .run : .device
    }

    /// Creates a class from its parts.
    init(check: String, subject: Subject) {
        self.check = check
        self.subject = subject
    }

    public var description: String { "\(check), \(subject.rawValue)" }
}

/// A failed check of a run of an exploration.
public struct SeedFailure: Sendable {
    /// The run: its scenario is the one that the seed has drawn, with all steps.
    public let run: PlannedRun
    /// The class.
    public let group: FailureGroup
    /// The check as the verdict describes it.
    public let check: String
    /// The devices and writers that the failure concerns.
    public let actors: [String]
    /// The notes that the failure concerns.
    public let rows: [String]
    /// The reason, without texts that are not to be shown.
    public let reason: String
    /// The explanation: at most one screen.
    public let screen: [String]
}
