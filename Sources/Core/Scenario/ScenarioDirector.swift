public import Determinism
public import LinkModel

/// The director of a run: decides when links change, steps are performed, faults apply, and phases begin and end.
///
/// A state machine without clock, sockets or threads. A world (simulated or live) reports facts with their time, and
/// after each fact executes all orders that ``takeAction()`` returns. It calls ``advance(to:)`` at ``nextDeadline``.
/// Times are those of the world's clock; 0 s of the scenario is the end of the setup. Facts of one time are reported
/// after ``advance(to:)`` of that time, so planned changes of links and steps come first.
///
/// The run ends within `limit` + ``setupMax`` + ``quiesceMax`` + ``verifyMax`` of its beginning, whatever the world
/// reports.
public struct ScenarioDirector: Sendable {
    /// A phase of a run.
    public enum Phase: String, CaseIterable, Hashable, Sendable {
        /// Devices that start synced fetch the server's notes. Nothing is recorded, and no fault applies.
        case setup
        /// Steps, changes of links and faults of the scenario.
        case script
        /// Faults are disarmed, links restored, and killed clients started.
        case restore
        /// Every device syncs until it has nothing left to send or fetch, twice.
        case quiesce
        /// The server's notes are read.
        case verify
        /// The history is complete; the verdict can be given.
        case check
        /// The last phase, without orders.
        case ended
    }

    /// The identifier of an act: an order that takes time, and whose end the world reports.
    public struct ActID: Hashable, Sendable {
        /// The number of earlier acts.
        public let number: Int
    }

    /// An order to the world.
    public enum Action: Sendable {
        /// Fetch the server's notes into the device's store, on an unimpaired network; no client runs afterwards.
        /// Answered by ``ScenarioDirector/prepared(_:at:)`` or ``ScenarioDirector/setupFailed(_:at:)``.
        case prepare(device: String)
        /// Record an event at the current time, and report it with ``ScenarioDirector/recorded(_:at:)`` as all others.
        case record(History.Event)
        /// Apply conditions to a device's link.
        case setConditions(device: String, Conditions, link: String)
        /// Tell the device's client, and clients that start later, whether the interface is up, and of which kind it is.
        case setInterface(device: String, isUp: Bool, Scenario.NetworkEntry.Interface)
        /// Start the device's client on its store.
        case startClient(ActID, device: String)
        /// Kill the device's client: what it has committed stays, its exchanges fail. `atOnce` if a fault kills the
        /// client after a commit: before the client does anything more, as far as the world can.
        case killClient(ActID, device: String, atOnce: Bool)
        /// Perform an action of a device or writer.
        case perform(ActID, actor: String, Scenario.Action)
        /// Apply the fault with this index in the scenario to an exchange, at a point that is not `any`. Given while
        /// the exchange's request is recorded, and executed before anything more of the request leaves the device. The
        /// world reports ``History/Event/fault(index:exchange:point:)``, except at the point `stored`.
        case armFault(Int, exchange: Int, device: String, point: Scenario.Fault.Point)
        /// Abort or close the connection of an exchange after which the client has stored the result, before the client
        /// does anything more, as far as the world can.
        case closeConnection(exchange: Int, device: String, isAbort: Bool)
        /// Withdraw faults that have been armed and have not fired.
        case disarmFaults
        /// Record the server's notes (``History/Event/server(_:)``).
        case readServer
        /// The run has ended; it could not be set up for the given reason, if there is one.
        case end(setupFailure: String?)
    }

    /// The reason why a scenario cannot be run.
    public struct PlanError: Error, Hashable, Sendable, CustomStringConvertible {
        /// What is wrong, and where.
        public let description: String
    }

