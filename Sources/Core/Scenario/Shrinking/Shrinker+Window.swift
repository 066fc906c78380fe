internal import Determinism
internal import LinkModel

/// A shorter part of the run. Each removal afterwards is tried in less time, and fewer steps are left to remove.
extension Shrinker {
    /// The times before and after a moment that are left.
    private static let spansBefore: [Nanoseconds] = [.seconds(5), .seconds(20), .seconds(60)]
    private static let spansAfter: [Nanoseconds] = [.seconds(1), .seconds(20)]
    /// The maximum number of moments.
    private static let windowMomentsMax = 16
    /// The shortest part that is shortened further.
    private static let lengthMin = Nanoseconds.seconds(30)
    /// The number of steps up to which single removals take less time.
    private static let windowStepsMin = 8
    /// The sixteenths of the length that are removed, most first.
    private static let sixteenths: [Int64] = [15, 14, 12, 8, 4, 2, 1]

    /// Leaves the time around an event that concerns the violation, and then removes parts of the time from the beginning
    /// and the end.
    mutating func shortenRun() -> Bool {
        guard current.steps.count > Self.windowStepsMin, current.lastPlannedTime > Self.lengthMin else { return false }
        var hasChanged = leaveWindow()
        while trim() { hasChanged = true }
        return hasChanged
    }

    private mutating func leaveWindow() -> Bool {
        let (origin, history) = (current, observation.history)
        let moments = windowMoments
        for moment in moments {
            for before in Self.spansBefore {
                for after in Self.spansAfter {
                    let start = max(.zero, moment - before)
                    if attempt(origin.window(from: start, to: moment + after, history)) { return true }
                }
            }
        }
        return false
    }

    /// The times of faults and kills of the devices that the violation concerns, and of requests of its notes, last first.
    private var windowMoments: [Nanoseconds] {
        let (rows, actors) = (violation.context.rows, violation.context.actors)
        let history = observation.history
        var found: [Nanoseconds] = [violation.context.time]
        var devices: [Int: String] = [:]
        var effects: [Nanoseconds] = []
        var requests: [Nanoseconds] = []
        for entry in history.entries[..<history.restoreIndex] where entry.time <= violation.context.time {
            switch entry.event {
            case .request(let id, let actor, _, let row, _, _, _):
                devices[id] = actor
                if let row, rows.contains(row) { requests.append(entry.time) }
            case .fault(_, let exchange, _):
                if actors.isEmpty || devices[exchange].map(actors.contains) ?? true { effects.append(entry.time) }
            case .stopped(let device): if actors.isEmpty || actors.contains(device) { effects.append(entry.time) }
            default: break
            }
        }
        let half = Self.windowMomentsMax / 2
        for time in requests.reversed().prefix(half) + effects.reversed().prefix(half) where !found.contains(time) {
            found.append(time)
        }
        return found
    }

    /// Removes a part of the time at the beginning, and one at the end.
    private mutating func trim() -> Bool {
        trim { length, part in (Nanoseconds(length / 16 * part), nil) }
            || trim { length, part in (.zero, Nanoseconds(length / 16 * (16 - part))) }
    }

    private mutating func trim(_ window: (Int64, Int64) -> (start: Nanoseconds, end: Nanoseconds?)) -> Bool {
        for part in Self.sixteenths where current.lastPlannedTime > Self.lengthMin {
            let (start, end) = window(current.lastPlannedTime.count, part)
            if attempt(current.window(from: start, to: end, observation.history)) { return true }
        }
        return false
    }
}
