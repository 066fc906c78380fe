internal import Foundation
internal import Scenario
internal import Synchronization
internal import Worlds

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// A child process in a process group of its own, with pipes for its standard streams. It belongs to one thread.
///
/// Foundation's `Process` has no process groups.
final class ChildProgram {
    /// The result of a read.
    enum Chunk {
        case bytes([UInt8])
        /// Nothing has been written since the last read.
        case empty
        /// No process has the other end open.
        case end
    }

    /// The size of a read.
    private static let readMax = 64 * 1024
    /// The maximum number of bytes that wait until the program reads its standard input.
    private static let inputMax = 4 << 20

    private let pid: pid_t
    private var input: CInt
    private(set) var output: CInt
    private(set) var errors: CInt
    private var waiting: [UInt8] = []
    private var hasEnded = false

    /// Serialises starts, so that no other program inherits the ends of a pipe.
    private static let spawning = Mutex(())

    /// Starts a program.
    ///
    /// - Parameter variables: Variables in addition to those of this process.
    init(_ program: Scenario.Program, variables: [(name: String, value: String)]) throws(ProgramError) {
        let started = Self.spawning.withLock { _ in Self.spawn(program, variables) }
        switch started {
        case .success(let child):
            (pid, input, output, errors) = child
            for file in [input, output, errors] { _ = fcntl(file, F_SETFL, O_NONBLOCK) }
        case .failure(let error): throw error
        }
    }

    private typealias Child = (pid: pid_t, input: CInt, output: CInt, errors: CInt)

    private static func spawn(
        _ program: Scenario.Program, _ variables: [(name: String, value: String)]
    ) -> Result<Child, ProgramError> {
        func failure(_ code: CInt) -> Result<Child, ProgramError> {
            let reason = String(cString: strerror(code))
            let name = program.arguments.first ?? ""
            return .failure(ProgramError(.notStarted, "cannot start '\(name)': \(reason)"))
        }
        var ends: [CInt] = []
        func closeAll(_ files: [CInt]) { for file in files { close(file) } }
        for _ in 0..<3 {
            var pair: [CInt] = [-1, -1]
            guard pipe(&pair) == 0 else {
                closeAll(ends)
                return failure(errno)
            }
            for end in pair { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
            ends += pair
        }
        #if canImport(Darwin)
        var actions: posix_spawn_file_actions_t?
        var attributes: posix_spawnattr_t?
        #else
        var actions = posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        #endif
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[0], 0)
        posix_spawn_file_actions_adddup2(&actions, ends[3], 1)
        posix_spawn_file_actions_adddup2(&actions, ends[5], 2)
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var flags = CInt(POSIX_SPAWN_SETPGROUP) | CInt(POSIX_SPAWN_SETSIGMASK) | CInt(POSIX_SPAWN_SETSIGDEF)
        #if canImport(Darwin)
        flags |= CInt(POSIX_SPAWN_CLOEXEC_DEFAULT)
        #else
        for file in inheritable() { posix_spawn_file_actions_addclose(&actions, file) }
        #endif
        posix_spawnattr_setflags(&attributes, Int16(flags))
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        for signal in [SIGPIPE, SIGINT, SIGTERM] { sigaddset(&signals, signal) }
        posix_spawnattr_setsigdefault(&attributes, &signals)
        let names = Set(variables.map(\.name))
        let inherited = ProcessInfo.processInfo.environment.filter { !names.contains($0.key) }
        var words = program.arguments
        // Swift's Glibc module does not export posix_spawn_file_actions_addchdir_np.
        if let folder = program.folder { words = ["/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", folder] + words }
        var texts: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
        var environment: [UnsafeMutablePointer<CChar>?] =
            inherited.map { strdup("\($0.key)=\($0.value)") } + variables.map { strdup("\($0.name)=\($0.value)") }
        texts.append(nil)
        environment.append(nil)
        defer { for text in texts + environment { free(text) } }
        var pid: pid_t = 0
        let code = posix_spawnp(&pid, words.first ?? "", &actions, &attributes, texts, environment)
        closeAll([ends[0], ends[3], ends[5]])
        guard code == 0 else {
            closeAll([ends[1], ends[2], ends[4]])
            return failure(code)
        }
        return .success((pid, ends[1], ends[2], ends[4]))
    }

