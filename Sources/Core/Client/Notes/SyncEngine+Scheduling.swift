internal import Determinism
internal import HeapModule

/// The choice of the next exchange.
extension SyncEngine {
    /// The number of changes in a row after which an index that is due, or a read, is sent first.
    private static let pushesInRowMax = 16

    var isInterfaceUsable: Bool {
        policy.ignoresInterface
            || path.interface.isUp && (policy.interfaces == .any || !path.interface.isMetered)
    }

    /// Whether exchanges may start, now or after a delay.
    var mayTransmit: Bool {
        configured != nil && isInterfaceUsable && pauseReason == nil && mismatch == nil && commit.retryAt == nil
    }

    /// The belief about connectivity.
    public var connectivity: Connectivity {
        if !path.interface.isUp { return .interfaceDown }
        if !isInterfaceUsable { return .interfaceNotAllowed }
        switch path.isReachable {
        case nil: return .unknown
        case true?: return .online
        case false?: return path.failures > 1 ? .unreachable(failures: path.failures) : .suspected
        }
    }

    // MARK: Work of a record

    /// Returns the next exchange of a record; `nil` if it has none or one is in flight.
    private func nextActivity(of id: RecordID) -> Activity? {
        guard let schedule = schedules[id], !schedule.isInFlight else { return nil }
        if let sequence = schedule.queue.first, let head = entries[sequence] {
            if schedule.mustReconcile { return .reconcile(id, sequence: sequence) }
            let isHeld = policy.holdsConflicts && records[id]?.theirs != nil
            if head.parked == nil, !isHeld, !policy.holds(head.kind) { return .push(id, sequence: sequence) }
            return nil
        }
        return schedule.wantsFetch && !schedule.isFetching ? .fetch(id) : nil
    }

    /// Enters a record's next exchange into the queues; to be called after each change of its work.
    mutating func schedule(_ id: RecordID) {
        guard let work = schedules[id] else {
            active.remove(id)
            return
        }
        guard let activity = nextActivity(of: id) else {
            if !work.isInFlight && !work.isFetching { active.remove(id) }
            // Invalidates the record's ticket.
            schedules[id]?.ticket = -1
            if work.isEmpty { schedules[id] = nil }
            return
        }
        active.insert(id)
        let number = nextTicket
        nextTicket += 1
        schedules[id]?.ticket = number
        if let retryAt = work.retryAt, retryAt > now {
            delayed.insert(Schedule.Delay(at: retryAt, number: number, id: id))
        } else {
            let ticket: Schedule.Ticket
            var lane = SyncRequest.Lane.small
            switch activity {
            case .reconcile(_, let sequence):
                ticket = Schedule.Ticket(
                    priority: work.failures > 0 ? .repeatedChange : .reconciliation, order: sequence, number: number,
                    id: id)
            case .push(_, let sequence):
                let order = policy.order == .newestFirst ? -sequence : sequence
                ticket = Schedule.Ticket(
                    priority: work.failures > 0 ? .repeatedChange : .change, order: order, number: number, id: id)
                if let entry = entries[sequence], entry.kind != .delete,
                    entry.content.bytes.count >= policy.largeBytes
                {
                    lane = .large
                }
            default:
                ticket = Schedule.Ticket(
                    priority: work.failures > 0 ? .repeatedRead : .read, order: number, number: number, id: id)
            }
            ready[lane.rawValue].insert(ticket)
        }
    }

    /// Moves delayed records whose time has come to the ready ones.
    private mutating func promoteDelayed() {
        while let next = delayed.min, next.at <= now {
            delayed.removeMin()
            guard schedules[next.id]?.ticket == next.number else { continue }
            schedules[next.id]?.retryAt = nil
            schedule(next.id)
        }
    }

    /// Returns the first valid ticket of a lane without removing it.
    private mutating func firstTicket(_ lane: SyncRequest.Lane) -> Schedule.Ticket? {
        while let ticket = ready[lane.rawValue].min {
            if schedules[ticket.id]?.ticket == ticket.number { return ticket }
            ready[lane.rawValue].removeMin()
        }
        return nil
    }

