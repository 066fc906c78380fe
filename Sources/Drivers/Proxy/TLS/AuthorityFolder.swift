internal import CRelay
internal import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The folder of an authority on disk. Only its owner may read it.
public struct AuthorityFolder: Sendable {
    /// The path.
    public let path: String

    /// The maximum number of bytes of each file.
    private static let fileBytesMax = 64 << 10

    /// The file of the certificate that clients must trust.
    public var certificatePath: String { path + "/" + File.certificate.rawValue }

    private enum File: String, CaseIterable {
        case certificate = "ca.pem"
        case issuer = "issuer.pem"
        case key = "issuer.key"
    }

    /// Creates the description of a folder; nothing is read.
    public init(path: String) { self.path = path }

    /// The folder of the user: `slowlane/ca` in `XDG_DATA_HOME` or in `~/.local/share`.
    public static func ofUser() -> AuthorityFolder {
        let environment = ProcessInfo.processInfo.environment
        // A relative path is invalid there.
        let data = environment["XDG_DATA_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        let home = environment["HOME"] ?? NSHomeDirectory()
        return AuthorityFolder(path: "\(data ?? home + "/.local/share")/slowlane/ca")
    }

    /// Returns whether there is a folder, or anything else in its place.
    public var exists: Bool {
        var properties = crelay_file()
        return crelay_lstat(path, &properties) == 0
    }

    // MARK: Changes

    /// Writes an authority. Throws if there is one. The folder appears with all its files, or not at all.
    public func create(_ authority: CertificateAuthority) throws(CertificateAuthorityError) {
        let parent = (path as NSString).deletingLastPathComponent
        do {
            try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
        } catch {
            throw CertificateAuthorityError("cannot create the folder '\(parent)': \(error.localizedDescription)")
        }
        if exists { throw hasAuthority }
        let draft = "\(path).\(UUID().uuidString)"
        guard mkdir(draft, 0o700) == 0 else { throw Self.failure("cannot create the folder '\(draft)'") }
        var isComplete = false
        defer { if !isComplete { try? FileManager.default.removeItem(atPath: draft) } }
        // The mask of the process may have removed permissions of the owner.
        guard chmod(draft, 0o700) == 0 else { throw Self.failure("cannot set the permissions of '\(draft)'") }
        let texts: [File: String] = [
            .certificate: authority.certificatePEM, .issuer: authority.issuerPEM, .key: authority.keyPEM,
        ]
        for (file, text) in texts { try Self.write(text, to: "\(draft)/\(file.rawValue)") }
        // Fails if another process has written an authority meanwhile, because its folder is not empty.
        guard rename(draft, path) == 0 else {
            if errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR { throw hasAuthority }
            throw Self.failure("cannot create the folder '\(path)'")
        }
        isComplete = true
    }

    private var hasAuthority: CertificateAuthorityError {
        CertificateAuthorityError("there is an authority in '\(path)'; delete it first")
    }

    private static func write(_ text: String, to path: String) throws(CertificateAuthorityError) {
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw failure("cannot create '\(path)'") }
        defer { close(file) }
        guard fchmod(file, 0o600) == 0 else { throw failure("cannot set the permissions of '\(path)'") }
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Self.write(file, $0) }
            guard count > 0 else { throw failure("cannot write '\(path)'") }
            rest = rest.dropFirst(count)
        }
        guard fsync(file) == 0 else { throw failure("cannot write '\(path)'") }
    }

    /// Calls write(2).
    private static func write(_ file: CInt, _ bytes: UnsafeRawBufferPointer) -> Int {
        #if canImport(Darwin)
        Darwin.write(file, bytes.baseAddress, bytes.count)
        #elseif canImport(Glibc)
        Glibc.write(file, bytes.baseAddress, bytes.count)
        #elseif canImport(Musl)
        Musl.write(file, bytes.baseAddress, bytes.count)
        #endif
    }

    /// Removes the authority. Returns `false` if there is none.
    public func delete() throws(CertificateAuthorityError) -> Bool {
        guard exists else { return false }
        // The key first, and only the files of an authority.
        for file in [File.key, .issuer, .certificate] where unlink("\(path)/\(file.rawValue)") != 0 && errno != ENOENT {
            throw Self.failure("cannot remove '\(path)/\(file.rawValue)'")
        }
        guard rmdir(path) == 0 else { throw Self.failure("cannot remove the folder '\(path)'") }
        return true
    }

    // MARK: Reading

    /// Reads the authority; `nil` if there is none. Throws if others may read the key or replace a file.
    public func load() throws(CertificateAuthorityError) -> CertificateAuthority? {
        guard exists else { return nil }
        var properties = crelay_file()
        guard crelay_lstat(path, &properties) == 0 else { throw Self.failure("cannot read the folder '\(path)'") }
        guard properties.is_folder else { throw CertificateAuthorityError("'\(path)' is not a folder") }
        try check(properties, path, mode: "700")
        return try CertificateAuthority(
            certificates: try read(.certificate) + read(.issuer), key: try read(.key))
    }

    private func read(_ name: File) throws(CertificateAuthorityError) -> String {
        let path = "\(path)/\(name.rawValue)"
        let file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { throw Self.failure("cannot read '\(path)'") }
        let handle = FileHandle(fileDescriptor: file, closeOnDealloc: true)
        var properties = crelay_file()
        guard crelay_fstat(file, &properties) == 0, properties.is_regular else {
            throw CertificateAuthorityError("'\(path)' is not a regular file")
        }
        try check(properties, path, mode: "600")
        guard let data = try? handle.read(upToCount: Self.fileBytesMax + 1), data.count <= Self.fileBytesMax else {
            throw CertificateAuthorityError("'\(path)' is empty, or larger than \(Self.fileBytesMax >> 10) KiB")
        }
        return String(decoding: data, as: UTF8.self)
    }

    private func check(_ properties: crelay_file, _ path: String, mode: String) throws(CertificateAuthorityError) {
        guard properties.owner == geteuid() else {
            throw CertificateAuthorityError("'\(path)' belongs to another user; delete it and create an authority")
        }
        guard properties.permissions & 0o077 == 0 else {
            throw CertificateAuthorityError(
                "other users have access to '\(path)' (mode \(String(properties.permissions, radix: 8))); the key may "
                    + "be known: run 'slowlane ca delete', or 'chmod \(mode)' if you are sure that it is not")
        }
    }

    private static func failure(_ text: String) -> CertificateAuthorityError {
        CertificateAuthorityError("\(text): \(String(cString: strerror(errno)))")
    }
}
