internal import Determinism

/// The meaning of results. Only a validated response changes a record: it comes from the server of the store's account
/// and has the requested record at no older revision than the known one.
extension SyncEngine {
    mutating func handle(_ reply: SyncReply, of exchange: Exchange) {
        if let retryAfter = reply.retryAfter { raiseFloor(retryAfter) }
        switch reply.result {
        case .gatewayError(let status):
            path.lastFailure = SyncProblem(.connectionFailed, "a gateway cannot reach the server (\(status))")
            return handlePathFailure(of: exchange, reply.result, isOutcomeUnknown: true)
        case .foreign(let error):
            path.foreignServer = error
            return handlePathFailure(of: exchange, reply.result, isOutcomeUnknown: true)
        case _ where exchange.activity == .refresh: return handleRefresh(reply.result, of: exchange)
        case .unauthorized(let status):
            // A response without a history says nothing about the account.
            recordContact()
            switch exchange.activity {
            case .probe, .refresh: break
            case .index: indexWork.want()
            case .push(let id, let sequence): handlePush(reply.result, id, sequence, exchange)
            case .reconcile(let id, _), .fetch(let id): schedule(id)
            }
            releaseAccount()
            return credentialsRejected(status: status, generation: exchange.generation)
        default: break
        }
        if let mismatch = mismatch(of: reply, to: exchange) {
            // The index confirms it: a single odd response is no reason to stop.
            guard case .index = exchange.activity else {
                return handlePathFailure(of: exchange, isOutcomeUnknown: true)
            }
            self.mismatch = mismatch
            outputs.append(.report(.mismatch(mismatch)))
            return
        }
        if isAccepted(reply, to: exchange) {
            isAccountTentative = false
            storeAccount()
        }
        recordContact()
        if exchange.generation == token.generation { tokenAccepted() }
        switch exchange.activity {
        case .probe: handleProbe(reply.result)
        case .refresh: break
        case .index: handleIndex(reply.result)
        case .push(let id, let sequence): handlePush(reply.result, id, sequence, exchange)
        case .reconcile(let id, let sequence): handleReconciliation(reply.result, id, sequence, exchange)
        case .fetch(let id): handleFetch(reply.result, id)
        }
        if case .forbidden = reply.result { releaseAccount() }
    }

    private mutating func handleProbe(_ result: SyncResult) {
        if case .forbidden(let status) = result {
            pause(.forbidden, because: "the server rejects the user (\(status))")
        }
    }

    mutating func pause(_ kind: SyncProblem.Kind = .credentialsRejected, because reason: String) {
        guard pauseReason == nil else { return }
        pauseKind = kind
        pauseReason = reason
        outputs.append(.report(.paused(reason)))
    }

    /// The entry's attempt was certainly not executed.
    mutating func restoreMayBeCommitted(_ sequence: Int, _ exchange: Exchange) {
        guard var entry = entries[sequence], entry.mayBeCommitted != exchange.mayHaveBeenCommitted else { return }
        entry.mayBeCommitted = exchange.mayHaveBeenCommitted
        store(entry)
    }

    // MARK: Results of changes

    private mutating func handlePush(
        _ result: SyncResult, _ id: RecordID, _ sequence: Int, _ exchange: Exchange
    ) {
        guard let entry = entries[sequence] else { return schedule(id) }
        if case .record(let remote) = result, entry.kind != .delete, let problem = problem(of: remote, as: entry) {
            attemptEnded(of: entry, .invalid(problem), exchange)
        } else {
            attemptEnded(of: entry, result, exchange)
        }
    }

    /// Records the end of an attempt to send an entry.
    ///
    /// - Parameter result: The result; `nil` if the response was lost.
    mutating func attemptEnded(of entry: OutboxEntry, _ result: SyncResult?, _ exchange: Exchange) {
        let id = entry.id
        let attempt = ChangeAttempt(
            entry: entry, record: records[id], result: result, refusals: schedules[id]?.refusals ?? 0,
            serverErrorsMax: policy.serverErrorsMax)
        switch result {
        case .done? where entry.kind == .delete, .missing? where entry.kind == .delete: indexWork.written.insert(id)
        case .missing?, .conflict?, .forbidden?, .rejected?, .unauthorized?:
            restoreMayBeCommitted(entry.sequence, exchange)
        default: break
        }
        execute(behavior.outcome(attempt), of: attempt)
    }