    /// The longest setup.
    public static let setupMax = Nanoseconds.seconds(30)
    /// The longest time from the beginning of the restore phase to the end of the quiesce phase.
    public static let quiesceMax = Nanoseconds.seconds(120)
    /// The longest time for reading the server's notes.
    public static let verifyMax = Nanoseconds.seconds(30)
    /// The number of syncs of each device in the quiesce phase: in the second sync, each device fetches what the others
    /// have sent in the first.
    public static let quiesceRounds = 2
    /// The time for which nothing must be outstanding before the restore phase begins: longer than a client takes from one
    /// request to the next.
    public static let quietMin = Nanoseconds.milliseconds(100)
    /// The longest time for which an expectation without an end prolongs the script: longer than a client waits between two
    /// attempts. It does so for at most half of the time that is left until the scenario's limit.
    public static let undecidedMax = Nanoseconds.seconds(120)
    /// The longest time for which the end of the script waits for a write that a killed client has sent.
    public static let strayWriteMax = Nanoseconds.seconds(5)
    /// The shortest lateness that is recorded.
    public static let lateMin = Nanoseconds.milliseconds(10)

    /// The scenario.
    public let scenario: Scenario
    /// The current phase.
    public internal(set) var phase = Phase.setup
    /// The time of 0 s; `nil` in the setup phase.
    public internal(set) var start: Instant?

    let seed: UInt64
    /// The time of the last fact.
    var now = Instant.start
    private var actions: [Action] = []
    private var nextAction = 0

    /// A device or writer.
    struct Actor {
        let name: String
        /// The device; `nil` for a writer.
        let device: Scenario.Device?
        /// The conditions of its link; `nil` before the script phase, and for a writer.
        var timeline: TimelineRun?
        /// The interface that its client has been told of.
        var interface: Interface?
        var signalling = OutageSignalling()
        var isRunning: Bool
        /// Whether it has nothing to send or fetch.
        var isSettled = false
        /// The time at which its user signs in again after a fault has rejected the credentials; `nil` for never.
        var signInAt: Instant?
        /// Whether it has an exchange in flight that the history may not have yet, or a change to commit.
        var isBusy = false
        /// Actions that wait for the end of the actor's current act.
        var queue: [WaitingAction] = []
        var act: ActID?
        /// The time at which a killed client starts again by itself; `nil` if it does not.
        var restart: Instant?
        /// Whether the setup of the device is complete.
        var isPrepared: Bool
        var attempts: AttemptLimit

        /// Whether the end of the quiesce phase waits for it: it is a device that was restored and runs.
        var mustConverge: Bool { device?.isRestored == true && isRunning }
        /// Whether it has nothing left to do.
        var hasConverged: Bool { act == nil && isSettled }
    }

    /// The network interface of a device.
    struct Interface: Equatable {
        var isUp: Bool
        var kind: Scenario.NetworkEntry.Interface
    }

    /// An action of a step, or of a reaction of the workload, that has not started.
    struct WaitingAction {
        /// The step; `nil` for a reaction.
        let step: Int?
        let action: Scenario.Action
        let planned: Nanoseconds
    }

    /// An act that has not ended.
    struct Act {
        /// The step; `nil` for an act of the director or a reaction of the workload.
        let step: Int?
        let actor: Int
        /// Whether it is a reaction of the workload, whose failure has no consequences.
        let isReaction: Bool
        /// Whether a client is started, stopped, or replaced by another version.
        let change: ClientChange?

        enum ClientChange { case start, stop, replace }
    }

    var actors: [Actor]
    /// The index of each actor by its name.
    let actorIndex: [String: Int]
    let timelines: [Timeline?]
    var plan: StepPlan
    var reactions: ReactiveWorkload
    var open: OpenExpectations
    var faults: FaultCounters
    var storedFaults = StoredFaults()
    /// The device of each exchange to which a fault applies.
    var faultDevices: [Int: String] = [:]
    /// The exchanges to which a fault responds for the server that the credentials are wrong.
    var rejectedExchanges: Set<Int> = []
    /// The versions of notes that each device has not read yet; devices have the first indices of ``actors``.
    var knowledge: ServerKnowledge
    var acts: [ActID: Act] = [:]
    private var nextAct = 0
    /// Exchanges that have not ended, with their actor.
    var exchanges: [Int: Int] = [:]
    /// Connections that have not ended and have had no request, with their device.
    var dials: [Int: Int] = [:]
    /// Writes of killed clients that may still reach the server, with the times until which they are waited for.
    var strayWrites: [Int: Instant] = [:]
    var lateness = Lateness()
    var isIdle = false
    /// The time since which nothing has been outstanding in the script phase.
    var quietSince: Instant?
    /// The time since which no step or entry of a network has had a known time in the script phase.
    var playedSince: Instant?
    var round = 0
    /// The end of the setup, of restore and quiesce, or of the verify phase.
    var phaseDeadline: Instant?
    let lastChange: Nanoseconds

