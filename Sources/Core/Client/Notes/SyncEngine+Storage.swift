public import Determinism

/// Changes of the stored state. Each is part of the next commit.
extension SyncEngine {
    /// Adds a stored entry to its record's queue.
    mutating func insert(_ entry: OutboxEntry) {
        var entry = entry
        if policy.holds(entry.kind) {
            entry.parked = nil
        } else if case .unknown(let name) = entry.kind, entry.parked == nil {
            entry.parked = "a change of the kind '\(name.prefix(40))' needs a newer version"
        }
        entries[entry.sequence] = entry
        schedules[entry.id, default: Schedule()].queue.append(entry.sequence)
        if entry.parked != nil { parkedCount += 1 }
        nextSequence = max(nextSequence, entry.sequence &+ 1)
    }

    mutating func store(_ record: LocalRecord) {
        remember(record.id)
        setKnown(record, as: record.id)
        records[record.id] = record
        pendingChange.records[record.id] = .some(record)
        changedRows.insert(record.id)
    }

    mutating func store(_ entry: OutboxEntry) {
        remember(entry.id)
        if let old = entries[entry.sequence] {
            parkedCount += (entry.parked == nil ? 0 : 1) - (old.parked == nil ? 0 : 1)
        } else {
            // A change does not wait for the delay after failed reads.
            if schedules[entry.id]?.queue.isEmpty == true { resetFailures(of: entry.id) }
            schedules[entry.id, default: Schedule()].queue.append(entry.sequence)
            parkedCount += entry.parked == nil ? 0 : 1
        }
        entries[entry.sequence] = entry
        pendingChange.entries[entry.sequence] = .some(entry)
        changedRows.insert(entry.id)
    }

    /// Removes an entry from the outbox.
    mutating func drop(_ sequence: Int) {
        guard let entry = entries.removeValue(forKey: sequence) else { return }
        remember(entry.id, including: entry)
        if entry.parked != nil { parkedCount -= 1 }
        if schedules[entry.id]?.queue.first == sequence {
            schedules[entry.id]?.queue.removeFirst()
            resetFailures(of: entry.id)
        } else {
            schedules[entry.id]?.queue.removeAll { $0 == sequence }
        }
        pendingChange.entries[sequence] = .some(nil)
        changedRows.insert(entry.id)
    }

    /// Ends the failures of a record's first entry, which has left the queue.
    func resetSchedule(_ schedule: inout Schedule) {
        schedule.mustReconcile = false
        schedule.failures = 0
        schedule.fetchErrors = 0
        schedule.refusals = 0
        schedule.retryAt = nil
        schedule.hasFailedOnPath = false
        schedule.pathFailures = 0
    }

    mutating func resetFailures(of id: RecordID) {
        guard var schedule = schedules[id] else { return }
        resetSchedule(&schedule)
        schedules[id] = schedule
    }

    /// Deletes a record and its entries from the store.
    mutating func forget(_ id: RecordID) {
        remember(id)
        for sequence in schedules[id]?.queue ?? [] { drop(sequence) }
        endFetchRequest(of: id)
        setKnown(nil, as: id)
        if records.removeValue(forKey: id) != nil { pendingChange.records[id] = .some(nil) }
        changedRows.insert(id)
        schedule(id)
    }

    /// Sets an entry aside until the user decides.
    mutating func park(_ entry: OutboxEntry, because reason: String) {
        var entry = entry
        entry.parked = reason
        store(entry)
        resetFailures(of: entry.id)
        schedule(entry.id)
        outputs.append(.report(.parked(entry.id, reason)))
    }

    /// Counts an attempt of an entry that ended in a server error, also across restarts.
    mutating func recordServerError(of entry: OutboxEntry) {
        var entry = entry
        entry.serverErrors = min(entry.serverErrors + 1, 1 << 20)
        store(entry)
    }

    /// Adds a change to the outbox, or merges it into the last entry of the record.
    mutating func enqueue(_ kind: OutboxEntry.Kind, _ record: LocalRecord) {
        if kind == .update, let last = schedules[record.id]?.queue.last, var entry = entries[last],
            entry.kind == .create || entry.kind == .update, entry.parked == nil, behavior.mergesEdit(entry)
        {
            entry.content = record.mine
            entry.edits = record.edits
            store(entry)
        } else {
            store(
                OutboxEntry(
                    operation: makeUUID(), sequence: nextSequence, id: record.id, kind: kind, content: record.mine,
                    edits: record.edits))
            nextSequence += 1
        }
    }

