/// The reason why a program of the user's ends a run without a verdict.
public struct ProgramError: Error, CustomStringConvertible, Sendable {
    /// The kind of an error.
    public enum Kind: Sendable {
        /// The program cannot be started, or ended or was not ready at the start.
        case notStarted
        /// The program does not keep to the protocol.
        case broken
    }

    /// The kind.
    public let kind: Kind
    /// What failed, where and why.
    public let description: String

    /// Creates an error.
    public init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }
}

/// The last lines that a program of the user's has printed on standard error.
public struct ProgramOutput: Sendable {
    /// The device, or `server`.
    public let name: String
    /// The lines.
    public let lines: [String]

    /// Creates the output of a program.
    public init(name: String, lines: [String]) {
        self.name = name
        self.lines = lines
    }
}
