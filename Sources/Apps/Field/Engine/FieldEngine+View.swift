public import Client
internal import NotesContract
internal import Wire

/// What is shown. Everything is drawn from the stitched payload: views do not know which records the server has.
extension FieldEngine {
    public var view: AppView {
        AppView(
            rows: rows, outbox: outbox, screen: visibleScreen,
            connectivity: !interface.isUp ? .interfaceDown : isUnreachable ? .unreachable : .online)
    }

    /// The records that the server has rejected, in the order in which they were made: of those of one row, the first is shown.
    var rejected: [FieldRecord] {
        records.values.filter { $0.rejection != nil }.sorted { ($0.time, $0.key) < ($1.time, $1.key) }
    }

    /// The number of records and photos that the server does not have.
    private var outbox: Int { records.values.count { $0.isPending || $0.needsUpload } }

    private var stitched: FieldPayload? { payload?.stitched(with: Array(records.values)) }

    private var rows: [AppView.Row] {
        guard let stitched else { return [] }
        let rejections = Dictionary(
            rejected.compactMap { record in record.rejection.map { (record.shownKey, $0) } }
        ) { first, _ in first }
        var rows: [AppView.Row] = []
        func add(_ key: RecordKey, _ title: String, _ text: String?, error: String? = nil, isGrey: Bool = false) {
            var fields: RecordFields = ["title": title]
            fields["text"] = text
            let error = error ?? rejections[key]
            rows.append(
                AppView.Row(key: key, fields: fields, isGrey: isGrey, error: error, hasMarker: error != nil))
        }
        for section in stitched.sections { add(section.key, section.title, nil) }
        for question in stitched.questions {
            add(question.key, question.title, nil)
            for answer in question.answers {
                add(answer.key, NoteDate.text(millisecondsSince1970: answer.start), answer.text)
            }
        }
        for issue in stitched.issues {
            add(issue.key, issue.title, issue.isResolved ? FieldText.resolved : FieldText.open)
            for photo in issue.photos { add(photo.key, photo.title, "\(photo.bytes)") }
        }
        let kept = Set(keptFiles)
        for listed in stitched.files {
            let file = files[listed.digest.description]
            let isPulled = file?.isPulled ?? false
            let error: String? =
                isPulled
                ? nil
                : file?.hasFailed == true
                    ? FieldText.failed : kept.contains(listed.digest.description) ? nil : FieldText.noSpace
            add(
                listed.key, listed.title, isPulled ? FieldText.available : FieldText.missing, error: error,
                isGrey: !isPulled)
        }
        return rows.sorted { $0.key < $1.key }
    }

    // MARK: The screen

    private var visibleScreen: AppView.Screen {
        guard let stitched else { return firstUse }
        var fields: RecordFields = [:]
        for case .file(let id, _) in exchanges.values {
            if let title = files[id]?.title { fields[title] = FieldText.loading }
        }
        switch screen {
        case .record(let key):
            if let question = stitched.questions.first(where: { $0.key == key }) {
                return screen(of: question, in: stitched, fields)
            }
            if let issue = stitched.issues.first(where: { $0.key == key }) {
                fields["path"] = path(to: issue.topic, in: stitched)
                fields["state"] = issue.isResolved ? FieldText.resolved : FieldText.open
                fields["notes"] = "\(issue.notes.count)"
                fields["note"] = issue.notes.last?.text
                fields["photos"] = "\(issue.photos.count)"
                return AppView.Screen(
                    name: key.text, record: key, controls: ["add", "back", "note", "resolve"], fields: fields)
            }
            if let section = stitched.sections.first(where: { $0.key == key }) {
                return screen(of: section, in: stitched, fields)
            }
            if let file = stitched.files.first(where: { $0.key == key }) { return screen(of: file, fields) }
            fallthrough
        case .list:
            let error: String? = needsSignIn ? FieldText.signIn : hasPullFailed ? FieldText.stale : nil
            return AppView.Screen(name: "list", controls: ["add", "open", "pin", "sync"], error: error, fields: fields)
        }
    }

