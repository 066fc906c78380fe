internal import ArgumentParser
internal import ConfigFiles
internal import Foundation

/// Names and files that a shell completes in arguments, for the scripts of `--generate-completion-script`.
enum NameCompletion {
    /// A built-in profile.
    static let builtInProfile = CompletionKind.custom { _, _, _ in profiles }
    /// A built-in timeline.
    static let builtInTimeline = CompletionKind.custom { _, _, _ in ProfileCatalogue.timelineNames }
    /// A built-in profile or a file.
    static let profile = CompletionKind.custom { _, _, prefix in profiles + files(prefix) }
    /// A built-in timeline or a file.
    static let timeline = CompletionKind.custom { _, _, prefix in ProfileCatalogue.timelineNames + files(prefix) }
    /// A built-in profile or timeline, or a file.
    static let profileOrTimeline = CompletionKind.custom { _, _, prefix in
        profiles + ProfileCatalogue.timelineNames + files(prefix)
    }
    /// A built-in scenario or a file.
    static let scenario = CompletionKind.custom { _, _, prefix in ScenarioCatalogue.names + files(prefix) }
    /// A file.
    static let file = CompletionKind.custom { _, _, prefix in files(prefix) }

    private static let profiles = ProfileCatalogue.profileNames + ProfileCatalogue.aliases.keys.sorted()

    /// Returns the folders and the YAML files whose paths begin with a text.
    static func files(_ prefix: String) -> [String] {
        let folder = prefix.lastIndex(of: "/").map { String(prefix[...$0]) } ?? ""
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.isEmpty ? "." : folder)) ?? []
        return names.sorted().filter { !$0.hasPrefix(".") && (folder + $0).hasPrefix(prefix) }.compactMap { name in
            let path = folder + name
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else { return nil }
            if isFolder.boolValue { return path + "/" }
            return name.hasSuffix(".yaml") || name.hasSuffix(".yml") ? path : nil
        }
    }
}
