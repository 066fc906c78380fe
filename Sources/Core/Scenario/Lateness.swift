internal import Determinism

/// The lateness of a run: host pauses, and orders of the ``ScenarioDirector`` that were given later than planned. Zero
/// in virtual time.
struct Lateness {
    /// Host pauses as disjoint spans, in order.
    private var pauses: [(start: Nanoseconds, end: Nanoseconds)] = []
    /// Late orders, in the order of their times.
    private var orders: [(planned: Nanoseconds, actual: Nanoseconds)] = []

    init() {}

    init(_ history: History) {
        for entry in history.entries { record(entry.event, at: entry.time) }
    }

    /// Records an event; times never decrease.
    mutating func record(_ event: History.Event, at time: Nanoseconds) {
        switch event {
        case .hostPause(let length) where length > .zero:
            var start = time - length
            // Two monitors report the same pause.
            while let last = pauses.last, last.end >= start {
                start = min(start, last.start)
                pauses.removeLast()
            }
            pauses.append((start, time))
        case .late(let span) where span > .zero: orders.append((time - span, time))
        default: break
        }
    }

    /// Returns the longest delay that lateness can cause for an event that is due in a window and depends on events of
    /// that window only: the sum of its host pauses, or the lateness of one of its orders if that is longer. Each pause
    /// extends the window by its length, so a pause in the extension counts too.
    func delay(from: Nanoseconds, to: Nanoseconds) -> Nanoseconds {
        var sum = Nanoseconds.zero
        for pause in pauses where pause.end > from && pause.start <= to + sum {
            sum = sum + (pause.end - max(pause.start, from))
        }
        var longest = Nanoseconds.zero
        for order in orders where order.actual > from && order.planned <= to {
            longest = max(longest, order.actual - order.planned)
        }
        return max(sum, longest)
    }
}