    // MARK: Starting exchanges

    /// Returns the requests that were withheld until their attempts were committed, and starts further exchanges.
    mutating func startExchanges() {
        guard mayTransmit else { return }
        sendWithheld()
        guard now >= path.floor ?? .start else { return }
        path.floor = nil
        if token.isRefreshNeeded {
            if let refreshAt, refreshAt <= now { start(.refresh, in: .small) }
        } else if let probeAt = path.probeAt {
            if isIdle(.small), isIdle(.bypass), now >= probeAt {
                // The index is the probe, unless its own last attempt failed.
                start(indexWork.failures == 0 ? .index : .probe, in: .small)
            } else if path.isTrusted {
                promoteDelayed()
                startBesideRead()
            }
        } else {
            promoteDelayed()
            if !isIdle(.small) {
                startBesideRead()
            } else if isIdle(.bypass), let activity = nextSmallActivity() {
                start(activity, in: .small)
            }
            startFurtherReads()
            // Smaller first: a large change starts while no small one is ready.
            if isIdle(.large),
                firstTicket(.small).map({ $0.priority != .change }) ?? true,
                let ticket = firstTicket(.large), let activity = nextActivity(of: ticket.id)
            {
                start(activity, in: .large)
            }
        }
        if !mustCommit { sendWithheld() }
    }

    func isIdle(_ lane: SyncRequest.Lane) -> Bool { exchanges[lane.rawValue] == nil }

    /// The time from which a small change is sent beside the read in flight; `nil` if no read is in flight, or a change
    /// is sent beside it already.
    var besideReadAt: Instant? {
        guard isIdle(.bypass), let current = exchanges[SyncRequest.Lane.small.rawValue], current.activity.isRead else {
            return nil
        }
        return current.sentAt.map { $0 + policy.readPatience }
    }

    /// Starts the next small change beside a slow read. Changes themselves are sent one after the other.
    private mutating func startBesideRead() {
        guard let besideReadAt, besideReadAt <= now, let ticket = firstTicket(.small), ticket.priority < .read,
            let activity = nextActivity(of: ticket.id)
        else { return }
        start(activity, in: .bypass)
    }

    /// Starts reads beside the one in flight, each on a connection of its own, if many records are to be read.
    private mutating func startFurtherReads() {
        guard path.isReachable == true, !indexWork.isWanted,
            case .fetch = exchanges[SyncRequest.Lane.small.rawValue]?.activity
        else { return }
        let count = ReadPlan.readsAtOnce(of: indexWork.awaited.count)
        for lane in SyncRequest.Lane.furtherReads.prefix(count - 1) where isIdle(lane) {
            guard let ticket = firstTicket(.small), ticket.priority == .read,
                let activity = nextActivity(of: ticket.id)
            else { return }
            start(activity, in: lane)
        }
    }

    /// Cancels the reads beside the first one: they would fail with the path, each as a failure of its own.
    private mutating func cancelFurtherReads() {
        for lane in SyncRequest.Lane.furtherReads {
            guard let exchange = exchanges[lane.rawValue] else { continue }
            cancel(exchange)
        }
    }

    private mutating func cancel(_ exchange: Exchange) {
        _ = end(exchange.id)
        if exchange.isSent { outputs.append(.cancel(exchange.id)) }
        if let id = exchange.activity.recordID { schedule(id) }
    }

    private mutating func nextSmallActivity() -> Activity? {
        var ticket = firstTicket(.small)
        if let first = ticket, first.priority < .read, mustWait(first) { ticket = nil }
        let isIndexDue = indexWork.isWanted && now >= indexWork.retryAt ?? .start
        if let ticket, ticket.priority < .read, !isIndexDue || indexWork.pushesInRow < Self.pushesInRowMax {
            if isIndexDue { indexWork.pushesInRow += 1 }
            return nextActivity(of: ticket.id)
        }
        if isIndexDue { return .index }
        return ticket.flatMap { nextActivity(of: $0.id) }
    }

