internal import HTTPTypes
internal import NotesContract
internal import Wire

/// `/api/notes-uuids/`: the index, the current revision of each note.
extension NotesService {
    func handleIndex(_ request: APIRequest, _ user: String) throws -> Response {
        guard contract.features.contains(.cursors) else {
            return try list(request, StoredNote.Selection(owner: user, order: listOrder), Self.writeEntry).response
        }
        if isPaged(request) { return try handleChanges(request, user, NotesHTTP.indexPath, Self.writeEntry) }
        var (response, position) = try list(
            request, StoredNote.Selection(owner: user, includesDeleted: true), Self.writeEntry)
        if response.head.status == .ok {
            response[.cursor] = Cursor(sequence: position.sequence, pruned: position.pruned).text(position)
        }
        response[.retention] = String(limits.retentionSeconds)
        return response
    }

    /// Appends the same text as ``IndexEntry/json``.
    static let writeEntry: ItemWriter = { row, bytes in
        bytes.append(#"{"uuid":"#)
        row.append(.uuid, to: &bytes)
        bytes.append(#","revision":"#)
        row.appendRevision(to: &bytes)
        if row.isDeleted { bytes.append(#","deleted":true"#) }
        if row.isPinned { bytes.append(#","pinned":true"#) }
        bytes.append("}")
    }

    /// Whether a request of the index, or of the list of notes, wants a page of what was written since a cursor.
    func isPaged(_ request: APIRequest) -> Bool {
        contract.features.contains(.cursors) && (request.query("since") != nil || request.query("limit") != nil)
    }

    /// Returns a page of the notes written since a cursor. A note written between two pages is listed again.
    ///
    /// A page ends with the entry that reaches ``Limits/pageBytesMax``, or with the requested number of entries.
    func handleChanges(
        _ request: APIRequest, _ user: String, _ path: String, _ write: ItemWriter
    ) throws -> Response {
        let limit = try limit(request)
        return try store.read { transaction in
            let position = try StoredNote.position(transaction, owner: user, epoch: store.epoch)
            var cursor = try self.cursor(request.query("since") ?? "", position)
            let selection = StoredNote.Selection(
                owner: user, includesDeleted: true, afterSequence: cursor.sequence, limit: limit + 1)
            var bytes = JSONBuffer()
            bytes.append("[")
            var count = 0
            var isLast = true
            try StoredNote.forEachRow(transaction, selection) { row in
                isLast = count < limit && bytes.bytes.count < Limits.pageBytesMax
                guard isLast else { return false }
                count += 1
                if count > 1 { bytes.append(",") }
                write(row, &bytes)
                cursor.sequence = row.sequence
                return true
            }
            bytes.append("]")
            var response = Response.json(.ok, bytes.text)
            if isLast { cursor.sequence = position.sequence }
            let text = cursor.text(position)
            response[.cursor] = text
            response[.retention] = String(limits.retentionSeconds)
            if !isLast { response[.link] = "<\(path)?since=\(text)&limit=\(limit)>; rel=\"next\"" }
            return response
        }
    }

    private func limit(_ request: APIRequest) throws -> Int {
        guard let text = request.query("limit") else { return Limits.pageEntriesMax }
        guard let limit = Int(text), (1...Limits.pageEntriesMax).contains(limit) else {
            throw HTTPProblem(.badRequest, "'limit' must be a number from 1 to \(Limits.pageEntriesMax)", key: "detail")
        }
        return limit
    }

    /// Returns the cursor of a text; the empty text is the beginning. Throws 410 if the changes since it are no longer
    /// known.
    private func cursor(_ text: String, _ position: StoredNote.Position) throws -> Cursor {
        let beginning = Cursor(sequence: 0, pruned: position.pruned)
        if text.isEmpty { return beginning }
        guard let (cursor, epoch) = Cursor.parse(text) else {
            throw HTTPProblem(.badRequest, "'since' is not a cursor of this server", key: "detail")
        }
        // A restored snapshot started a new history, or a tombstone after the cursor was pruned.
        guard epoch == position.epoch, cursor.sequence <= position.sequence,
            cursor.sequence == 0 || position.pruned <= max(cursor.sequence, cursor.pruned)
        else {
            throw HTTPProblem(
                .gone,
                "Deletions after this cursor have expired, or a snapshot was restored; request the index without 'since'",
                key: "detail")
        }
        return cursor.sequence == 0 ? beginning : cursor
    }
}

/// A position in the order of a user's writes.
private struct Cursor {
    var sequence: Int
    /// The ``StoredNote/Position/pruned`` sequence at the client's first request. The notes whose tombstones had been
    /// pruned by then were never sent to the client.
    let pruned: Int

    func text(_ position: StoredNote.Position) -> String { "\(position.epoch).\(sequence).\(pruned)" }

    static func parse(_ text: String) -> (Cursor, epoch: Substring)? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[0].isEmpty, let sequence = Int(parts[1]), let pruned = Int(parts[2]),
            sequence >= 0,
            pruned >= 0
        else { return nil }
        return (Cursor(sequence: sequence, pruned: pruned), parts[0])
    }
}
