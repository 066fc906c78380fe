public import Foundation
import Synchronization

/// A child process with pipes for its standard streams.
///
/// Foundation's `Process` is not used: with many open files, as in these tests, its search for the highest open descriptor reads
/// past the end of a buffer (256 bytes of each directory entry) and sometimes crashes.
public final class ChildProcess: Sendable {
    /// The destination of standard error.
    public enum StandardError: Sendable {
        /// ``ChildProcess/errors``.
        case separate
        /// ``ChildProcess/output``.
        case withOutput
        /// /dev/null.
        case discarded
    }

    /// The standard output.
    public let output: FileHandle
    /// The standard error.
    public let errors: FileHandle
    /// The standard input.
    public let input: FileHandle
    /// The process identifier.
    public let pid: pid_t
    /// The exit status, once it is known.
    private let end = Mutex<Int32?>(nil)

    /// Serialises starts, so that no other program inherits the ends of a pipe.
    private static let spawning = Mutex(())

    /// The variables of this process without those of GitHub Actions, on which the output of programs depends.
    private static let environment = ProcessInfo.processInfo.environment
        .filter { !$0.key.hasPrefix("GITHUB_") }.map { "\($0.key)=\($0.value)" }

    /// A failure to start a program or to open a pipe.
    public struct Failure: Error, CustomStringConvertible {
        let program: String
        let code: Int32

        public var description: String { "\(program): \(String(cString: strerror(code)))" }
    }

    /// Starts a program given by path or name.
    public init(
        _ program: String, _ arguments: [String], in folder: String? = nil, standardError: StandardError = .separate
    ) throws {
        var words = [program] + arguments
        if let folder { words = ["/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", folder] + words }
        (pid, input, output, errors) = try Self.spawning.withLock { _ in
            let (forInput, forOutput, forErrors) = (try Self.pipe(), try Self.pipe(), try Self.pipe())
            var actions = posix_spawn_file_actions_t()
            posix_spawn_file_actions_init(&actions)
            defer { posix_spawn_file_actions_destroy(&actions) }
            posix_spawn_file_actions_adddup2(&actions, forInput.exit.fileDescriptor, 0)
            posix_spawn_file_actions_adddup2(&actions, forOutput.entry.fileDescriptor, 1)
            switch standardError {
            case .separate: posix_spawn_file_actions_adddup2(&actions, forErrors.entry.fileDescriptor, 2)
            case .withOutput: posix_spawn_file_actions_adddup2(&actions, 1, 2)
            case .discarded: posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
            }
            let closesOthers = Self.closeOthers(&actions)
            var attributes = posix_spawnattr_t()
            posix_spawnattr_init(&attributes)
            defer { posix_spawnattr_destroy(&attributes) }
            // A process group of its own, so that Ctrl-C in the tests' terminal does not reach it; no signals blocked.
            posix_spawnattr_setflags(
                &attributes,
                Int16(POSIX_SPAWN_SETPGROUP) | Int16(POSIX_SPAWN_SETSIGMASK) | Int16(POSIX_SPAWN_SETSIGDEF)
                    | closesOthers)
            var signals = sigset_t()
            sigemptyset(&signals)
            posix_spawnattr_setsigmask(&attributes, &signals)
            // Ignored signals are inherited; a shell without job control ignores SIGINT and SIGQUIT for what it runs in the background.
            for number in [SIGPIPE, SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGUSR1, SIGUSR2] { sigaddset(&signals, number) }
            posix_spawnattr_setsigdefault(&attributes, &signals)
            var pid: pid_t = 0
            var texts = words.map { strdup($0) }
            defer { for text in texts { free(text) } }
            texts.append(nil)
            var environment = Self.environment.map { strdup($0) }
            defer { for variable in environment { free(variable) } }
            environment.append(nil)
            let code = posix_spawnp(&pid, words[0], &actions, &attributes, texts, environment)
            guard code == 0 else { throw Failure(program: program, code: code) }
            return (pid, forInput.entry, forOutput.exit, forErrors.exit)
        }
    }

    deinit {
        signal(SIGKILL)
        _ = wait()
    }

    private static func pipe() throws -> (exit: FileHandle, entry: FileHandle) {
        var ends: [Int32] = [-1, -1]
        #if canImport(Darwin)
        let code = Darwin.pipe(&ends)
        #elseif canImport(Glibc)
        let code = Glibc.pipe(&ends)
        #elseif canImport(Musl)
        let code = Musl.pipe(&ends)
        #endif
        guard code == 0 else { throw Failure(program: "pipe", code: errno) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (
            FileHandle(fileDescriptor: ends[0], closeOnDealloc: true),
            FileHandle(fileDescriptor: ends[1], closeOnDealloc: true)
        )
    }

    /// Makes the program inherit its three pipes only and returns flags for the start. A socket that it inherited would not send a
    /// FIN when its owner closes it.
    ///
    /// The system closes the descriptors in the new process. Listing and closing them here would miss those that other threads open
    /// meanwhile.
    private static func closeOthers(_ actions: inout posix_spawn_file_actions_t) -> Int16 {
        #if canImport(Darwin)
        return Int16(POSIX_SPAWN_CLOEXEC_DEFAULT)
        #else
        // In glibc since 2.34; Swift's Glibc module does not export it.
        typealias CloseFrom = @convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32) -> Int32
        guard let symbol = dlsym(nil, "posix_spawn_file_actions_addclosefrom_np") else {
            preconditionFailure("the tests need a C library with posix_spawn_file_actions_addclosefrom_np")
        }
        let code = unsafeBitCast(symbol, to: CloseFrom.self)(&actions, 3)
        precondition(code == 0, "a program would inherit our files: \(String(cString: strerror(code)))")
        return 0
        #endif
    }

    /// Sends a signal unless the process has ended.
    public func signal(_ number: Int32) {
        end.withLock { if $0 == nil { kill(pid, number) } }
    }

    /// Waits for the end and returns the exit status, negative for a signal. Blocking; call off the event loop.
    public func wait() -> Int32 {
        while true {
            // Non-blocking under the lock, so that `signal` never signals a reaped process.
            let seen: Int32? = end.withLock { end in
                if end != nil { return end }
                var status: Int32 = 0
                guard waitpid(pid, &status, WNOHANG) == pid else { return nil }
                end = status & 0x7F == 0 ? status >> 8 & 0xFF : -(status & 0x7F)
                return end
            }
            if let seen { return seen }
            usleep(2000)
        }
    }
}

/// Runs a program to its end and returns its exit status and output. Its standard error must fit into a pipe's buffer.
public func runProgram(
    _ program: String, _ arguments: [String], input: String = "", in folder: String? = nil,
    standardError: ChildProcess.StandardError = .separate
) throws -> (status: Int32, output: String, errors: String) {
    let child = try ChildProcess(program, arguments, in: folder, standardError: standardError)
    // A program may end before it has read everything; its exit status reports that.
    try? child.input.write(contentsOf: Data(input.utf8))
    try child.input.close()
    let output = String(decoding: try child.output.readToEnd() ?? Data(), as: UTF8.self)
    let errors = String(decoding: try child.errors.readToEnd() ?? Data(), as: UTF8.self)
    return (child.wait(), output, errors)
}