    /// Creates the director of a run.
    ///
    /// - Parameter seed: The random seed of the links' jitter; the scenario's by default.
    public init(_ scenario: Scenario, seed: UInt64? = nil) throws(PlanError) {
        self.scenario = scenario
        self.seed = seed ?? scenario.seed
        var actors: [Actor] = []
        var timelines: [Timeline?] = []
        for device in scenario.devices {
            actors.append(
                Actor(
                    name: device.name, device: device, isRunning: false, isPrepared: !device.startsSynced,
                    attempts: AttemptLimit(scenario)))
            do {
                timelines.append(try Timeline(device.network.map { Timeline.Entry(at: $0.start, $0.phase) }))
            } catch {
                throw PlanError(description: "\(scenario.name): \(device.name): \(error.message)")
            }
        }
        for writer in scenario.writers {
            actors.append(
                Actor(
                    name: writer.name, device: nil, isRunning: true, isPrepared: true,
                    attempts: AttemptLimit(scenario)))
            timelines.append(nil)
        }
        var index: [String: Int] = [:]
        for (position, actor) in actors.enumerated() {
            guard index.updateValue(position, forKey: actor.name) == nil else {
                throw PlanError(description: "\(scenario.name): '\(actor.name)' is defined twice")
            }
        }
        var marks: Set<String> = []
        for step in scenario.steps {
            if let actor = step.action?.actor, index[actor] == nil {
                throw PlanError(description: "\(step.location): no device or writer is called '\(actor)'")
            }
            if let mark = step.mark, !marks.insert(mark).inserted {
                throw PlanError(description: "\(step.location): mark '\(mark)' is set twice")
            }
        }
        for fault in scenario.faults {
            if let problem = fault.problem { throw PlanError(description: "\(fault.location): \(problem)") }
        }
        self.actors = actors
        self.timelines = timelines
        actorIndex = index
        plan = StepPlan(scenario)
        reactions = ReactiveWorkload(scenario, seed: self.seed)
        open = OpenExpectations(scenario)
        faults = FaultCounters(scenario, seed: self.seed)
        knowledge = ServerKnowledge(devices: scenario.devices.count)
        lastChange = scenario.plannedEnd
    }

    // MARK: Outputs

    /// Returns the next order; `nil` if there is none.
    public mutating func takeAction() -> Action? {
        guard nextAction < actions.count else { return nil }
        defer {
            nextAction += 1
            if nextAction == actions.count {
                actions.removeAll(keepingCapacity: true)
                nextAction = 0
            }
        }
        return actions[nextAction]
    }

    /// The time of the next ``advance(to:)``; `nil` if the director waits for facts only, or the run has ended.
    public var nextDeadline: Instant? {
        guard phase == .script, let start else {
            let signIn = phase == .quiesce ? actors.compactMap(\.signInAt).min() : nil
            return phaseDeadline.map { min($0, signIn ?? $0) }
        }
        var next = start + min(scenario.limit, scenario.restoreAt ?? scenario.limit)
        if let step = plan.nextDeadline { next = min(next, start + step) }
        if let reaction = reactions.nextDeadline { next = min(next, start + reaction) }
        // In place: an actor is expensive to copy.
        for index in actors.indices {
            if let change = actors[index].timeline?.nextDeadline { next = min(next, change) }
            if let restart = actors[index].restart { next = min(next, max(now, restart)) }
        }
        if let end = openEnd { next = min(next, start + end) }
        if now < start + lastChange { next = min(next, start + lastChange) }
        if let quietSince { next = min(next, quietSince + Self.quietMin) }
        if let end = undecidedEnd, end > now { next = min(next, end) }
        if let stray = strayWrites.values.min() { next = min(next, max(now, stray)) }
        return next
    }

