internal import Determinism
internal import NotesContract

/// The meaning of responses. Only a validated response changes anything: it has the marker and media type of a notes
/// server, the requested note, and no older revision than the known one.
extension SyncEngine {
    mutating func handleResponse(_ response: SyncResponse, to activity: Activity, at now: Instant) {
        guard response.isFromNotesServer else {
            // A gateway's own 502, 503 or 504 says nothing about the server behind it.
            if ![502, 503, 504].contains(response.status) {
                foreignServer = ForeignServerError(
                    status: response.status, contentType: response.header("Content-Type"))
            }
            return handleFailure(.outcomeUnknown("not a response of a notes server"), of: activity, at: now)
        }
        switch response.status {
        case 401, 403:
            restore(activity)
            return pause(because: "the server rejects the credentials (\(response.status))")
        case 408, 425, 429, 502, 503, 504:
            restore(activity)
            return recordFailure(retryAfter: response.retryAfter, at: now)
        default: break
        }
        switch activity {
        case .push(let sequence):
            guard let entry = outbox.first(where: { $0.sequence == sequence }) else { return }
            if response.status == 500 { return recordServerError(entry, at: now) }
            handlePush(response, entry, at: now)
        case .reconcile(let sequence):
            guard let entry = outbox.first(where: { $0.sequence == sequence }) else { return }
            handleReconciliation(response, entry, at: now)
        case .index: handleIndex(response, at: now)
        case .fetch(let uuid): handleFetch(response, uuid, at: now)
        }
    }

    mutating func handleFailure(_ failure: SyncFailure, of activity: Activity, at now: Instant) {
        var isOutcomeUnknown = true
        switch failure {
        case .notSent: isOutcomeUnknown = false
        case .outcomeUnknown: break
        case .notHTTP: foreignServer = ForeignServerError(status: nil, contentType: nil)
        }
        if isOutcomeUnknown, case .push(let sequence) = activity,
            let entry = outbox.first(where: { $0.sequence == sequence })
        {
            applyMutant(afterLostResponseTo: entry)
        }
        restore(activity)
        recordFailure(at: now)
    }

    /// Schedules a failed read again. An entry needs no new schedule, because it is still in the outbox.
    private mutating func restore(_ activity: Activity) {
        switch activity {
        case .push, .reconcile: break
        case .index: requestIndex()
        case .fetch(let uuid): toFetch.insert(uuid, at: 0)
        }
    }

    private mutating func recordServerError(_ entry: OutboxEntry, at now: Instant) {
        recordSuccess()
        let count = (serverErrors[entry.sequence]?.count ?? 0) + 1
        if count >= policy.serverErrorsMax {
            return setAside(entry, because: "the server failed to store it \(count) times (500)")
        }
        serverErrors[entry.sequence] = (count, now + retryDelay(ofEntryAfter: count))
    }

    /// Removes a note's entries from the outbox and records the reason; a further edit tries again.
    private mutating func setAside(_ entry: OutboxEntry, because reason: String) {
        guard var note = notes[entry.uuid] else { return }
        note.problem = reason
        store(note)
        for other in outbox where other.uuid == entry.uuid { drop(other) }
    }

    // MARK: Responses to changes

    private mutating func handlePush(_ response: SyncResponse, _ entry: OutboxEntry, at now: Instant) {
        switch (entry.kind, response.status) {
        case (.create, 200), (.create, 201), (.update, 200):
            guard let note = Note(json: response.body), note.uuid == entry.uuid,
                note.revision.number >= entry.base?.number ?? 1
            else {
                return handleFailure(
                    .outcomeUnknown("the response is not the note that was sent"),
                    of: .push(sequence: entry.sequence), at: now)
            }
            recordSuccess()
            acknowledge(entry, as: note)
        case (.delete, 204), (.delete, 404), (.delete, 410):
            recordSuccess()
            forget(entry.uuid)
        case (.create, 400), (.create, 409), (.update, 409), (.update, 412), (.delete, 409), (.delete, 412):
            // The newer revision may be the entry's own, stored by an attempt whose response was lost.
            recordSuccess()
            toReconcile.append(entry.sequence)
        case (.update, 404), (.update, 410):
            recordSuccess()
            recordConflict(.deleted, entry.uuid)
        case (_, 500...599):
            recordFailure(at: now)
        default:
            recordSuccess()
            setAside(entry, because: "the server rejects it (\(response.status))")
        }
    }

    /// Removes an entry that the server has stored, and updates the note's base.
    private mutating func acknowledge(_ entry: OutboxEntry, as note: Note) {
        drop(entry)
        guard var local = notes[entry.uuid] else { return }
        local.base = note.revision
        local.baseContent = LocalNote.Content(note)
        if local.edits == entry.edits { local.mine = LocalNote.Content(note) }
        store(local)
    }

