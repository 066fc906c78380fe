public import ConfigFiles
internal import Foundation
public import Scenario

/// The scenarios that arguments select: built-in names, files, folders and glob patterns.
public struct ScenarioSelection: Sendable {
    /// A valid scenario file or built-in scenario.
    public struct Source: Sendable {
        /// The built-in name, or the path.
        public let name: String
        /// The scenario and its variants.
        public let file: ScenarioFile
    }

    /// A file that was rejected.
    public struct Rejection: Sendable {
        /// The path.
        public let name: String
        /// The errors with their source locations, one a line.
        public let description: String
        /// The first error's location.
        public let location: SourceLocation
        /// The first error without its location.
        public let message: String
    }

    /// An argument that is neither a built-in name nor a path.
    public struct UnknownNameError: Error, CustomStringConvertible {
        public let description: String
    }

    /// The valid files, in the order of the arguments; those of a folder or pattern are sorted.
    public private(set) var sources: [Source] = []
    /// The rejected files, in that order.
    public private(set) var rejections: [Rejection] = []
    /// The folders whose files were selected; a file that is added there will be selected too.
    public private(set) var folders: [String] = []

    /// The maximum number of files of a selection, and the maximum depth of folders.
    static let filesMax = 100_000
    static let depthMax = 64

    /// Reads the selected files.
    public init(_ arguments: [String]) throws(UnknownNameError) {
        var seen: Set<[UInt8]> = []
        for argument in arguments {
            for name in names(of: argument) where seen.insert(Self.identity(name)).inserted {
                do {
                    sources.append(Source(name: name, file: try ScenarioCatalogue.scenario(name)))
                } catch {
                    try add(error, name)
                }
            }
        }
    }

    private mutating func add(_ error: ScenarioCatalogue.LookupError, _ name: String) throws(UnknownNameError) {
        if case .unknown = error { throw UnknownNameError(description: error.description) }
        rejections.append(Self.rejection(error, name))
    }

    private static func rejection(_ error: ScenarioCatalogue.LookupError, _ name: String) -> Rejection {
        switch error {
        case .unknown:
            Rejection(
                name: name, description: error.description, location: SourceLocation(file: name),
                message: error.description)
        case .unreadable(let path, _):
            Rejection(
                name: name, description: error.description, location: SourceLocation(file: path),
                message: error.description)
        case .invalid(let invalid):
            Rejection(
                name: name, description: error.description,
                location: invalid.problems.first?.location ?? SourceLocation(file: name),
                message: invalid.problems.first?.message ?? error.description)
        }
    }

    /// Returns the runs of each valid file. Files whose runs cannot be made are rejected.
    ///
    /// - Parameters:
    ///   - tags: Only runs with at least one of them; all if empty.
    ///   - needsSeed: Whether `seed: commit` applies: no other seed is given.
    mutating func takeRuns(
        ofVariant variant: String?, tags: [String], needsSeed: Bool
    ) -> [(source: Source, runs: [Scenario])] {
        let tags = tags.map { Array($0.utf8) }
        var found: [(source: Source, runs: [Scenario])] = []
        var rejected: [Rejection] = []
        for source in sources {
            do {
                let runs = source.file.runs(ofVariant: variant)
                let selected = runs.filter { run in
                    tags.isEmpty || run.tags.contains { tags.contains(Array($0.utf8)) }
                }
                found.append((source, try needsSeed ? Self.seeded(selected, source.name) : selected))
            } catch {
                rejected.append(Self.rejection(error, source))
            }
        }
        sources = found.map(\.source)
        rejections += rejected
        return found
    }

    /// Rejects a file after its runs were made.
    mutating func reject(_ rejection: Rejection) {
        sources.removeAll { $0.name == rejection.name }
        rejections.append(rejection)
    }

    /// Returns runs with the seed of the current commit where the file asks for it.
    private static func seeded(_ runs: [Scenario], _ name: String) throws(CommitSeed.Failure) -> [Scenario] {
        guard runs.contains(where: { $0.seedOrigin == .commit }) else { return runs }
        let isBuiltIn = ScenarioCatalogue.names.contains(name)
        let folder = isBuiltIn ? "." : URL(filePath: name).deletingLastPathComponent().path
        let seed = try CommitSeed.seed(ofFolder: folder)
        return runs.map { run in
            var run = run
            if run.seedOrigin == .commit { run.seed = seed }
            return run
        }
    }

    private static func rejection(_ failure: CommitSeed.Failure, _ source: Source) -> Rejection {
        let location = source.file.scenario.locations["seed"] ?? SourceLocation(file: source.name)
        let message = "'seed: commit' needs the commit of a git repository: \(failure); choose a seed with --seed"
        return Rejection(
            name: source.name, description: "\(location): \(message)", location: location, message: message)
    }

