public import Scenario

/// An error or a warning in a file: `file:line:column: message`.
public struct Problem: Hashable, Sendable, CustomStringConvertible {
    /// The severity of a problem.
    public enum Severity: String, Hashable, Sendable {
        /// The file is rejected.
        case error
        /// The file is accepted, but probably not what its author means.
        case warning
    }

    /// The location; has no line if the error concerns the whole file.
    public let location: SourceLocation
    /// The error and the expected value.
    public let message: String
    /// The severity.
    public let severity: Severity

    init(_ location: SourceLocation, _ message: String, severity: Severity = .error) {
        self.location = location
        self.message = message
        self.severity = severity
    }

    public var description: String { "\(location): \(severity == .warning ? "warning: " : "")\(message)" }
}

/// The reason why a file is rejected: all its errors, in the order of their lines.
public struct FileError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The errors; never empty.
    public let problems: [Problem]

    public var description: String { problems.map(\.description).joined(separator: "\n") }
}
