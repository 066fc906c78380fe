internal import Determinism
internal import Foundation
internal import Scenario
internal import Synchronization
internal import Worlds

/// The disk of a device in real time. The client calls it before each commit, on a thread that serves no other client.
final class DiskState: Sendable {
    private let state = Mutex(Scenario.Disk.normal)

    func set(_ disk: Scenario.Disk) { state.withLock { $0 = disk } }

    /// Waits as long as the disk takes. Returns the reason for which the commit fails; `nil` for none.
    func beforeCommit() -> String? {
        switch state.withLock({ $0 }) {
        case .normal: return nil
        case .full: return StoreDisk.fullReason
        case .slow(let delay):
            // A slow disk blocks the thread of its client, as a commit does; the proxy and other clients go on.
            Thread.sleep(forTimeInterval: Double(delay.count) / 1e9)
            return nil
        }
    }
}
