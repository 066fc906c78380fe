internal import Determinism
internal import Foundation
internal import Scenario
internal import Synchronization
internal import Worlds

/// The disk of a device in real time: a client's thread asks it before each commit.
final class DiskState: Sendable {
    private let state = Mutex(Scenario.Disk.normal)

    func set(_ disk: Scenario.Disk) { state.withLock { $0 = disk } }

    /// Waits as long as the disk takes. Returns the reason for which the commit fails; `nil` for none.
    func beforeCommit() -> String? {
        switch state.withLock({ $0 }) {
        case .normal: return nil
        case .full: return StoreDisk.fullReason
        case .slow(let delay):
            // The client's own thread, which blocks in a commit.
            Thread.sleep(forTimeInterval: Double(delay.count) / 1e9)
            return nil
        }
    }
}
