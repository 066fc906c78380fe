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

/// Signal handlers that run on a thread of their own (a self-pipe).
///
/// Dispatch sources lose signals on Linux under load: libdispatch forwards a signal that another thread received, and
/// about one in forty did not arrive.
package enum Signals {
    private static let handlers = Mutex<[CInt: [@Sendable () -> Void]]>([:])

    /// Replaces the default action of signals by `handler`, for the lifetime of the process.
    ///
    /// The handler takes effect before this returns. The default actions stay if no pipe can be opened.
    package static func on(_ numbers: [CInt], _ handler: @escaping @Sendable () -> Void) {
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
        signal(number) { number in
            let code = errno
            var byte = UInt8(truncatingIfNeeded: number)
            _ = write(wakeupFD.load(ordering: .relaxed), &byte, 1)
            errno = code
        }
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
                for handler in handlers.withLock({ $0[CInt(byte)] ?? [] }) { handler() }
            }
        }
        return true
    }()

    /// SIGINT: Ctrl-C.
    package static let interrupt = SIGINT
    /// SIGTERM: a request to stop.
    package static let terminate = SIGTERM
}
