internal import Client
internal import Wire

/// A record that the user has created on the device.
struct FieldRecord: Hashable, Sendable {
    /// What the record says.
    enum Content: Hashable, Sendable {
        /// An answer to a question.
        case answer(question: RecordKey, text: String)
        /// A note to an issue; the first one of a new issue has its title, and its topic if it has one.
        case note(issue: RecordKey, title: String?, topic: RecordKey?, text: String, isResolving: Bool)
        /// A photo of an issue.
        case photo(issue: RecordKey, title: String, bytes: Int, digest: String)
    }

    /// The identity, which all attempts to send the record have.
    var key: RecordKey
    /// What the record says.
    var content: Content
    /// The milliseconds since 1970 of the server's clock at the creation.
    let time: Int
    /// The beginning of its submission period.
    let start: Int
    /// The number of its changes by the user.
    var edit = 1
    /// Whether the server has stored it.
    var isPushed = false
    /// Whether the server has all bytes of a photo.
    var isUploaded = false
    /// The reason for which the server has rejected it; `nil` for none.
    var rejection: String?

    /// Whether the record waits for a push.
    var isPending: Bool { !isPushed && rejection == nil }

    /// Whether the bytes of a photo wait for an upload.
    var needsUpload: Bool {
        if case .photo = content { isPushed && !isUploaded && rejection == nil } else { false }
    }

    /// The record as the server gets it.
    var sent: JSONValue {
        switch content {
        case .answer(let question, let text):
            [
                "key": .text(key.text), "question": .text(question.text), "at": .integer(Int64(time)),
                "edit": .integer(Int64(edit)), "text": .text(text),
            ]
        case .note(let issue, let title, let topic, let text, let isResolving):
            [
                "key": .text(key.text), "issue": .text(issue.text), "title": title.map { .text($0) } ?? .null,
                "topic": topic.map { .text($0.text) } ?? .null, "at": .integer(Int64(time)), "text": .text(text),
                "resolves": .bool(isResolving),
            ]
        case .photo(let issue, let title, let bytes, let digest):
            [
                "key": .text(key.text), "issue": .text(issue.text), "title": .text(title),
                "bytes": .integer(Int64(bytes)), "digest": .text(digest), "at": .integer(Int64(time)),
            ]
        }
    }

    /// The member of a group that has the record.
    var kind: String {
        switch content {
        case .answer: "answers"
        case .note: "notes"
        case .photo: "photos"
        }
    }
}

/// The JSON of stored records.
extension FieldRecord {
    var stored: JSONValue {
        [
            "kind": .text(kind), "record": sent, "start": .integer(Int64(start)), "edit": .integer(Int64(edit)),
            "pushed": .bool(isPushed), "uploaded": .bool(isUploaded), "rejection": rejection.map { .text($0) } ?? .null,
        ]
    }

    init?(stored json: JSONValue) {
        let record = json["record"]
        func key(_ name: String) -> RecordKey? { record[name].text.flatMap { RecordKey($0) } }
        guard let own = key("key"), case .integer(let time) = record["at"], case .integer(let start) = json["start"],
            case .integer(let edit) = json["edit"]
        else { return nil }
        switch json["kind"].text {
        case "answers":
            guard let question = key("question"), let text = record["text"].text else { return nil }
            content = .answer(question: question, text: text)
        case "notes":
            guard let issue = key("issue"), let text = record["text"].text else { return nil }
            content = .note(
                issue: issue, title: record["title"].text, topic: key("topic"), text: text,
                isResolving: record["resolves"] == .bool(true))
        case "photos":
            guard let issue = key("issue"), let title = record["title"].text,
                case .integer(let bytes) = record["bytes"], let digest = record["digest"].text
            else { return nil }
            content = .photo(issue: issue, title: title, bytes: Int(bytes), digest: digest)
        default: return nil
        }
        self.key = own
        self.time = Int(time)
        self.start = Int(start)
        self.edit = Int(edit)
        isPushed = json["pushed"] == .bool(true)
        isUploaded = json["uploaded"] == .bool(true)
        rejection = json["rejection"].text
    }
}
