public import Determinism
public import LinkModel
internal import NIOCore
internal import TCPModel
public import Wire

/// Faults at the points of exchanges: rules, injection, and what the tracker of a connection decides.
extension SharedLink {
    // MARK: Rules

    /// The fault rules with their counts, in the order in which they were added.
    public var faultRules: [FaultRuleStatus] { recorder.exchanges.statuses }

    /// Whether a fault rule of the link is about requests, which are not visible in connections with TLS.
    public var hasRequestFaultRules: Bool { recorder.exchanges.hasRequestRules }

    /// Returns the first message of the client of a connection with TLS; `nil` if it is not known, or without TLS.
    public func clientHello(of id: FlowID) -> ClientHello? { conduits.contains(id) ? conduits[id].clientHello : nil }

    /// Whether the link has a fault rule.
    public var hasFaultRules: Bool { recorder.exchanges.hasRules }

    /// Whether exchanges are read, for fault rules or observers.
    public var tracksExchanges: Bool { recorder.needsExchanges }

    /// The maximum number of fault rules of a link.
    public static var faultRulesMax: Int { ExchangeRegistry.rulesMax }

    /// The number of open connections whose exchanges are not tracked: those that were opened in the middle of a stream,
    /// and those whose bytes are not HTTP. Fault rules do not apply to them.
    public var untrackedConnectionCount: Int {
        var count = 0
        for id in conduits.openConnections where !isTracked(id) && !conduits[id].isIntercepted { count += 1 }
        return count
    }

    /// Records that the driver ends the TLS of a connection, whose exchanges another link tracks.
    public mutating func setIntercepted(_ id: FlowID) {
        if conduits.contains(id) { conduits[id].isIntercepted = true }
    }

    /// Returns whether the exchanges of an open connection are tracked.
    public func isTracked(_ id: FlowID) -> Bool { conduits[id].tracker?.isTracking == true }

    /// Returns whether the bytes of a connection leave the link in another order than they have entered it: frames of
    /// HTTP/2 do not wait for those of another stream that wait for a decision.
    public func hasReordered(_ id: FlowID) -> Bool {
        conduits.contains(id) && conduits[id].tracker?.streams.first?.hasReordered == true
    }

    /// Sets the number of the next exchange, unless it is greater, so that the numbers of several links differ.
    public mutating func numberExchanges(from first: Int) { recorder.exchanges.numberExchanges(from: first) }

    /// Adds a fault rule and returns its number. It applies to requests whose head is complete from now on, on
    /// connections whose exchanges are tracked (``untrackedConnectionCount``).
    ///
    /// Throws if the rule cannot be used (``FaultRule/problem``), or if the link has 1000 rules.
    ///
    /// - Parameter number: The number of the rule, not less than the next one; `nil` for the next one.
    @discardableResult
    public mutating func addFaultRule(
        _ rule: FaultRule, number: Int? = nil, at time: Instant
    ) throws(FaultRuleError) -> Int {
        advance(to: time)
        return try recorder.exchanges.add(rule, number: number)
    }

    /// Removes a fault rule. Returns whether there was one with that number.
    ///
    /// Holds and throttles of the rule end, and its faults that have not fired do not fire. Bytes that a fault has
    /// discarded are not restored: a stalled direction stays stalled.
    @discardableResult
    public mutating func removeFaultRule(_ number: Int, at time: Instant) -> Bool {
        advance(to: time)
        guard recorder.exchanges.remove(number) else { return false }
        for id in conduits.openConnections where conduits.contains(id) && conduits[id].tracker != nil {
            conduits[id].tracker?.removeFaults(of: number, &recorder.exchanges, at: now)
            runTracker(id)
        }
        advance(to: now)
        return true
    }

    // MARK: Injection