    /// Returns whether a change waits for an earlier one of another record, or for the index.
    private func mustWait(_ change: Schedule.Ticket) -> Bool {
        if policy.order == .strict, entries.keys.contains(where: { $0 < change.order }) { return true }
        guard let age = policy.indexAgeMax else { return false }
        return indexWork.fetchedAt.map { now > $0 + age } ?? true
    }

    private mutating func start(_ activity: Activity, in lane: SyncRequest.Lane) {
        guard let (operation, mayHaveBeenCommitted) = prepare(activity) else { return }
        let id = SyncExchangeID(number: nextExchange)
        nextExchange += 1
        if case .index = activity { indexWork.pushesInRow = 0 }
        if let record = activity.recordID {
            setInFlight(activity, of: record, true)
            schedules[record]?.ticket = -1
        }
        mayWithhold = true
        exchanges[lane.rawValue] = Exchange(
            id: id, activity: activity, operation: operation, mayHaveBeenCommitted: mayHaveBeenCommitted)
    }

    /// Returns the operation of an exchange. The attempt of an entry is recorded, to be committed before it is sent.
    private mutating func prepare(_ activity: Activity) -> (SyncOperation, mayHaveBeenCommitted: Bool)? {
        switch activity {
        case .probe: return (.probe, false)
        case .refresh: return token.tokens.map { (.refresh(token: $0.refresh), false) }
        case .index: return (nextIndexOperation(), false)
        case .fetch(let id), .reconcile(let id, _): return (.fetch(id), false)
        case .push(let id, let sequence):
            guard var entry = entries[sequence] else { return nil }
            if entry.attempts == 0 {
                entry.base = records[id]?.base
                // An update or deletion of a record that the server is not known to have cannot name its base.
                if entry.kind == .update, entry.base == nil { entry.kind = .create }
            }
            let mayHaveBeenCommitted = entry.mayBeCommitted
            entry.attempts = min(entry.attempts + 1, 1 << 30)
            entry.mayBeCommitted = true
            store(entry)
            storeAccount()
            switch (entry.kind, entry.base) {
            case (.create, _):
                return (.create(id, entry.content, operation: entry.operation), mayHaveBeenCommitted)
            case (.update, let base?):
                return (.update(id, entry.content, base: base, operation: entry.operation), mayHaveBeenCommitted)
            case (.delete, let base?):
                return (.delete(id, base: base, operation: entry.operation), mayHaveBeenCommitted)
            case (.delete, nil):
                // Nothing to delete: the creation was never executed.
                forget(id)
                return nil
            case (.update, nil), (.unknown, _):
                park(entry, because: "this version cannot send it")
                return nil
            }
        }
    }

    private mutating func sendWithheld() {
        guard mayWithhold, !mustCommit, !commit.isPending else { return }
        mayWithhold = false
        for lane in SyncRequest.Lane.allCases {
            guard let exchange = exchanges[lane.rawValue], !exchange.isSent else { continue }
            exchanges[lane.rawValue]?.sentAt = now
            exchanges[lane.rawValue]?.generation = token.generation
            outputs.append(
                .send(
                    SyncRequest(
                        id: exchange.id, lane: lane, operation: exchange.operation,
                        content: resource.request(for: exchange.operation))))
        }
    }

    /// Removes an exchange that has ended; `nil` if it is not in flight.
    mutating func end(_ id: SyncExchangeID) -> Exchange? {
        guard let lane = exchanges.firstIndex(where: { $0?.id == id }), let exchange = exchanges[lane] else {
            return nil
        }
        exchanges[lane] = nil
        if let record = exchange.activity.recordID { setInFlight(exchange.activity, of: record, false) }
        return exchange
    }