    mutating func order(_ action: Action) {
        actions.append(action)
        // The world has something to do.
        isIdle = false
    }

    mutating func record(_ event: History.Event) { order(.record(event)) }

    mutating func newAct(
        step: Int?, _ actor: Int, change: Act.ClientChange? = nil, isReaction: Bool = false
    ) -> ActID {
        let id = ActID(number: nextAct)
        nextAct += 1
        acts[id] = Act(step: step, actor: actor, isReaction: isReaction, change: change)
        actors[actor].act = id
        return id
    }

    // MARK: Facts

    /// Begins the setup: the server runs.
    public mutating func begin(at time: Instant) {
        guard phase == .setup, phaseDeadline == nil else { return }
        now = max(now, time)
        phaseDeadline = now + Self.setupMax
        for actor in actors where !actor.isPrepared { order(.prepare(device: actor.name)) }
        beginScriptIfPrepared()
    }

    /// Records that a device's store has the server's notes.
    public mutating func prepared(_ device: String, at time: Instant) {
        now = max(now, time)
        guard phase == .setup, phaseDeadline != nil, let index = actorIndex[device] else { return }
        actors[index].isPrepared = true
        beginScriptIfPrepared()
    }

    /// Records that the run cannot be set up.
    public mutating func setupFailed(_ reason: String, at time: Instant) {
        now = max(now, time)
        guard phase == .setup else { return }
        phase = .ended
        phaseDeadline = nil
        order(.end(setupFailure: reason))
    }

    /// Records that an act has taken effect; the state to which it led has been reported before. After a sync in the
    /// quiesce phase, ``settled(_:at:)`` must follow, even if nothing was sent.
    public mutating func actFinished(_ id: ActID, at time: Instant) {
        advance(to: time)
        guard let act = acts.removeValue(forKey: id) else { return }
        isIdle = false
        if actors[act.actor].act == id { actors[act.actor].act = nil }
        switch act.change {
        case .start?: record(.started(device: actors[act.actor].name))
        case .stop?:
            giveUpActs(act.actor)
            record(.stopped(device: actors[act.actor].name))
            if phase == .script, let delay = actors[act.actor].device?.restartsAfter {
                actors[act.actor].restart = now + delay
            }
        case .replace?, nil: break
        }
        if let step = act.step, let mark = scenario.steps[step].mark { set(mark, at: now) }
        // Facts about an earlier sync do not count.
        if phase == .quiesce { actors[act.actor].isSettled = false }
        proceed()
    }

    /// Records that an act is an error, such as an edit of a note that does not exist.
    public mutating func actFailed(_ id: ActID, _ reason: String, at time: Instant) {
        advance(to: time)
        guard let act = acts.removeValue(forKey: id) else { return }
        isIdle = false
        let actor = actors[act.actor]
        if actor.act == id { actors[act.actor].act = nil }
        if act.change == .start || act.change == .replace { actors[act.actor].isRunning = false }
        if let step = act.step {
            fail(step, .other(reason))
        } else if act.isReaction {
            // In the meantime, the state to which it reacts has ended.
            record(.notice(actor: actor.name, .reactionImpossible(.other(reason))))
        } else {
            record(.aborted(.other("\(actor.name): \(reason)")))
        }
        proceed()
    }

