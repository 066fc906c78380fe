internal import Determinism

/// Defects of mutants that take more than a line at their place.
extension SyncEngine {
    // MARK: Restarts

    /// Returns the stored outbox as a mutant restores it.
    mutating func restoredByMutant(_ queue: [OutboxEntry]) -> [OutboxEntry] {
        if mutants.contains(.queueLostOnRestart) { return [] }
        var queue = queue
        if mutants.contains(.queueReversedOnRestart) {
            queue = zip(queue, queue.reversed()).map { $1.numbered($0.sequence) }
        }
        if mutants.contains(.operationIDRenewedOnRestart) {
            for index in queue.indices { queue[index].operation = makeUUID() }
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
        case .record where entry.attempts == 1 && mutants.contains(.everythingSentTwice),
            .done where entry.attempts == 1 && mutants.contains(.everythingSentTwice):
            break
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

    /// Keeps a deleted note as if it were a new one; returns whether a mutant does so.
    mutating func staysByMutant(_ id: RecordID) -> Bool {
        guard mutants.contains(.deletedNoteStays), var record = records[id] else { return false }
        forget(id)
        record.isDeleted = false
        record.base = nil
        record.theirs = nil
        store(record)
        return true
    }

    /// Whether a mutant sends no change now.
    var holdsChangesBack: Bool {
        guard mutants.contains(.changesWaitForPoll) else { return false }
        return indexWork.fetchedAt.map { now > $0 + .seconds(1) } ?? true
    }

    // MARK: Views

    /// The number of pending changes as it is shown.
    var shownOutbox: Int { mutants.contains(.outboxNotCounted) ? 0 : outboxCount }

    /// Returns a row as a mutant shows it; `nil` if it does not.
    func shownByMutant(_ row: RecordRow, _ record: LocalRecord) -> RecordRow? {
        if mutants.contains(.listEmptyWithoutConnection) {
            switch connectivity {
            case .interfaceDown, .unreachable: return nil
            case .unknown, .online, .suspected, .interfaceNotAllowed: break
            }
        }
        var (content, icon, kept) = (row.content, row.icon, row.kept)
        switch icon {
        case .upload:
            if mutants.contains(.unsavedEditHidden), let base = record.baseContent { content = base }
            if mutants.contains(.pendingMarkMissing) { icon = .none }
        case .none where mutants.contains(.pendingMarkSticks) && record.edits > 0: icon = .upload
        case .conflict:
            if mutants.contains(.conflictNotMarked) { icon = .none }
            if mutants.contains(.conflictLosesTheirs) { kept = [record.mine] }
            if mutants.contains(.conflictShowsTheirs), let theirs = record.theirs?.content {
                content = theirs
                kept = [theirs]
            }
        case .error where mutants.contains(.rejectionShownAsPending): icon = .upload
        case .none, .error: break
        }
        return RecordRow(
            id: row.id, content: content, icon: icon, isDeleted: row.isDeleted, revision: row.revision, kept: kept,
            problem: row.problem)
    }

    // MARK: Conflicts

    /// Resolves a conflict as mutants do; returns whether there is none left.
    mutating func mergesByMutant(_ theirs: LocalRecord.Theirs, into local: inout LocalRecord) -> Bool {
        guard let content = theirs.content else {
            guard mutants.contains(.deletedNoteRestored), !local.isDeleted else { return false }
            forget(local.id)
            local.id = RecordID(makeUUID())
            local.base = nil
            local.baseContent = nil
            enqueue(.create, local)
            schedule(local.id)
            return true
        }
        if mutants.contains(.conflictSavedAsCopy), !local.isDeleted, !resource.areEqual(content, local.mine) {
            var copy = local
            copy.id = RecordID(makeUUID())
            copy.base = nil
            copy.baseContent = nil
            enqueue(.create, copy)
            store(copy)
            schedule(copy.id)
            local.mine = content
            local.base = theirs.revision
            local.baseContent = content
            local.theirs = nil
            return true
        }
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
