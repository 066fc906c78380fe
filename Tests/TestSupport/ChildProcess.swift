public import Foundation
import Synchronization

/// A program that runs beside the tests.
///
/// Not Foundation's `Process`: to find the highest open descriptor that copies 256 bytes of each directory entry, past the end of
/// its buffer when many files are open, as in these tests, and now and then into no memory at all.
public final class ChildProcess: Sendable {
    /// Where a program's complaints go.
    public enum Complaints: Sendable {
        /// Where they can be read.
        case apart
        /// Where its output goes.
        case withOutput
        /// Nowhere.
        case dropped
    }

    /// What the program prints.
    public let output: FileHandle
    /// What it complains of.
    public let errors: FileHandle
    /// What it reads.
    public let input: FileHandle
    /// Its number.
    public let pid: pid_t
    /// Its end, once somebody has seen it.
    private let end = Mutex<Int32?>(nil)

    /// One at a time: the ends of a pipe must not be inherited by another program.
    private static let spawning = Mutex(())

    /// Why a program could not be started, or a pipe be had.
    public struct Failure: Error, CustomStringConvertible {
        let program: String
        let code: Int32

        public var description: String { "\(program): \(String(cString: strerror(code)))" }
    }

    /// Starts a program, by its path or by its name.
    public init(
        _ program: String, _ arguments: [String], in folder: String? = nil, complaints: Complaints = .apart
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
            switch complaints {
            case .apart: posix_spawn_file_actions_adddup2(&actions, forErrors.entry.fileDescriptor, 2)
            case .withOutput: posix_spawn_file_actions_adddup2(&actions, 1, 2)
            case .dropped: posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
            }
            let closesOthers = Self.closeOthers(&actions)
            var attributes = posix_spawnattr_t()
            posix_spawnattr_init(&attributes)
            defer { posix_spawnattr_destroy(&attributes) }
            // A group of its own, so that what is typed at the tests does not end it; and no signal blocked, as some are here.
            posix_spawnattr_setflags(
                &attributes,
                Int16(POSIX_SPAWN_SETPGROUP) | Int16(POSIX_SPAWN_SETSIGMASK) | Int16(POSIX_SPAWN_SETSIGDEF)
                    | closesOthers)
            var signals = sigset_t()
            sigemptyset(&signals)
            posix_spawnattr_setsigmask(&attributes, &signals)
            sigaddset(&signals, SIGPIPE)
            posix_spawnattr_setsigdefault(&attributes, &signals)
            var pid: pid_t = 0
            var texts = words.map { strdup($0) }
            defer { for text in texts { free(text) } }
            texts.append(nil)
            let code = posix_spawnp(&pid, words[0], &actions, &attributes, texts, environ)
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

    /// Has the program inherit nothing but its three pipes: a socket that it kept open would send no FIN when its owner here
    /// closes it. Gives flags for the start.
    ///
    /// The system does it in the new process. To list what is open and close that misses what other threads open meanwhile.
    private static func closeOthers(_ actions: inout posix_spawn_file_actions_t) -> Int16 {
        #if canImport(Darwin)
            return Int16(POSIX_SPAWN_CLOEXEC_DEFAULT)
        #else
            // Since glibc 2.34; Swift's Glibc does not show it.
            typealias CloseFrom = @convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32) -> Int32
            guard let symbol = dlsym(nil, "posix_spawn_file_actions_addclosefrom_np") else {
                preconditionFailure("the tests need a C library with posix_spawn_file_actions_addclosefrom_np")
            }
            let code = unsafeBitCast(symbol, to: CloseFrom.self)(&actions, 3)
            precondition(code == 0, "a program would inherit our files: \(String(cString: strerror(code)))")
            return 0
        #endif
    }

    /// Sends a signal, if it runs still.
    public func signal(_ number: Int32) {
        end.withLock { if $0 == nil { kill(pid, number) } }
    }

    /// Waits for its end; gives the exit status, negative for a signal.
    public func wait() -> Int32 {
        while true {
            // Asked without blocking, so that nobody signals a process that is no more.
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

/// Runs a program to its end; gives its exit status and all it printed. It must not complain of more than a pipe holds.
public func runProgram(
    _ program: String, _ arguments: [String], input: String = "", in folder: String? = nil,
    complaints: ChildProcess.Complaints = .apart
) throws -> (status: Int32, output: String, errors: String) {
    let child = try ChildProcess(program, arguments, in: folder, complaints: complaints)
    // One that ends before it has read everything says so by its status.
    try? child.input.write(contentsOf: Data(input.utf8))
    try child.input.close()
    let output = String(decoding: try child.output.readToEnd() ?? Data(), as: UTF8.self)
    let errors = String(decoding: try child.errors.readToEnd() ?? Data(), as: UTF8.self)
    return (child.wait(), output, errors)
}