    /// Returns the open files that a child would inherit. A listening socket that it inherited would stay open.
    private static func inheritable() -> [CInt] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return names.compactMap { CInt($0) }.filter { file in
            let flags = fcntl(file, F_GETFD)
            return file > 2 && flags >= 0 && flags & FD_CLOEXEC == 0
        }
    }

    // MARK: Streams

    /// The file to which bytes wait to be written; `nil` if there are none.
    var fullInput: CInt? { waiting.isEmpty || input < 0 ? nil : input }

    /// Writes bytes to the program's standard input, as far as it accepts them; the rest waits for
    /// ``writeWaiting()``. Returns `false` if too many bytes wait.
    func write(_ bytes: [UInt8]) -> Bool {
        waiting += bytes
        writeWaiting()
        return waiting.count <= Self.inputMax
    }

    /// Writes bytes that wait. SIGPIPE is blocked in the calling thread.
    func writeWaiting() {
        while input >= 0, !waiting.isEmpty {
            let count = waiting.withUnsafeBytes { systemWrite(input, $0.baseAddress, $0.count) }
            if count > 0 {
                waiting.removeFirst(count)
            } else if errno == EAGAIN || errno == EWOULDBLOCK {
                return
            } else if errno != EINTR {
                // The program has closed its standard input.
                waiting = []
                close(input)
                input = -1
            }
        }
    }

    /// Reads from the program's standard output.
    func readOutput() -> Chunk { Self.read(&output) }

    /// Reads from the program's standard error.
    func readErrors() -> Chunk { Self.read(&errors) }

    private static func read(_ file: inout CInt) -> Chunk {
        guard file >= 0 else { return .end }
        var bytes = [UInt8](repeating: 0, count: readMax)
        while true {
            let count = bytes.withUnsafeMutableBytes { systemRead(file, $0.baseAddress, $0.count) }
            if count > 0 { return .bytes(Array(bytes.prefix(count))) }
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN || errno == EWOULDBLOCK { return .empty }
            close(file)
            file = -1
            return .end
        }
    }

    // MARK: The end

    /// Kills the process group if the process has ended by itself, and returns how it ended; `nil` if it runs.
    func takeEnd() -> (text: String, isSuccess: Bool)? {
        guard !hasEnded else { return nil }
        var info = siginfo_t()
        // The group exists until its first process is reaped, so that no other process can get the signal.
        guard waitid(P_PID, id_t(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0, info.si_signo != 0 else { return nil }
        systemKill(-pid, SIGKILL)
        return reap().map { status in
            status & 0x7F == 0
                ? ("exit status \(status >> 8 & 0xFF)", status >> 8 & 0xFF == 0)
                : ("signal \(status & 0x7F) (\(String(cString: strsignal(status & 0x7F))))", false)
        }
    }

    /// Kills the process group, and closes the pipes.
    func kill() {
        if !hasEnded {
            systemKill(-pid, SIGKILL)
            _ = reap()
        }
        for file in [input, output, errors] where file >= 0 { close(file) }
        (input, output, errors) = (-1, -1, -1)
    }

    private func reap() -> CInt? {
        hasEnded = true
        var status: CInt = 0
        while waitpid(pid, &status, 0) < 0 { if errno != EINTR { return nil } }
        return status
    }

    deinit { kill() }
}

// The names are those of methods above.
private func systemRead(_ file: CInt, _ bytes: UnsafeMutableRawPointer?, _ count: Int) -> Int {
    read(file, bytes, count)
}

private func systemWrite(_ file: CInt, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int { write(file, bytes, count) }

private func systemKill(_ process: pid_t, _ signal: CInt) { _ = kill(process, signal) }
