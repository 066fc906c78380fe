public import ScenarioModel

/// An error in a file: `file:line:column: message`.
public struct Problem: Hashable, Sendable, CustomStringConvertible {
    /// The location; has no line if the error concerns the whole file.
    public let location: SourceLocation
    /// The error and the expected value.
    public let message: String

    init(_ location: SourceLocation, _ message: String) {
        self.location = location
        self.message = message
    }

    public var description: String { "\(location): \(message)" }
}

/// The reason why a file is rejected: all its errors, in the order of their lines.
public struct FileError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The errors; never empty.
    public let problems: [Problem]

    public var description: String { problems.map(\.description).joined(separator: "\n") }
}
