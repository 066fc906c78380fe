internal import DequeModule
internal import HeapModule
internal import NIOCore
internal import NIOPosix

/// The timers and the deferred work of all link drivers of one event loop.
///
/// One scheduled task of NIO serves all drivers, because a heap of two-word entries is cheaper to maintain than a
/// scheduled task per driver. Used on its event loop only.
final class TimerQueue {
    /// Two words without references, so that heap operations do no reference counting.
    private struct Timer: Comparable {
        let deadline: NIODeadline
        let index: Int

        static func < (left: Timer, right: Timer) -> Bool { left.deadline < right.deadline }
    }

    private let eventLoop: any EventLoop
    /// The heap contains stale entries: a replaced timer stays in it and is ignored when it is due, since drivers
    /// replace timers far more often than timers fire.
    private var timers = Heap<Timer>()
    private var drivers: [LinkDriver?] = []
    private var freeIndices: [Int] = []
    private var scheduledTask: Scheduled<Void>?
    private var scheduledDeadline = NIODeadline.distantFuture
    private var isFiring = false
    /// Work that drivers have deferred to a later turn, in FIFO order.
    private var deferredWork = Deque<() -> Void>()
    /// Work of ``runTogether(every:number:_:)``, by its time.
    private var sharedTimers: [NIODeadline: [() -> Void]] = [:]
    private var turnIsScheduled = false
    /// Whether timers are due that did not fit into an earlier turn.
    private var hasOverdueTimers = false
    /// The maximum number of times that a turn is postponed because tasks keep the event loop busy.
    private static let taskRoundsMax = 8

    /// The number of heap entries, in addition to four per driver, above which stale ones are removed.
    private static let timersMin = 64
    /// The maximum number of link drivers that run in one turn.
    private static let driversPerTurn = 64
    /// The least time between two runs of timers, so that the packets of a fast link are handled in batches, as a network
    /// interface moderates its interrupts. A timer after a longer pause is not delayed.
    private static let runPause = TimeAmount.microseconds(50)
    /// The end of the last run.
    private var lastRun = NIODeadline.uptimeNanoseconds(0)
    /// The time after which a turn starts no further link driver; each driver is bounded by its ``TurnBudget``.
    private static let turnTimeMax = TimeAmount.milliseconds(2)

    private init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    /// Registers a link driver. Returns its index.
    func register(_ driver: LinkDriver) -> Int {
        if let index = freeIndices.popLast() {
            drivers[index] = driver
            return index
        }
        drivers.append(driver)
        return drivers.count - 1
    }

    /// Releases the link driver at `index`.
    func unregister(_ index: Int) {
        precondition(drivers[index] != nil, "no link driver is registered at index \(index)")
        drivers[index] = nil
        freeIndices.append(index)
    }

    /// Runs `work` in a later turn, after the event loop's sockets and the work deferred before it.
    func runLater(_ work: @escaping () -> Void) {
        deferredWork.append(work)
        scheduleTurn()
    }

    /// The resolution of shared timers in nanoseconds.
    private static let timerResolution: UInt64 = 10_000_000

    /// Runs `work` once, within an interval. The times are multiples of the interval, shifted by a multiple of 10 ms that
    /// follows from `number`: work that calls this again runs once per interval, one scheduled task of NIO serves all
    /// work of a time, and the work of many numbers is spread over the interval.
    func runTogether(every interval: TimeAmount, number: UInt64, _ work: @escaping () -> Void) {
        // At most a day, so that no sum of times overflows.
        let slots = max(1, UInt64(clamping: min(interval, .hours(24)).nanoseconds) / Self.timerResolution)
        let period = slots * Self.timerResolution
        let phase = number % slots * Self.timerResolution
        let now = NIODeadline.now().uptimeNanoseconds
        let deadline = NIODeadline.uptimeNanoseconds((now + period - phase) / period * period + phase)
        if sharedTimers[deadline]?.append(work) != nil { return }
        sharedTimers[deadline] = [work]
        eventLoop.assumeIsolated().scheduleTask(deadline: deadline) {
            for work in self.sharedTimers.removeValue(forKey: deadline) ?? [] { self.runLater(work) }
        }
    }

