internal import GRDB
internal import HTTPTypes
internal import JSON
internal import NotesContract

/// `/api/notes-uuids/`: which version of each note there is.
extension NotesService {
    func answerIndex(_ call: Call, _ user: String) throws -> Answer {
        guard dialect.features.contains(.cursor) else {
            return try list(call, user, texts: false) { database in
                let rows = try StoredNote.rows(
                    database, owner: user, dialect.reading.isByDate ? .byDate : .bySequence)
                return (rows, { ",\($0.entry.json)" })
            }
        }
        if call.query("since") != nil || call.query("limit") != nil { return try answerSince(call, user) }
        var cursor = ""
        var answer = try list(call, user, texts: false) { database in
            cursor = try Cursor(
                sequence: StoredNote.lastSequence(database, owner: user),
                pruned: StoredNote.prunedSequence(database, owner: user)
            ).text(database)
            let rows = try StoredNote.rows(database, owner: user, .bySequence, deletedToo: true)
            return (rows, { ",\($0.entry.json)" })
        }
        if !cursor.isEmpty { answer[.cursor] = cursor }
        answer[.retention] = String(limits.retentionSeconds)
        return answer
    }

    /// What has been written since a cursor, a page of it. A note that is written meanwhile comes again later.
    private func answerSince(_ call: Call, _ user: String) throws -> Answer {
        let limit = try limit(call)
        return try store.read { database in
            var cursor = try self.cursor(call.query("since") ?? "", user, database)
            let rows = try StoredNote.rows(
                database, owner: user, .bySequence, deletedToo: true, after: cursor.sequence, limit: limit + 1)
            let find = try StoredNote.finder(database, owner: user, texts: false)
            let page = try rows.prefix(limit).compactMap { try find($0) }
            var answer = Answer.json(.ok, JSONText.array(page.map(\.entry.json)))
            let isLast = rows.count <= limit
            cursor.sequence =
                try isLast ? StoredNote.lastSequence(database, owner: user) : page.last?.sequence ?? cursor.sequence
            let text = try cursor.text(database)
            answer[.cursor] = text
            answer[.retention] = String(limits.retentionSeconds)
            if !isLast { answer[.link] = "<\(NotesHTTP.indexPath)?since=\(text)&limit=\(limit)>; rel=\"next\"" }
            return answer
        }
    }

    private func limit(_ call: Call) throws -> Int {
        guard let text = call.query("limit") else { return Limits.pageEntriesMax }
        guard let limit = Int(text), (1...Limits.pageEntriesMax).contains(limit) else {
            throw Refusal(.badRequest, "'limit' is a number from 1 to \(Limits.pageEntriesMax)", key: "detail")
        }
        return limit
    }

    /// The place a cursor names; an empty one is the beginning.
    private func cursor(_ text: String, _ user: String, _ database: Database) throws -> Cursor {
        let pruned = try StoredNote.prunedSequence(database, owner: user)
        let beginning = Cursor(sequence: 0, pruned: pruned)
        if text.isEmpty { return beginning }
        guard let (cursor, epoch) = Cursor.read(text) else {
            throw Refusal(.badRequest, "'since' is not a cursor this server has given", key: "detail")
        }
        // From another history, or from before a tombstone was forgotten: only the whole index will do.
        guard try epoch == NotesStore.setting("epoch", database),
            try cursor.sequence <= StoredNote.lastSequence(database, owner: user),
            cursor.sequence == 0 || pruned <= max(cursor.sequence, cursor.pruned)
        else {
            throw Refusal(
                .gone,
                "Something deleted after this cursor is forgotten, or a snapshot was restored; ask without 'since'",
                key: "detail")
        }
        return cursor.sequence == 0 ? beginning : cursor
    }
}

/// A place in the order of a user's writes.
private struct Cursor {
    var sequence: Int
    /// What had been forgotten when its holder began from nothing: that, they never had.
    let pruned: Int

    func text(_ database: Database) throws -> String {
        try "\(NotesStore.setting("epoch", database)).\(sequence).\(pruned)"
    }

    static func read(_ text: String) -> (Cursor, epoch: Substring)? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[0].isEmpty, let sequence = Int(parts[1]), let pruned = Int(parts[2]),
            sequence >= 0,
            pruned >= 0
        else { return nil }
        return (Cursor(sequence: sequence, pruned: pruned), parts[0])
    }
}
