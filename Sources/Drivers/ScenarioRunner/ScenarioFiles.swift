internal import CommandSupport
internal import Foundation

/// Scenario files on disk.
public enum ScenarioFiles {
    /// The reason why a path cannot be read.
    public struct ReadError: Error, CustomStringConvertible {
        /// What failed, where and why.
        public let description: String
    }

    /// The files that arguments stand for.
    public struct Selection: Sendable {
        /// The paths: files as they were given, and those of folders with a line `scenario:`, sorted.
        public let paths: [String]
        /// The number of YAML files of the folders without such a line.
        public let otherCount: Int
    }

    /// The maximum number of files of a folder.
    private static let filesMax = 10_000

    /// The size of a file from which it is read no further: more than a scenario may have.
    private static let bytesMax = 1024 * 1024

    /// Returns the scenario files of paths: a file itself, and the YAML files of a folder and its subfolders.
    ///
    /// - Parameter keys: The keys of which a file of a folder must have one at the beginning of a line.
    public static func select(
        _ paths: [String], keys: [String] = ["scenario"]
    ) throws(ReadError) -> Selection {
        var found: [String] = []
        var otherCount = 0
        for path in paths {
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
                throw ReadError(description: "cannot read \(path): no such file or folder")
            }
            guard isFolder.boolValue else {
                found.append(path)
                continue
            }
            let files = try yamlFiles(in: path)
            let scenarios = files.filter { hasLine($0, with: keys) }
            otherCount += files.count - scenarios.count
            found += scenarios
        }
        return Selection(paths: found, otherCount: otherCount)
    }

    private static func yamlFiles(in folder: String) throws(ReadError) -> [String] {
        guard let names = FileManager.default.enumerator(atPath: folder) else {
            throw ReadError(description: "cannot read the folder \(folder)")
        }
        var found: [String] = []
        var count = 0
        while let name = names.nextObject() as? String {
            count += 1
            if count > filesMax * 10 || found.count >= filesMax { break }
            // Hidden folders, such as .build and .git, have no scenarios.
            if name.split(separator: "/").last?.hasPrefix(".") ?? false {
                names.skipDescendants()
                continue
            }
            if name.hasSuffix(".yaml") || name.hasSuffix(".yml") {
                found.append(folder == "." ? name : folder.hasSuffix("/") ? folder + name : "\(folder)/\(name)")
            }
        }
        return found.sorted()
    }

    private static func hasLine(_ path: String, with keys: [String]) -> Bool {
        guard let text = try? read(path) else { return false }
        return text.utf8.split(separator: UInt8(ascii: "\n")).contains { line in
            keys.contains { line.starts(with: "\($0):".utf8) }
        }
    }

    /// The maximum size of a file with results, in bytes.
    private static let resultBytesMax = 1 << 30

    /// Returns the whole text of a file, which may be one with results.
    public static func readWhole(_ path: String) throws(ReadError) -> String {
        guard let data = FileManager.default.contents(atPath: path) else { return try read(path) }
        guard data.count <= resultBytesMax else {
            throw ReadError(description: "cannot read \(path): larger than \(resultBytesMax >> 20) MiB")
        }
        guard let text = String(data: data, encoding: .utf8) else {
            throw ReadError(description: "cannot read \(path): not UTF-8 text")
        }
        return text
    }

    /// Returns the path of a file that another one names.
    public static func path(_ name: String, namedIn path: String) -> String {
        name.hasPrefix("/") ? name : URL(filePath: path).deletingLastPathComponent().appending(path: name).relativePath
    }

    /// Returns the text of a file, at most a little more than a scenario may have.
    public static func read(_ path: String) throws(ReadError) -> String {
        guard let file = FileHandle(forReadingAtPath: path) else {
            let exists = FileManager.default.fileExists(atPath: path)
            throw ReadError(description: "cannot read \(path): \(exists ? "permission denied" : "no such file")")
        }
        defer { try? file.close() }
        guard let data = try? file.read(upToCount: bytesMax) else {
            throw ReadError(description: "cannot read \(path): not a regular file")
        }
        guard let text = String(data: data, encoding: .utf8) else {
            throw ReadError(description: "cannot read \(path): not UTF-8 text")
        }
        return text
    }

    /// Replaces the text of a file at once.
    public static func write(_ text: String, to path: String) throws(ReadError) {
        do {
            try Data(text.utf8).write(to: URL(filePath: path), options: .atomic)
        } catch {
            throw ReadError(description: "cannot write \(path): \(FileFailure.reason(error, writing: path))")
        }
    }

    /// Writes a new file; throws if it exists.
    public static func create(_ text: String, at path: String) throws(ReadError) {
        if FileManager.default.fileExists(atPath: path) {
            throw ReadError(description: "\(path) exists; choose another name")
        }
        try write(text, to: path)
    }
}
