internal import NIOCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// An error in words, with the name of its errno: "address already in use (EADDRINUSE)".
public struct SystemErrorDescription: Hashable, Sendable, CustomStringConvertible {
    /// The cause in lower case, to stand inside a sentence: "address already in use".
    public let text: String
    /// The name of the errno: "EADDRINUSE"; `nil` for other errors, and for an errno without a name here.
    public let errnoName: String?

    /// Describes an error.
    public init(_ error: any Error) {
        switch error {
        case let error as IOError:
            text = Self.text(ofErrno: error.errnoCode)
            errnoName = Self.names[error.errnoCode]
        case ChannelError.connectTimeout(let timeout):
            text = "no response within \(timeout.nanoseconds / 1_000_000) ms"
            errnoName = Self.names[ETIMEDOUT]
        default:
            text = "\(error)"
            errnoName = nil
        }
    }

    /// Describes an errno.
    public init(errno code: CInt) {
        text = Self.text(ofErrno: code)
        errnoName = Self.names[code]
    }

    private static func text(ofErrno code: CInt) -> String {
        var buffer = [CChar](repeating: 0, count: 128)
        guard strerror_r(code, &buffer, buffer.count) == 0 else { return "error \(code)" }
        let words = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return words.prefix(1).lowercased() + words.dropFirst()
    }

    public var description: String { errnoName.map { "\(text) (\($0))" } ?? text }

    /// Returns whether the error is a lack of file descriptors.
    package static func isFileLimit(_ error: any Error) -> Bool {
        guard let code = (error as? IOError)?.errnoCode else { return false }
        return code == EMFILE || code == ENFILE
    }

    /// The errnos of calls for sockets and files. The C library's own function (`strerrorname_np`) exists in glibc only.
    private static let names: [CInt: String] = [
        EACCES: "EACCES", EADDRINUSE: "EADDRINUSE", EADDRNOTAVAIL: "EADDRNOTAVAIL", EAFNOSUPPORT: "EAFNOSUPPORT",
        EAGAIN: "EAGAIN", EBADF: "EBADF", ECONNABORTED: "ECONNABORTED", ECONNREFUSED: "ECONNREFUSED",
        ECONNRESET: "ECONNRESET",
        EDQUOT: "EDQUOT", EFBIG: "EFBIG", EHOSTDOWN: "EHOSTDOWN", EHOSTUNREACH: "EHOSTUNREACH", EINVAL: "EINVAL",
        EIO: "EIO", EMFILE: "EMFILE", ENETDOWN: "ENETDOWN",
        ENETUNREACH: "ENETUNREACH", ENFILE: "ENFILE", ENOBUFS: "ENOBUFS", ENOMEM: "ENOMEM", ENOSPC: "ENOSPC",
        ENOTCONN: "ENOTCONN",
        EPERM: "EPERM", EPIPE: "EPIPE", EPROTO: "EPROTO", ETIMEDOUT: "ETIMEDOUT",
    ]
}
