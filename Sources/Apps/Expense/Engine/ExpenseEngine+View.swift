public import Client

/// What is shown.
extension ExpenseEngine {
    /// The view: confirmed records with the optimistic data of the queue, and the visible screen.
    public var view: AppView {
        let items = items
        let marked = markedRecords(items)
        let rows = items.filter { !$0.look.isHidden }.map { item in
            AppView.Row(
                key: item.key, fields: item.fields, isPending: item.look.isGrey && item.error == nil,
                isGrey: item.look.isGrey, isStruck: item.look.isStruck, isDeleted: item.pending == .delete,
                error: item.error, hasMarker: marked.contains(item.key))
        }
        return AppView(
            rows: rows, outbox: writes.count, screen: visibleScreen(hasErrors: items.contains { $0.error != nil }),
            connectivity: connectivity.belief)
    }

    private struct Item {
        let key: RecordKey
        let parent: RecordKey?
        let fields: RecordFields
        let pending: PendingAction?
        let error: String?
        let look: RecordLook
    }

    private var items: [Item] {
        let keys = Set(records.keys).union(writes.filter { $0.action == .add }.map(\.record)).sorted()
        return keys.map { key in
            let record = records[key]
            let queued = writes.filter { $0.record == key }
            var fields = (record?.confirmed ?? [:]).merging(record?.failure?.fields ?? [:])
            for write in queued { fields = fields.merging(write.fields) }
            var pending =
                pendingAction(queued.filter { $0.pattern == .optimisticWithPendingUI })
                ?? record?.failure?.action
            if pending == nil, acceptedAdditions.contains(key) { pending = .add }
            let error = record?.failure.map { Self.text(of: $0.errors) }
            return Item(
                key: key, parent: record?.parent ?? queued.first?.parent, fields: fields, pending: pending,
                error: error, look: behavior.look(isOffline, pending, error != nil))
        }
    }

    /// Returns the action of a record's queued writes together.
    private func pendingAction(_ queued: [QueuedWrite]) -> PendingAction? {
        if queued.last?.action == .delete { return .delete }
        return queued.contains { $0.action == .add } ? .add : queued.last?.action
    }

    /// Returns messages in one line: those of fields with their names.
    static func text(of errors: RecordFields) -> String {
        errors.sorted.map { $0.name.isEmpty ? $0.value : "\($0.name): \($0.value)" }.joined(separator: "; ")
    }

    /// Returns the records with an error and all records that contain one.
    private func markedRecords(_ items: [Item]) -> Set<RecordKey> {
        let parents = Dictionary(uniqueKeysWithValues: items.map { ($0.key, $0.parent) })
        var marked: Set<RecordKey> = []
        for item in items where item.error != nil {
            marked.insert(item.key)
            guard behavior.marksPathToErrors else { continue }
            var next = item.parent
            // A set stops a cycle, which a server could send.
            while let key = next, marked.insert(key).inserted { next = parents[key] ?? nil }
        }
        return marked
    }

    // MARK: The screen

    private func visibleScreen(hasErrors: Bool) -> AppView.Screen {
        let hasMarker = hasErrors && behavior.marksPathToErrors
        func screen(
            _ name: String, record: RecordKey? = nil, _ controls: [String], dialog: String? = nil, error: String? = nil,
            fields: RecordFields = [:]
        ) -> AppView.Screen {
            AppView.Screen(
                name: name, record: record, controls: controls, dialog: dialog, toast: toast?.text, error: error,
                hasMarker: hasMarker, fields: fields)
        }
        let signIn = needsSignIn ? ExpenseText.signIn : nil
        let dismiss = hasErrors ? ["dismiss"] : []
        switch self.screen {
        case .list:
            return screen(
                "list", ["open", "pin"] + (app.forms.map(\.name) + app.pages.map(\.name)) + dismiss, error: signIn)
        case .record(let key):
            return screen(key.text, record: key, ["add", "back", "delete", "edit"] + dismiss, error: signIn)
        case .form(let name):
            let draft = drafts[name] ?? FormDraft(form: name)
            let fields = draft.fields.merging(isOffline ? [:] : queryResults[name] ?? [:])
            switch draft.submission {
            case .editing where isQuerying(name) && app.form(name)?.questions.access == .read:
                return screen(name, [], dialog: ExpenseText.sending, fields: draft.fields)
            case .sending where !isOffline:
                return screen(name, [], dialog: ExpenseText.sending, fields: draft.fields)
            case .unknown:
                return screen(name, ["back"], dialog: ExpenseText.unknownResult, fields: draft.fields)
            case .editing, .sending:
                let messages = draft.errors.isEmpty ? formErrors[name] : Self.text(of: draft.errors)
                return screen(
                    name, ["back", "fill"] + (isOffline ? [] : ["submit"]),
                    error: isOffline ? ExpenseText.offline : messages, fields: fields)
            }
        case .page(let name):
            var content: RecordFields = [:]
            if case .shown(let fields) = page { content = fields }
            let isLocal = app.page(name)?.localContent != nil
            if isOffline, !isLocal { return screen(name, ["back"], error: ExpenseText.offline, fields: content) }
            let isFailed = page == .failed
            return screen(
                name, ["back"] + (isFailed ? ["retry"] : []), error: isFailed ? ExpenseText.failed : nil,
                fields: content)
        }
    }
}
