internal import Foundation

/// The users of a notes server with their passwords, from options, a file or an environment variable.
public struct UserList {
    /// Passwords by name.
    public private(set) var passwords: [String: String] = [:]
    private var sources: [String: String] = [:]

    /// The environment variable with `NAME:PASSWORD` lines.
    public static let environmentName = "SLOWLANE_NOTES_USERS"
    /// The maximum size of a file of users in bytes.
    static let fileBytesMax = 16 << 20

    /// An invalid or duplicate user.
    public struct UserListError: Error, CustomStringConvertible {
        public let description: String
    }

    /// Creates an empty list.
    public init() {}

    /// Creates a list of users from several sources.
    ///
    /// - Parameters:
    ///   - options: Values of the option `--user`.
    ///   - file: The path of a file of users.
    ///   - environment: The value of the environment variable.
    public init(options: [String], file: String?, environment: String?) throws(UserListError) {
        for text in options { try add(text, from: "--user") }
        if let file { try add(file: file) }
        if let environment { try add(lines: environment) { "\(Self.environmentName), line \($0)" } }
    }

    /// Adds `NAME:PASSWORD`; a password may contain colons.
    ///
    /// - Parameter source: The origin for error messages: `--user` or `users.txt:3`.
    public mutating func add(_ text: String, from source: String) throws(UserListError) {
        guard let colon = text.firstIndex(of: ":"), colon != text.startIndex, text.index(after: colon) != text.endIndex
        else {
            // The text may be a password, so it is not printed.
            throw UserListError(description: "\(source): expected NAME:PASSWORD, both not empty")
        }
        let name = String(text[..<colon])
        if let other = sources[name] {
            throw UserListError(
                description:
                    "\(source): duplicate user '\(name.prefix(40))', first given by \(other); give each user once")
        }
        passwords[name] = String(text[text.index(after: colon)...])
        sources[name] = source
    }

    /// Adds `NAME:PASSWORD` lines, except empty ones and those that begin with `#`.
    public mutating func add(lines: String, from source: (Int) -> String) throws(UserListError) {
        for (index, line) in lines.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated()
        where !line.isEmpty && !line.hasPrefix("#") {
            try add(String(line), from: source(index + 1))
        }
    }

    /// Adds the lines of a file.
    public mutating func add(file path: String) throws(UserListError) {
        let data: Data
        do {
            data = try Data(contentsOf: URL(filePath: path))
        } catch {
            let why = FileManager.default.fileExists(atPath: path) ? "cannot be read" : "no such file"
            throw UserListError(description: "--user-file \(path): \(why); give a file with NAME:PASSWORD lines")
        }
        guard data.count <= Self.fileBytesMax, let text = String(data: data, encoding: .utf8) else {
            throw UserListError(
                description: "--user-file \(path): expected at most \(Self.fileBytesMax >> 20) MiB of UTF-8 text")
        }
        try add(lines: text) { "\(path):\($0)" }
        if passwords.isEmpty {
            throw UserListError(
                description: "--user-file \(path): the file has no users; give a file with NAME:PASSWORD lines")
        }
    }
}
