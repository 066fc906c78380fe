public import Determinism

/// Changes by the user. Each is durable after the next commit; ``undoUserChange(at:)`` restores the state before it.
extension SyncEngine {
    /// Creates a record and returns its identifier.
    ///
    /// - Parameter id: The identifier; a random UUID by default.
    @discardableResult
    public mutating func create(
        _ content: RecordContent, id: RecordID? = nil, at now: Instant
    ) throws(RecordError) -> RecordID {
        let id = id ?? RecordID(makeUUID())
        guard records[id] == nil, schedules[id]?.queue.isEmpty ?? true else { throw .exists }
        tick(now)
        beginUserChange()
        let record = LocalRecord(id: id, mine: content, edits: 1)
        store(record)
        enqueue(.create, record)
        schedule(id)
        return id
    }

    /// Changes a record's content.
    public mutating func edit(_ id: RecordID, _ content: RecordContent, at now: Instant) throws(RecordError) {
        guard var record = recordToChange(id), !record.isDeleted else { throw .unknown }
        let isNewest = record == records[id]
        tick(now)
        beginUserChange()
        record.mine = content
        record.edits += 1
        store(record)
        // A record in conflict sends nothing until the conflict is resolved.
        if record.theirs == nil || !policy.holdsConflicts {
            supersedeParked(id)
            let isNew = record.base == nil && schedules[id]?.queue.isEmpty ?? true
            enqueue(isNew ? .create : .update, record)
        }
        fetchUnlessSent(id, isNewest)
        schedule(id)
    }

    /// Deletes a record locally at once, and on the server as soon as possible.
    public mutating func delete(_ id: RecordID, at now: Instant) throws(RecordError) {
        // A deletion that the server rejected may be repeated.
        guard var record = recordToChange(id), !record.isDeleted || isParked(id) else { throw .unknown }
        let isNewest = record == records[id]
        tick(now)
        beginUserChange()
        record.edits += 1
        record.isDeleted = true
        record.base = behavior.deletionBase(record)
        supersedeParked(id)
        for sequence in schedules[id]?.queue ?? [] where entries[sequence]?.attempts == 0 { drop(sequence) }
        if record.base == nil, record.theirs == nil, schedules[id]?.queue.isEmpty ?? true {
            forget(id)  // the server has never had the record
        } else {
            store(record)
            if record.theirs == nil { enqueue(.delete, record) }
        }
        fetchUnlessSent(id, isNewest)
        schedule(id)
    }

    /// Adds a change of a kind that stays in the outbox (``SyncPolicy/heldKinds``).
    public mutating func hold(_ kind: String, of id: RecordID, at now: Instant) throws(RecordError) {
        guard policy.heldKinds.contains(kind) else { throw .unknownKind }
        guard let record = shownRecord(id), !record.isDeleted else { throw .unknown }
        tick(now)
        beginUserChange()
        store(record)
        enqueue(.unknown(kind), record)
        schedule(id)
    }

    /// Resolves a conflict and returns the record's identifier, which is new if the server's side was a deletion.
    @discardableResult
    public mutating func resolve(
        _ id: RecordID, _ resolution: Resolution, at now: Instant
    ) throws(RecordError) -> RecordID {
        guard var record = shownRecord(id) else { throw .unknown }
        guard let theirs = record.theirs else { throw .notInConflict }
        tick(now)
        beginUserChange()
        record.edits += 1
        let isNewest = record.theirs == records[id]?.theirs
        let settled = settle(record, theirs, resolution)
        fetchUnlessSent(id, isNewest)
        schedule(id)
        return settled
    }

    /// Returns the record that a change by the user is based on: as it is shown, but a conflict has the newest of the server's
    /// sides, because nothing is sent until it is resolved.
    private func recordToChange(_ id: RecordID) -> LocalRecord? {
        let shown = shownRecord(id)
        if shown?.theirs != nil, let current = records[id], current.theirs != nil { return current }
        return shown
    }

    /// Requests the server's record after a change by the user that is not based on the newest known one. A change that is
    /// sent needs no request: its response shows that the base is old.
    private mutating func fetchUnlessSent(_ id: RecordID, _ isNewest: Bool) {
        if !isNewest, schedules[id]?.queue.isEmpty ?? true { requestFetch(of: id) }
    }

    /// Ends a conflict, and returns the record's identifier.
    @discardableResult
    mutating func settle(_ record: LocalRecord, _ theirs: LocalRecord.Theirs, _ resolution: Resolution) -> RecordID {
        var record = record
        record.theirs = nil
        record.base = theirs.revision
        record.baseContent = theirs.content
        switch resolution {
        case .theirs:
            if let content = theirs.content {
                record.mine = content
                record.isDeleted = false
                store(record)
            } else {
                forget(record.id)
            }
        case .mine where record.isDeleted:
            if theirs.revision == nil {
                forget(record.id)
            } else {
                store(record)
                enqueue(.delete, record)
            }
        case .mine, .write:
            if case .write(let content) = resolution { record.mine = content }
            record.isDeleted = false
            if theirs.revision == nil {
                // The identifier of a deleted record is never used again.
                forget(record.id)
                return createCopy(of: record)
            }
            store(record)
            enqueue(.update, record)
        }
        schedule(record.id)
        return record.id
    }

    /// Creates a record with the content of another one, and returns its identifier.
    @discardableResult
    mutating func createCopy(of record: LocalRecord) -> RecordID {
        var copy = record
        copy.id = RecordID(makeUUID())
        copy.base = nil
        copy.baseContent = nil
        copy.theirs = nil
        store(copy)
        enqueue(.create, copy)
        schedule(copy.id)
        return copy.id
    }

    /// Sends a record's parked change again, as the same operation. The next server error parks it again.
    public mutating func retry(_ id: RecordID, at now: Instant) throws(RecordError) {
        guard let head = schedules[id]?.queue.first, var entry = entries[head], entry.parked != nil else {
            throw records[id] == nil ? .unknown : .notParked
        }
        tick(now)
        beginUserChange()
        entry.parked = nil
        entry.serverErrors = max(0, policy.serverErrorsMax - 1)
        store(entry)
        resetFailures(of: id)
        schedule(id)
    }

    /// Discards a record's changes, of which the first is parked. The record gets the content of its base revision again;
    /// without one it is deleted. The server's record is fetched.
    public mutating func dismiss(_ id: RecordID, at now: Instant) throws(RecordError) {
        guard let head = schedules[id]?.queue.first, let entry = entries[head], entry.parked != nil else {
            throw records[id] == nil ? .unknown : .notParked
        }
        tick(now)
        beginUserChange()
        for sequence in schedules[id]?.queue ?? [] { drop(sequence) }
        if var record = records[id], let content = record.baseContent {
            record.mine = content
            record.isDeleted = false
            record.edits += 1
            store(record)
        } else {
            forget(id)
        }
        // The change may have been executed, and the index may list later revisions.
        requestFetch(of: id)
        schedule(id)
    }

    /// Returns whether the first change of a record is parked.
    private func isParked(_ id: RecordID) -> Bool {
        schedules[id]?.queue.first.flatMap { entries[$0]?.parked } != nil
    }

    /// Prepares a parked first entry for a newer change: it is dropped, or reconciled first if it may have been executed.
    private mutating func supersedeParked(_ id: RecordID) {
        guard let head = schedules[id]?.queue.first, let entry = entries[head], entry.parked != nil else { return }
        if entry.mayBeCommitted {
            resetFailures(of: id)
            schedules[id]?.mustReconcile = true
        } else {
            drop(head)
        }
    }
}