    /// Records an event of the run; also those recorded by the director's order.
    public mutating func recorded(_ event: History.Event, at time: Instant) {
        advance(to: time)
        guard let start, phase != .ended else { return }
        isIdle = false
        let scenarioTime = now - start
        if phase == .script { open.recorded(event) }
        switch event {
        case .device(let device, let state):
            plan.stateChanged(device, state, at: scenarioTime)
            if phase == .script { reactions.stateChanged(device, state, at: scenarioTime) }
            open.stateChanged(device, state)
        case .connectionAttempt(let connection, let device):
            dials[connection] = actorIndex[device] ?? -1
            attempted(by: device)
        case .connectionEnded(let connection, device: _): dials[connection] = nil
        case .request(let id, let actor, let method, let row, _, _, let connection):
            if let connection { dials[connection] = nil }
            exchanges[id] = actorIndex[actor] ?? -1
            if let missed = storedFaults.nothingLeft(actor) { faults.missed(missed) }
            if phase == .script, let fault = faults.requested(by: actor, method: method, row: row) {
                arm(fault, exchange: id, of: actor)
            }
            knowledge.requested(id, by: deviceIndex(actor), method: method, row: row)
            attempted(by: actor)
        case .serverResponded(let id, _, _, _):
            strayWrites[id] = nil
            knowledge.responded(to: id) { actors[$0].isSettled }
        case .responseReceived(let id, let status):
            noteRejection(of: id, status)
            if let missed = storedFaults.responseReceived(id) { faults.missed(missed) }
            ended(id, isSuccess: status < 400)
        case .failed(let id):
            if let missed = storedFaults.failed(id) { faults.missed(missed) }
            ended(id, isSuccess: false)
        case .commit(let device, digest: _): if phase == .script { committed(device) }
        case .fault(let index, let exchange, let point): faultFired(index, exchange, point)
        case .stopped(let device):
            if let index = actorIndex[device], actors[index].act.flatMap({ acts[$0]?.change }) == .replace {
                clientStopped(index)
            }
        case .hostPause, .late: lateness.record(event, at: scenarioTime)
        case .server: if phase == .verify { beginProve() }
        default: break
        }
        proceed()
    }

    private func deviceIndex(_ actor: String) -> Int? {
        actorIndex[actor].flatMap { actors[$0].device == nil ? nil : $0 }
    }

    private mutating func ended(_ exchange: Int, isSuccess: Bool) {
        guard let actor = exchanges.removeValue(forKey: exchange), actors.indices.contains(actor) else { return }
        knowledge.ended(exchange, of: actors[actor].device == nil ? nil : actor, isSuccess: isSuccess)
    }

    /// Counts an attempt of a device; a run whose attempts exceed the limit is aborted.
    private mutating func attempted(by actor: String) {
        guard phase == .script || phase == .restore || phase == .quiesce, let index = deviceIndex(actor),
            let excess = actors[index].attempts.attempted(at: now)
        else { return }
        abortPhase(.tooManyAttempts(actor, count: excess.count, within: excess.span))
    }

    /// Records that a device has nothing left to send or fetch.
    public mutating func settled(_ device: String, at time: Instant) {
        advance(to: time)
        guard let index = actorIndex[device] else { return }
        actors[index].isSettled = true
        if let missed = storedFaults.nothingLeft(device) { faults.missed(missed) }
        if actors[index].device != nil { knowledge.settled(index) }
        proceed()
    }

    /// Records that a device has something to send or fetch.
    public mutating func unsettled(_ device: String, at time: Instant) {
        advance(to: time)
        guard let index = actorIndex[device] else { return }
        isIdle = false
        actors[index].isSettled = false
        proceed()
    }

    /// Records whether a device's client has an exchange in flight or a change to commit; needed where the history gets
    /// the client's requests later than the client sends them.
    public mutating func busy(_ device: String, _ isBusy: Bool, at time: Instant) {
        advance(to: time)
        guard let index = actorIndex[device], actors[index].isRunning else { return }
        actors[index].isBusy = isBusy
        proceed()
    }

    /// Records that nothing is scheduled in the world, so that nothing happens before the next order.
    public mutating func idle(at time: Instant) {
        advance(to: time)
        isIdle = true
        proceed()
    }
}
