internal import Client
internal import NotesContract
internal import Wire

/// The payload: everything that the server shows, in one document. Records of the device are stitched into it.
struct FieldPayload: Hashable, Sendable {
    struct Answer: Hashable, Sendable {
        let key: RecordKey
        let start: Int
        let time: Int
        let edit: Int
        let text: String
    }

    struct Question: Hashable, Sendable {
        let key: RecordKey
        let title: String
        var answers: [Answer]
    }

    struct Note: Hashable, Sendable {
        let key: RecordKey
        let time: Int
        let text: String
        let isResolving: Bool
    }

    struct Photo: Hashable, Sendable {
        let key: RecordKey
        let title: String
        let bytes: Int
    }

    struct Issue: Hashable, Sendable {
        let key: RecordKey
        let title: String
        var notes: [Note]
        var photos: [Photo]

        /// An issue is resolved if one of its notes resolves it.
        var isResolved: Bool { notes.contains { $0.isResolving } }
    }

    struct File: Hashable, Sendable {
        let key: RecordKey
        let title: String
        let bytes: Int
        let digest: AttachmentDigest
    }

    /// The greatest length of a submission period, and of its grace, in milliseconds.
    static let periodMillisecondsMax = 366 * 86_400_000

    let cursor: Int
    /// The length of submission periods in milliseconds.
    let periodLength: Int
    /// The time after the end of a period in which the server accepts its answers, in milliseconds.
    let grace: Int
    /// The calendar by which days begin.
    let calendar: FieldCalendar
    var questions: [Question]
    var issues: [Issue]
    let files: [File]

    /// Reads a payload; `nil` if a part of it is missing or invalid.
    init?(_ json: JSONValue) {
        func integer(_ json: JSONValue) -> Int? {
            if case .integer(let number) = json, number >= 0 { Int(exactly: number) } else { nil }
        }
        func all<Value>(_ json: JSONValue, _ make: (JSONValue) -> Value?) -> [Value]? {
            guard case .array(let elements) = json else { return nil }
            let values = elements.compactMap(make)
            return values.count == elements.count ? values : nil
        }
        func named(_ json: JSONValue) -> (key: RecordKey, title: String)? {
            guard let key = json["key"].text.flatMap({ RecordKey($0) }), let title = json["title"].text else {
                return nil
            }
            return (key, title)
        }
        guard let cursor = integer(json["cursor"]), let length = integer(json["period"]["length"]),
            (1...Self.periodMillisecondsMax).contains(length), let grace = integer(json["period"]["grace"]),
            grace <= Self.periodMillisecondsMax, let calendar = FieldCalendar(json["zone"])
        else { return nil }
        self.calendar = calendar
        self.cursor = cursor
        periodLength = length
        self.grace = grace
        let questions = all(json["questions"]) { json -> Question? in
            guard let (key, title) = named(json) else { return nil }
            let answers = all(json["answers"]) { json -> Answer? in
                guard let key = json["key"].text.flatMap({ RecordKey($0) }), let start = integer(json["start"]),
                    let time = integer(json["at"]), let edit = integer(json["edit"]), let text = json["text"].text
                else { return nil }
                return Answer(key: key, start: start, time: time, edit: edit, text: text)
            }
            return answers.map { Question(key: key, title: title, answers: $0) }
        }
        let issues = all(json["issues"]) { json -> Issue? in
            guard let (key, title) = named(json) else { return nil }
            let notes = all(json["notes"]) { json -> Note? in
                guard let key = json["key"].text.flatMap({ RecordKey($0) }), let time = integer(json["at"]),
                    let text = json["text"].text
                else { return nil }
                return Note(key: key, time: time, text: text, isResolving: json["resolves"] == .bool(true))
            }
            let photos = all(json["photos"]) { json -> Photo? in
                guard let (key, title) = named(json), let bytes = integer(json["bytes"]) else { return nil }
                return Photo(key: key, title: title, bytes: bytes)
            }
            guard let notes, let photos else { return nil }
            return Issue(key: key, title: title, notes: notes, photos: photos)
        }
        let files = all(json["files"]) { json -> File? in
            guard let (key, title) = named(json), let bytes = integer(json["bytes"]),
                let digest = json["digest"].text.flatMap({ AttachmentDigest(field: "sha-256=:\($0):") })
            else { return nil }
            return File(key: key, title: title, bytes: bytes, digest: digest)
        }
        guard let questions, let issues, let files else { return nil }
        self.questions = questions
        self.issues = issues
        self.files = files
    }

    /// Returns whether the payload has a record, in this or a later state.
    func contains(_ record: FieldRecord) -> Bool {
        switch record.content {
        case .answer(let question, _):
            questions.first { $0.key == question }?.answers.contains { $0.key == record.key && $0.edit >= record.edit }
                ?? false
        case .note(let issue, _, _, _):
            issues.first { $0.key == issue }?.notes.contains { $0.key == record.key } ?? false
        case .photo(let issue, _, _, _):
            issues.first { $0.key == issue }?.photos.contains { $0.key == record.key } ?? false
        }
    }

    /// Returns the payload with the records of the device: what the server would send if it had them.
    func stitched(with records: [FieldRecord]) -> FieldPayload {
        var stitched = self
        for record in records.sorted(by: { ($0.time, $0.key) < ($1.time, $1.key) }) {
            switch record.content {
            case .answer(let question, let text):
                guard let index = stitched.questions.firstIndex(where: { $0.key == question }) else { continue }
                let answer = Answer(
                    key: record.key, start: record.start, time: record.time, edit: record.edit, text: text)
                if let own = stitched.questions[index].answers.firstIndex(where: { $0.key == record.key }) {
                    if stitched.questions[index].answers[own].edit < record.edit {
                        stitched.questions[index].answers[own] = answer
                    }
                } else {
                    stitched.questions[index].answers.append(answer)
                }
            case .note(let issue, let title, let text, let isResolving):
                let note = Note(key: record.key, time: record.time, text: text, isResolving: isResolving)
                if let index = stitched.issues.firstIndex(where: { $0.key == issue }) {
                    if !stitched.issues[index].notes.contains(where: { $0.key == record.key }) {
                        stitched.issues[index].notes.append(note)
                    }
                } else if let title {
                    stitched.issues.append(Issue(key: issue, title: title, notes: [note], photos: []))
                }
            case .photo(let issue, let title, let bytes, _):
                guard let index = stitched.issues.firstIndex(where: { $0.key == issue }),
                    !stitched.issues[index].photos.contains(where: { $0.key == record.key })
                else { continue }
                stitched.issues[index].photos.append(Photo(key: record.key, title: title, bytes: bytes))
            }
        }
        return stitched
    }

    /// Returns the answer to a question in a period; the last one if there are several.
    func answer(to question: RecordKey, in period: SubmissionPeriod) -> Answer? {
        questions.first { $0.key == question }?.answers.filter { $0.start == period.start }
            .max { ($0.time, $0.key) < ($1.time, $1.key) }
    }
}
