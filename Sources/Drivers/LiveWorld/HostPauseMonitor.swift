internal import Determinism
internal import Foundation
internal import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A monitor of host pauses. It detects late wake-ups of a thread and late completions of one-byte writes.
///
/// It is independent of the run, so that a slow client or server does not count as a host pause.
final class HostPauseMonitor: Sendable {
    private let isStopped = Mutex(false)
    private let onPause: @Sendable (Nanoseconds) -> Void

    private static let clockInterval = Nanoseconds.milliseconds(20)
    private static let diskInterval = Nanoseconds.milliseconds(200)
    /// The minimum delay that is reported. Shorter delays are normal on a busy host.
    private static let reportMin = Nanoseconds.milliseconds(250)

    /// Starts the monitor's threads.
    ///
    /// - Parameters:
    ///   - folder: A folder on the disk to measure.
    ///   - onPause: Called after each pause with its length, on any thread.
    init(_ folder: URL, onPause: @escaping @Sendable (Nanoseconds) -> Void) {
        self.onPause = onPause
        Thread.detachNewThread { [self] in
            measure(every: Self.clockInterval) {}
        }
        let path = folder.appendingPathComponent("host-pause-monitor").path
        Thread.detachNewThread { [self] in
            let file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600)
            guard file >= 0 else { return }
            defer { close(file) }
            measure(every: Self.diskInterval) {
                var byte: UInt8 = 0
                _ = pwrite(file, &byte, 1, 0)
                fsync(file)
            }
        }
    }

    /// Stops the monitor.
    func stop() { isStopped.withLock { $0 = true } }

    private func measure(every interval: Nanoseconds, _ work: () -> Void) {
        while !isStopped.withLock({ $0 }) {
            let start = ContinuousClock.now
            Thread.sleep(forTimeInterval: Double(interval.count) / 1e9)
            work()
            let delay = Nanoseconds(ContinuousClock.now - start) - interval
            if delay >= Self.reportMin { onPause(delay) }
        }
    }
}