    private func scheduleTurn() {
        if turnIsScheduled || (deferredWork.isEmpty && !hasOverdueTimers) { return }
        turnIsScheduled = true
        yieldToTasks(roundsLeft: Self.taskRoundsMax)
    }

    /// Schedules a turn after the tasks that NIO has submitted to open and close channels. NIO polls its sockets only
    /// when no task is due.
    private func yieldToTasks(roundsLeft: Int) {
        let start = NIODeadline.now()
        eventLoop.assumeIsolated().execute {
            let tasksHaveRun = NIODeadline.now() - start > TurnBudget.pause
            if tasksHaveRun && roundsLeft > 0 { return self.yieldToTasks(roundsLeft: roundsLeft - 1) }
            self.eventLoop.assumeIsolated().scheduleTask(in: TurnBudget.pause) { self.runTurn() }
        }
    }

    private func runTurn() {
        turnIsScheduled = false
        let deadline = NIODeadline.now() + Self.turnTimeMax
        var driversLeft = min(deferredWork.count, Self.driversPerTurn)
        while driversLeft > 0, NIODeadline.now() < deadline, let work = deferredWork.popFirst() {
            work()
            driversLeft -= 1
        }
        if hasOverdueTimers {
            hasOverdueTimers = false
            fireTimers()
        }
        scheduleTurn()
    }

    /// Arms the timer of the driver at `index`. The driver's ``LinkDriver/timerDeadline`` must equal `deadline`; an
    /// entry that differs from it is stale.
    func schedule(_ index: Int, at deadline: NIODeadline) {
        timers.insert(Timer(deadline: deadline, index: index))
        if timers.count > Self.timersMin + 4 * drivers.count { removeStaleTimers() }
        if !isFiring { scheduleTask() }
    }

    private func removeStaleTimers() {
        timers = Heap(
            drivers.indices.compactMap { index in
                drivers[index]?.timerDeadline.map { Timer(deadline: $0, index: index) }
            })
    }

    private func scheduleTask() {
        guard !hasOverdueTimers, let next = timers.min?.deadline else { return }
        let deadline = max(next, lastRun + Self.runPause)
        guard deadline < scheduledDeadline else { return }
        scheduledTask?.cancel()
        scheduledDeadline = deadline
        scheduledTask = eventLoop.assumeIsolated().scheduleTask(deadline: deadline) { self.fireTimers() }
    }

    private func fireTimers() {
        scheduledTask?.cancel()
        scheduledTask = nil
        scheduledDeadline = .distantFuture
        isFiring = true
        var now = NIODeadline.now()
        let turnEnd = now + Self.turnTimeMax
        var driversLeft = Self.driversPerTurn
        while driversLeft > 0, now < turnEnd, let timer = timers.min, timer.deadline <= now {
            timers.removeMin()
            if let driver = drivers[timer.index], driver.timerDeadline == timer.deadline {
                driver.timerFired()
                driversLeft -= 1
            }
            now = .now()
        }
        isFiring = false
        lastRun = now
        if let timer = timers.min, timer.deadline <= now {
            hasOverdueTimers = true
            scheduleTurn()
        }
        scheduleTask()
    }

    /// One instance per thread.
    nonisolated(unsafe) private static let perThread = ThreadSpecificVariable<TimerQueue>()

    /// Returns the timer queue of `eventLoop`; must be called on that event loop. A thread runs one event loop.
    static func current(on eventLoop: any EventLoop) -> TimerQueue {
        eventLoop.preconditionInEventLoop()
        if let queue = perThread.currentValue, queue.eventLoop === eventLoop { return queue }
        let queue = TimerQueue(eventLoop)
        perThread.currentValue = queue
        return queue
    }
}
