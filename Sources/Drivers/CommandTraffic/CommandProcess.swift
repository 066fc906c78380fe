internal import CRelay
internal import Foundation
internal import Synchronization

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// A command that runs in the process group, on the terminal, and with the standard streams of this process.
package final class CommandProcess: Sendable {
    /// A failure to start a command.
    package enum StartError: Error, Equatable, CustomStringConvertible {
        /// There is no such program.
        case notFound(String)
        /// The program cannot be executed.
        case notExecutable(String, reason: String)
        /// A filter of connect(2) cannot be installed; in connect mode only.
        case notWatched(reason: String)
        /// No process can be created.
        case noProcess(reason: String)

        package var description: String {
            switch self {
            case .notFound(let name): "cannot run '\(name)': there is no such program; check the name, and PATH"
            case .notExecutable(let name, let reason): "cannot run '\(name)': \(reason)"
            case .notWatched(let reason): "cannot watch connections of the command: \(reason)"
            case .noProcess(let reason): "cannot create a process: \(reason)"
            }
        }
    }

    /// The process identifier; `nil` after the end.
    private let pid: Mutex<pid_t?>
    /// The supervisor in connect mode.
    package let supervisor: ConnectSupervisor?

    /// Starts a command.
    ///
    /// - Parameters:
    ///   - arguments: The program, a path or a name that is searched in PATH, and its arguments.
    ///   - variables: Variables in place of those of this process.
    ///   - openFilesMax: The soft limit of open files.
    ///   - redirection: The destinations of redirected connections in connect mode.
    package convenience init(
        _ arguments: [String], variables: [(name: String, value: String)], openFilesMax: Int,
        redirection: ConnectSupervisor.Destinations? = nil
    ) throws(StartError) {
        try self.init(arguments: arguments, variables, openFilesMax: openFilesMax, redirection)
    }

    /// - Parameter arguments: The command; `nil` for a process that connects to an address without a host.
    init(
        arguments: [String]?, _ variables: [(name: String, value: String)], openFilesMax: Int,
        _ redirection: ConnectSupervisor.Destinations?
    ) throws(StartError) {
        var words = arguments?.map { strdup($0) } ?? []
        var texts = variables.map { strdup("\($0.name)=\($0.value)") }
        words.append(nil)
        texts.append(nil)
        defer { for text in words + texts { free(text) } }
        var failure = crelay_failure()
        var calls: CInt = -1
        let process = words.withUnsafeBufferPointer { words in
            withUnsafeMutablePointer(to: &calls) { calls in
                crelay_start(
                    arguments == nil ? nil : words.baseAddress, texts, UInt64(openFilesMax),
                    redirection == nil ? nil : calls, &failure)
            }
        }
        guard process > 0 else { throw StartError(failure, arguments?.first ?? "") }
        pid = Mutex(process)
        supervisor = redirection.flatMap { ConnectSupervisor(calls: calls, $0) }
        if redirection != nil && supervisor == nil {
            failure = crelay_failure(step: CRELAY_STEP_FORK, code: errno)
            kill(process, SIGKILL)
            waitpid(process, nil, 0)
            throw StartError(failure, arguments?.first ?? "")
        }
    }

    /// Sends a signal, unless the command has ended.
    package func signal(_ number: CInt) {
        pid.withLock { pid in if let pid { kill(pid, number) } }
    }

    /// Waits for the end and returns the status as a shell reports it: the exit status, or 128 and the number of a
    /// signal. Stops this process while the command is stopped, so that a shell has its job control. Blocking; called
    /// once.
    package func wait() -> CInt {
        guard let process = pid.withLock({ $0 }) else { return 0 }
        while true {
            var information = siginfo_t()
            // The number belongs to the command until it is reaped, so that no other process can get its signals.
            guard waitid(P_PID, id_t(process), &information, WEXITED | WSTOPPED | WNOWAIT) == 0 || errno == EINTR
            else { return 0 }
            var status: CInt = 0
            let hasEnded = pid.withLock { pid in
                guard waitpid(process, &status, WNOHANG | WUNTRACED) == process, status & 0xFF != 0x7F else {
                    return false
                }
                pid = nil
                return true
            }
            if hasEnded { return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + (status & 0x7F) }
            if status & 0xFF == 0x7F {
                kill(getpid(), SIGSTOP)
                signal(SIGCONT)
            }
        }
    }
}

extension CommandProcess.StartError {
    init(_ failure: crelay_failure, _ program: String) {
        let reason = String(cString: strerror(failure.code))
        switch (failure.step, failure.code) {
        case (CRELAY_STEP_FILTER, EBUSY):
            self = .notWatched(reason: "this process belongs to a command in connect mode already")
        case (CRELAY_STEP_FILTER, _): self = .notWatched(reason: "the system forbids seccomp filters (\(reason))")
        case (CRELAY_STEP_EXEC, ENOENT), (CRELAY_STEP_EXEC, ENOTDIR): self = .notFound(program)
        case (CRELAY_STEP_EXEC, _): self = .notExecutable(program, reason: reason)
        default: self = .noProcess(reason: reason)
        }
    }
}
