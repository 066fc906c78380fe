internal import DequeModule
internal import Determinism
internal import LinkModel
internal import Wire

/// The faults of a connection's exchanges.
extension ExchangeTracker {
    /// Gives an exchange a fault, unless it has one or a fault has replaced its response.
    mutating func set(_ fault: ExchangeFault, _ index: Int) {
        if exchanges[index].fault != nil || exchanges[index].isReplied { return }
        if fault.action.isForHTTP2, exchanges[index].upgradeSettings == nil || fault.point <= .beforeRequestEnd {
            return report(.faultMissed(exchanges[index].id, rule: fault.rule, point: fault.point))
        }
        exchanges[index].fault = fault
        faultCount += 1
    }

    /// Removes the fault of an exchange that cannot reach the fault's point.
    mutating func miss(_ index: Int) {
        guard let fault = exchanges[index].fault else { return }
        exchanges[index].fault = nil
        faultCount -= 1
        report(.faultMissed(exchanges[index].id, rule: fault.rule, point: fault.point))
    }

    /// Fires the faults whose points have been reached at the exits.
    mutating func fireReached(_ registry: inout ExchangeRegistry) {
        for index in exchanges.indices {
            guard hold == nil, !isEnded, faultCount > 0 else { return }
            guard let fault = exchanges[index].fault, let (direction, offset) = exchanges[index].trigger(of: fault),
                discardsFrom[direction] == nil, offset <= written[direction]
            else { continue }
            let isPassed = offset < written[direction] && fault.point != .beforeRequestEnd
            var isLate = false
            if case .respond = fault.action { isLate = responseHasBegun(index) }
            if fault.point == .beforeRequestEnd { isLate = isLate || responseHasBegun(index) }
            if isPassed || isLate { miss(index) } else { fire(index, &registry) }
        }
    }

    mutating func fire(_ index: Int, _ registry: inout ExchangeRegistry) {
        guard let fault = exchanges[index].fault else { return }
        exchanges[index].fault = nil
        faultCount -= 1
        registry.recordFired(fault)
        let exchange = exchanges[index]
        report(.faultInjected(exchange.id, rule: fault.rule, point: fault.point, offset: offset(of: fault, exchange)))
        if fault.point == .beforeRequest, let request { pass(.up, to: request.start) }
        switch fault.action {
        case .reset, .resetStream, .resetConnection: end(.abort(fault.point, fault.side), at: fault.point)
        case .goAway, .limitStreams, .ignorePings, .ping, .blockWindow, .dropTrailers, .truncateHeaders: break
        case .close: end(.close(fault.point, fault.side), at: fault.point)
        case .stall: stall(fault, index)
        case .delay(let time): hold = Hold(fault: fault, deadline: now + time, isReport: false)
        case .report(let time):
            hold = Hold(fault: fault, deadline: now + max(Nanoseconds(1), time), isReport: true)
        case .throttle(let rate):
            let direction: Direction = fault.point.isInRequest ? .up : .down
            var throttle = Throttle(fault: fault, exchange: exchange.id, bytesPerSecond: max(1, rate))
            switch fault.point {
            case .beforeRequest: throttle.start = exchange.requestStart
            case .midRequest: throttle.start = written.up
            // The throttle begins when the response may enter the link.
            case .beforeRequestEnd: throttle.start = entryCursor == index ? entered.down : nil
            case .beforeResponse: throttle.start = exchange.responseStart
            case .afterResponseHead, .midResponse, .afterResponse: throttle.start = written.down
            }
            throttles[direction].append(throttle)
        case .respond(let reply):
            exchanges[index].isReplied = true
            exchanges[index].turn = .respond(reply)
            turnCount += 1
            if fault.point == .beforeRequest {
                exchanges[index].requestIsDropped = true
                request?.isDropped = true
            }
            if !reply.keepsConnection(of: exchange.recipient) { finishExchanges(with: index) }
            if fault.point != .beforeResponse { takeTurns() }
        }
    }

    // MARK: Replies that close the connection

