internal import Foundation

/// Text files that people name, never read beyond what may be kept.
enum TextFile {
    /// Why a file could not be read.
    struct Failure: Error {
        let reason: String
    }

    /// The text of a file; one byte more than `bytesMax` is read, so that who parses it can tell that it is too long.
    static func read(_ path: String, bytesMax: Int) throws(Failure) -> String {
        guard let text = String(data: try readBytes(path, bytesMax: bytesMax), encoding: .utf8) else {
            throw Failure(reason: "not UTF-8 text")
        }
        return text
    }

    /// The bytes of a file, one more than `bytesMax` at most.
    static func readBytes(_ path: String, bytesMax: Int) throws(Failure) -> Data {
        guard let file = FileHandle(forReadingAtPath: path) else {
            throw Failure(
                reason: FileManager.default.fileExists(atPath: path) ? "permission denied" : "no such file")
        }
        defer { try? file.close() }
        do {
            return try file.read(upToCount: bytesMax + 1) ?? Data()
        } catch {
            throw Failure(reason: "not a file that can be read")
        }
    }

    /// The path of a file that another one names.
    static func path(_ named: String, inFolderOf file: String) -> String {
        guard !named.hasPrefix("/"), let slash = file.lastIndex(of: "/") else { return named }
        return String(file[...slash]) + named
    }

    /// A file's name without folders and ending.
    static func stem(_ path: String) -> String {
        let name = path.split(separator: "/").last.map(String.init) ?? path
        for ending in [".yaml", ".yml"] where name.hasSuffix(ending) { return String(name.dropLast(ending.count)) }
        return name
    }
}
