internal import Foundation
internal import HTTPSockets
internal import Proxy
internal import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Standard output and standard error as files: complete writes, and the first failure of standard output.
///
/// Results that nobody has received are an error of every command. A pipe whose reader has gone is none: the reader has
/// what it wants, as in `slowlane events | head -1`.
public enum StandardStream: CInt, Sendable {
    case output = 1
    case errors = 2

    private struct State {
        /// The errno of the first failed write to standard output.
        var failure: CInt?
        /// Called once, when standard output has failed.
        var onFailure: [@Sendable () -> Void] = []
    }

    /// The exit status of a command whose output could not be written, the same as for files (`EX_UNAVAILABLE`).
    private static let failedStatus: Int32 = 69
    private static let state = Mutex(State())

    /// Writes the whole text. Prints the first failure of standard output, unless its reader has gone.
    public func write(_ text: String) { write(Array(text.utf8)) }

    /// Writes all bytes, like ``write(_:)-(String)``.
    public func write(_ bytes: [UInt8]) {
        let code = Self.write(bytes, to: rawValue)
        if code != 0 && self == .output { Self.record(code) }
    }

    /// Calls `body`, once, when standard output has failed; at once if it has failed before.
    package static func onOutputFailure(_ body: @escaping @Sendable () -> Void) {
        let hasFailed = state.withLock { state in
            if state.failure == nil { state.onFailure.append(body) }
            return state.failure != nil
        }
        if hasFailed { body() }
    }

    /// Returns the exit status of a command: its own, or 69 if that is 0 and the output could not be written.
    public static func exitStatus(_ status: Int32) -> Int32 {
        guard status == 0, let code = state.withLock({ $0.failure }), code != EPIPE else { return status }
        return failedStatus
    }

    /// Opens /dev/null in place of standard streams that are closed. A file or socket would take their numbers
    /// otherwise, and output would be written into it.
    ///
    /// It is opened so that the stream's use fails as it does for a closed one.
    public static func openClosedStreams() {
        for descriptor: CInt in 0...2 where fcntl(descriptor, F_GETFD) < 0 {
            // The lowest free number is that of the stream.
            _ = open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY)
        }
    }

    private static func record(_ code: CInt) {
        let handlers: [@Sendable () -> Void]? = state.withLock { state in
            guard state.failure == nil else { return nil }
            state.failure = code
            defer { state.onFailure = [] }
            return state.onFailure
        }
        guard let handlers else { return }
        if code != EPIPE {
            StandardStream.errors.write("error: cannot write standard output: \(SystemErrorDescription(errno: code))\n")
        }
        for handler in handlers { handler() }
    }

    /// Returns 0 or the errno of the failure.
    private static func write(_ bytes: [UInt8], to descriptor: CInt) -> CInt {
        bytes.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = systemWrite(descriptor, UnsafeRawBufferPointer(rebasing: rest))
                if count >= 0 {
                    rest = rest.dropFirst(count)
                    continue
                }
                switch errno {
                case EINTR: continue
                case EAGAIN:
                    // Another process has made the shared file non-blocking.
                    var wait = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    _ = poll(&wait, 1, -1)
                case let code: return code
                }
            }
            return 0
        }
    }
}

private func systemWrite(_ descriptor: CInt, _ bytes: UnsafeRawBufferPointer) -> Int {
    write(descriptor, bytes.baseAddress, bytes.count)
}
