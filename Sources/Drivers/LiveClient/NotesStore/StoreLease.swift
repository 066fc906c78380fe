internal import Foundation

/// The right of one process to synchronise a store: an exclusive `flock` on a file beside it.
///
/// The kernel releases the lock when the process ends, however it ends. The file contains the process identifier of the
/// holder, for the message to others; it is removed on release.
final class StoreLease: Sendable {
    private let path: String
    private let descriptor: Int32

    /// The limit on repeated attempts. An attempt is repeated if the previous holder removes the file meanwhile.
    private static let attemptsMax = 100

    /// Acquires the lease of a store.
    ///
    /// - Parameters:
    ///   - store: The store's path without symbolic links.
    ///   - name: The store's path as the user wrote it, for errors.
    init(store: String, name: String) throws(SyncStoreError) {
        path = store + "-sync.lock"
        for _ in 0..<Self.attemptsMax {
            let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard descriptor >= 0 else { throw SyncStoreError(systemError: errno, "open", path) }
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
                let code = errno
                let holder = Self.holder(descriptor)
                close(descriptor)
                if code == EINTR { continue }
                guard code == EWOULDBLOCK else { throw SyncStoreError(systemError: code, "lock", path) }
                throw SyncStoreError(
                    .inUse,
                    "\(name) is being synchronised by \(holder.map { "process \($0)" } ?? "another process"); end it first"
                )
            }
            guard Self.isNamed(path, descriptor) else {
                close(descriptor)
                continue
            }
            _ = ftruncate(descriptor, 0)
            let text = Array("\(getpid())\n".utf8)
            _ = pwrite(descriptor, text, text.count, 0)
            self.descriptor = descriptor
            return
        }
        throw SyncStoreError(.inUse, "cannot lock \(path): other processes keep replacing it")
    }

    deinit {
        // While the lock is held, the path names this file or one that the user has put there.
        if Self.isNamed(path, descriptor) { unlink(path) }
        close(descriptor)
    }

    /// Returns whether a path names the open file.
    private static func isNamed(_ path: String, _ descriptor: Int32) -> Bool {
        var (named, opened) = (stat(), stat())
        return lstat(path, &named) == 0 && fstat(descriptor, &opened) == 0 && named.st_ino == opened.st_ino
            && named.st_dev == opened.st_dev
    }

    /// Returns the process identifier in the file.
    private static func holder(_ descriptor: Int32) -> Int? {
        var bytes = [UInt8](repeating: 0, count: 20)
        let count = pread(descriptor, &bytes, bytes.count, 0)
        guard count > 0 else { return nil }
        return Int(String(decoding: bytes[..<count].prefix { $0 != 10 }, as: UTF8.self))
    }
}