    private mutating func execute(_ outcome: ChangeOutcome, of attempt: ChangeAttempt) {
        let id = attempt.entry.id
        let entry = entries[attempt.entry.sequence] ?? attempt.entry
        switch outcome {
        case .stored(let remote): acknowledge(entry, as: remote)
        case .repeated:
            switch attempt.result {
            case .serverError?: recordServerError(of: entry)
            case .forbidden?:
                schedules[id]?.refusals += 1
                // The index shows whether the server rejects this change or the user.
                indexWork.want()
            default: break
            }
            delay(id, hasFailedOnPath: attempt.isLost)
        case .repeatedAtOnce: schedule(id)
        case .contested:
            schedules[id]?.mustReconcile = true
            schedule(id)
        case .unclear(let reason): handleInvalid(reason, entry)
        case .parked(let reason): park(entry, because: reason)
        case .deletedOnServer: recordConflict(.deleted, id)
        case .dropped:
            drop(entry.sequence)
            schedule(id)
        case .finished(let record):
            forget(id)
            if let record { store(record) }
        case .createdAgain:
            forget(id)
            if let record = attempt.record { createCopy(of: record) }
        }
    }

    /// Returns the reason why a record is not the result of sending an entry; `nil` if it may be.
    private func problem(of remote: RemoteRecord, as entry: OutboxEntry) -> String? {
        guard remote.id == entry.id else { return "the response is another record" }
        guard entry.kind == .update, let base = entry.base else { return nil }
        let isNewer = remote.revision != base && (remote.revision.number == nil || base.precedes(remote.revision))
        if isNewer || resource.areEqual(remote.content, entry.content) && !remote.revision.precedes(base) { return nil }
        return "the revision in the response is not newer than the base"
    }

    /// Records a response that does not show whether the server has executed the change. Before the next attempt of an
    /// update or deletion, the server's record is fetched. A creation is repeated without a fetch, because a missing
    /// record would not show whether the server rejects the creation.
    private mutating func handleInvalid(_ reason: String, _ entry: OutboxEntry) {
        setQuarantine(entry.id, reason)
        schedules[entry.id]?.mustReconcile = entry.kind != .create
        delay(entry.id, hasFailedOnPath: false)
    }

    /// Removes an entry that the server has stored, and updates the record's base.
    private mutating func acknowledge(_ entry: OutboxEntry, as remote: RemoteRecord) {
        drop(entry.sequence)
        setQuarantine(entry.id, nil)
        indexWork.written.insert(entry.id)
        if let listed = schedules[entry.id]?.listedRevision, listed == remote.revision { finishFetch(of: entry.id) }
        if var local = records[entry.id] {
            local.base = remote.revision
            local.baseContent = remote.content
            if local.edits == entry.edits || policy.laterEdits != .kept { local.mine = remote.content }
            if policy.laterEdits == .dropped {
                for next in schedules[entry.id]?.queue ?? [] { drop(next) }
            }
            store(local)
        }
        schedule(entry.id)
    }

    private mutating func handleReconciliation(
        _ result: SyncResult, _ id: RecordID, _ sequence: Int, _ exchange: Exchange
    ) {
        guard let entry = entries[sequence] else { return schedule(id) }
        switch result {
        case .record(let remote) where remote.id == id && !isOlder(remote, than: entry.base):
            setQuarantine(id, nil)
            finishFetch(of: id, by: exchange, showing: remote.revision)
            if entry.kind != .delete, resource.areEqual(remote.content, entry.content) {
                acknowledge(entry, as: remote)  // stored by an earlier attempt
            } else if remote.revision == entry.base {
                reconciliationFoundNothing(entry)
            } else {
                recordConflict(LocalRecord.Theirs(revision: remote.revision, content: remote.content), id)
            }
        case .missing:
            setQuarantine(id, nil)
            finishFetch(of: id, by: exchange)
            switch entry.kind {
            case .create where entry.parked == nil: park(entry, because: "the server rejects it")
            case .create: reconciliationFoundNothing(entry)
            case .update, .unknown: recordConflict(.deleted, id)
            case .delete: forget(id)
            }
        case .record, .invalid:
            setQuarantine(id, "the server's record cannot be read")
            delay(id, hasFailedOnPath: false)
        case .serverError(let status), .forbidden(let status):
            let count = entry.serverErrors + 1
            if count >= policy.serverErrorsMax, entry.parked == nil {
                return park(entry, because: "the server failed to send its record \(count) times (\(status))")
            }
            recordServerError(of: entry)
            delay(id, hasFailedOnPath: false)
        default: delay(id, hasFailedOnPath: false)
        }
    }

    /// Returns whether a record is older than a known revision of a server whose revisions only grow.
    private func isOlder(_ remote: RemoteRecord, than known: RecordRevision?) -> Bool {
        guard indexWork.isMonotonic, !index.isAdopting, let known else { return false }
        return remote.revision.precedes(known)
    }

    /// The server's record shows that the first entry was not executed.
    private mutating func reconciliationFoundNothing(_ entry: OutboxEntry) {
        schedules[entry.id]?.mustReconcile = false
        guard entry.parked != nil else {
            // The server called the base stale although it is current.
            return delay(entry.id, hasFailedOnPath: false)
        }
        drop(entry.sequence)
        guard let next = schedules[entry.id]?.queue.first, var follower = entries[next] else {
            return schedule(entry.id)
        }
        if entry.kind == .create {
            if follower.kind == .delete { return forget(entry.id) }
            if follower.attempts == 0 {
                follower.kind = .create
                store(follower)
            }
        }
        schedule(entry.id)
    }

