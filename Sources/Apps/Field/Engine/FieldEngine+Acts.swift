public import Client
public import Determinism
internal import NotesContract
internal import Wire

/// Acts of the user.
extension FieldEngine {
    public mutating func perform(_ act: AppAct, at now: Instant) throws(AppActError) {
        defer { pump(at: now) }
        switch act {
        case .create(let key, let fields): try create(key, fields, at: now)
        case .edit(let key, let fields): try edit(key, fields, at: now)
        case .pin(let key): try pin(key, true)
        case .open(nil):
            // The user has come back to the app.
            show(.list)
            refresh()
        case .open(let key?): try open(key)
        case .call("retry", nil, _):
            // What the open screen shows: a file, or the payload.
            if case .record(let key) = screen, payload?.files.contains(where: { $0.key == key }) == true {
                return try openFile(key)
            }
            pull()
        case .sync: pull()
        case .call("fetch", let key?, _): try openFile(key)
        case .call("note", let key?, let fields): try note(key, fields["text"] ?? "", isResolving: false, at: now)
        case .call("resolve", let key?, let fields):
            try note(key, fields["text"] ?? "resolved", isResolving: true, at: now)
        case .call("language", nil, let fields): try setLanguage(fields["language"] ?? "")
        case .call("unpin", let key?, _): try pin(key, false)
        case .call("dismiss", let key?, _): try dismiss(key)
        case .delete, .call: throw .unknown
        }
    }

    private mutating func pull() {
        needsSignIn = false
        forcesPull = true
        refresh()
    }

    /// The device has another language. What is shown remains until a payload in this language has been pulled.
    private mutating func setLanguage(_ language: String) throws(AppActError) {
        guard FieldLanguage.isValid(language) else {
            throw AppActError("'\(language.prefix(40))' is no language, such as 'de'")
        }
        self.language = language
        commits.next.set("language", json: .text(language))
        if behavior.languageChange == .pull { pull() }
    }

    /// A run begins at once, if the policy allows it.
    private mutating func refresh() {
        guard isAllowed else {
            // An interface that comes up is a reason of its own.
            forcesPull = false
            return
        }
        wantsRun = true
        clearRetry()
    }

    // MARK: Records

    private func loadedPayload() throws(AppActError) -> FieldPayload {
        guard let payload else { throw AppActError("the first use needs the network") }
        return payload.stitched(with: Array(records.values))
    }

    private mutating func add(
        _ key: RecordKey, _ content: FieldRecord.Content, in payload: FieldPayload, at now: Instant
    ) throws(AppActError) {
        guard records.count < Self.recordsMax else { throw AppActError("the device has too many records") }
        let time = serverTime(at: now)
        let period = SubmissionPeriod(containing: time, length: payload.periodLength)
        store(FieldRecord(key: key, content: content, time: time, start: period.start))
        wantsRun = true
    }

    /// Creates an issue with its first note.
    private mutating func createIssue(
        _ key: RecordKey, _ fields: RecordFields, in payload: FieldPayload, topic: RecordKey?, at now: Instant
    ) throws(AppActError) {
        guard let title = fields["title"], let note = newKey() else {
            throw AppActError("a new issue needs a title")
        }
        let content = FieldRecord.Content.note(
            issue: key, title: title, topic: topic, text: fields["text"] ?? "", isResolving: false)
        try add(note, content, in: payload, at: now)
    }

    /// Creates what the open screen has: an answer to a question, a photo of an issue, or a new issue.
    private mutating func create(_ key: RecordKey, _ fields: RecordFields, at now: Instant) throws(AppActError) {
        let payload = try loadedPayload()
        switch screen {
        case .list: try createIssue(key, fields, in: payload, topic: nil, at: now)
        case .record(let open) where payload.sections.contains(where: { $0.key == open && $0.level == .topic }):
            try createIssue(key, fields, in: payload, topic: open, at: now)
        case .record(let open) where payload.questions.contains(where: { $0.key == open }):
            guard let text = fields["text"] else { throw AppActError("an answer needs a text") }
            let period = SubmissionPeriod(containing: serverTime(at: now), length: payload.periodLength)
            guard payload.answer(to: open, in: period) == nil else {
                throw AppActError("the question has an answer in this period; edit it")
            }
            try add(key, .answer(question: open, text: text), in: payload, at: now)
        case .record(let open) where payload.issues.contains(where: { $0.key == open }):
            guard let size = fields["text"].flatMap({ Int($0) }), (1...Self.photoBytesMax).contains(size) else {
                throw AppActError("a photo needs its size of up to \(Self.photoBytesMax) bytes as text")
            }
            let bytes = Self.photo(key, size)
            photoBytes[key] = bytes
            for index in 0..<Self.pieceCount(size) {
                let piece = bytes[index * Self.photoPieceBytes..<min(size, (index + 1) * Self.photoPieceBytes)]
                commits.next.set(Self.photoKey(key, index), Array(piece))
            }
            let digest = AttachmentDigest(of: bytes).description
            try add(
                key, .photo(issue: open, title: fields["title"] ?? "photo", bytes: size, digest: digest), in: payload,
                at: now)
        case .record: throw AppActError("the open screen has nothing to add")
        }
    }