    // MARK: Names

    /// Returns the built-in names and paths that an argument stands for.
    private mutating func names(of argument: String) -> [String] {
        if ScenarioCatalogue.names.contains(argument) { return [argument] }
        if Self.isFolder(argument) { return files(inFolder: argument) }
        if GlobPattern.isPattern(argument), !FileManager.default.fileExists(atPath: argument) {
            return files(matching: argument)
        }
        return [argument]
    }

    /// What makes two names the same: the file without symbolic links, or the built-in name.
    private static func identity(_ name: String) -> [UInt8] {
        if ScenarioCatalogue.names.contains(name) { return Array(name.utf8) }
        return Array(URL(filePath: name).resolvingSymlinksInPath().path.utf8)
    }

    private static func isFolder(_ path: String) -> Bool {
        var isFolder: ObjCBool = false
        return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) && isFolder.boolValue
    }

    /// Whether a path is a file that can be read without waiting, such as no named pipe.
    private static func isRegularFile(_ path: String) -> Bool {
        let url = URL(filePath: path).resolvingSymlinksInPath()
        return (try? url.resourceValues(forKeys: [.isRegularFileKey]))?.isRegularFile ?? false
    }

    private static func isSymbolicLink(_ path: String) -> Bool {
        (try? FileManager.default.destinationOfSymbolicLink(atPath: path)) != nil
    }

    /// Returns the names in a folder, sorted by their bytes.
    private static func entries(_ folder: String) -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.isEmpty ? "." : folder)) ?? []
        return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    private static func path(_ folder: String, _ name: String) -> String {
        folder.isEmpty || folder.hasSuffix("/") ? folder + name : "\(folder)/\(name)"
    }

    private static func isYAML(_ name: String) -> Bool { name.hasSuffix(".yaml") || name.hasSuffix(".yml") }

    /// Returns the scenario files of a folder and its folders. Symbolic links to folders are not followed.
    private mutating func files(inFolder root: String) -> [String] {
        var found: [String] = []
        var pending = [(path: root, depth: 0)]
        while let folder = pending.popLast(), found.count < Self.filesMax {
            folders.append(folder.path)
            var inner: [(path: String, depth: Int)] = []
            for name in Self.entries(folder.path) where !name.hasPrefix(".") {
                let path = Self.path(folder.path, name)
                if Self.isFolder(path) {
                    if folder.depth < Self.depthMax && !Self.isSymbolicLink(path) {
                        inner.append((path, folder.depth + 1))
                    }
                } else if Self.isYAML(name), Self.isRegularFile(path), ScenarioCatalogue.isScenario(atPath: path) {
                    found.append(path)
                }
            }
            pending += inner.reversed()
        }
        return found.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    /// Returns the YAML files and the scenario files of the folders that a pattern matches; `**` stands for any number
    /// of folders.
    private mutating func files(matching pattern: String) -> [String] {
        var paths = [pattern.hasPrefix("/") ? "/" : ""]
        let components = pattern.split(separator: "/")
        for (index, component) in components.enumerated() {
            var next: [String] = []
            let isLast = index == components.count - 1
            for path in paths {
                if component == "**" {
                    next += isLast ? [path] : Self.foldersBelow(path)
                } else if GlobPattern.isPattern(component) {
                    let glob = GlobPattern(component)
                    folders.append(path.isEmpty ? "." : path)
                    for name in Self.entries(path) where glob.matches(name) {
                        let inner = Self.path(path, name)
                        if isLast && Self.isYAML(name) && Self.isRegularFile(inner) || Self.isFolder(inner) {
                            next.append(inner)
                        }
                    }
                } else {
                    let inner = Self.path(path, String(component))
                    if FileManager.default.fileExists(atPath: inner) { next.append(inner) }
                }
            }
            paths = Array(next.prefix(Self.filesMax))
        }
        var found: [String] = []
        for path in paths { found += Self.isFolder(path) || path.isEmpty ? files(inFolder: path) : [path] }
        return found.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    /// Returns a folder and all folders in it.
    private static func foldersBelow(_ root: String) -> [String] {
        var found: [String] = []
        var pending = [(path: root, depth: 0)]
        while let folder = pending.popLast(), found.count < filesMax {
            found.append(folder.path)
            guard folder.depth < depthMax else { continue }
            for name in entries(folder.path) where !name.hasPrefix(".") {
                let path = path(folder.path, name)
                if isFolder(path) && !isSymbolicLink(path) { pending.append((path, folder.depth + 1)) }
            }
        }
        return found
    }
}
