public import Client
internal import Synchronization

/// The changes of a client's view with their times: what a user interface would have shown, and when.
///
/// ```swift
/// let log = ViewLog()
/// let client = try await SyncClient.start(configuration, onEvent: log.record)
/// ```
public final class ViewLog: Sendable {
    /// A change of the view.
    public struct Entry: Sendable {
        /// The time of the change.
        public let time: ContinuousClock.Instant
        /// The change.
        public let change: ViewChange
    }

    private let state = Mutex<[Entry]>([])
    private let entriesMax: Int

    /// Creates an empty log.
    ///
    /// - Parameter entriesMax: The maximum number of entries; the oldest ones are dropped.
    public init(entriesMax: Int = 10_000) { self.entriesMax = max(1, entriesMax) }

    /// Records a change of the view; other events are ignored.
    public func record(_ event: SyncEvent, at time: ContinuousClock.Instant) {
        guard case .view(let change) = event else { return }
        state.withLock { entries in
            // Half of them at once, so that a full log costs constant time per entry.
            if entries.count >= entriesMax { entries.removeFirst((entriesMax + 1) / 2) }
            entries.append(Entry(time: time, change: change))
        }
    }

    /// The changes, oldest first.
    public var entries: [Entry] { state.withLock { $0 } }

    /// Returns the icons that a record has had, each with the time from which it was shown.
    public func icons(of id: RecordID) -> [(time: ContinuousClock.Instant, icon: RecordRow.Icon)] {
        var icons: [(time: ContinuousClock.Instant, icon: RecordRow.Icon)] = []
        for entry in entries {
            for row in entry.change.rows where row.id == id && icons.last?.icon != row.icon {
                icons.append((entry.time, row.icon))
            }
        }
        return icons
    }
}
