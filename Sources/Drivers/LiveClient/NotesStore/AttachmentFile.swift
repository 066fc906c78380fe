#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// An open file, closed with the object.
final class AttachmentFile {
    private let descriptor: Int32
    private let path: String

    /// Opens a file.
    ///
    /// - Parameters:
    ///   - flags: The flags of `open`; a file that is created is its owner's only.
    ///   - action: What fails if the file cannot be opened, for errors.
    init(_ path: String, _ flags: Int32, _ action: String) throws(SyncStoreError) {
        self.path = path
        descriptor = open(path, flags | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw SyncStoreError(systemError: errno, action, path) }
    }

    deinit { close(descriptor) }

    /// The size in bytes; `nil` if the file is not a regular one.
    var size: Int? {
        var information = stat()
        guard fstat(descriptor, &information) == 0, information.st_mode & S_IFMT == S_IFREG else { return nil }
        return Int(information.st_size)
    }

    /// Returns bytes at an offset, fewer at the end of the file.
    func read(at offset: Int, count: Int) throws(SyncStoreError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let result = bytes.withUnsafeMutableBytes { buffer in
                pread(descriptor, buffer.baseAddress.map { $0 + filled }, count - filled, off_t(offset + filled))
            }
            if result < 0 && errno == EINTR { continue }
            guard result >= 0 else { throw SyncStoreError(systemError: errno, "read", path) }
            if result == 0 { break }
            filled += result
        }
        bytes.removeLast(count - filled)
        return bytes
    }

    /// Writes bytes at an offset.
    func write(_ bytes: [UInt8], at offset: Int) throws(SyncStoreError) {
        var done = 0
        while done < bytes.count {
            let result = bytes.withUnsafeBytes { buffer in
                pwrite(descriptor, buffer.baseAddress.map { $0 + done }, bytes.count - done, off_t(offset + done))
            }
            if result < 0 && errno == EINTR { continue }
            guard result > 0 else { throw SyncStoreError(systemError: errno, "write", path) }
            done += result
        }
    }

    /// Sets the size.
    func truncate(to size: Int) throws(SyncStoreError) {
        guard ftruncate(descriptor, off_t(size)) == 0 else { throw SyncStoreError(systemError: errno, "write", path) }
    }

    /// Writes the content, or the entries of a directory, to the disk.
    func synchronize() throws(SyncStoreError) {
        guard fsync(descriptor) == 0 else { throw SyncStoreError(systemError: errno, "write", path) }
    }

    /// Renames a file, and makes the new name durable.
    static func move(_ path: String, to other: String, in folder: String) throws(SyncStoreError) {
        guard rename(path, other) == 0 else { throw SyncStoreError(systemError: errno, "create", other) }
        try AttachmentFile(folder, O_RDONLY | O_DIRECTORY, "open").synchronize()
    }
}
