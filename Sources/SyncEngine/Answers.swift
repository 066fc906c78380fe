internal import LinkModel
internal import NotesContract

/// What answers mean. Only a validated one changes anything: the marker of a notes server, its media type, the note that
/// was asked for, and no lower revision than is known.
extension SyncEngine {
    mutating func takeAnswer(_ answer: SyncAnswer, to activity: Activity, _ output: inout Output, at now: Instant) {
        guard answer.isFromNotesServer else {
            // A captive portal, a proxy's error page: as good as no answer.
            return takeFailure(.unknown("not a notes server's answer"), of: activity, &output, at: now)
        }
        switch answer.status {
        case 401, 403: return takeRefusedCredentials(activity)
        case 408, 425, 429, 502, 503, 504:
            restore(activity)
            return noteFailure(retryAfter: answer.retryAfter, at: now)
        default: break
        }
        switch activity {
        case .push(let sequence):
            guard let entry = outbox.first(where: { $0.sequence == sequence }) else { return }
            if answer.status == 500 { return takeServerError(entry, &output, at: now) }
            takePushed(answer, entry, &output, at: now)
        case .reconcile(let sequence):
            guard let entry = outbox.first(where: { $0.sequence == sequence }) else { return }
            takeReconciled(answer, entry, &output, at: now)
        case .index: takeIndex(answer, &output, at: now)
        case .fetch(let uuid): takeFetched(answer, uuid, &output, at: now)
        }
    }

    mutating func takeFailure(
        _ failure: SyncFailure, of activity: Activity, _ output: inout Output, at now: Instant
    ) {
        if case .unknown = failure, case .push(let sequence) = activity,
            let entry = outbox.first(where: { $0.sequence == sequence })
        {
            mutate(afterLostAnswerTo: entry, &output)
        }
        restore(activity)
        noteFailure(at: now)
    }

    /// What was being looked up still has to be.
    private mutating func restore(_ activity: Activity) {
        switch activity {
        case .push, .reconcile: break  // still in the queue
        case .index: lookAgain()
        case .fetch(let uuid): toFetch.insert(uuid, at: 0)
        }
    }

    private mutating func takeRefusedCredentials(_ activity: Activity) {
        restore(activity)
        pause(because: "the server refuses the credentials")
    }

    private mutating func takeServerError(_ entry: OutboxEntry, _ output: inout Output, at now: Instant) {
        noteSuccess()
        let count = (serverErrors[entry.sequence]?.count ?? 0) + 1
        if count >= policy.serverErrorsMax {
            return park(entry, because: "the server fails to store it (500)", &output)
        }
        serverErrors[entry.sequence] = (count, now + pauseForEntry(count))
    }

    private mutating func park(_ entry: OutboxEntry, because reason: String, _ output: inout Output) {
        guard var note = notes[entry.uuid] else { return }
        note.problem = reason
        put(note, &output)
        for other in outbox where other.uuid == entry.uuid { drop(other, &output) }
    }

    // MARK: Answers to what was pushed

    private mutating func takePushed(
        _ answer: SyncAnswer, _ entry: OutboxEntry, _ output: inout Output, at now: Instant
    ) {
        switch (entry.kind, answer.status) {
        case (.create, 200), (.create, 201), (.update, 200):
            guard let note = Note(json: answer.body), note.uuid == entry.uuid,
                note.revision.number >= entry.base?.number ?? 1
            else {
                return takeFailure(
                    .unknown("not the note that was sent"), of: .push(sequence: entry.sequence), &output, at: now)
            }
            noteSuccess()
            settle(entry, as: note, &output)
        case (.delete, 204), (.delete, 404), (.delete, 410):
            noteSuccess()
            forget(entry.uuid, &output)
        case (.create, 400), (.create, 409), (.update, 409), (.update, 412), (.delete, 409), (.delete, 412):
            // Whose revision is it? Ours, perhaps, if an answer was lost.
            noteSuccess()
            toReconcile.append(entry.sequence)
        case (.update, 404), (.update, 410):
            noteSuccess()
            meet(LocalNote.Theirs(revision: nil, content: nil), entry.uuid, &output)
        case (_, 500...599):
            noteFailure(at: now)
        default:
            noteSuccess()
            park(entry, because: "the server refuses it (\(answer.status))", &output)
        }
    }

    /// The server has what was sent.
    private mutating func settle(_ entry: OutboxEntry, as note: Note, _ output: inout Output) {
        drop(entry, &output)
        guard var local = notes[entry.uuid] else { return }
        local.base = note.revision
        local.baseContent = LocalNote.Content(note)
        if local.edits == entry.edits { local.mine = LocalNote.Content(note) }
        put(local, &output)
    }

    private mutating func takeReconciled(
        _ answer: SyncAnswer, _ entry: OutboxEntry, _ output: inout Output, at now: Instant
    ) {
        switch answer.status {
        case 200:
            guard let note = Note(json: answer.body), note.uuid == entry.uuid else {
                return takeFailure(.unknown("not the note"), of: .reconcile(sequence: entry.sequence), &output, at: now)
            }
            noteSuccess()
            toReconcile.removeAll { $0 == entry.sequence }
            let theirs = LocalNote.Content(note)
            if entry.kind != .delete, theirs.title == entry.draft.title, theirs.text == entry.draft.text {
                settle(entry, as: note, &output)  // our own echo
            } else if note.revision == entry.base {
                noteFailure(at: now)  // stale and current at once; ask again later
            } else if mutant == .overwritesOnConflict {
                overwrite(entry, from: note, &output)
            } else {
                meet(LocalNote.Theirs(revision: note.revision, content: theirs), entry.uuid, &output)
            }
        case 404, 410:
            noteSuccess()
            toReconcile.removeAll { $0 == entry.sequence }
            switch entry.kind {
            case .create: park(entry, because: "the server refuses it", &output)
            case .update: meet(LocalNote.Theirs(revision: nil, content: nil), entry.uuid, &output)
            case .delete: forget(entry.uuid, &output)
            }
        default: noteFailure(at: now)
        }
    }

