internal import Foundation
internal import Synchronization

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The check of connect mode on this machine.
package enum ConnectMode {
    /// The longest time of the check.
    private static let timeMax = DispatchTimeInterval.seconds(2)
    /// The open files that the process of the check may have.
    private static let openFilesMax = 64

    /// Tries connect mode: a process connects to an address that is not there, and must reach a socket of this process.
    /// Returns the reason why that is not possible; `nil` if it is. Blocking, for milliseconds as a rule.
    package static func obstacle() -> String? {
        #if os(Linux)
        guard let (listener, port) = LoopbackSocket.open(isStream: true) else {
            return "cannot listen on 127.0.0.1"
        }
        defer { close(listener) }
        let hasRecord = Mutex(false)
        let process: CommandProcess
        do {
            process = try CommandProcess(
                arguments: nil, [], openFilesMax: openFilesMax,
                ConnectSupervisor.Destinations(
                    proxyPort: port, record: { _, _ in hasRecord.withLock { $0 = true } }, remove: { _ in }))
        } catch .notWatched(let reason) {
            return reason
        } catch {
            return "\(error)"
        }
        let status = Mutex<CInt?>(nil)
        let ended = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            let code = process.wait()
            status.withLock { $0 = code }
            ended.signal()
        }
        if ended.wait(timeout: .now() + timeMax) == .timedOut {
            process.signal(SIGKILL)
            ended.wait()
        }
        _ = process.supervisor?.stop()
        let code = status.withLock { $0 } ?? 0
        if hasRecord.withLock({ $0 }) {
            // The status of the process is the errno of its call.
            return code == 0 ? nil : "a connection to 127.0.0.1 fails: \(String(cString: strerror(code)))"
        }
        return "this process may not copy sockets of its child processes (ptrace is restricted)"
        #else
        return "only Linux can redirect the connections of a program"
        #endif
    }
}
