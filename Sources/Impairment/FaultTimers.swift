internal import Determinism
internal import HeapModule
internal import LinkModel

/// The times at which holds and trickles of a link's connections continue, in order.
///
/// A timer stays in the heap when its connection ends or an earlier one replaces it; the link ignores it when it fires.
struct FaultTimers {
    /// The time at which a connection continues.
    struct Timer: Comparable {
        let time: Instant
        let flow: FlowID
        fileprivate let sequence: UInt64

        static func < (left: Timer, right: Timer) -> Bool {
            (left.time, left.sequence) < (right.time, right.sequence)
        }
    }

    private var timers = Heap<Timer>()
    private var sequence: UInt64 = 0

    var isEmpty: Bool { timers.isEmpty }

    /// The number of timers, including stale ones.
    var count: Int { timers.count }

    /// The time of the earliest timer.
    var nextDeadline: Instant { timers.min?.time ?? .never }

    mutating func schedule(_ id: FlowID, at time: Instant) {
        sequence += 1
        timers.insert(Timer(time: time, flow: id, sequence: sequence))
    }

    /// Removes and returns the earliest timer if it is due.
    mutating func popDue(at now: Instant) -> Timer? {
        guard let timer = timers.min, timer.time <= now else { return nil }
        return timers.removeMin()
    }

    /// Removes stale timers if they are many compared with the connections.
    mutating func removeStale(in conduits: borrowing ConduitTable, connections: Int) {
        guard timers.count > 64 + 4 * connections else { return }
        var current: [Timer] = []
        for timer in timers.unordered where Self.isCurrent(timer, in: conduits) { current.append(timer) }
        timers = Heap(current)
    }

    /// Returns whether a timer is the current one of its connection, not a stale one.
    static func isCurrent(_ timer: Timer, in conduits: borrowing ConduitTable) -> Bool {
        conduits.contains(timer.flow) && conduits[timer.flow].tracker?.timer == timer.time
    }
}