    /// Records that an exchange of a record has begun or ended. A read that a change overtakes is stale.
    mutating func setInFlight(_ activity: Activity, of id: RecordID, _ isInFlight: Bool) {
        if activity.isRead {
            schedules[id]?.isFetching = isInFlight
            if isInFlight { schedules[id]?.isFetchStale = false }
        } else {
            schedules[id]?.isInFlight = isInFlight
            if isInFlight { schedules[id]?.isFetchStale = true }
        }
    }

    /// Cancels the exchanges in flight; their outcomes are unknown.
    mutating func cancelExchanges() {
        for case let exchange? in exchanges { cancel(exchange) }
    }

    // MARK: Failures

    /// Delays the next attempt of a record.
    mutating func delay(_ id: RecordID, hasFailedOnPath: Bool) {
        guard schedules[id] != nil else { return }
        let failures = min((schedules[id]?.failures ?? 0) + 1, 1 << 20)
        let retryAt = now + policy.delay(afterFailures: failures, random: &jitter)
        schedules[id]?.failures = failures
        schedules[id]?.hasFailedOnPath = hasFailedOnPath
        let pathFailures = schedules[id]?.pathFailures ?? 0
        schedules[id]?.pathFailures = hasFailedOnPath ? min(pathFailures + 1, 1 << 20) : 0
        schedules[id]?.retryAt = retryAt
        schedule(id)
    }

    /// Delays the next attempt of the index.
    mutating func delayIndex(because problem: String? = nil) {
        indexWork.want()
        indexWork.problem = problem
        if indexWork.listsContents { indexWork.contentsFailures = min(indexWork.contentsFailures + 1, 1 << 20) }
        indexWork.failures = min(indexWork.failures + 1, 1 << 20)
        indexWork.retryAt = now + policy.delay(afterFailures: indexWork.failures, random: &jitter)
    }

    /// Records an exchange that ended without a response of the server.
    ///
    /// - Parameter result: What has responded in place of the server; `nil` for nothing.
    mutating func handlePathFailure(of exchange: Exchange, _ result: SyncResult? = nil, isOutcomeUnknown: Bool) {
        switch exchange.activity {
        case .probe, .refresh: break
        case .index: delayIndex()
        case .push(let id, let sequence):
            if isOutcomeUnknown, let entry = entries[sequence] {
                attemptEnded(of: entry, result, exchange)
            } else {
                if !isOutcomeUnknown { restoreMayBeCommitted(sequence, exchange) }
                delay(id, hasFailedOnPath: true)
            }
        case .fetch(let id):
            showPlaceholder(of: id)
            if schedules[id]?.isFetchStale == true { schedule(id) } else { delay(id, hasFailedOnPath: true) }
        case .reconcile(let id, _): delay(id, hasFailedOnPath: true)
        }
        cancelFurtherReads()
        let isQuick = path.recordFailure(at: now, minInterval: policy.firstDelay)
        let delay = isQuick ? .zero : policy.delay(afterFailures: max(1, path.failures - 1), random: &jitter)
        path.probe(at: now + delay)
    }

    /// Records a validated response: the path works.
    mutating func recordContact() {
        guard path.recordResponse(at: now) else { return }
        // Requests that failed once with the path are repeated now, one after the other. One that failed again waits, as
        // it may be itself the reason of the failure.
        for id in active.sorted() where schedules[id]?.hasFailedOnPath == true {
            schedules[id]?.hasFailedOnPath = false
            guard schedules[id]?.pathFailures == 1 else { continue }
            schedules[id]?.failures = 0
            if schedules[id]?.retryAt != nil {
                schedules[id]?.retryAt = nil
                schedule(id)
            }
        }
        if indexWork.failures <= 1 { indexWork.retryAt = nil }
    }

    /// Sends nothing before a time.
    mutating func raiseFloor(_ delay: Nanoseconds) {
        guard delay > .zero else { return }
        let time = now + min(delay, policy.retryAfterMax)
        path.floor = max(path.floor ?? .start, time)
    }
}
