internal import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Files and folders whose changes are detected by comparing their metadata.
struct FileWatcher {
    /// The interval of comparisons.
    static let interval = Duration.milliseconds(100)
    /// The interval after a change in which no further change must occur, and the maximum number of these intervals.
    static let settlingInterval = Duration.milliseconds(20)
    static let settlingChecksMax = 25
    /// The maximum number of files that are watched beside those of the selection.
    private static let neighboursMax = 1000

    /// What differs between versions of a file.
    private struct Stamp: Equatable {
        let seconds: Int
        let nanoseconds: Int
        let bytes: Int
        let inode: UInt64
    }

    private let paths: [String]
    private var stamps: [Stamp?]

    /// Creates a watcher of files and folders. YAML files beside the files are watched too: profiles to which a
    /// scenario refers.
    init(files: [String], folders: [String]) {
        var paths = files + folders
        var seen = Set(files)
        for folder in Set(files.map(Self.folder)).sorted() {
            let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
            for name in names.sorted().prefix(Self.neighboursMax)
            where name.hasSuffix(".yaml") || name.hasSuffix(".yml") {
                let path = folder == "." ? name : "\(folder)/\(name)"
                if seen.insert(path).inserted { paths.append(path) }
            }
        }
        self.paths = paths
        stamps = paths.map(Self.stamp)
    }

    /// Returns whether a file or folder has changed since the last call.
    mutating func hasChanged() -> Bool {
        let now = paths.map(Self.stamp)
        defer { stamps = now }
        return now != stamps
    }

    private static func folder(_ path: String) -> String {
        let folder = (path as NSString).deletingLastPathComponent
        return folder.isEmpty ? "." : folder
    }

    private static func stamp(_ path: String) -> Stamp? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        #if canImport(Darwin)
        let time = status.st_mtimespec
        #else
        let time = status.st_mtim
        #endif
        return Stamp(
            seconds: Int(time.tv_sec), nanoseconds: Int(time.tv_nsec), bytes: Int(status.st_size),
            inode: UInt64(status.st_ino))
    }
}
