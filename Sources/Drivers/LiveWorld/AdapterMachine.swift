internal import Determinism
internal import Scenario
internal import Wire

/// The limits of a program that talks to the runner.
struct AdapterLimits: Sendable {
    /// The longest time from the start of a process to its first line.
    var startMax = Nanoseconds.seconds(10)
    /// The longest time from an act to its answer.
    var answerMax = Nanoseconds.seconds(10)
    /// The time without requests and lines after which a program that does not say so itself has nothing left to do.
    var silence = Nanoseconds.seconds(1)
    /// The time after which a program without an adapter has nothing left to do, even if it polls.
    var settleMax = Nanoseconds.seconds(10)
    /// The maximum length of a line in bytes.
    var lineMax = 1 << 20
    /// The maximum number of lines of a process.
    var linesMax = 100_000
}

/// The protocol between the runner and the program of a device, over the life of several processes.
///
/// A state machine without clock and processes: the caller reports what happens with its time, and executes the actions
/// that ``takeAction()`` returns. It calls ``advance(to:)`` at ``nextDeadline``.
struct AdapterMachine: Sendable {
    /// What the caller has to do, or to report.
    enum Action: Hashable, Sendable {
        /// Write bytes to the program's standard input.
        case write([UInt8])
        /// The process accepts acts.
        case started
        /// An act has been performed; `record` identifies the record that it has created, if known.
        case finished(act: Int, record: String?)
        /// An act has failed.
        case failed(act: Int, String)
        /// The program shows something new.
        case view(AdapterView)
        /// Whether the program has nothing to send or fetch.
        case settled(Bool)
        /// The program does not keep to the protocol; nothing follows.
        case broken(String)
        /// The process has ended by itself; nothing follows until the next start. `false` if it had not started.
        case ended(String, hadStarted: Bool)
    }

    private enum State {
        case stopped
        case starting
        case running
        case broken
    }

    private let adapter: Scenario.Device.Adapter
    private let limits: AdapterLimits
    private var state = State.stopped
    private var actions: [Action] = []
    /// The act that has not been answered.
    private var pending: (id: Int, name: String, deadline: Instant)?
    private var startDeadline: Instant?
    /// The bytes of an incomplete line.
    private var line: [UInt8] = []
    private var lineCount = 0
    /// What the process has said last; `nil` if nothing.
    private var said: Bool?
    private var hasSaidSinceAct = false
    /// What has been reported since the last act or start.
    private var reported: Bool?
    private var outbox = 0
    private var openExchanges = 0
    private var lastActivity = Instant.start
    private var workSince = Instant.start
    /// Whether a program without an adapter has ended with success.
    private var isDone = false

    init(_ adapter: Scenario.Device.Adapter, limits: AdapterLimits = AdapterLimits()) {
        self.adapter = adapter
        self.limits = limits
    }

    /// Returns the next action; `nil` if there is none.
    mutating func takeAction() -> Action? { actions.isEmpty ? nil : actions.removeFirst() }

    private var isLive: Bool { state == .starting || state == .running }

    // MARK: The process

    /// Records the start of a process.
    mutating func start(at now: Instant) {
        guard state == .stopped else { return }
        line = []
        lineCount = 0
        said = nil
        hasSaidSinceAct = false
        outbox = 0
        isDone = false
        pending = nil
        workBegins(at: now)
        switch adapter {
        case .lines:
            state = .starting
            startDeadline = now + limits.startMax
        case .none:
            state = .running
            actions.append(.started)
        }
    }

    /// Records that the runner has killed the process.
    mutating func stop() {
        if state == .broken { return }
        state = .stopped
        pending = nil
        startDeadline = nil
        openExchanges = 0
    }

    /// Records that the process has ended by itself. A program without an adapter may end with status 0: it has done
    /// what it had to do.
    mutating func exited(_ how: String, isSuccess: Bool, at now: Instant) {
        guard isLive else { return }
        if adapter == .none && isSuccess {
            openExchanges = 0
            isDone = true
            return report(true)
        }
        let hadStarted = state == .running && (adapter == .lines || now - workSince >= limits.silence)
        stop()
        actions.append(.ended(how, hadStarted: hadStarted))
    }

    // MARK: Acts

