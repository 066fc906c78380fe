internal import Determinism
internal import NotesContract
internal import Wire

/// Writes of clients: records in groups by submission period, and photos.
extension FieldAccount {
    // MARK: Updates

    /// What becomes of a record of a request.
    private enum Outcome {
        case stored
        case rejected(String)
    }

    mutating func updates(_ request: FieldRequest) -> FieldResult {
        guard let groups = JSONText.parse(request.body)?.object?["groups"]?.array, !groups.isEmpty else {
            return FieldResult(400, error: "expected groups of records")
        }
        var records: [(group: JSONValue, kind: String, record: JSONValue)] = []
        for group in groups {
            for kind in ["answers", "notes", "photos"] {
                records += group[kind].array.map { (group, kind, $0) }
            }
        }
        guard records.count <= FieldService.Limits.batchMax else {
            return FieldResult(413, error: "at most \(FieldService.Limits.batchMax) records")
        }
        var results: [JSONValue] = []
        var revisions = 0
        for (group, kind, record) in records {
            guard let key = record["key"].text, Self.isKey(key) else {
                return FieldResult(400, error: "a record has no valid key")
            }
            let outcome: Outcome =
                switch kind {
                case "answers": storeAnswer(key, record, group, at: request.milliseconds)
                case "notes": storeNote(key, record)
                default: storePhoto(key, record)
                }
            switch outcome {
            case .stored:
                results.append(["key": .text(key), "status": "stored"])
                revisions += answers[ByteKey(key)]?.revision ?? 1
            case .rejected(let reason):
                results.append(["key": .text(key), "status": "rejected", "reason": .text(reason)])
            }
        }
        // The same for a repetition of the request, which has no effect.
        let digest = FNV1a.digest(JSONValue.array(results).json.utf8)
        return FieldResult(200, ["cursor": .integer(Int64(cursor)), "results": .array(results)])
            .with("ETag", "\"\(revisions)-\(String(digest, radix: 16))\"")
    }

    private static func integer(_ json: JSONValue) -> Int? {
        if case .integer(let number) = json, number >= 0 { Int(number) } else { nil }
    }

    private static func isText(_ text: String, _ bytesMax: Int) -> Bool { (1...bytesMax).contains(text.utf8.count) }

    /// Stores an answer if it belongs to the period of its group, and the period is not over for too long by the server's
    /// clock.
    private mutating func storeAnswer(
        _ key: String, _ record: JSONValue, _ group: JSONValue, at now: Int
    ) -> Outcome {
        guard let start = Self.integer(group["start"]), start % periodLength == 0,
            Self.integer(group["end"]) == start.addingReportingOverflow(periodLength).partialValue,
            let time = Self.integer(record["at"]), time >= start, time - start < periodLength
        else {
            return .rejected("not in the period of its group")
        }
        guard let question = record["question"].text, let asked = questions[ByteKey(question)] else {
            return .rejected("unknown question")
        }
        guard let text = record["text"].text, Self.isText(text, FieldService.Limits.textBytesMax),
            let edit = Self.integer(record["edit"])
        else { return .rejected("text of 1 to \(FieldService.Limits.textBytesMax) bytes expected") }
        let known = answers[ByteKey(key)]
        if let known {
            guard known.question.hasSameBytes(as: question), known.start == start else {
                return .rejected("the key is in use")
            }
            // A repetition, or an older text that was overtaken.
            if edit <= known.edit { return .stored }
        } else if order.contains(where: { $0.key.hasSameBytes(as: key) }) {
            return .rejected("the key is in use")
        }
        guard asked.choices.isEmpty || asked.choices.contains(where: { $0.hasSameBytes(as: text) }) else {
            return .rejected("expected \(asked.choices.joined(separator: " or "))")
        }
        guard now - start - periodLength <= grace else { return .rejected("late") }
        if known == nil {
            guard recordCount < FieldService.Limits.recordsMax else { return .rejected("too many records") }
            order.append((key, .answer))
        }
        answers[ByteKey(key)] = Answer(
            question: question, start: start, time: known?.time ?? time, edit: edit, text: text,
            revision: (known?.revision ?? 0) + 1)
        cursor += 1
        return .stored
    }

