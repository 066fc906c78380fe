/// Something wrong in a file, with its place: `file:line:column: message`.
public struct Problem: Hashable, Sendable, CustomStringConvertible {
    /// The file as the caller named it.
    public let file: String
    /// The line, from 1; `nil` if the whole file is meant.
    public let line: Int?
    /// The column in characters, from 1.
    public let column: Int?
    /// What is wrong and what was expected.
    public let message: String

    public var description: String {
        var place = file
        if let line { place += ":\(line)" }
        if let column { place += ":\(column)" }
        return "\(place): \(message)"
    }
}

/// Why a file was refused: everything that is wrong with it, in the order of its lines.
public struct FileError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong; never empty.
    public let problems: [Problem]

    public var description: String { problems.map(\.description).joined(separator: "\n") }
}
