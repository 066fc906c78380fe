internal import Client
internal import NotesContract

/// The payload: everything that the server shows, in one document, which is a tree of projects, activities and topics with
/// questions and issues. Records of the device are stitched into it.
struct FieldPayload: Hashable, Sendable {
    /// A project, an activity or a topic.
    struct Section: Hashable, Sendable {
        /// The levels of the tree from the root.
        enum Level: Int, Hashable, Sendable { case project, activity, topic }

        let key: RecordKey
        let level: Level
        let title: String
        /// The project of an activity, the activity of a topic.
        let parent: RecordKey?
    }

    struct Answer: Hashable, Sendable {
        let key: RecordKey
        let start: Int
        let time: Int
        let edit: Int
        let text: String
    }

    struct Question: Hashable, Sendable {
        let key: RecordKey
        /// The topic; `nil` at the root.
        let topic: RecordKey?
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
        /// The topic; `nil` at the root.
        let topic: RecordKey?
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
        /// The target of its requests, a path of the service.
        let url: String
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
    /// The projects, activities and topics, each before those in it.
    let sections: [Section]
    var questions: [Question]
    var issues: [Issue]
    /// The files of the whole tree.
    let files: [File]

    /// Returns whether the payload has a record, in this or a later state.
    func contains(_ record: FieldRecord) -> Bool {
        switch record.content {
        case .answer(let question, _):
            questions.first { $0.key == question }?.answers.contains { $0.key == record.key && $0.edit >= record.edit }
                ?? false
        case .note(let issue, _, _, _, _):
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
            case .note(let issue, let title, let topic, let text, let isResolving):
                let note = Note(key: record.key, time: record.time, text: text, isResolving: isResolving)
                if let index = stitched.issues.firstIndex(where: { $0.key == issue }) {
                    if !stitched.issues[index].notes.contains(where: { $0.key == record.key }) {
                        stitched.issues[index].notes.append(note)
                    }
                } else if let title {
                    stitched.issues.append(Issue(key: issue, topic: topic, title: title, notes: [note], photos: []))
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

    /// Returns the section with a key and those that contain it, from the project on.
    func path(to section: RecordKey?) -> [Section] {
        guard let section = sections.first(where: { $0.key == section }) else { return [] }
        return path(to: section.parent) + [section]
    }

    /// Returns the answer to a question in a period; the last one if there are several.
    func answer(to question: RecordKey, in period: SubmissionPeriod) -> Answer? {
        questions.first { $0.key == question }?.answers.filter { $0.start == period.start }
            .max { ($0.time, $0.key) < ($1.time, $1.key) }
    }
}
