public import Determinism
internal import LinkModel

/// The passage of time.
extension ScenarioDirector {
    /// The maximum number of changes of links that one call of ``advance(to:)`` orders one by one.
    private static let changesMax = 10_000

    /// Advances the time; due at ``nextDeadline``. Orders that are overdue follow in the order of their planned times.
    public mutating func advance(to time: Instant) {
        let actual = max(now, time)
        var changes = 0
        while phase == .script, let start, let next = nextDeadline, next <= actual {
            // A run that is far behind skips changes of links.
            changes += 1
            advanceScript(to: changes > Self.changesMax ? actual : max(next, now), actual, start)
        }
        now = actual
        if phase != .script, let deadline = phaseDeadline, now >= deadline { phaseTimedOut() }
        if phase == .quiesce { signInAgain() }
        if phase == .script { proceed() }
    }

    /// Orders what is due at a time of the script phase; `actual` is the current time, later if the world is late.
    private mutating func advanceScript(to time: Instant, _ actual: Instant, _ start: Instant) {
        now = time
        let scenarioTime = time - start
        if scenarioTime >= scenario.limit { return limitReached() }
        if let restoreAt = scenario.restoreAt, scenarioTime >= restoreAt { return beginRestore() }
        for index in actors.indices {
            let planned = actors[index].timeline?.nextDeadline
            if actors[index].timeline?.advance(to: time) ?? false {
                recordLateness(planned: planned ?? time, actual)
                applyConditions(of: index, at: scenarioTime)
            }
        }
        startKilledClients(at: time)
        plan.advance(to: scenarioTime)
        open.advance(to: scenarioTime, lateness)
        proceed(actual)
    }

    mutating func recordLateness(planned: Instant, _ actual: Instant) {
        let late = actual - planned
        if late >= Self.lateMin { record(.late(late)) }
    }
}
