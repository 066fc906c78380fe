import Determinism
import HeapModule

/// Virtual time: events are executed in the order of their times, equal times in the order of insertion.
final class VirtualTime {
    private struct Event: Comparable {
        let at: Instant
        let sequence: Int
        let execute: () -> Void

        static func < (left: Event, right: Event) -> Bool { (left.at, left.sequence) < (right.at, right.sequence) }

        static func == (left: Event, right: Event) -> Bool { left.sequence == right.sequence }
    }

    private(set) var now = Instant.start
    private var events = Heap<Event>()
    private var nextSequence = 0

    /// The time of the next event; `nil` if there is none.
    var nextEvent: Instant? { events.min?.at }

    /// Schedules an event. An event in the past is executed next.
    func schedule(at time: Instant, _ execute: @escaping () -> Void) {
        events.insert(Event(at: max(time, now), sequence: nextSequence, execute: execute))
        nextSequence += 1
    }

    /// Executes the next event if it is not after a time; returns whether there was one.
    func executeNext(until end: Instant) -> Bool {
        guard let next = events.min, next.at <= end else { return false }
        events.removeMin()
        now = next.at
        next.execute()
        return true
    }

    /// Advances the time without events before it.
    func advance(to time: Instant) { now = max(now, time) }
}
