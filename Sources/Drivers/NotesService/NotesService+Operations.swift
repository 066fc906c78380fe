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
        _ body: (StoreTransaction) throws -> Response
    ) throws -> Response {
        let key = contract.features.contains(.idempotencyKeys) ? request.idempotencyKey : nil
        if let key, !(1...Limits.keyBytesMax).contains(key.utf8.count) {
            throw HTTPProblem(
                .badRequest, "An Idempotency-Key has 1 to \(Limits.keyBytesMax) characters", key: "detail")
        }
        // The cleanup has a transaction of its own, because a rejected write rolls back.
        if cleanup.takeDue(at: uptimeNow()) { try change(removeExpired) }
        return try change(bytes: request.body.count) { transaction in
            guard let key, behavior.repetition != .executed else { return try body(transaction) }
            let digest = Int64(bitPattern: IdempotencyFingerprint.of(request, fields))
            if let stored = try operation(transaction, user, key) {
                let isSame = stored.digest == digest || stored.digest == Int64(bitPattern: request.digestOfBytes)
                guard isSame || behavior.repetition == .trusted else {
                    throw HTTPProblem.keyReused
                }
                var response = Response(.init(code: stored.status), .text(stored.body))
                response[.eTag] = stored.entityTag
                return response
            }
            let response = try body(transaction)
            // A repeated creation finds the note, so it gets 200.
            let status = response.head.status == .created ? 200 : response.head.status.code
            let operation = try NotesMemory.Operation(
                digest: digest, status: status, entityTag: response[.eTag], body: response.body.text, made: uptimeNow())
            switch transaction {
            case .memory(let memory): memory.insert(operation, owner: user, key: key)
            case .sqlite(let database):
                try database.cachedStatement(sql: "INSERT INTO operation VALUES (?, ?, ?, ?, ?, ?, ?)").execute(
                    arguments: [user, key, digest, status, operation.entityTag, operation.body, operation.made])
            }
            return response
        }
    }

    /// Returns the stored result of an operation; `nil` if there is none.
    private func operation(
        _ transaction: StoreTransaction, _ user: String, _ key: String
    ) throws -> NotesMemory.Operation? {
        switch transaction {
        case .memory(let memory): return memory.operation(owner: user, key: key)
        case .sqlite(let database):
            let row = try Row.fetchOne(
                database.cachedStatement(sql: "SELECT * FROM operation WHERE owner = ? AND key = ?"),
                arguments: [user, key])
            return row.map {
                NotesMemory.Operation(
                    digest: $0["digest"], status: $0["status"], entityTag: $0["etag"], body: $0["body"],
                    made: $0["made"])
            }
        }
    }

    /// Removes expired tombstones, operations, tokens and incomplete uploads.
    func removeExpired(_ transaction: StoreTransaction) throws {
        let limit = uptimeNow() - limits.retentionSeconds * 1000
        if contract.tombstones != nil { try StoredNote.prune(transaction, before: limit) }
        switch transaction {
        case .memory(let memory):
            memory.removeOperations(before: limit)
            memory.removeTokens(expiredAt: tokenTime())
        case .sqlite(let database):
            try database.cachedStatement(sql: "DELETE FROM operation WHERE made < ?").execute(arguments: [limit])
            try database.cachedStatement(sql: "DELETE FROM token WHERE expires < ?").execute(
                arguments: [tokenTime()])
        }
        try StoredAttachment.discardIncomplete(transaction, before: limit)
        try StoredAttachment.removeDiscarded(transaction)
        try NotesStore.save(databaseTime(), transaction)
    }
}