    /// Injects a fault into an exchange whose request has been read (``ExchangeEvent/requested(_:_:body:subject:)``).
    /// Returns whether it can apply: the action is possible at the point, no other fault applies, nothing of the
    /// response has been read, and the exchange has not passed the point. The fault may fire at once. If it cannot
    /// apply, ``ExchangeEvent/faultMissed(_:rule:point:)`` follows.
    ///
    /// A request can be kept at `before-request` only while a rule of the link withholds it, or while it waits for a
    /// decision (``ExchangeTracking/awaitsDecisions``).
    @discardableResult
    public mutating func injectFault(
        _ fault: ExchangeFault, into exchange: ExchangeID, of id: FlowID, at time: Instant
    ) -> Bool {
        advance(to: time)
        guard conduits.contains(id), conduits[id].tracker != nil else { return false }
        recorder.exchanges.recordInjection()
        var injected = fault
        injected.isInjected = true
        let isInjected =
            conduits[id].tracker?.inject(injected, into: exchange, &recorder.exchanges, at: now) ?? false
        if !isInjected { recorder.record(.faultMissed(exchange, rule: fault.rule, point: fault.point), id, at: now) }
        runTracker(id)
        advance(to: now)
        return isInjected
    }

    /// Admits a request that waits for the decision on its faults (``ExchangeTracking/awaitsDecisions``): it enters the
    /// link, unless a fault that has been injected prevents that. Every request must be admitted, at the time of its
    /// ``ExchangeEvent/requested(_:_:body:subject:)``.
    public mutating func admitRequest(_ exchange: ExchangeID, of id: FlowID, at time: Instant) {
        guard recorder.exchanges.awaitsDecisions else { return }
        advance(to: time)
        guard conduits.contains(id), conduits[id].tracker != nil else { return }
        conduits[id].tracker?.admit(exchange, &recorder.exchanges, at: now)
        runTracker(id)
        advance(to: now)
    }

    /// Withdraws the faults of ``injectFault(_:into:of:at:)`` and of rules that have not begun to apply.
    public mutating func withdrawFaults(at time: Instant) {
        advance(to: time)
        for id in conduits.openConnections where conduits.contains(id) && conduits[id].tracker != nil {
            conduits[id].tracker?.withdrawFaults(&recorder.exchanges)
            runTracker(id)
        }
    }

    // MARK: Execution

    /// Executes the actions of a connection's tracker, and sets the timer for its next deadline.
    mutating func runTracker(_ id: FlowID) {
        // An action may give the tracker further inputs; their actions follow it.
        if conduits[id].isRunningTracker { return }
        conduits[id].isRunningTracker = true
        while let action = takeTrackerAction(id) {
            switch action {
            case .report(let event):
                if case .tls(let hello) = event { conduits[id].clientHello = hello }
                recorder.record(event, id, at: now)
            case .pass(let bytes, let direction):
                conduits[id].tracker?.search(bytes, direction, &recorder.exchanges)
                send(bytes, id, direction)
            case .end(let direction, let end): endTracked(direction, end, id)
            case .deliver(let direction): deliver(id, direction)
            case .abort(let point, let side): executeEnd(point, side, id, isAbort: true)
            case .close(let point, let side): executeEnd(point, side, id, isAbort: false)
            }
        }
        guard conduits.contains(id) else { return }
        conduits[id].isRunningTracker = false
        updateFaultBytes(id)
        guard conduits.contains(id) else { return }
        // Nothing more can be tracked on a connection that is not HTTP, unless a text is searched.
        if conduits[id].tracker?.isObsolete == true, !recorder.exchanges.hasTextRules {
            return conduits[id].tracker = nil
        }
        setFaultTimer(id)
    }

    /// Takes the next action of a connection's tracker; the access to the tracker ends with this function.
    @inline(never)
    private mutating func takeTrackerAction(_ id: FlowID) -> ExchangeTracker.Action? {
        conduits.contains(id) ? conduits[id].tracker?.takeAction() : nil
    }

    /// Passes the end of a stream on that has left the tracker.
    private mutating func endTracked(_ direction: Direction, _ end: ExchangeTracker.StreamEnd, _ id: FlowID) {
        switch end {
        case .finished:
            finishInput(direction.sender, id)
            guard conduits.contains(id), direction == .down, conduits[id].isClosedByReply else { return }
            // What the server still sends is read and discarded.
            setPaused(false, id, .down)
        case .gone: goneTracked(direction.sender, id)
        }
    }

