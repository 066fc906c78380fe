internal import DequeModule
internal import HeapModule
internal import NIOCore
internal import NIOPosix

/// Wakes the link loops of one event loop when something of theirs is due: one timer of NIO's for all of them, since a
/// heap of a few words an entry is cheaper to keep than as many scheduled tasks.
///
/// Lives and is used on its event loop only.
final class LoopClock {
    /// Words only, so that moving it about counts no references.
    private struct Alarm: Comparable {
        let due: NIODeadline
        let place: Int

        static func < (left: Alarm, right: Alarm) -> Bool { left.due < right.due }
    }

    private let eventLoop: any EventLoop
    /// Where they are set and replaced far more often than they ring, an alarm that was replaced stays, and says nothing.
    private var alarms = Heap<Alarm>()
    private var loops: [LinkLoop?] = []
    private var freePlaces: [Int] = []
    private var timer: Scheduled<Void>?
    private var timerIsDue = NIODeadline.distantFuture
    private var isRinging = false
    /// Work left from earlier turns, in the order in which it continues.
    private var ready = Deque<() -> Void>()
    private var isTurnScheduled = false
    /// Timers are due that an earlier turn had no time for.
    private var ringsLater = false
    /// How often tasks that tasks have left are waited for.
    private static let taskRoundsMax = 8

    /// So many alarms are kept, however few loops there are.
    private static let alarmsMin = 64
    /// Link loops that run in one turn.
    private static let loopsPerTurn = 64
    /// How long link loops may run in one turn, beside the ``TurnBudget`` of the last of them.
    private static let turnTimeMax = TimeAmount.milliseconds(2)

    private init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    /// Enters a link loop; gives its place.
    func enter(_ loop: LinkLoop) -> Int {
        if let place = freePlaces.popLast() {
            loops[place] = loop
            return place
        }
        loops.append(loop)
        return loops.count - 1
    }

    /// Forgets the link loop at a place.
    func leave(_ place: Int) {
        loops[place] = nil
        freePlaces.append(place)
    }

    /// Runs work after sockets and the work of others have had their turn.
    func runLater(_ work: @escaping () -> Void) {
        ready.append(work)
        scheduleTurn()
    }

    private func scheduleTurn() {
        if isTurnScheduled || (ready.isEmpty && !ringsLater) { return }
        isTurnScheduled = true
        waitForTasks(roundsLeft: Self.taskRoundsMax)
    }

    /// Lets the tasks run that closing and opening channels have left, so that nothing is due when the turn is scheduled: SwiftNIO
    /// asks the sockets only when no task is.
    private func waitForTasks(roundsLeft: Int) {
        let start = NIODeadline.now()
        eventLoop.assumeIsolated().execute {
            let hasWaited = NIODeadline.now() - start > TurnBudget.pause
            if hasWaited && roundsLeft > 0 { return self.waitForTasks(roundsLeft: roundsLeft - 1) }
            self.eventLoop.assumeIsolated().scheduleTask(in: TurnBudget.pause) { self.runTurn() }
        }
    }

    private func runTurn() {
        isTurnScheduled = false
        let deadline = NIODeadline.now() + Self.turnTimeMax
        var left = min(ready.count, Self.loopsPerTurn)
        while left > 0, NIODeadline.now() < deadline, let work = ready.popFirst() {
            work()
            left -= 1
        }
        if ringsLater {
            ringsLater = false
            ring()
        }
        scheduleTurn()
    }

    /// Wakes the loop at `place` at `due`, unless it has been told another time since.
    func wake(_ place: Int, at due: NIODeadline) {
        alarms.insert(Alarm(due: due, place: place))
        if alarms.count > Self.alarmsMin + 4 * loops.count { forgetReplaced() }
        if !isRinging { setTimer() }
    }

    /// Keeps those alarms only that will say something.
    private func forgetReplaced() {
        alarms = Heap(
            loops.indices.compactMap { place in
                loops[place]?.wakesAt.map { Alarm(due: $0, place: place) }
            })
    }

    private func setTimer() {
        guard !ringsLater, let due = alarms.min?.due, due < timerIsDue else { return }
        timer?.cancel()
        timerIsDue = due
        timer = eventLoop.assumeIsolated().scheduleTask(deadline: due) { self.ring() }
    }

    private func ring() {
        timer?.cancel()
        timer = nil
        timerIsDue = .distantFuture
        isRinging = true
        var now = NIODeadline.now()
        let deadline = now + Self.turnTimeMax
        var left = Self.loopsPerTurn
        while left > 0, now < deadline, let alarm = alarms.min, alarm.due <= now {
            alarms.removeMin()
            if let loop = loops[alarm.place], loop.wakesAt == alarm.due {
                loop.wake()
                left -= 1
            }
            now = .now()
        }
        isRinging = false
        if let alarm = alarms.min, alarm.due <= now {
            ringsLater = true
            scheduleTurn()
        }
        setTimer()
    }

    /// Each thread has its own value of it.
    nonisolated(unsafe) private static let ofThread = ThreadSpecificVariable<LoopClock>()

    /// The clock of an event loop, on which this is called; a thread has one loop.
    static func of(_ eventLoop: any EventLoop) -> LoopClock {
        eventLoop.preconditionInEventLoop()
        if let clock = ofThread.currentValue, clock.eventLoop === eventLoop { return clock }
        let clock = LoopClock(eventLoop)
        ofThread.currentValue = clock
        return clock
    }
}