    /// Makes an exchange the last one, because its reply closes the connection. The server still receives the rest of the
    /// request; the client's later bytes are read and discarded until its FIN, because closing its socket would send a
    /// RST, which may destroy the reply (RFC 9112, 9.6). Responses to requests that have entered the link are discarded.
    private mutating func finishExchanges(with index: Int) {
        let exchange = exchanges[index]
        lastExchange = exchange.id
        for later in exchanges.indices.dropFirst(index + 1) {
            miss(later)
            exchanges[later].isReplied = true
            if exchanges[later].turn != nil { turnCount -= 1 }
            exchanges[later].turn = nil
        }
        if request?.id == exchange.id { return }
        if let end = exchange.requestEnd { pass(.up, to: end - entered.up + consumed.up) }
        stopReadingRequests()
    }

    /// Discards the client's bytes that have not entered the link.
    mutating func stopReadingRequests() {
        let throttles = throttles.up
        discardsFrom.up = entered.up
        discardWaiting(.up)
        self.throttles.up = throttles
        isAwaitingSwitch = false
        actions.append(.deliver(.up))
    }

    /// The bytes of the message that have passed the point of a fault.
    private func offset(of fault: ExchangeFault, _ exchange: TrackedExchange) -> Int64 {
        switch fault.point {
        case .beforeRequest, .beforeResponse: 0
        case .midRequest: written.up - exchange.requestStart
        case .beforeRequestEnd: min(exchange.requestEnd ?? written.up, written.up) - exchange.requestStart
        case .afterResponseHead, .midResponse, .afterResponse: written.down - exchange.responseStart
        }
    }

    /// Ends the connection; the link executes the action.
    mutating func end(_ action: Action, at point: FaultPoint) {
        isEnded = true
        // At an entry, the bytes before the point may still be written.
        isEnding = point.isAtExit
        dropWaiting()
        actions.append(action)
    }

    /// Reports that the link has executed the end of the connection.
    ///
    /// - Parameter openSide: The socket that stays open, if there is one: nothing more is delivered to it.
    mutating func endExecuted(openSide: Side?) {
        isEnding = false
        guard let openSide else { return }
        let direction = openSide.opposite.sendDirection
        discardsFrom[direction] = written[direction]
        withholdsEnd[direction] = true
    }

    private mutating func dropWaiting() {
        hold = nil
        text.pending = []
        throttles = PerDirection(up: [], down: [])
        for index in streams.indices { streams[index].drop() }
        opening = nil
        for direction in Direction.allCases {
            withheld[direction] = ByteQueue()
            unparsed[direction] = ByteQueue()
        }
        request = nil
        requests = ExchangeTracker.requestParser
        responses = ExchangeTracker.responseParser
    }

    private mutating func stall(_ fault: ExchangeFault, _ index: Int) {
        let directions: [Direction] =
            switch fault.side {
            case .client: [.down]
            case .server: [.up]
            case .both: [.up, .down]
            case nil: fault.point == .beforeRequestEnd ? [.up, .down] : [fault.point.isInRequest ? .up : .down]
            }
        for direction in directions {
            if direction == .up {
                stall(.up, from: fault.point == .beforeRequest ? entered.up : written.up)
            } else if fault.point <= .beforeRequestEnd {
                // Earlier responses are delivered.
                exchanges[index].turn = .stall
                turnCount += 1
                takeTurns()
            } else {
                stall(.down, from: fault.point == .beforeResponse ? entered.down : written.down)
            }
        }
    }

    /// Discards the bytes of a stream from an offset at its exit on, and its end.
    mutating func stall(_ direction: Direction, from offset: Int64) {
        discardsFrom[direction] = offset
        withholdsEnd[direction] = true
        discardWaiting(direction)
        actions.append(.deliver(direction))
    }

    /// Discards the bytes of a stream that wait at its entry; nothing more of it is parsed.
    private mutating func discardWaiting(_ direction: Direction) {
        withheld[direction] = ByteQueue()
        unparsed[direction] = ByteQueue()
        throttles[direction] = []
        if direction == .up {
            request = nil
            requests = ExchangeTracker.requestParser
        } else {
            responses = ExchangeTracker.responseParser
        }
    }

    /// Discards what the client has sent beyond the point of a ``FaultAction/report(hold:)`` that holds the connection:
    /// its socket is gone.
    mutating func discardAfterReport(_ registry: inout ExchangeRegistry) {
        guard let hold, hold.isReport else { return }
        // Bytes of earlier requests that have entered the link before `before-request` are delivered.
        discardsFrom.up = hold.fault.point == .beforeRequest ? entered.up : written.up
        discardWaiting(.up)
        resume(&registry)
    }