    /// Somebody else has written too: a conflict, unless both say the same.
    private mutating func meet(_ theirs: LocalNote.Theirs, _ uuid: String, _ output: inout Output) {
        guard var local = notes[uuid] else { return }
        for entry in outbox where entry.uuid == uuid { drop(entry, &output) }
        if local.isDeleted && theirs.revision == nil { return forget(uuid, &output) }
        if let content = theirs.content, !local.isDeleted, content.saysTheSame(as: local.mine) {
            local.base = theirs.revision
            local.baseContent = content
            local.mine = content
            local.theirs = nil
        } else {
            local.theirs = theirs
        }
        put(local, &output)
    }

    // MARK: Looking at the server

    private mutating func takeIndex(_ answer: SyncAnswer, _ output: inout Output, at now: Instant) {
        guard answer.status == 200, let index = IndexEntry.index(json: answer.body) else {
            // An incomplete or foreign index deletes nothing.
            return takeFailure(.unknown("not an index"), of: .index, &output, at: now)
        }
        noteSuccess()
        noteLook(at: now)
        var listed: Set<String> = []
        for entry in index {
            listed.insert(entry.uuid)
            let local = notes[entry.uuid]
            if entry.isDeleted {
                if let local { takeAbsence(of: local, &output) }
            } else if let local {
                let known = local.theirs?.revision ?? local.base
                let isNewer = entry.revision != known && entry.revision.number >= known?.number ?? 0
                if isNewer && !hasEntry(entry.uuid) && local.problem == nil { fetch(entry.uuid) }
            } else {
                fetch(entry.uuid)
            }
        }
        for uuid in notes.keys.sorted() where !listed.contains(uuid) {
            if let local = notes[uuid], local.base != nil { takeAbsence(of: local, &output) }
        }
    }

    /// The server does not have it any more: a clean note goes, a changed one is the user's to decide.
    private mutating func takeAbsence(of local: LocalNote, _ output: inout Output) {
        if local.theirs != nil {
            if local.theirs?.revision != nil {
                meet(LocalNote.Theirs(revision: nil, content: nil), local.uuid, &output)
            }
        } else if !hasEntry(local.uuid) && local.problem == nil {
            forget(local.uuid, &output)
        }
    }

    private mutating func fetch(_ uuid: String) {
        if !toFetch.contains(uuid) { toFetch.append(uuid) }
    }

    private mutating func takeFetched(
        _ answer: SyncAnswer, _ uuid: String, _ output: inout Output, at now: Instant
    ) {
        switch answer.status {
        case 200:
            noteSuccess()
            // A record that cannot be read holds up nothing but itself; the next look at the index tries again.
            guard let note = Note(json: answer.body), note.uuid == uuid else { return }
            guard let local = notes[uuid] else { return put(LocalNote(note), &output) }
            if local.theirs != nil {
                meet(
                    LocalNote.Theirs(revision: note.revision, content: LocalNote.Content(note)), uuid, &output)
            } else if !hasEntry(uuid), local.problem == nil, note.revision.number >= local.base?.number ?? 0 {
                var fresh = LocalNote(note)
                fresh.edits = local.edits
                put(fresh, &output)
            }
        case 404, 410:
            noteSuccess()
            if let local = notes[uuid] { takeAbsence(of: local, &output) }
        default:
            toFetch.insert(uuid, at: 0)
            noteFailure(at: now)
        }
    }

    // MARK: Deliberate defects

    private mutating func mutate(afterLostAnswerTo entry: OutboxEntry, _ output: inout Output) {
        switch mutant {
        case .dropsOnLostAnswer: drop(entry, &output)
        case .postsAgainUnderNewID where entry.kind == .create:
            guard var note = notes[entry.uuid] else { return }
            forget(entry.uuid, &output)
            note.uuid = makeUUID()
            queue(.create, note, &output)
            put(note, &output)
        default: break
        }
    }

    private mutating func overwrite(_ entry: OutboxEntry, from note: Note, _ output: inout Output) {
        guard var local = notes[entry.uuid] else { return }
        drop(entry, &output)
        local.base = note.revision
        local.baseContent = LocalNote.Content(note)
        queue(entry.kind, local, &output)
        put(local, &output)
    }
}

extension SyncAnswer {
    /// Whether a notes server has given it, and not whoever sits between.
    fileprivate var isFromNotesServer: Bool {
        guard header(NotesHTTP.markerName) == NotesHTTP.markerValue else { return false }
        if status == 204 || status == 304 { return true }
        return header("Content-Type")?.lowercased().hasPrefix("application/json") ?? false
    }

    /// How long the server asks to be left alone, up to an hour.
    fileprivate var retryAfter: Nanoseconds {
        guard let text = header("Retry-After"), let seconds = Int64(text), seconds > 0 else { return .zero }
        return .seconds(min(seconds, 3600))
    }
}
