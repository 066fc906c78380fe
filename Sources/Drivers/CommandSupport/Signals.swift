internal import Foundation
internal import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The pipe to which the signal handler writes; a handler may only call async-signal-safe functions.
private let wakeupFD = Atomic<CInt>(-1)

/// The bit of a byte in the pipe for signals of another process. Numbers of signals are less.
private let processBit: UInt8 = 0x80

private func handleSignal(
    _ number: CInt, _ information: UnsafeMutablePointer<siginfo_t>?, _ context: UnsafeMutableRawPointer?
) {
    let code = errno
    #if canImport(Darwin)
    let isFromProcess = information?.pointee.si_code == SI_USER
    #else
    let isFromProcess = (information?.pointee.si_code ?? 0) <= 0
    #endif
    var byte = UInt8(truncatingIfNeeded: number) | (isFromProcess ? processBit : 0)
    _ = write(wakeupFD.load(ordering: .relaxed), &byte, 1)
    errno = code
}

/// Signal handlers that run on a thread of their own (a self-pipe).
///
/// Dispatch sources lose signals on Linux under load: libdispatch forwards a signal that another thread received, and
/// about one in forty did not arrive.
package enum Signals {
    /// The origin of a signal.
    package enum Origin: Sendable {
        /// The kernel, for a key of the terminal, for instance. The process group gets such a signal.
        case kernel
        /// Another process.
        case process
    }

    private static let handlers = Mutex<[CInt: [@Sendable (CInt, Origin) -> Void]]>([:])

    /// Replaces the default action of signals by `handler`, for the lifetime of the process.
    ///
    /// The handler takes effect before this returns. The default actions stay if no pipe can be opened.
    package static func on(_ numbers: [CInt], _ handler: @escaping @Sendable () -> Void) {
        onOrigin(numbers) { _, _ in handler() }
    }

    /// The same, with the origin of a signal.
    package static func onOrigin(_ numbers: [CInt], _ handler: @escaping @Sendable (CInt, Origin) -> Void) {
        guard hasThread else { return }
        for number in numbers {
            handlers.withLock { $0[number, default: []].append(handler) }
            install(number)
        }
    }

    /// Performs the default action of a signal, once. For handlers.
    static func performDefaultAction(of number: CInt) {
        signal(number, SIG_DFL)
        // Another thread could receive a signal of the process later, and handle it. This one receives its own signal
        // before the calls return; like most threads it blocks signals.
        raise(number)
        var unblocked = sigset_t()
        var blocked = sigset_t()
        sigemptyset(&unblocked)
        sigaddset(&unblocked, number)
        pthread_sigmask(SIG_UNBLOCK, &unblocked, &blocked)
        pthread_sigmask(SIG_SETMASK, &blocked, nil)
        install(number)
    }

    private static func install(_ number: CInt) {
        var action = sigaction()
        action.sa_flags = SA_SIGINFO | SA_RESTART
        #if canImport(Darwin)
        action.__sigaction_u.__sa_sigaction = handleSignal
        #elseif canImport(Glibc)
        action.__sigaction_handler.sa_sigaction = handleSignal
        #elseif canImport(Musl)
        action.__sa_handler.sa_sigaction = handleSignal
        #endif
        sigaction(number, &action, nil)
    }

    /// Returns whether this process ignores a signal.
    package static func isIgnored(_ number: CInt) -> Bool {
        var action = sigaction()
        guard sigaction(number, nil, &action) == 0 else { return false }
        #if canImport(Darwin)
        let handler = action.__sigaction_u.__sa_handler
        #elseif canImport(Glibc)
        let handler = action.__sigaction_handler.sa_handler
        #elseif canImport(Musl)
        let handler = action.__sa_handler.sa_handler
        #endif
        return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Whether the thread that reads the pipe runs; the first access starts it.
    private static let hasThread: Bool = {
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else { return false }
        let (readEnd, writeEnd) = (ends[0], ends[1])
        for end in [readEnd, writeEnd] { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        // A handler must not block when thousands of signals fill the pipe.
        _ = fcntl(writeEnd, F_SETFL, O_NONBLOCK)
        wakeupFD.store(writeEnd, ordering: .relaxed)
        Thread.detachNewThread {
            var byte: UInt8 = 0
            while true {
                let count = read(readEnd, &byte, 1)
                if count < 0 && errno == EINTR { continue }
                guard count == 1 else { return }
                let number = CInt(byte & ~processBit)
                let origin: Origin = byte & processBit == 0 ? .kernel : .process
                for handler in handlers.withLock({ $0[number] ?? [] }) { handler(number, origin) }
            }
        }
        return true
    }()

    /// The signals that a command gets when they are sent to the program that runs it.
    package static let forwarded = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGUSR1, SIGUSR2]
    /// SIGINT: Ctrl-C.
    package static let interrupt = SIGINT
    /// SIGTERM: a request to stop.
    package static let terminate = SIGTERM
    /// SIGWINCH: another size of the terminal.
    package static let windowChange = SIGWINCH
    /// SIGHUP: the end of the terminal, or a request to read the configuration again.
    package static let hangup = SIGHUP
}
