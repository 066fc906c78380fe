internal import Client
internal import NotesContract
internal import Wire

/// The JSON of payloads.
extension FieldPayload {
    /// The member with the sections of each level.
    private static let sectionMembers: [(level: Section.Level, name: String)] = [
        (.project, "projects"), (.activity, "activities"), (.topic, "topics"),
    ]

    /// Reads a payload; `nil` if a part of it is missing or invalid.
    ///
    /// - Parameter scansTree: Whether files are found in the whole tree; otherwise at its root only.
    init?(_ json: JSONValue, scansTree: Bool = true) {
        guard let cursor = Self.integer(json["cursor"]), let length = Self.integer(json["period"]["length"]),
            (1...Self.periodMillisecondsMax).contains(length), let grace = Self.integer(json["period"]["grace"]),
            grace <= Self.periodMillisecondsMax, let calendar = FieldCalendar(json["zone"]),
            let questions = Self.questions(json, of: nil), let issues = Self.issues(json, of: nil)
        else { return nil }
        self.calendar = calendar
        self.cursor = cursor
        periodLength = length
        self.grace = grace
        var tree = Tree(sections: [], questions: questions, issues: issues)
        guard Self.read(json, Self.sectionMembers[...], parent: nil, into: &tree) else { return nil }
        sections = tree.sections
        self.questions = tree.questions
        self.issues = tree.issues
        var files: [File] = []
        guard scansTree ? Self.scan(json, &files) : json["files"].array.allSatisfy({ Self.scan($0, &files) }) else {
            return nil
        }
        self.files = files
    }

    private struct Tree {
        var sections: [Section]
        var questions: [Question]
        var issues: [Issue]
    }

    /// Reads the sections of an object and those in them. Returns whether they are valid.
    private static func read(
        _ json: JSONValue, _ levels: ArraySlice<(level: Section.Level, name: String)>, parent: RecordKey?,
        into tree: inout Tree
    ) -> Bool {
        guard let (level, name) = levels.first else {
            guard let questions = questions(json, of: parent), let issues = issues(json, of: parent) else {
                return false
            }
            tree.questions += questions
            tree.issues += issues
            return true
        }
        guard case .array(let elements) = json[name] else { return false }
        for element in elements {
            guard let (key, title) = named(element) else { return false }
            tree.sections.append(Section(key: key, level: level, title: title, parent: parent))
            guard read(element, levels.dropFirst(), parent: key, into: &tree) else { return false }
        }
        return true
    }

    /// Adds the files of a value, wherever they are: the objects with a digest and a URL. Returns whether they are valid.
    private static func scan(_ json: JSONValue, _ files: inout [File]) -> Bool {
        switch json {
        case .array(let elements): return elements.allSatisfy { scan($0, &files) }
        case .object(let object):
            guard let url = json["url"].text, let digest = json["digest"].text else {
                return object.membersInSourceOrder.allSatisfy { scan($0.value, &files) }
            }
            guard let (key, title) = named(json), let bytes = integer(json["bytes"]), isPathOfFile(url),
                let digest = AttachmentDigest(field: "sha-256=:\(digest):")
            else { return false }
            // One file may be in several places.
            if !files.contains(where: { $0.key == key }) {
                files.append(File(key: key, title: title, bytes: bytes, digest: digest, url: url))
            }
            return true
        default: return true
        }
    }

    /// Returns whether a URL is a path of a file of the service: another server would get the user's credentials.
    private static func isPathOfFile(_ url: String) -> Bool {
        let prefix = "\(FieldEngine.basePath)/files/"
        return url.utf8.starts(with: prefix.utf8) && RecordKey(String(url.dropFirst(prefix.count))) != nil
    }

    // MARK: Parts

    private static func integer(_ json: JSONValue) -> Int? {
        if case .integer(let number) = json, number >= 0 { Int(exactly: number) } else { nil }
    }

    private static func all<Value>(_ json: JSONValue, _ make: (JSONValue) -> Value?) -> [Value]? {
        guard case .array(let elements) = json else { return nil }
        let values = elements.compactMap(make)
        return values.count == elements.count ? values : nil
    }

    private static func named(_ json: JSONValue) -> (key: RecordKey, title: String)? {
        guard let key = json["key"].text.flatMap({ RecordKey($0) }), let title = json["title"].text else { return nil }
        return (key, title)
    }

    private static func questions(_ json: JSONValue, of topic: RecordKey?) -> [Question]? {
        all(json["questions"]) { json in
            guard let (key, title) = named(json) else { return nil }
            let answers = all(json["answers"]) { json -> Answer? in
                guard let key = json["key"].text.flatMap({ RecordKey($0) }), let start = integer(json["start"]),
                    let time = integer(json["at"]), let edit = integer(json["edit"]), let text = json["text"].text
                else { return nil }
                return Answer(key: key, start: start, time: time, edit: edit, text: text)
            }
            return answers.map { Question(key: key, topic: topic, title: title, answers: $0) }
        }
    }

    private static func issues(_ json: JSONValue, of topic: RecordKey?) -> [Issue]? {
        all(json["issues"]) { json in
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
            return Issue(key: key, topic: topic, title: title, notes: notes, photos: photos)
        }
    }
}