    private mutating func storeNote(_ key: String, _ record: JSONValue) -> Outcome {
        if notes.contains(ByteKey(key)) { return .stored }
        guard let issue = record["issue"].text, Self.isKey(issue), let time = Self.integer(record["at"]),
            let text = record["text"].text, text.utf8.count <= FieldService.Limits.textBytesMax
        else { return .rejected("text of at most \(FieldService.Limits.textBytesMax) bytes expected") }
        guard recordCount < FieldService.Limits.recordsMax else { return .rejected("too many records") }
        if issues[ByteKey(issue)] == nil {
            guard let title = record["title"].text, Self.isText(title, FieldService.Limits.titleBytesMax),
                !order.contains(where: { $0.key.hasSameBytes(as: issue) })
            else { return .rejected("unknown issue") }
            if let topic = record["topic"].text, !place(issue, in: topic) { return .rejected("unknown topic") }
            issues[ByteKey(issue)] = Issue(title: title)
            order.append((issue, .issue))
        }
        issues[ByteKey(issue)]?.notes.append(
            (key, Note(time: time, text: text, isResolving: record["resolves"] == .bool(true))))
        notes.insert(ByteKey(key))
        cursor += 1
        return .stored
    }

    private mutating func storePhoto(_ key: String, _ record: JSONValue) -> Outcome {
        if photos[ByteKey(key)] != nil { return .stored }
        guard let issue = record["issue"].text, issues[ByteKey(issue)] != nil else { return .rejected("unknown issue") }
        guard let title = record["title"].text, Self.isText(title, FieldService.Limits.titleBytesMax),
            let size = Self.integer(record["bytes"]), (1...FieldService.Limits.photoBytesMax).contains(size),
            let digest = record["digest"].text.flatMap({ AttachmentDigest(field: "sha-256=:\($0):") })
        else { return .rejected("title, bytes and digest expected") }
        guard recordCount < FieldService.Limits.recordsMax,
            photoBytes <= FieldService.Limits.photosBytesMax - size,
            !order.contains(where: { $0.key.hasSameBytes(as: key) })
        else { return .rejected("too many records") }
        photos[ByteKey(key)] = FieldPhoto(issue: issue, title: title, size: size, digest: digest)
        order.append((key, .photo))
        return .stored
    }

    // MARK: Photos

    mutating func photo(_ key: String, _ request: FieldRequest) -> FieldResult {
        guard let photo = photos[ByteKey(key)] else { return FieldResult(404, error: "unknown photo") }
        func state(_ result: FieldResult, _ photo: FieldPhoto) -> FieldResult {
            result.with("Upload-Offset", String(photo.bytes.count))
                .with("Upload-Complete", photo.isComplete ? "?1" : "?0")
        }
        switch request.method {
        case "HEAD": return state(FieldResult(204), photo)
        case "GET":
            return photo.isComplete
                ? state(FieldResult(200, ["key": .text(key), "bytes": .integer(Int64(photo.size))]), photo)
                : state(FieldResult(404, error: "the photo has not arrived"), photo)
        case "DELETE":
            guard !photo.isComplete else { return FieldResult(409, error: "the upload is complete") }
            photos[ByteKey(key)]?.bytes = []
            return FieldResult(204)
        case "PATCH": return append(key, photo, request, state)
        default: return notAllowed("GET, HEAD, PATCH, DELETE")
        }
    }

    private mutating func append(
        _ key: String, _ photo: FieldPhoto, _ request: FieldRequest,
        _ state: (FieldResult, FieldPhoto) -> FieldResult
    ) -> FieldResult {
        var photo = photo
        guard let offset = request.number("Upload-Offset"), let isLast = request.boolean("Upload-Complete") else {
            return FieldResult(400, error: "Upload-Offset and Upload-Complete expected")
        }
        guard !photo.isComplete, offset == photo.bytes.count else {
            return state(FieldResult(409, error: "the upload is at another offset"), photo)
        }
        let total = offset + request.body.count
        guard isLast ? total == photo.size : total < photo.size else {
            return state(FieldResult(400, error: "the photo has \(photo.size) bytes"), photo)
        }
        photo.bytes += request.body
        if isLast {
            guard AttachmentDigest(of: photo.bytes) == photo.digest else {
                photos[ByteKey(key)]?.bytes = []
                return FieldResult(422, error: "the bytes have another digest").with("Upload-Offset", "0")
                    .with("Upload-Complete", "?0")
            }
            photo.isComplete = true
            issues[ByteKey(photo.issue)]?.photos.append(key)
            cursor += 1
        }
        photos[ByteKey(key)] = photo
        return state(FieldResult(204), photo)
    }
}
