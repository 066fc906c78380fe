internal import Foundation

/// The profiles that come with the program, and those in files.
public enum ProfileCatalogue {
    /// Why a profile could not be had.
    public enum Failure: Error, CustomStringConvertible {
        /// No built-in profile has that name.
        case unknown(name: String, nearest: [String])
        /// The file could not be read.
        case unreadable(path: String, reason: String)
        /// The file was read and refused.
        case refused(FileError)

        public var description: String {
            switch self {
            case .unknown(let name, let nearest):
                let guess = nearest.isEmpty ? "" : "; did you mean \(nearest.joined(separator: ", "))?"
                return "no profile is called '\(name)'\(guess) "
                    + "('slowlane profiles list' shows all; a file is given by its path, as ./\(name).yaml)"
            case .unreadable(let path, let reason): return "\(path): cannot be read: \(reason)"
            case .refused(let error): return error.description
            }
        }
    }

    /// The built-in profiles, from no network to a fast one.
    public static let builtIn: [Profile] = sources.map { id, bytes in
        do {
            return try Profile(parsing: String(decoding: bytes, as: UTF8.self), id: id, file: "\(id).yaml")
        } catch {
            preconditionFailure("a built-in profile is wrong: \(error)")
        }
    }

    /// Other names for built-in profiles.
    public static let aliases = ["loss100": "100-loss", "verybad": "very-bad-network"]

    /// The built-in files; SwiftPM drops what cannot begin an identifier from their names.
    private static let sources: [(id: String, bytes: [UInt8])] = [
        ("100-loss", PackageResources._00_loss_yaml),
        ("very-bad-network", PackageResources.very_bad_network_yaml),
        ("edge", PackageResources.edge_yaml),
        ("3g", PackageResources._g_yaml),
        ("dsl", PackageResources.dsl_yaml),
        ("lte", PackageResources.lte_yaml),
        ("wifi", PackageResources.wifi_yaml),
        ("wifi-802.11ac", PackageResources.wifi_802_11ac_yaml),
        ("high-latency-dns", PackageResources.high_latency_dns_yaml),
    ]

    /// The profile of a built-in name, or of the file at a path.
    ///
    /// What has a slash in it or ends in `.yaml` or `.yml` is a path, and never looked up as a name.
    public static func profile(_ nameOrPath: String) throws(Failure) -> Profile {
        if isPath(nameOrPath) { return try profile(atPath: nameOrPath) }
        let id = aliases[nameOrPath] ?? nameOrPath
        if let profile = builtIn.first(where: { $0.id == id }) { return profile }
        throw Failure.unknown(
            name: String(nameOrPath.prefix(60)), nearest: NearestName.of(nameOrPath, in: builtIn.map(\.id)))
    }

    /// The profile of the file at a path.
    public static func profile(atPath path: String) throws(Failure) -> Profile {
        let text = try read(path)
        let name = path.split(separator: "/").last.map(String.init) ?? path
        let id =
            name.hasSuffix(".yaml")
            ? String(name.dropLast(5)) : name.hasSuffix(".yml") ? String(name.dropLast(4)) : name
        do {
            return try Profile(parsing: text, id: id, file: path)
        } catch {
            throw .refused(error)
        }
    }

    private static func isPath(_ text: String) -> Bool {
        text.contains("/") || text.hasSuffix(".yaml") || text.hasSuffix(".yml")
    }

    private static func read(_ path: String) throws(Failure) -> String {
        guard let file = FileHandle(forReadingAtPath: path) else {
            throw .unreadable(
                path: path, reason: FileManager.default.fileExists(atPath: path) ? "permission denied" : "no such file")
        }
        defer { try? file.close() }
        let data: Data?
        do {
            data = try file.read(upToCount: YAMLReader.bytesMax + 1)
        } catch {
            throw .unreadable(path: path, reason: "not a file that can be read")
        }
        guard let text = String(data: data ?? Data(), encoding: .utf8) else {
            throw .unreadable(path: path, reason: "not UTF-8 text")
        }
        return text
    }
}
