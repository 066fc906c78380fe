internal import Determinism

/// Defects of mutants that take more than a line at their place.
extension SyncEngine {
    // MARK: Restarts

    /// Returns the stored outbox as a mutant restores it.
    mutating func restoredByMutant(_ queue: [OutboxEntry]) -> [OutboxEntry] {
        if mutants.contains(.queueLostOnRestart) { return [] }
        var queue = queue
        if mutants.contains(.queueReversedOnRestart) {
            queue = zip(queue, queue.reversed()).map { $1.copy(sequence: $0.sequence, operation: $1.operation) }
        }
        if mutants.contains(.operationIDRenewedOnRestart) {
            queue = queue.map { $0.copy(sequence: $0.sequence, operation: makeUUID()) }
        }
        if mutants.contains(.attemptsForgottenOnRestart) {
            for index in queue.indices {
                queue[index].attempts = 0
                queue[index].mayBeCommitted = false
            }
        }
        return queue
    }

    /// Forgets the bases of conflicts.
    mutating func forgetConflictBases() {
        for (id, record) in records where record.theirs != nil { records[id]?.baseContent = nil }
    }

    // MARK: Results

    /// Applies the defects of mutants to the result of a change; returns whether there was one.
    mutating func handlesByMutant(_ result: SyncResult, of entry: OutboxEntry) -> Bool {
        switch result {
        case .conflict where mutants.contains(.conflictTakenForSuccess): drop(entry.sequence)
        case .missing where entry.kind == .update && mutants.contains(.missingNoteDropsEdit): forget(entry.id)
        case .missing where entry.kind == .update && mutants.contains(.missingNoteEditedForEver),
            .rejected where mutants.contains(.rejectionRetried):
            delay(entry.id, hasFailedOnPath: false)
        case .serverError where mutants.contains(.serverErrorIsFinal),
            .unavailable where mutants.contains(.serverErrorIsFinal):
            park(entry, because: "the server has failed")
        case .done, .missing: return false
        default:
            guard entry.kind == .delete, mutants.contains(.tombstoneDroppedOnFailure) else { return false }
            forget(entry.id)
        }
        schedule(entry.id)
        return true
    }

    /// Applies the defects of mutants to a change whose response was lost.
    mutating func applyMutants(afterLostResponseTo entry: OutboxEntry) {
        if mutants.contains(.dropsOnLostResponse) {
            drop(entry.sequence)
        } else if mutants.contains(.postsAgainUnderNewID), entry.kind == .create, var record = records[entry.id] {
            forget(entry.id)
            record.id = RecordID(makeUUID())
            enqueue(.create, record)
            store(record)
            schedule(record.id)
        } else if mutants.contains(.tombstoneDroppedOnFailure), entry.kind == .delete {
            forget(entry.id)
        } else if mutants.contains(.deletionForgottenOnLostResponse), entry.kind == .delete,
            var record = records[entry.id]
        {
            drop(entry.sequence)
            record.isDeleted = false
            store(record)
        }
    }

    /// Takes a response from another server than the expected one for the acknowledgement of a change; returns whether
    /// the change is done.
    mutating func acceptsForeignSuccess(_ error: ForeignServerError, of exchange: Exchange) -> Bool {
        guard mutants.contains(.foreignSuccessAccepted), error.status == 200,
            case .push(let id, let sequence) = exchange.activity
        else { return false }
        drop(sequence)
        schedule(id)
        return true
    }

    /// Adds an empty note in place of one that could not be read.
    mutating func addGhost() {
        guard mutants.contains(.ghostNoteOnFailedFetch) else { return }
        store(LocalRecord(id: RecordID(makeUUID()), mine: NoteContent(title: nil, text: nil, date: "").encoded))
    }

    /// Stores the revision of a note that has not been fetched.
    mutating func storeRevision(of entry: RemoteIndex.Entry) {
        guard var record = records[entry.id], record.theirs == nil else { return }
        record.base = entry.revision
        store(record)
    }

    // MARK: Conflicts

    /// Resolves a conflict as mutants do; returns whether there is none left.
    func mergesByMutant(_ theirs: LocalRecord.Theirs, into local: inout LocalRecord) -> Bool {
        guard let content = theirs.content else { return false }
        if local.isDeleted {
            guard mutants.contains(.deletionUndoneByRemoteEdit) else { return false }
            local.mine = content
            local.isDeleted = false
        } else {
            guard mutants.contains(.mergedConflictNeverSent), !resource.areEqual(content, local.mine) else {
                return false
            }
            var merged = NoteContent(local.mine)
            let other = NoteContent(content)
            let isSameTitle = merged.title == other.title
            merged.title = "Conflict: " + (merged.title ?? "") + (isSameTitle ? "" : " vs \(other.title ?? "")")
            merged.text = "Local text:\n\(merged.text ?? "")\nRemote text:\n\(other.text ?? "")"
            local.mine = merged.encoded
        }
        local.base = theirs.revision
        local.baseContent = content
        local.theirs = nil
        return true
    }

    mutating func overwrite(_ entry: OutboxEntry, from remote: RemoteRecord) {
        guard var local = records[entry.id] else { return }
        drop(entry.sequence)
        local.base = remote.revision
        local.baseContent = remote.content
        enqueue(entry.kind, local)
        store(local)
        schedule(entry.id)
    }
}

extension OutboxEntry {
    /// Returns a copy with another position and operation id.
    fileprivate func copy(sequence: Int, operation: String) -> OutboxEntry {
        OutboxEntry(
            operation: operation, sequence: sequence, id: id, kind: kind, content: content, edits: edits, base: base,
            attempts: attempts, mayBeCommitted: mayBeCommitted, parked: parked)
    }
}

extension SyncPolicy {
    /// Returns the policy with the defects of mutants.
    func with(_ mutants: Set<Mutant>) -> SyncPolicy {
        var policy = self
        if mutants.contains(.noBackoff) {
            policy.firstDelay = .zero
            policy.longestDelay = .zero
        }
        if mutants.contains(.noJitter) { policy.hasJitter = false }
        if mutants.contains(.noCap) { policy.longestDelay = .seconds(1 << 30) }
        if mutants.contains(.constantBackoff) { policy.longestDelay = policy.firstDelay }
        if mutants.contains(.neverPolls) { policy.poll = .seconds(1 << 30) }
        return policy
    }
}