    /// Returns what the camera takes.
    private static func photo(_ key: RecordKey, _ size: Int) -> [UInt8] {
        var random = RandomStream(seed: FNV1a.digest(key.text.utf8), "field/photo")
        return (0..<size).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    }

    /// Changes an answer. It is pushed again, in its period.
    private mutating func edit(_ key: RecordKey, _ fields: RecordFields, at now: Instant) throws(AppActError) {
        let payload = try loadedPayload()
        for question in payload.questions {
            guard let answer = question.answers.first(where: { $0.key == key }) else { continue }
            guard let text = fields["text"] else { throw AppActError("an answer needs a text") }
            var record =
                records[key]
                ?? FieldRecord(
                    key: key, content: .answer(question: question.key, text: text), time: answer.time,
                    start: answer.start, edit: answer.edit)
            record.content = .answer(question: question.key, text: text)
            record.edit = max(record.edit, answer.edit) + 1
            record.isPushed = false
            record.rejection = nil
            store(record)
            wantsRun = true
            return
        }
        throw AppActError("only an answer can be changed")
    }

    private mutating func note(
        _ issue: RecordKey, _ text: String, isResolving: Bool, at now: Instant
    ) throws(AppActError) {
        let payload = try loadedPayload()
        guard payload.issues.contains(where: { $0.key == issue }), let key = newKey() else {
            throw AppActError("no issue is called \(issue)")
        }
        try add(
            key, .note(issue: issue, title: nil, topic: nil, text: text, isResolving: isResolving), in: payload,
            at: now)
    }

    /// Gives up a record that the server has rejected.
    private mutating func dismiss(_ key: RecordKey) throws(AppActError) {
        guard let record = rejected.first(where: { $0.shownKey == key }) else {
            throw AppActError("the record has no error")
        }
        remove(record)
    }

    // MARK: Screens and files

    private mutating func open(_ key: RecordKey) throws(AppActError) {
        let payload = try loadedPayload()
        if payload.files.contains(where: { $0.key == key }) {
            try openFile(key)
        } else {
            let keys = payload.sections.map(\.key) + payload.questions.map(\.key) + payload.issues.map(\.key)
            guard keys.contains(key) else {
                throw AppActError("\(key) has no screen")
            }
        }
        show(.record(key))
    }

    /// Opens a screen. It is stored, so that a user who starts the app again is where the app was.
    private mutating func show(_ screen: Screen) {
        guard self.screen != screen else { return }
        self.screen = screen
        if case .record(let key) = screen {
            commits.next.set("screen", Array(key.text.utf8))
        } else {
            commits.next.set("screen", nil)
        }
    }

    /// The user wants a file now: if it is missing, it is the next one that is downloaded.
    private mutating func openFile(_ key: RecordKey) throws(AppActError) {
        guard let listed = payload?.files.first(where: { $0.key == key }),
            var file = files[listed.digest.description]
        else { throw AppActError("\(key) is no file") }
        openings = min(openings + 1, Int(Int32.max))
        file.opened = openings
        file.hasFailed = file.hasFailed && !isAllowed
        store(file)
        evictFiles()
        guard !file.isPulled, isAllowed else { return }
        wantedFile = file.id
        if run == nil {
            wantsRun = true
            clearRetry()
        } else if let failures = run?.failures {
            // The user's own attempt does not end with earlier failures.
            run?.failures = min(failures, Self.transferFailuresMax - 1)
        }
    }

    private mutating func pin(_ key: RecordKey, _ isPinned: Bool) throws(AppActError) {
        guard let listed = payload?.files.first(where: { $0.key == key }),
            var file = files[listed.digest.description]
        else { throw AppActError("\(key) is no file") }
        file.isPinned = isPinned
        store(file)
        evictFiles()
        wantsRun = wantsRun || !missingFiles.isEmpty
    }
}