    /// Lets go of everything that waits: the link closes the connection.
    mutating func abandon() {
        if hold == nil && bytesWaiting(.up) == 0 && bytesWaiting(.down) == 0 { return }
        dropWaiting()
        isEnded = true
        waitingEnds = PerDirection(up: nil, down: nil)
        actions.append(.deliver(.up))
        actions.append(.deliver(.down))
    }

    // MARK: Calls

    /// Injects a fault into an exchange. Returns whether the exchange can still reach the fault's point.
    mutating func inject(
        _ fault: ExchangeFault, into id: ExchangeID, _ registry: inout ExchangeRegistry, at time: Instant
    ) -> Bool {
        now = max(now, time)
        guard isTracking, !isEnded, fault.action.problem == nil, fault.action.problem(at: fault.point) == nil
        else { return false }
        if !streams.isEmpty { return streams[0].inject(fault, id.stream ?? 1) }
        guard let index = exchanges.firstIndex(where: { $0.id == id }), exchanges[index].fault == nil,
            !exchanges[index].isReplied, !responseHasBegun(index)
        else { return false }
        let direction: Direction = fault.point <= .beforeRequestEnd ? .up : .down
        if discardsFrom[direction] != nil { return false }
        switch fault.point {
        case .beforeRequest:
            guard request?.id == id, let start = request?.start, consumed.up <= start, hold == nil else {
                return false
            }
            set(fault, index)
            fire(index, &registry)
            release(registry)
            return true
        case .midRequest:
            set(fault, index)
            if let (_, offset) = exchanges[index].trigger(of: fault), offset < written.up {
                exchanges[index].fault = nil
                faultCount -= 1
                return false
            }
        case .beforeRequestEnd, .beforeResponse, .afterResponseHead, .midResponse, .afterResponse: set(fault, index)
        }
        fireReached(&registry)
        return true
    }

    /// Withdraws the injected faults except those for whose sake part of a response has been withheld.
    mutating func withdrawFaults(_ registry: inout ExchangeRegistry) {
        let now = now
        for index in streams.indices { streams[index].removeFaults(of: nil, &registry, at: now) }
        takeStreamActions()
        for index in exchanges.indices where exchanges[index].fault != nil {
            if index == withheldResponse && responseHasBegun(index) { continue }
            exchanges[index].fault = nil
            faultCount -= 1
        }
        actions.append(.deliver(.up))
        actions.append(.deliver(.down))
    }

    /// Removes the faults of a rule, and lets go of what they hold. Discarded bytes are not restored: stalled directions
    /// stay stalled, and a response stays withheld whose first bytes have been discarded.
    mutating func removeFaults(of rule: Int, _ registry: inout ExchangeRegistry, at time: Instant) {
        now = max(now, time)
        if !streams.isEmpty {
            let now = now
            streams[0].removeFaults(of: rule, &registry, at: now)
            takeStreamActions()
            return finishWaiting(&registry)
        }
        func isOfRule(_ fault: ExchangeFault?) -> Bool {
            guard let fault else { return false }
            return fault.rule == rule && !fault.isInjected
        }
        for index in exchanges.indices where isOfRule(exchanges[index].fault) && !exchanges[index].responseIsCut {
            exchanges[index].fault = nil
            faultCount -= 1
        }
        for direction in Direction.allCases {
            throttles[direction].removeAll { isOfRule($0.fault) }
            actions.append(.deliver(direction))
        }
        removeHandshakeFault(of: rule)
        text.pending.removeAll { $0.fault.rule == rule }
        if isOfRule(hold?.fault) { return resume(&registry) }
        if request?.isWithheld == true, !registry.withholdsRequests { match(&registry) }
        release(registry)
    }

    /// Whether nothing of the connection depends on the tracker, now or later.
    var isObsolete: Bool {
        !isTracking && exchanges.isEmpty && hold == nil && !isEnded && lastExchange == nil && discardsFrom.up == nil
            && handshake == nil && text.pending.isEmpty && discardsFrom.down == nil && !withholdsEnd.up
            && !withholdsEnd.down
            && bytesWaiting(.up) == 0
            && bytesWaiting(.down) == 0 && waitingEnds.up == nil && waitingEnds.down == nil
    }
}
