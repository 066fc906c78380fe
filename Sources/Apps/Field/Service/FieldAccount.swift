internal import Determinism
internal import NotesContract
internal import Wire

/// The records of one user.
struct FieldAccount: Sendable {
    struct Question: Sendable {
        let title: String
        let choices: [String]
    }

    struct Answer: Sendable {
        let question: String
        let start: Int
        let time: Int
        var edit: Int
        var text: String
        var revision: Int
    }

    struct Issue: Sendable {
        let title: String
        var notes: [(key: String, note: Note)] = []
        var photos: [String] = []
        var isResolved: Bool { notes.contains { $0.note.isResolving } }
    }

    struct Note: Sendable {
        let time: Int
        let text: String
        let isResolving: Bool
    }

    /// The length of submission periods in milliseconds. They begin at multiples of it since 1970.
    private(set) var periodLength = 86_400_000
    /// The time after the end of a period in which its answers are accepted, in milliseconds.
    private(set) var grace = 86_400_000
    /// The calendar of the place at which the users work.
    private(set) var calendar = FieldCalendar.utc
    /// The number of changes so far.
    var cursor = 0
    var questions: [ByteKey: Question] = [:]
    var answers: [ByteKey: Answer] = [:]
    var issues: [ByteKey: Issue] = [:]
    var notes: Set<ByteKey> = []
    var photos: [ByteKey: FieldPhoto] = [:]
    var files: [ByteKey: FieldFile] = [:]
    /// All keys with their kinds in the order of creation.
    var order: [(key: String, kind: FieldServerRecord.Kind)] = []

    var recordCount: Int { order.count + notes.count }

    /// The number of bytes of all photos, also of those that have not arrived.
    var photoBytes: Int { photos.values.reduce(0) { $0 + $1.size } }

    // MARK: The start

    mutating func seed(_ record: FieldSeed) -> Bool {
        func isNew(_ key: String) -> Bool {
            Self.isKey(key) && !order.contains { $0.key.hasSameBytes(as: key) }
        }
        func isTitle(_ title: String) -> Bool { (1...FieldService.Limits.titleBytesMax).contains(title.utf8.count) }
        switch record {
        case .question(let key, let title, let choices):
            guard isNew(key), isTitle(title) else { return false }
            questions[ByteKey(key)] = Question(title: title, choices: choices)
            order.append((key, .question))
        case .issue(let key, let title, let text):
            let first = "\(key)-0"
            guard isNew(key), isTitle(title), Self.isKey(first) else { return false }
            notes.insert(ByteKey(first))
            issues[ByteKey(key)] = Issue(
                title: title, notes: [(first, Note(time: 0, text: text, isResolving: false))])
            order.append((key, .issue))
        case .file(let key, let title, let bytes):
            guard isNew(key), isTitle(title), (0...FieldService.Limits.fileBytesMax).contains(bytes) else {
                return false
            }
            files[ByteKey(key)] = FieldFile(title: title, size: bytes)
            order.append((key, .file))
        case .schedule(let length, let grace, let calendar):
            let range = 0...FieldService.Limits.periodMillisecondsMax
            guard length > 0, range.contains(length), range.contains(grace) else { return false }
            periodLength = length
            self.grace = grace
            self.calendar = calendar
        }
        cursor += 1
        return true
    }

    /// Changes the title of a question, an issue or a file, or the size of a file; deletes it without both.
    mutating func change(_ key: String, title: String?, text: String?) -> Bool {
        let id = ByteKey(key)
        guard let index = order.firstIndex(where: { $0.key.hasSameBytes(as: key) }) else { return false }
        if title == nil, text == nil {
            switch order[index].kind {
            case .question: questions[id] = nil
            case .issue: issues[id] = nil
            case .file: files[id] = nil
            case .answer, .photo: return false
            }
            order.remove(at: index)
        } else {
            switch order[index].kind {
            case .question:
                guard let old = questions[id], let title else { return false }
                questions[id] = Question(title: title, choices: old.choices)
            case .issue:
                guard let old = issues[id], let title else { return false }
                issues[id] = Issue(title: title, notes: old.notes, photos: old.photos)
            case .file:
                let size = text.map { Int($0) } ?? files[id]?.bytes.count
                guard let old = files[id], let size, (0...FieldService.Limits.fileBytesMax).contains(size) else {
                    return false
                }
                files[id] = FieldFile(title: title ?? old.title, size: size)
            case .answer, .photo: return false
            }
        }
        cursor += 1
        return true
    }

    var shownRecords: [FieldServerRecord] {
        order.compactMap { key, kind in
            let id = ByteKey(key)
            func record(_ title: String, _ text: String?, revision: Int = 1) -> FieldServerRecord {
                FieldServerRecord(key: key, kind: kind, title: title, text: text, revision: revision)
            }
            switch kind {
            case .question: return questions[id].map { record($0.title, nil) }
            case .answer:
                return answers[id].map {
                    record(
                        NoteDate.text(millisecondsSince1970: $0.start), $0.text, revision: $0.revision)
                }
            case .issue:
                return issues[id].map {
                    record($0.title, $0.isResolved ? "resolved" : "open", revision: $0.notes.count)
                }
            case .photo: return photos[id].flatMap { $0.isComplete ? record($0.title, "\($0.size)") : nil }
            case .file: return files[id].map { record($0.title, "available") }
            }
        }
    }

    // MARK: Requests