    /// Requests the server's record.
    ///
    /// - Parameter listed: The revision that the index lists, if that is the reason.
    mutating func requestFetch(of id: RecordID, listed: RecordRevision? = nil) {
        var schedule = schedules[id] ?? Schedule()
        let hasOtherReason = schedule.wantsFetch && schedule.listedRevision == nil
        schedule.wantsFetch = true
        schedule.fetchRequestedAt = nextExchange
        schedule.listedRevision = hasOtherReason ? nil : listed
        schedules[id] = schedule
        indexWork.awaited.insert(id)
    }

    /// Ends the request for the server's record.
    mutating func endFetchRequest(of id: RecordID) {
        schedules[id]?.wantsFetch = false
        schedules[id]?.listedRevision = nil
        indexWork.awaited.remove(id)
    }

    /// Stores the position in the index, mostly when all records listed before it have been fetched: the next process reads
    /// the index from there.
    mutating func storeIndex() {
        guard indexWork.awaited.isEmpty || policy.checkpoint == .afterIndex, storedIndex != index else { return }
        storedIndex = index
        pendingChange.index = index
    }

    /// Records that a record cannot be read.
    mutating func setQuarantine(_ id: RecordID, _ reason: String?) {
        guard quarantine[id] != reason else { return }
        quarantine[id] = reason
        pendingChange.quarantine[id] = .some(reason)
        if let reason { outputs.append(.report(.quarantined(id, reason))) }
    }

    // MARK: The user's changes

    /// Keeps what the user knows of a record that is about to change.
    private mutating func setKnown(_ record: LocalRecord?, as id: RecordID) {
        if isUserChanging {
            shownRecords.updateValue(record, forKey: id)
        } else if shownRecords[id] == nil {
            shownRecords.updateValue(records[id], forKey: id)
        }
    }

    /// Keeps the present state of a record, to be restored if the commit of the user's change fails.
    private mutating func remember(_ id: RecordID, including dropped: OutboxEntry? = nil) {
        guard undo != nil, undo?.records[id] == nil else { return }
        var entries = entries(of: id)
        if let dropped, !entries.contains(where: { $0.sequence == dropped.sequence }) { entries.append(dropped) }
        undo?.records[id] = (records[id], shownRecords[id] ?? records[id], entries, schedules[id])
    }

    /// Begins a change by the user.
    mutating func beginUserChange() {
        commit.isUserChange = true
        isUserChanging = true
        undo = Undo(change: pendingChange)
    }

    /// The commit of the user's change has failed: the change has not happened.
    public mutating func undoUserChange(at now: Instant) {
        tick(now)
        guard let undo else { return commitFailed(at: now) }
        restore(undo)
        if !pendingChange.isEmpty { recordCommitFailure() }
    }

    private mutating func restore(_ undo: Undo) {
        self.undo = nil
        commit.isPending = false
        commit.isUserChange = false
        for (id, old) in undo.records {
            for sequence in schedules[id]?.queue ?? [] {
                if entries.removeValue(forKey: sequence)?.parked != nil { parkedCount -= 1 }
            }
            records[id] = old.record
            shownRecords.updateValue(old.shown, forKey: id)
            for entry in old.entries {
                entries[entry.sequence] = entry
                if entry.parked != nil { parkedCount += 1 }
            }
            let current = schedules[id]
            schedules[id] = old.schedule
            schedules[id]?.isInFlight = current?.isInFlight ?? false
            schedules[id]?.isFetching = current?.isFetching ?? false
            schedules[id]?.isFetchStale = current?.isFetchStale ?? false
            if old.schedule?.wantsFetch != true { indexWork.awaited.remove(id) }
            changedRows.insert(id)
            schedule(id)
        }
        // The change may have had the position in the index.
        if commit.change.index != nil || pendingChange.index != nil { storedIndex = nil }
        pendingChange = undo.change
        commit.change = StoreChange()
    }

    // MARK: Commits

    /// The change of the last commit action is durable.
    public mutating func committed(at now: Instant) {
        tick(now)
        guard commit.isPending else { return }
        undo = nil
        commit.isPending = false
        commit.change = StoreChange()
        endCommitFailures()
    }

    private mutating func endCommitFailures() {
        commit.retryAt = nil
        guard commit.failures > 0 else { return }
        commit.failures = 0
        outputs.append(.report(.commitRecovered))
    }

