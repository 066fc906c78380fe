internal import Foundation
internal import Synchronization

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Where a signal's handler writes its number: nothing else is allowed there.
private let bell = Atomic<CInt>(-1)

/// Signals, told to whoever wants them on a thread of their own.
///
/// Not a dispatch source: on Linux that passes a signal that another thread has got on to a thread of its own, and on a machine
/// that is very busy one of forty did not arrive.
enum Signals {
    private static let handlers = Mutex<[CInt: [@Sendable () -> Void]]>([:])

    /// Calls `handler` when a signal comes, instead of what the signal would do; in force when this returns, as long as the
    /// process lives. Without a file for it signals go on doing what they would.
    static func on(_ numbers: [CInt], _ handler: @escaping @Sendable () -> Void) {
        guard isListening else { return }
        for number in numbers {
            handlers.withLock { $0[number, default: []].append(handler) }
            signal(number) { number in
                let code = errno
                var byte = UInt8(truncatingIfNeeded: number)
                _ = write(bell.load(ordering: .relaxed), &byte, 1)
                errno = code
            }
        }
    }

    /// Whether there is a thread that hears the bell; started when it is first asked for.
    private static let isListening: Bool = {
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else { return false }
        let (exit, entry) = (ends[0], ends[1])
        for end in [exit, entry] { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        // A handler must not wait: whoever sends thousands is heard all the same.
        _ = fcntl(entry, F_SETFL, O_NONBLOCK)
        bell.store(entry, ordering: .relaxed)
        Thread.detachNewThread {
            var byte: UInt8 = 0
            while true {
                let count = read(exit, &byte, 1)
                if count < 0 && errno == EINTR { continue }
                guard count == 1 else { return }
                for handler in handlers.withLock({ $0[CInt(byte)] ?? [] }) { handler() }
            }
        }
        return true
    }()

    /// Interrupt from the keyboard.
    static let interrupt = SIGINT
    /// A request to end.
    static let terminate = SIGTERM
}