    /// The screen without a payload.
    private var firstUse: AppView.Screen {
        if !isAllowed { return AppView.Screen(name: FieldText.noWifi, controls: []) }
        if needsSignIn { return AppView.Screen(name: FieldText.signIn, controls: ["retry"]) }
        if hasPullFailed { return AppView.Screen(name: FieldText.failed, controls: ["retry"]) }
        return AppView.Screen(name: FieldText.loading, controls: [])
    }

    /// Returns the titles of the project, the activity and the topic of a record; `nil` at the root.
    private func path(to section: RecordKey?, in payload: FieldPayload) -> String? {
        let path = payload.path(to: section)
        return path.isEmpty ? nil : path.map(\.title).joined(separator: " / ")
    }

    /// A project, an activity or a topic with the numbers of its questions and open issues, also of those further down.
    private func screen(
        of section: FieldPayload.Section, in payload: FieldPayload, _ fields: RecordFields
    ) -> AppView.Screen {
        // A section comes before those in it.
        var inside: Set<RecordKey?> = [section.key]
        for other in payload.sections where other.parent != nil && inside.contains(other.parent) {
            inside.insert(other.key)
        }
        var fields = fields
        fields["path"] = path(to: section.key, in: payload)
        fields["questions"] = "\(payload.questions.count { inside.contains($0.topic) })"
        fields["open"] = "\(payload.issues.count { inside.contains($0.topic) && !$0.isResolved })"
        return AppView.Screen(
            name: section.key.text, record: section.key,
            controls: section.level == .topic ? ["add", "back"] : ["back"],
            fields: fields)
    }

    /// A question with its input: the answer of this period.
    private func screen(
        of question: FieldPayload.Question, in payload: FieldPayload, _ fields: RecordFields
    ) -> AppView.Screen {
        var fields = fields
        let answer = shownPeriod.flatMap { payload.answer(to: question.key, in: $0) }
        fields["path"] = path(to: question.topic, in: payload)
        fields["input"] = answer?.text ?? ""
        fields["answers"] = "\(question.answers.count)"
        return AppView.Screen(
            name: question.key.text, record: question.key, controls: [answer == nil ? "add" : "edit", "back"],
            fields: fields)
    }

    /// A file: its content mostly only if all of it has arrived with the right digest.
    private func screen(of listed: FieldPayload.File, _ fields: RecordFields) -> AppView.Screen {
        let file = files[listed.digest.description]
        var fields = fields
        if file?.isPulled == true || behavior.opensPartialFiles && file?.received ?? 0 > 0 {
            fields["bytes"] = "\(file?.received ?? 0)"
            return AppView.Screen(
                name: listed.key.text, record: listed.key,
                controls: ["back", file?.isPinned == true ? "unpin" : "pin"],
                fields: fields)
        }
        let isFailed = file?.hasFailed == true
        return AppView.Screen(
            name: listed.key.text, record: listed.key, controls: ["back"] + (isAllowed && isFailed ? ["retry"] : []),
            error: !isAllowed ? FieldText.noWifi : isFailed ? FieldText.failed : FieldText.loading, fields: fields)
    }
}

extension FieldRecord {
    /// The record that is shown for it: a note is shown with its issue.
    var shownKey: RecordKey {
        if case .note(let issue, _, _, _, _) = content { issue } else { key }
    }
}

/// The words of the app's screens.
public enum FieldText {
    /// The policy does not allow the interface, or there is none.
    public static let noWifi = "no-wifi"
    /// A transfer is under way or follows.
    public static let loading = "loading"
    /// A transfer has failed.
    public static let failed = "failed"
    /// The payload could not be refreshed.
    public static let stale = "stale"
    /// The server rejects the user's credentials.
    public static let signIn = "sign-in"
    /// A file exceeds the quota.
    public static let noSpace = "no-space"
    /// The state of a file that the device has.
    public static let available = "available"
    /// The state of a file that the device does not have.
    public static let missing = "missing"
    /// The states of issues.
    public static let open = "open"
    public static let resolved = "resolved"
}