    /// The change of the last commit action could not be made durable. It is kept, and committed again after a pause;
    /// until then nothing is sent.
    public mutating func commitFailed(at now: Instant) {
        tick(now)
        guard commit.isPending else { return }
        undo = nil
        commit.isPending = false
        commit.change.append(pendingChange)
        pendingChange = commit.change
        commit.change = StoreChange()
        recordCommitFailure()
    }

    private mutating func recordCommitFailure() {
        if commit.failures == 0 { outputs.append(.report(.commitFailing)) }
        commit.failures = min(commit.failures + 1, 1 << 20)
        commit.retryAt = now + policy.delay(afterFailures: commit.failures, random: &jitter)
    }

    /// Nothing was committed, because another process has changed records first.
    ///
    /// Those records are taken from the store; the rest of the change is committed again. A change by the user is undone,
    /// because it was made to another state; the caller repeats it.
    ///
    /// - Returns: Whether a change by the user was undone.
    @discardableResult
    public mutating func commitWasStale(_ changes: [ForeignChange], at now: Instant) -> Bool {
        tick(now)
        guard commit.isPending else { return false }
        let undone = undo
        if let undone {
            restore(undone)
        } else {
            commit.isPending = false
            commit.change.append(pendingChange)
            pendingChange = commit.change
            commit.change = StoreChange()
        }
        storeChanged(changes, at: now)
        return undone != nil
    }

    /// Another process has changed records in the store.
    ///
    /// What the engine has not committed of these records is dropped. An attempt that was prepared for one of them is not
    /// sent; one that was sent has an unknown outcome.
    public mutating func storeChanged(_ changes: [ForeignChange], at now: Instant) {
        tick(now)
        for change in changes {
            let id = change.id
            for lane in exchanges.indices {
                if let exchange = exchanges[lane], exchange.activity.recordID == id, !exchange.isSent {
                    exchanges[lane] = nil
                    setInFlight(exchange.activity, of: id, false)
                }
            }
            if pendingChange.records.removeValue(forKey: id) != nil {
                // What a response showed of the record is dropped with it, so the server's record is fetched again before
                // the position in the index is stored.
                requestFetch(of: id)
                pendingChange.index = nil
                storedIndex = nil
            }
            let uncommitted = pendingChange.entries.filter { entries[$0.key]?.id == id || $0.value?.id == id }
            for sequence in uncommitted.keys { pendingChange.entries[sequence] = nil }
            for sequence in schedules[id]?.queue ?? [] {
                if entries.removeValue(forKey: sequence)?.parked != nil { parkedCount -= 1 }
            }
            schedules[id]?.queue = []
            records[id] = change.record
            shownRecords[id] = nil
            for entry in change.entries {
                if let other = entries[entry.sequence], other.id != id { renumber(other) }
                insert(entry)
            }
            restoreReconciliation(id)
            changedRows.insert(id)
            schedule(id)
        }
        // The other process has replaced all that could not be committed.
        if pendingChange.isEmpty && !commit.isPending { endCommitFailures() }
    }

    /// Gives an uncommitted entry another sequence number, because another process has used its own.
    private mutating func renumber(_ entry: OutboxEntry) {
        let sequence = nextSequence
        nextSequence += 1
        let renumbered = entry.numbered(sequence)
        for lane in exchanges.indices {
            // An attempt that is not committed was not sent.
            if case .push(entry.id, entry.sequence)? = exchanges[lane]?.activity {
                exchanges[lane] = nil
                schedules[entry.id]?.isInFlight = false
            }
        }
        entries[entry.sequence] = nil
        pendingChange.entries[entry.sequence] = nil
        entries[sequence] = renumbered
        pendingChange.entries[sequence] = .some(renumbered)
        if let place = schedules[entry.id]?.queue.firstIndex(of: entry.sequence) {
            schedules[entry.id]?.queue[place] = sequence
        }
        schedule(entry.id)
    }

    /// Requests the server's record if a record's first entry is parked with an unknown outcome and a newer change waits
    /// for it.
    mutating func restoreReconciliation(_ id: RecordID) {
        let queue = schedules[id]?.queue ?? []
        let head = queue.first.flatMap { entries[$0] }
        schedules[id]?.mustReconcile = queue.count > 1 && head?.parked != nil && head?.mayBeCommitted == true
    }
}
