internal import Foundation

/// Text files with a size limit.
enum TextFile {
    /// The reason why a file could not be read.
    struct ReadError: Error {
        let reason: String
    }

    /// Returns the text of a file: at most one byte more than `bytesMax`, so that the parser can detect the excess.
    static func read(_ path: String, bytesMax: Int) throws(ReadError) -> String {
        guard let text = String(data: try readBytes(path, bytesMax: bytesMax), encoding: .utf8) else {
            throw ReadError(reason: "not UTF-8 text")
        }
        return text
    }

    /// Returns the bytes of a file: at most one more than `bytesMax`.
    static func readBytes(_ path: String, bytesMax: Int) throws(ReadError) -> Data {
        guard let file = FileHandle(forReadingAtPath: path) else {
            throw ReadError(
                reason: FileManager.default.fileExists(atPath: path) ? "permission denied" : "no such file")
        }
        defer { try? file.close() }
        do {
            return try file.read(upToCount: bytesMax + 1) ?? Data()
        } catch {
            throw ReadError(reason: "not a regular file")
        }
    }

    /// Returns the path of a file named in another file.
    static func path(_ named: String, inFolderOf file: String) -> String {
        guard !named.hasPrefix("/"), let slash = file.lastIndex(of: "/") else { return named }
        return String(file[...slash]) + named
    }

    /// Returns a file's name without folder and `.yaml` or `.yml`.
    static func stem(_ path: String) -> String {
        let name = path.split(separator: "/").last.map(String.init) ?? path
        for ending in [".yaml", ".yml"] where name.hasSuffix(ending) { return String(name.dropLast(ending.count)) }
        return name
    }
}
