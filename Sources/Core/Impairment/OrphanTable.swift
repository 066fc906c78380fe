internal import DequeModule
internal import Determinism
internal import LinkModel

/// The orphaned connections of a link, the oldest first. The link aborts an orphan at its deadline.
///
/// An orphan that ends before its deadline stays in the queue until it is the oldest, or until the table is full.
struct OrphanTable {
    private struct Orphan {
        let flow: FlowID
        let deadline: Instant
    }

    private var orphans = Deque<Orphan>()
    private let limits: OrphanLimits

    init(_ limits: OrphanLimits) { self.limits = limits }

    /// The deadline of the oldest orphan.
    var nextDeadline: Instant { orphans.first?.deadline ?? .never }

    /// Returns the number of orphans that have not ended.
    func count(in conduits: borrowing ConduitTable) -> Int {
        var count = 0
        for orphan in orphans where conduits.contains(orphan.flow) { count += 1 }
        return count
    }

    /// Adds an orphan. Returns the oldest one if there are too many now: it must be aborted.
    mutating func insert(_ id: FlowID, at now: Instant, in conduits: borrowing ConduitTable) -> FlowID? {
        orphans.append(Orphan(flow: id, deadline: now + limits.timeMax))
        if orphans.count <= limits.countMax { return nil }
        var open = Deque<Orphan>()
        for orphan in orphans where conduits.contains(orphan.flow) { open.append(orphan) }
        orphans = open
        return orphans.count > limits.countMax ? orphans.first?.flow : nil
    }

    /// Returns the oldest orphan if its deadline has passed; it must be aborted.
    func due(at now: Instant) -> FlowID? {
        guard let orphan = orphans.first, orphan.deadline <= now else { return nil }
        return orphan.flow
    }

    /// Removes the oldest orphans that have ended, so that the first one is open.
    mutating func removeEnded(in conduits: borrowing ConduitTable) {
        while let orphan = orphans.first, !conduits.contains(orphan.flow) { orphans.removeFirst() }
    }
}
