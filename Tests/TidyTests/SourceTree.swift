import Foundation

/// The files of the repository, found from the path of this file.
enum SourceTree {
    /// A text file.
    struct File: Sendable {
        /// The path in the repository.
        let path: String
        let lines: [Substring]
    }

    static let root = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// All text files, without build products and hidden folders.
    static let files: [File] = list(root, "").sorted { $0.path < $1.path }

    /// The Swift files of a target.
    static func swiftFiles(of target: PackageGraph.Target) -> [File] {
        files.filter { $0.path.hasPrefix("Sources/\(target.layer)/\(target.name)/") && $0.path.hasSuffix(".swift") }
    }

    /// The names of the folders in a folder.
    static func folders(in path: String) -> [String] {
        let url = root.appending(path: path)
        let names = (try? FileManager.default.contentsOfDirectory(atPath: url.path())) ?? []
        return names.filter { isFolder(url.appending(path: $0)) }.sorted()
    }

    private static func isFolder(_ url: URL) -> Bool {
        (try? url.resourceValues(forKeys: [.isDirectoryKey]))?.isDirectory == true
    }

    private static func list(_ folder: URL, _ prefix: String) -> [File] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path())) ?? []
        var files: [File] = []
        for name in names where !name.hasPrefix(".") || name == ".ci" {
            let url = folder.appending(path: name)
            let path = prefix + name
            // Links to folders are not followed.
            if (try? FileManager.default.destinationOfSymbolicLink(atPath: url.path())) != nil { continue }
            if isFolder(url) {
                files += list(url, path + "/")
            } else if let data = try? Data(contentsOf: url), let text = String(data: data, encoding: .utf8) {
                files.append(File(path: path, lines: text.split(separator: "\n", omittingEmptySubsequences: false)))
            }
        }
        return files
    }

    /// Returns a line without its `//` comment.
    static func code(_ line: Substring) -> Substring {
        guard let comment = line.range(of: "//") else { return line }
        return line[..<comment.lowerBound]
    }

    /// Returns whether a line contains a token that is not the end of a longer identifier.
    static func contains(_ token: String, in line: Substring) -> Bool {
        var rest = line
        while let range = rest.range(of: token) {
            let before = range.lowerBound == line.startIndex ? nil : line[line.index(before: range.lowerBound)]
            let isWhole = before.map { !$0.isLetter && !$0.isNumber && $0 != "_" } ?? true
            let startsIdentifier = token.first.map { $0.isLetter || $0 == "_" } ?? false
            if isWhole || !startsIdentifier { return true }
            rest = rest[range.upperBound...]
        }
        return false
    }
}