    private mutating func handleReconciliation(_ response: SyncResponse, _ entry: OutboxEntry, at now: Instant) {
        switch response.status {
        case 200:
            guard let note = Note(json: response.body), note.uuid == entry.uuid else {
                return handleFailure(
                    .outcomeUnknown("the response is not the requested note"),
                    of: .reconcile(sequence: entry.sequence), at: now)
            }
            recordSuccess()
            toReconcile.removeAll { $0 == entry.sequence }
            let theirs = LocalNote.Content(note)
            if entry.kind != .delete, theirs.title == entry.draft.title, theirs.text == entry.draft.text {
                acknowledge(entry, as: note)  // stored by an earlier attempt
            } else if note.revision == entry.base {
                recordFailure(at: now)  // the base is current although the server called it stale
            } else if mutant == .overwritesOnConflict {
                overwrite(entry, from: note)
            } else {
                recordConflict(LocalNote.Theirs(revision: note.revision, content: theirs), entry.uuid)
            }
        case 404, 410:
            recordSuccess()
            toReconcile.removeAll { $0 == entry.sequence }
            switch entry.kind {
            case .create: setAside(entry, because: "the server rejects it")
            case .update: recordConflict(.deleted, entry.uuid)
            case .delete: forget(entry.uuid)
            }
        default: recordFailure(at: now)
        }
    }

    /// Records that the server has a change by another client: a conflict, unless both sides are equal.
    private mutating func recordConflict(_ theirs: LocalNote.Theirs, _ uuid: String) {
        guard var local = notes[uuid] else { return }
        for entry in outbox where entry.uuid == uuid { drop(entry) }
        if local.isDeleted && theirs.revision == nil { return forget(uuid) }
        if let content = theirs.content, !local.isDeleted, content.hasSameContent(as: local.mine) {
            local.base = theirs.revision
            local.baseContent = content
            local.mine = content
            local.theirs = nil
        } else {
            local.theirs = theirs
        }
        store(local)
    }

    // MARK: Responses to reads

    private mutating func handleIndex(_ response: SyncResponse, at now: Instant) {
        guard response.status == 200, let index = IndexEntry.index(json: response.body) else {
            // An incomplete or foreign index deletes nothing.
            return handleFailure(.outcomeUnknown("the response is not an index"), of: .index, at: now)
        }
        recordSuccess()
        recordIndexFetch(at: now)
        var listed: Set<String> = []
        for entry in index {
            listed.insert(entry.uuid)
            let local = notes[entry.uuid]
            if entry.isDeleted {
                if let local { recordAbsence(of: local) }
            } else if let local {
                let known = local.theirs?.revision ?? local.base
                let isNewer = entry.revision != known && entry.revision.number >= known?.number ?? 0
                if isNewer && !hasEntry(entry.uuid) && local.problem == nil { fetch(entry.uuid) }
            } else {
                fetch(entry.uuid)
            }
        }
        for uuid in notes.keys.sorted() where !listed.contains(uuid) {
            if let local = notes[uuid], local.base != nil { recordAbsence(of: local) }
        }
    }

    /// Records that the server no longer has a note: an unchanged note is deleted, a conflict becomes one with a
    /// deletion.
    private mutating func recordAbsence(of local: LocalNote) {
        if local.theirs != nil {
            if local.theirs?.revision != nil { recordConflict(.deleted, local.uuid) }
        } else if !hasEntry(local.uuid) && local.problem == nil {
            forget(local.uuid)
        }
    }

    private mutating func fetch(_ uuid: String) {
        if !toFetch.contains(uuid) { toFetch.append(uuid) }
    }

    private mutating func handleFetch(_ response: SyncResponse, _ uuid: String, at now: Instant) {
        switch response.status {
        case 200:
            recordSuccess()
            // An unreadable note does not block others; the next index fetch retries it.
            guard let note = Note(json: response.body), note.uuid == uuid else { return }
            guard let local = notes[uuid] else { return store(LocalNote(note)) }
            if local.theirs != nil {
                recordConflict(LocalNote.Theirs(revision: note.revision, content: LocalNote.Content(note)), uuid)
            } else if !hasEntry(uuid), local.problem == nil, note.revision.number >= local.base?.number ?? 0 {
                var fresh = LocalNote(note)
                fresh.edits = local.edits
                store(fresh)
            }
        case 404, 410:
            recordSuccess()
            if let local = notes[uuid] { recordAbsence(of: local) }
        default:
            toFetch.insert(uuid, at: 0)
            recordFailure(at: now)
        }
    }

    // MARK: Mutants

    private mutating func applyMutant(afterLostResponseTo entry: OutboxEntry) {
        switch mutant {
        case .dropsOnLostResponse: drop(entry)
        case .postsAgainUnderNewID where entry.kind == .create:
            guard var note = notes[entry.uuid] else { return }
            forget(entry.uuid)
            note.uuid = makeUUID()
            enqueue(.create, note)
            store(note)
        default: break
        }
    }

    private mutating func overwrite(_ entry: OutboxEntry, from note: Note) {
        guard var local = notes[entry.uuid] else { return }
        drop(entry)
        local.base = note.revision
        local.baseContent = LocalNote.Content(note)
        enqueue(entry.kind, local)
        store(local)
    }
}
