internal import Determinism
internal import NotesContract
internal import Wire

/// The records of one user.
struct FieldAccount: Sendable {
    struct Question: Sendable {
        var title: String
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
        var title: String
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
    /// The titles of projects, activities and topics.
    var sections: [ByteKey: String] = [:]
    /// The records that contain others.
    private(set) var parents: [ByteKey: String] = [:]
    /// The titles in other languages.
    private var titles: [ByteKey: [String: String]] = [:]
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
        switch record {
        case .section(let kind, let key, let title):
            guard FieldServerRecord.Kind.sections.contains(kind), isNew(key), Self.isTitle(title) else { return false }
            sections[ByteKey(key)] = title
            order.append((key, kind))
        case .question(let key, let title, let choices):
            guard isNew(key), Self.isTitle(title) else { return false }
            questions[ByteKey(key)] = Question(title: title, choices: choices)
            order.append((key, .question))
        case .issue(let key, let title, let text):
            let first = "\(key)-0"
            guard isNew(key), Self.isTitle(title), Self.isKey(first) else { return false }
            notes.insert(ByteKey(first))
            issues[ByteKey(key)] = Issue(
                title: title, notes: [(first, Note(time: 0, text: text, isResolving: false))])
            order.append((key, .issue))
        case .file(let key, let title, let bytes):
            guard isNew(key), Self.isTitle(title), (0...FieldService.Limits.fileBytesMax).contains(bytes) else {
                return false
            }
            files[ByteKey(key)] = FieldFile(title: title, size: bytes)
            order.append((key, .file))
        case .place(let key, let parent):
            guard let kind = kind(of: key), let above = self.kind(of: parent), kind.parents.contains(above),
                parents[ByteKey(key)] == nil
            else { return false }
            parents[ByteKey(key)] = parent
        case .translation(let key, let language, let title):
            guard let kind = kind(of: key), kind != .answer, kind != .photo, FieldLanguage.isValid(language),
                Self.isTitle(title)
            else { return false }
            titles[ByteKey(key), default: [:]][language] = title
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

    static func isTitle(_ title: String) -> Bool { (1...FieldService.Limits.titleBytesMax).contains(title.utf8.count) }

    private func kind(of key: String) -> FieldServerRecord.Kind? {
        order.first { $0.key.hasSameBytes(as: key) }?.kind
    }

    /// Puts a new issue into a topic. Returns whether there is such a topic.
    mutating func place(_ issue: String, in topic: String) -> Bool {
        guard kind(of: topic) == .topic else { return false }
        parents[ByteKey(issue)] = topic
        return true
    }

    /// Changes the title of a section, a question, an issue or a file, or the size of a file; deletes it without both, if
    /// nothing is in it.
    mutating func change(_ key: String, title: String?, text: String?) -> Bool {
        let id = ByteKey(key)
        guard let index = order.firstIndex(where: { $0.key.hasSameBytes(as: key) }) else { return false }
        let kind = order[index].kind
        if title == nil, text == nil {
            guard kind != .answer, kind != .photo, !parents.values.contains(where: { $0.hasSameBytes(as: key) }) else {
                return false
            }
            sections[id] = nil
            questions[id] = nil
            issues[id] = nil
            files[id] = nil
            parents[id] = nil
            titles[id] = nil
            order.remove(at: index)
        } else if kind == .file {
            let size = text.map { Int($0) } ?? files[id]?.bytes.count
            guard let old = files[id], let size, (0...FieldService.Limits.fileBytesMax).contains(size) else {
                return false
            }
            files[id] = FieldFile(title: title ?? old.title, size: size)
        } else {
            guard let title, kind != .answer, kind != .photo else { return false }
            sections[id]? = title
            questions[id]?.title = title
            issues[id]?.title = title
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
            case .project, .activity, .topic: return sections[id].map { record($0, nil) }
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
        case "session"? where segments.count == 1:
            // The user is authenticated already.
            return method == "PUT" ? FieldResult(204) : notAllowed("PUT")
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
        let language = request.field("Accept-Language").flatMap { language in
            titles.values.contains { $0[language] != nil } ? language : nil
        }
        // After a restoration, a cursor stands for another content.
        let parts = ["\(cursor)", history == 0 ? nil : "\(history)", language].compactMap(\.self)
        let tag = "\"\(parts.joined(separator: "-"))\""
        func result(_ result: FieldResult) -> FieldResult { result.with("ETag", tag).with("Vary", "Accept-Language") }
        guard request.field("If-None-Match") != tag else { return result(FieldResult(304)) }
        var tree = PayloadTree(language: language)
        for (key, kind) in order {
            if kind == .answer {
                if let question = answers[ByteKey(key)]?.question {
                    tree.answers[ByteKey(question), default: []].append(key)
                }
            } else {
                tree.children[parents[ByteKey(key)].map { ByteKey($0) }, default: []].append((key, kind))
            }
        }
        var object = JSONObject()
        object["cursor"] = .integer(Int64(cursor))
        object["period"] = ["length": .integer(Int64(periodLength)), "grace": .integer(Int64(grace))]
        if calendar != .utc { object["zone"] = calendar.json }
        object["language"] = language.map { .text($0) }
        add([.project, .question, .issue], in: nil, to: &object, tree)
        return result(FieldResult(200, .object(object)))
    }

    /// The order of a payload's parts.
    private struct PayloadTree {
        let language: String?
        /// The records at the root (`nil`) and in others.
        var children: [ByteKey?: [(key: String, kind: FieldServerRecord.Kind)]] = [:]
        /// The answers to questions.
        var answers: [ByteKey: [String]] = [:]
    }

    /// Adds the members with the records of some kinds in another one, and `files` if it has files.
    private func add(
        _ kinds: [FieldServerRecord.Kind], in parent: ByteKey?, to object: inout JSONObject, _ tree: PayloadTree
    ) {
        let children = tree.children[parent] ?? []
        for kind in kinds + [.file] {
            let found = children.filter { $0.kind == kind }.compactMap { json(of: $0.key, kind, tree) }
            if kind != .file || !found.isEmpty { object[kind.member] = .array(found) }
        }
    }

    /// Returns a record of the payload with what is in it.
    private func json(of key: String, _ kind: FieldServerRecord.Kind, _ tree: PayloadTree) -> JSONValue? {
        let id = ByteKey(key)
        var object: JSONObject = ["key": .text(key)]
        func title(_ title: String) -> JSONValue { .text(tree.language.flatMap { titles[id]?[$0] } ?? title) }
        switch kind {
        case .project, .activity, .topic:
            guard let name = sections[id] else { return nil }
            object["title"] = title(name)
        case .question:
            guard let question = questions[id] else { return nil }
            object["title"] = title(question.title)
            object["answers"] = .array(
                (tree.answers[id] ?? []).compactMap { key in
                    answers[ByteKey(key)].map {
                        [
                            "key": .text(key), "start": .integer(Int64($0.start)), "at": .integer(Int64($0.time)),
                            "edit": .integer(Int64($0.edit)), "text": .text($0.text),
                        ]
                    }
                })
        case .issue:
            guard let issue = issues[id] else { return nil }
            object["title"] = title(issue.title)
            object["notes"] = .array(
                issue.notes.map { key, note in
                    [
                        "key": .text(key), "at": .integer(Int64(note.time)), "text": .text(note.text),
                        "resolves": .bool(note.isResolving),
                    ]
                })
            object["photos"] = .array(
                issue.photos.compactMap { key in
                    guard let photo = photos[ByteKey(key)], photo.isComplete else { return nil }
                    return [
                        "key": .text(key), "title": .text(photo.title), "bytes": .integer(Int64(photo.size)),
                        "digest": .text(photo.digest.description),
                    ]
                })
        case .file:
            guard let file = files[id] else { return nil }
            object["title"] = title(file.title)
            object["bytes"] = .integer(Int64(file.bytes.count))
            object["digest"] = .text(file.digest.description)
            object["url"] = .text("\(FieldService.basePath)/files/\(key)")
        case .answer, .photo: return nil
        }
        add(kind.children, in: id, to: &object, tree)
        return .object(object)
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
