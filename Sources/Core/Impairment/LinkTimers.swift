internal import Determinism
internal import HeapModule
internal import LinkModel

/// The times at which a link continues with its connections, in order: runs their toxics again, and ends the waits of
/// their faults.
///
/// A timer stays in the heap when its connection ends or an earlier one replaces it; the link ignores it when it fires.
struct LinkTimers {
    /// What continues.
    enum Purpose {
        /// The toxics of a stream.
        case toxics(Direction)
        /// A hold or a trickle of a fault.
        case fault
    }

    /// The time at which a connection continues.
    struct Timer: Comparable {
        let time: Instant
        let flow: FlowID
        let purpose: Purpose
        fileprivate let sequence: UInt64

        static func < (left: Timer, right: Timer) -> Bool {
            (left.time, left.sequence) < (right.time, right.sequence)
        }

        static func == (left: Timer, right: Timer) -> Bool { left.sequence == right.sequence }
    }

    private var timers = Heap<Timer>()
    private var sequence: UInt64 = 0

    var isEmpty: Bool { timers.isEmpty }

    /// The number of timers, including stale ones.
    var count: Int { timers.count }

    /// The time of the earliest timer.
    var nextDeadline: Instant { timers.min?.time ?? .never }

    mutating func schedule(_ id: FlowID, _ purpose: Purpose, at time: Instant) {
        sequence += 1
        timers.insert(Timer(time: time, flow: id, purpose: purpose, sequence: sequence))
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

    /// Returns whether a timer is the current one of its purpose, not a stale one.
    static func isCurrent(_ timer: Timer, in conduits: borrowing ConduitTable) -> Bool {
        guard conduits.contains(timer.flow) else { return false }
        return switch timer.purpose {
        case .toxics(let direction): conduits[timer.flow, direction].toxics?.timer == timer.time
        case .fault: conduits[timer.flow].tracker?.timer == timer.time
        }
    }
}
