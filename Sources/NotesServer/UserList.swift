internal import Foundation

/// The users of a notes server, from its options, a file or the environment.
struct NotesUsers {
    /// Passwords by name.
    private(set) var passwords: [String: String] = [:]
    private var sources: [String: String] = [:]

    /// Where users are looked for when neither `--user` nor `--user-file` is given.
    static let environmentName = "SLOWLANE_NOTES_USERS"
    /// A larger file of users is refused.
    static let fileBytesMax = 16 << 20

    /// Why users cannot be taken.
    struct UsersError: Error, CustomStringConvertible {
        let description: String
    }

    /// Takes `NAME:PASSWORD`; a password may have colons.
    ///
    /// - Parameter source: Where it is from, for the error: `--user` or `users.txt:3`.
    mutating func add(_ text: String, from source: String) throws(UsersError) {
        guard let colon = text.firstIndex(of: ":"), colon != text.startIndex, text.index(after: colon) != text.endIndex
        else {
            // Never the text: it may be a password.
            throw UsersError(description: "\(source): expected NAME:PASSWORD, neither of them empty")
        }
        let name = String(text[..<colon])
        if let other = sources[name] {
            throw UsersError(
                description: "\(source): user '\(name.prefix(40))' is named already by \(other); name each user once")
        }
        passwords[name] = String(text[text.index(after: colon)...])
        sources[name] = source
    }

    /// Takes `NAME:PASSWORD` lines; empty ones and those that begin with `#` are skipped.
    mutating func add(lines: String, from source: (Int) -> String) throws(UsersError) {
        for (index, line) in lines.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated()
        where !line.isEmpty && !line.hasPrefix("#") {
            try add(String(line), from: source(index + 1))
        }
    }

    /// Takes the lines of a file.
    mutating func add(file path: String) throws(UsersError) {
        let data: Data
        do {
            data = try Data(contentsOf: URL(filePath: path))
        } catch {
            let why = FileManager.default.fileExists(atPath: path) ? "it cannot be read" : "no such file"
            throw UsersError(description: "--user-file \(path): \(why); name a file with NAME:PASSWORD lines")
        }
        guard data.count <= Self.fileBytesMax, let text = String(data: data, encoding: .utf8) else {
            throw UsersError(
                description: "--user-file \(path): expected at most \(Self.fileBytesMax >> 20) MiB of UTF-8 text")
        }
        try add(lines: text) { "\(path):\($0)" }
        if passwords.isEmpty {
            throw UsersError(description: "--user-file \(path): no users in it; name a file with NAME:PASSWORD lines")
        }
    }
}