    /// Records that the server has a change by another client: a conflict, unless both sides are equal.
    mutating func recordConflict(_ theirs: LocalRecord.Theirs, _ id: RecordID) {
        guard var local = records[id] else { return forget(id) }
        for sequence in schedules[id]?.queue ?? [] { drop(sequence) }
        let areEqual = theirs.content.map { resource.areEqual($0, local.mine) } ?? false
        switch behavior.conflict(RecordConflict(record: local, theirs: theirs, areEqual: areEqual)) {
        case .open:
            local.theirs = theirs
            store(local)
            schedule(id)
        case .ended(let content):
            local.base = theirs.revision
            local.baseContent = theirs.content
            local.mine = content
            local.isDeleted = false
            local.theirs = nil
            store(local)
            schedule(id)
        case .resolved(let resolution): settle(local, theirs, resolution)
        case .copied:
            createCopy(of: local)
            settle(local, theirs, .theirs)
        }
    }

    // MARK: Results of reads

    private mutating func handleFetch(_ result: SyncResult, _ id: RecordID) {
        if case .record = result {} else { showPlaceholder(of: id) }
        // The response may be older than a change that was sent meanwhile. The record is read again after its changes.
        guard let work = schedules[id], !work.isFetchStale, work.queue.isEmpty else { return schedule(id) }
        switch result {
        case .record(let remote) where remote.id == id:
            finishFetch(id)
            setQuarantine(id, nil)
            take(remote)
        case .missing:
            finishFetch(id)
            setQuarantine(id, nil)
            recordAbsence(of: id)
        case .record: setAside(id, because: "the response is another record")
        case .invalid(let reason): setAside(id, because: reason)
        case .rejected(let status): setAside(id, because: "the server rejects the request (\(status))")
        case .serverError(let status), .forbidden(let status):
            let count = (schedules[id]?.fetchErrors ?? 0) + 1
            schedules[id]?.fetchErrors = count
            if count >= policy.serverErrorsMax {
                setAside(id, because: "the server failed to send it \(count) times (\(status))")
            } else {
                delay(id, hasFailedOnPath: false)
            }
        default: delay(id, hasFailedOnPath: false)
        }
        finishAdoption(of: id)
    }

    /// Shows what the behaviour wants to be shown because a record could not be read.
    mutating func showPlaceholder(of id: RecordID) {
        let placeholder = behavior.placeholder
        if let record = placeholder(id, { RecordID(makeUUID()) }), records[record.id] == nil { store(record) }
    }

    mutating func take(_ remote: RemoteRecord) {
        guard let local = records[remote.id] else { return store(LocalRecord(remote)) }
        let theirs = LocalRecord.Theirs(revision: remote.revision, content: remote.content)
        if let known = local.theirs {
            if isOlder(remote, than: known.revision) { return }
            if known != theirs { recordConflict(theirs, remote.id) }
        } else if schedules[remote.id]?.queue.isEmpty ?? true {
            if index.isAdopting, indexWork.adoptions.contains(remote.id),
                !resource.areEqual(remote.content, local.mine)
            {
                return recordConflict(theirs, remote.id)
            }
            if isOlder(remote, than: local.base) {
                return setQuarantine(remote.id, "the server's revision is older than the known one")
            }
            guard remote.revision != local.base || remote.content != local.mine else { return }
            var fresh = LocalRecord(remote)
            fresh.edits = local.edits
            store(fresh)
        }
    }

    mutating func finishFetch(_ id: RecordID) {
        resetFailures(of: id)
        endFetchRequest(of: id)
        schedule(id)
        storeIndex()
    }

    /// Ends the request for a record that another exchange has shown. One that began before the request may be older
    /// than the reason for it, unless it shows the listed revision or a later one.
    private mutating func finishFetch(
        of id: RecordID, by exchange: Exchange? = nil, showing revision: RecordRevision? = nil
    ) {
        guard let work = schedules[id], work.wantsFetch else { return }
        let showsListed =
            if let revision, let listed = work.listedRevision {
                revision == listed || indexWork.isMonotonic && listed.precedes(revision)
            } else { false }
        guard showsListed || exchange?.id.number ?? .max >= work.fetchRequestedAt else { return }
        endFetchRequest(of: id)
        storeIndex()
        finishAdoption(of: id)
    }

    /// Ends the attempts to read a record until the next index.
    private mutating func setAside(_ id: RecordID, because reason: String) {
        setQuarantine(id, reason)
        finishFetch(id)
    }

    /// Ends the adoption when every differing record was compared.
    private mutating func finishAdoption(of id: RecordID) {
        guard schedules[id]?.wantsFetch != true, indexWork.adoptions.remove(id) != nil, indexWork.adoptions.isEmpty,
            !indexWork.isWanted
        else { return }
        // Another whole index ends the adoption.
        indexWork.want()
    }
}