    /// - Parameter history: The number of restorations of the service.
    mutating func respond(to request: FieldRequest, history: Int) -> FieldResult {
        let (segments, method) = (request.segments, request.method)
        switch segments.first {
        case "payload"? where segments.count == 1:
            return method == "GET" ? payload(request, history) : notAllowed("GET")
        case "events"? where segments.count == 1:
            return method == "GET" ? events(request) : notAllowed("GET")
        case "updates"? where segments.count == 1:
            return method == "POST" ? updates(request) : notAllowed("POST")
        case "files"? where segments.count == 2:
            return method == "GET" ? file(segments[1], request) : notAllowed("GET")
        case "photos"? where segments.count == 2: return photo(segments[1], request)
        case nil: return method == "GET" ? FieldResult(200, ["service": "field"]) : notAllowed("GET")
        default: return FieldResult(404, error: "unknown path")
        }
    }

    func notAllowed(_ methods: String) -> FieldResult {
        FieldResult(405, error: "only \(methods) is possible here").with("Allow", methods)
    }

    static func isKey(_ key: String) -> Bool {
        (1...FieldService.Limits.keyBytesMax).contains(key.utf8.count)
            && key.utf8.allSatisfy { byte in
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                    || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
                    || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
            }
    }

    // MARK: The payload

    private func payload(_ request: FieldRequest, _ history: Int) -> FieldResult {
        // After a restoration, a cursor stands for another content.
        let tag = history == 0 ? "\"\(cursor)\"" : "\"\(cursor)-\(history)\""
        guard request.field("If-None-Match") != tag else { return FieldResult(304).with("ETag", tag) }
        var byQuestion: [ByteKey: [JSONValue]] = [:]
        for (key, kind) in order where kind == .answer {
            guard let answer = answers[ByteKey(key)] else { continue }
            byQuestion[ByteKey(answer.question), default: []].append([
                "key": .text(key), "start": .integer(Int64(answer.start)), "at": .integer(Int64(answer.time)),
                "edit": .integer(Int64(answer.edit)), "text": .text(answer.text),
            ])
        }
        var parts: [FieldServerRecord.Kind: [JSONValue]] = [:]
        for (key, kind) in order {
            let id = ByteKey(key)
            switch kind {
            case .question:
                guard let question = questions[id] else { continue }
                parts[kind, default: []].append([
                    "key": .text(key), "title": .text(question.title), "answers": .array(byQuestion[id] ?? []),
                ])
            case .issue:
                guard let issue = issues[id] else { continue }
                parts[kind, default: []].append([
                    "key": .text(key), "title": .text(issue.title),
                    "notes": .array(
                        issue.notes.map { key, note in
                            [
                                "key": .text(key), "at": .integer(Int64(note.time)), "text": .text(note.text),
                                "resolves": .bool(note.isResolving),
                            ]
                        }),
                    "photos": .array(
                        issue.photos.compactMap { key in
                            guard let photo = photos[ByteKey(key)], photo.isComplete else { return nil }
                            return [
                                "key": .text(key), "title": .text(photo.title), "bytes": .integer(Int64(photo.size)),
                                "digest": .text(photo.digest.description),
                            ]
                        }),
                ])
            case .file:
                guard let file = files[id] else { continue }
                parts[kind, default: []].append([
                    "key": .text(key), "title": .text(file.title), "bytes": .integer(Int64(file.bytes.count)),
                    "digest": .text(file.digest.description),
                ])
            case .answer, .photo: continue
            }
        }
        var object: JSONObject = [
            "cursor": .integer(Int64(cursor)),
            "period": ["length": .integer(Int64(periodLength)), "grace": .integer(Int64(grace))],
            "questions": .array(parts[.question] ?? []), "issues": .array(parts[.issue] ?? []),
            "files": .array(parts[.file] ?? []),
        ]
        if calendar != .utc { object["zone"] = calendar.json }
        return FieldResult(200, .object(object)).with("ETag", tag)
    }

    // MARK: Events

    private func events(_ request: FieldRequest) -> FieldResult {
        let last = request.number("Last-Event-ID") ?? 0
        var text = "retry: \(FieldService.eventsRetryMilliseconds)\n\n"
        if cursor > last { text += "id: \(cursor)\nevent: change\ndata: {\"cursor\":\(cursor)}\n\n" }
        var result = FieldResult(200)
        result.body = Array(text.utf8)
        result.type = "text/event-stream"
        return result
    }

    // MARK: Files

    private func file(_ key: String, _ request: FieldRequest) -> FieldResult {
        guard let file = files[ByteKey(key)] else { return FieldResult(404, error: "unknown file") }
        let size = file.bytes.count
        func result(_ status: Int, _ bytes: [UInt8]) -> FieldResult {
            var result = FieldResult(status).with("ETag", file.entityTag).with("Accept-Ranges", "bytes")
                .with("Repr-Digest", file.digest.field)
            result.body = bytes
            result.type = "application/octet-stream"
            return result
        }
        let isCurrent = request.field("If-Range").map { $0 == file.entityTag } ?? true
        guard isCurrent, let range = request.range else { return result(200, file.bytes) }
        let first: Int
        var end = size
        if let start = range.first {
            first = start
            if let last = range.last { end = min(size, last.addingReportingOverflow(1).partialValue) }
        } else {
            first = size - min(size, range.last ?? 0)
        }
        guard first >= 0, first < size, end > first else {
            return FieldResult(416, error: "the range is outside of the file").with("Content-Range", "bytes */\(size)")
        }
        return result(206, Array(file.bytes[first..<end]))
            .with("Content-Range", "bytes \(first)-\(end - 1)/\(size)")
    }
}
