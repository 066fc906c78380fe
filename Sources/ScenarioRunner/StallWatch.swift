internal import Foundation
internal import LinkModel
internal import Synchronization

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Notices when the machine stands still: a thread that wants to run and does not, a disk that takes long over one byte.
///
/// What it looks at is nothing of the run's own, so that a slow client or server is never taken for a slow machine.
final class StallWatch: Sendable {
    private let isOver = Mutex(false)
    private let onStall: @Sendable (Nanoseconds) -> Void

    /// How often each is asked.
    private static let clockEvery = Nanoseconds.milliseconds(20)
    private static let diskEvery = Nanoseconds.milliseconds(200)
    /// What is shorter than this happens on every machine that is busy.
    private static let shortest = Nanoseconds.milliseconds(250)

    /// - Parameters:
    ///   - folder: A folder on the disk that matters.
    ///   - onStall: Told how long it was, when it is over; called on any thread.
    init(_ folder: URL, onStall: @escaping @Sendable (Nanoseconds) -> Void) {
        self.onStall = onStall
        Thread.detachNewThread { [self] in
            watch(every: Self.clockEvery) {}
        }
        let path = folder.appendingPathComponent("stall-watch").path
        Thread.detachNewThread { [self] in
            let file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600)
            guard file >= 0 else { return }
            defer { close(file) }
            watch(every: Self.diskEvery) {
                var byte: UInt8 = 0
                _ = pwrite(file, &byte, 1, 0)
                fsync(file)
            }
        }
    }

    /// Looks no more.
    func stop() { isOver.withLock { $0 = true } }

    private func watch(every pause: Nanoseconds, _ work: () -> Void) {
        while !isOver.withLock({ $0 }) {
            let start = ContinuousClock.now
            Thread.sleep(forTimeInterval: Double(pause.count) / 1e9)
            work()
            let late = Nanoseconds(ContinuousClock.now - start) - pause
            if late >= Self.shortest { onStall(late) }
        }
    }
}
