internal import Foundation

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The temporary folder of a run. The run holds a lock on a file in it; the folder of a killed run, whose lock the kernel
/// has released, is removed by the next run.
struct RunFolder: Sendable {
    let url: URL
    private let lock: CInt

    private static let prefix = "slowlane-run-"
    private static let lockName = "lock"
    private static let attemptsMax = 10
    /// The age of a folder without a lock file at which it is removed: longer than a run takes from one to the other.
    private static let unlockedAge: TimeInterval = 60

    /// Creates a folder, and removes those of killed runs.
    init(in parent: URL = FileManager.default.temporaryDirectory) throws {
        Self.removeAbandoned(in: parent)
        for _ in 0..<Self.attemptsMax {
            let url = parent.appendingPathComponent(
                Self.prefix + UUID().uuidString.prefix(8).lowercased(), isDirectory: true)
            try FileManager.default.createDirectory(
                at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            let file = open(url.appendingPathComponent(Self.lockName).path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
            guard file >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
            var status = stat()
            // Another run may take the folder for an abandoned one before it is locked.
            if flock(file, LOCK_EX | LOCK_NB) == 0, fstat(file, &status) == 0, status.st_nlink > 0 {
                self.url = url
                lock = file
                return
            }
            close(file)
        }
        throw POSIXError(.EBUSY)
    }

    /// Returns the path of a file in the folder.
    func path(_ name: String) -> String { url.appendingPathComponent(name).path }

    /// Removes the folder.
    func remove() {
        try? FileManager.default.removeItem(at: url)
        close(lock)
    }

    /// Removes the folders of this user whose runs have ended.
    private static func removeAbandoned(in parent: URL) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: parent.path)) ?? []
        for name in names where name.hasPrefix(prefix) {
            let url = parent.appendingPathComponent(name, isDirectory: true)
            var status = stat()
            guard lstat(url.path, &status) == 0, status.st_uid == geteuid(), status.st_mode & S_IFMT == S_IFDIR else {
                continue
            }
            let file = open(url.appendingPathComponent(lockName).path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
            if file >= 0 {
                if flock(file, LOCK_EX | LOCK_NB) == 0 { try? FileManager.default.removeItem(at: url) }
                close(file)
            } else if errno == ENOENT {
                let attributes = try? FileManager.default.attributesOfItem(atPath: url.path)
                let date = attributes?[.modificationDate] as? Date ?? Date()
                if -date.timeIntervalSinceNow > unlockedAge { try? FileManager.default.removeItem(at: url) }
            }
        }
    }
}
