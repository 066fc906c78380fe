internal import GRDB
internal import HTTPTypes
internal import NotesContract

/// Writes, with `Idempotency-Key`.
extension NotesService {
    /// Executes a write and stores its result under the request's `Idempotency-Key`, in one transaction. A repeated
    /// operation gets the stored result.
    ///
    /// - Parameter fields: The fields of the body; `nil` if a body has no semantics for the method.
    func write(
        _ request: APIRequest, _ user: String, _ fields: Result<NoteFields, any Error>? = nil,
        _ body: (Database) throws -> Response
    ) throws -> Response {
        let key = contract.features.contains(.idempotencyKeys) ? request.idempotencyKey : nil
        if let key, !(1...Limits.keyBytesMax).contains(key.utf8.count) {
            throw HTTPProblem(
                .badRequest, "An Idempotency-Key has 1 to \(Limits.keyBytesMax) characters", key: "detail")
        }
        // The cleanup has a transaction of its own, because a rejected write rolls back.
        if cleanup.takeDue(at: uptimeNow()) { try change(removeExpired) }
        return try change(bytes: request.body.count) { database in
            guard let key, !mutants.contains(.replayNotIdempotent) else { return try body(database) }
            let digest = Int64(bitPattern: IdempotencyFingerprint.of(request, fields))
            let row = try Row.fetchOne(
                database.cachedStatement(sql: "SELECT * FROM operation WHERE owner = ? AND key = ?"),
                arguments: [user, key])
            if let row {
                let isSame = [digest, Int64(bitPattern: request.digestOfBytes)].contains(row["digest"] as Int64)
                guard isSame || mutants.contains(.keyReusedGetsFirstResult) else {
                    throw HTTPProblem(
                        .unprocessableContent, "This Idempotency-Key was used for another request", key: "detail")
                }
                var response = Response(.init(code: row["status"]), .text(row["body"]))
                response[.eTag] = row["etag"]
                return response
            }
            let response = try body(database)
            // A repeated creation finds the note, so it gets 200.
            let status = response.head.status == .created ? 200 : response.head.status.code
            try database.cachedStatement(sql: "INSERT INTO operation VALUES (?, ?, ?, ?, ?, ?, ?)").execute(
                arguments: [user, key, digest, status, response[.eTag], response.body.text, uptimeNow()])
            return response
        }
    }

    /// Removes expired tombstones, operations, tokens and incomplete uploads.
    func removeExpired(_ database: Database) throws {
        let limit = uptimeNow() - limits.retentionSeconds * 1000
        if contract.tombstones != nil { try StoredNote.prune(database, before: limit) }
        try database.cachedStatement(sql: "DELETE FROM operation WHERE made < ?").execute(arguments: [limit])
        try database.cachedStatement(sql: "DELETE FROM token WHERE expires < ?").execute(arguments: [tokenTime()])
        try StoredAttachment.discardIncomplete(database, before: limit)
        try StoredAttachment.removeDiscarded(database)
        try NotesStore.save(databaseTime(), database)
    }
}