    /// Passes an act to the program. An act is passed only when the one before has been answered.
    mutating func perform(_ act: AdapterAct, id: Int, at now: Instant) {
        guard state == .running else {
            actions.append(.failed(act: id, "the program is not running"))
            return
        }
        workBegins(at: now)
        guard adapter == .lines else {
            actions.append(.finished(act: id, record: nil))
            if isDone { report(true) }
            return
        }
        hasSaidSinceAct = false
        pending = (id, act.name, now + limits.answerMax)
        actions.append(.write(act.line(id: id)))
    }

    /// Tells the program something that it need not answer.
    mutating func notify(_ act: AdapterAct) {
        if adapter == .lines && isLive { actions.append(.write(act.line(id: nil))) }
    }

    private mutating func workBegins(at now: Instant) {
        workSince = now
        lastActivity = now
        reported = nil
    }

    // MARK: Output

    /// Records output of the program. Without an adapter it has no meaning.
    mutating func received(_ bytes: some Sequence<UInt8>, at now: Instant) {
        guard isLive, adapter == .lines else { return }
        for byte in bytes {
            if byte == UInt8(ascii: "\n") {
                endLine(at: now)
                line.removeAll(keepingCapacity: true)
                if !isLive { return }
            } else if line.count == limits.lineMax {
                return fail("line \(lineCount + 1) of its output is longer than \(limits.lineMax) bytes")
            } else {
                line.append(byte)
            }
        }
    }

    private mutating func endLine(at now: Instant) {
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        if line.isEmpty { return }
        lineCount += 1
        if lineCount > limits.linesMax { return fail("it has printed more than \(limits.linesMax) lines") }
        lastActivity = now
        let parsed: AdapterLine
        do {
            parsed = try AdapterLine(line)
        } catch {
            let text = String(decoding: line.prefix(60), as: UTF8.self).filter { !$0.isNewline }
            return fail("line \(lineCount) of its output, '\(text)': \(error)")
        }
        if state == .starting {
            state = .running
            startDeadline = nil
            actions.append(.started)
        }
        switch parsed {
        case .ready: break
        case .view(let view):
            outbox = view.outbox
            actions.append(.view(view))
        case .settled(let isSettled):
            said = isSettled
            hasSaidSinceAct = true
            if pending == nil { report(isSettled) }
        case .answer(let id, let record): answered(id, .finished(act: id, record: record), at: now)
        case .refusal(let id, let error): answered(id, .failed(act: id, error), at: now)
        }
    }

    private mutating func answered(_ id: Int, _ action: Action, at now: Instant) {
        guard pending?.id == id else {
            return fail("line \(lineCount) of its output answers act \(id), which awaits no answer")
        }
        pending = nil
        actions.append(action)
        reported = nil
        if hasSaidSinceAct, let said { report(said) }
    }

    private mutating func report(_ isSettled: Bool) {
        if reported == isSettled { return }
        reported = isSettled
        actions.append(.settled(isSettled))
    }

    private mutating func fail(_ reason: String) {
        stop()
        state = .broken
        actions.append(.broken(reason))
    }

    // MARK: Traffic

    /// Records the number of the device's exchanges that have not ended.
    mutating func exchanges(_ open: Int, at now: Instant) {
        guard isLive else { return }
        openExchanges = open
        lastActivity = now
        if said == nil && adapter == .lines && open > 0 && reported == true { report(false) }
    }

    // MARK: Time

    /// The time at which silence means that nothing is left to do; `nil` if it does not.
    private var silenceEnd: Instant? {
        guard state == .running, pending == nil, reported != true else { return nil }
        let end = lastActivity + limits.silence
        if adapter == .none {
            let last = workSince + limits.settleMax
            return openExchanges > 0 ? last : min(end, last)
        }
        return openExchanges == 0 && outbox == 0 && said != false ? end : nil
    }

    /// The time of the next ``advance(to:)``; `nil` if only output or an order can change anything.
    var nextDeadline: Instant? {
        guard isLive else { return nil }
        return [startDeadline, pending?.deadline, silenceEnd].compactMap { $0 }.min()
    }

    /// Advances the time.
    mutating func advance(to now: Instant) {
        guard isLive else { return }
        if let startDeadline, now >= startDeadline {
            return fail(
                "no line within \(TimeFormat.short(limits.startMax)) of its start; a program that does not speak the "
                    + "protocol has 'adapter: none'")
        }
        if let pending, now >= pending.deadline {
            return fail(
                "no answer to act \(pending.id) ('\(pending.name)') within \(TimeFormat.short(limits.answerMax))")
        }
        if let silenceEnd, now >= silenceEnd { report(true) }
    }
}
