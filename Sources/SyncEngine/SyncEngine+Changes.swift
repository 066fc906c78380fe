public import Determinism

/// Changes by the user.
extension SyncEngine {
    /// Creates a note and returns its identifier.
    ///
    /// - Parameter uuid: The identifier; a random one by default.
    public mutating func create(
        title: String?, text: String?, date: String, uuid: String? = nil, at now: Instant
    ) -> String {
        let note = LocalNote(
            uuid: uuid ?? makeUUID(), mine: LocalNote.Content(title: title, text: text, date: date), edits: 1)
        enqueue(.create, note)
        store(note)
        sendNext(at: now)
        return note.uuid
    }

    /// Changes a note's title or text; `nil` leaves it unchanged.
    public mutating func edit(
        _ uuid: String, title: String?, text: String?, date: String, at now: Instant
    ) throws(NoteError) {
        guard var note = notes[uuid], !note.isDeleted else { throw .unknownNote }
        note.mine = LocalNote.Content(title: title ?? note.mine.title, text: text ?? note.mine.text, date: date)
        note.edits += 1
        note.problem = nil
        // A note in conflict sends nothing until the conflict is resolved.
        if note.theirs == nil { enqueue(note.base == nil && !hasEntry(uuid) ? .create : .update, note) }
        store(note)
        sendNext(at: now)
    }

    /// Deletes a note locally at once, and on the server as soon as possible.
    public mutating func delete(_ uuid: String, at now: Instant) throws(NoteError) {
        // A deletion that the server rejected may be repeated.
        guard var note = notes[uuid], !note.isDeleted || note.problem != nil else { throw .unknownNote }
        note.edits += 1
        note.isDeleted = true
        note.problem = nil
        for entry in outbox where entry.uuid == uuid && entry.attempts == 0 { drop(entry) }
        if note.base == nil && !hasEntry(uuid) {
            forget(uuid)  // the server has never had the note
        } else {
            if note.theirs == nil { enqueue(.delete, note) }
            store(note)
        }
        sendNext(at: now)
    }

    /// Resolves a conflict and returns the note's identifier, which is new if the server's side was a deletion.
    @discardableResult
    public mutating func resolve(
        _ uuid: String, _ resolution: Resolution, date: String, at now: Instant
    ) throws(NoteError) -> String {
        guard var note = notes[uuid] else { throw .unknownNote }
        guard let theirs = note.theirs else { throw .notInConflict }
        note.theirs = nil
        note.edits += 1
        note.base = theirs.revision
        note.baseContent = theirs.content
        switch resolution {
        case .theirs:
            if let content = theirs.content {
                note.mine = content
                note.isDeleted = false
                store(note)
            } else {
                forget(uuid)
            }
        case .mine where note.isDeleted:
            if theirs.revision == nil {
                forget(uuid)
            } else {
                enqueue(.delete, note)
                store(note)
            }
        case .mine, .write:
            if case .write(let title, let text) = resolution {
                note.mine = LocalNote.Content(
                    title: title ?? note.mine.title, text: text ?? note.mine.text, date: date)
            }
            note.isDeleted = false
            if theirs.revision == nil {
                // The identifier of a deleted note is never used again.
                forget(uuid)
                note.uuid = makeUUID()
            }
            enqueue(theirs.revision == nil ? .create : .update, note)
            store(note)
        }
        sendNext(at: now)
        return note.uuid
    }
}