    private mutating func updateFaultBytes(_ id: FlowID) {
        for direction in Direction.allCases where conduits.contains(id) {
            let held = conduits[id].tracker?.bytesWaiting(direction) ?? 0
            if held == conduits[id, direction].faultBytes { continue }
            conduits[id, direction].faultBytes = held
            budget.changeToxicBytes(by: conduits[id, direction].updateToxicBytes())
            regulateReading(id, direction)
        }
    }

    /// Drops the bytes that wait in the tracker of a connection that ends.
    mutating func dropFaultBytes(_ id: FlowID) {
        for direction in Direction.allCases where conduits[id, direction].faultBytes > 0 {
            conduits[id, direction].faultBytes = 0
            budget.changeToxicBytes(by: conduits[id, direction].updateToxicBytes())
        }
    }

    mutating func setFaultTimer(_ id: FlowID) {
        // In place: a copy of the tracker is expensive.
        guard let deadline = conduits[id].tracker?.takeNewTimer() else { return }
        timers.removeStale(in: conduits, connections: tcp.connectionCount)
        timers.schedule(id, .fault, at: deadline)
    }

    /// Continues the connection of a timer that is due.
    mutating func fire(_ timer: LinkTimers.Timer) {
        guard LinkTimers.isCurrent(timer, in: conduits) else { return }
        switch timer.purpose {
        case .toxics(let direction):
            conduits[timer.flow, direction].toxics?.timer = nil
            runToxics(timer.flow, direction)
        case .fault:
            conduits[timer.flow].tracker?.timer = nil
            conduits[timer.flow].tracker?.advance(to: now, &recorder.exchanges)
            runTracker(timer.flow)
        }
    }

    // MARK: Ends

    /// Aborts or closes a connection at a fault point: the socket next to the point at once, the other one when its RST
    /// or FIN has crossed the link.
    private mutating func executeEnd(_ point: FaultPoint, _ side: FaultSide?, _ id: FlowID, isAbort: Bool) {
        let name = conduits[id].tracker?.firedPointName ?? point.rawValue
        conduits[id].faultCause =
            point == .beforeResponse && isAbort
            ? "fault: response withheld, connection reset"
            : "fault: connection \(isAbort ? "reset" : "closed") at \(name)"
        dropToxics(id, .up)
        dropToxics(id, .down)
        let near: Side
        switch side {
        case .client: near = .client
        case .server: near = .server
        case .both, nil: near = (FaultPoint.midRequest...FaultPoint.beforeResponse).contains(point) ? .server : .client
        }
        let isPartial = side == .client || side == .server
        conduits[id].tracker?.endExecuted(openSide: isPartial ? near.opposite : nil)
        if conduits[id].isGone(near) { return peerGone(near, id) }
        if isPartial {
            endOneSocket(near, id, isAbort: isAbort)
        } else if isAbort {
            emit(point == .beforeResponse ? .reset(near) : .resetAfterWrites(near), id)
            peerGone(near, id)
        } else {
            closeFrom(near, id)
        }
        // Bytes for the other socket may have had to wait for the fault.
        if conduits.contains(id) { deliver(id, near.sendDirection) }
    }

    /// Closes the socket at `near` at once, and the other one when the FIN has crossed the link.
    private mutating func closeFrom(_ near: Side, _ id: FlowID) {
        conduits[id].isClosing = true
        emit(.close(near), id)
        conduits[id, near.opposite.sendDirection].isFinished = true
        conduits[id].recordGone(near)
        if !conduits[id, near.sendDirection].inputIsClosed { finishInput(near, id) }
        guard conduits.contains(id) else { return }
        deliver(id, near.opposite.sendDirection)
    }

    /// Aborts or closes one socket. The other one stays open without receiving anything; the limits of orphans apply.
    private mutating func endOneSocket(_ side: Side, _ id: FlowID, isAbort: Bool) {
        emit(isAbort ? .resetAfterWrites(side) : .close(side), id)
        conduits[id].recordGoneAndInputClosed(side)
        // The socket reports its end, which must not reach the other one.
        conduits[id].resetSockets[side.sendDirection] = true
        deliver(id, side.opposite.sendDirection)
        if conduits.contains(id) { trackOrphan(id) }
    }
}
