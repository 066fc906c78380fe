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
    /// Link loops with work left from an earlier turn, in the order in which they continue.
    private var ready = Deque<Int>()
    private var turn: Scheduled<Void>?

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

    /// Continues the loop at `place` after sockets and other loops have had their turn.
    func continueLater(_ place: Int) {
        ready.append(place)
        scheduleTurn()
    }

    private func scheduleTurn() {
        if turn != nil || ready.isEmpty { return }
        turn = eventLoop.assumeIsolated().scheduleTask(in: TurnBudget.pause) {
            self.turn = nil
            let deadline = NIODeadline.now() + Self.turnTimeMax
            var left = min(self.ready.count, Self.loopsPerTurn)
            repeat {
                guard left > 0, let place = self.ready.popFirst() else { break }
                self.loops[place]?.continueTurn()
                left -= 1
            } while NIODeadline.now() < deadline
            self.scheduleTurn()
        }
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

    private func setTimer(notBefore earliest: NIODeadline = .uptimeNanoseconds(0)) {
        guard let due = alarms.min.map({ max($0.due, earliest) }), due < timerIsDue else { return }
        timer?.cancel()
        timerIsDue = due
        timer = eventLoop.assumeIsolated().scheduleTask(deadline: due) { self.ring() }
    }

    private func ring() {
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
        setTimer(notBefore: now + TurnBudget.pause)
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
