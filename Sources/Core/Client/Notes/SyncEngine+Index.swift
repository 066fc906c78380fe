internal import Determinism

/// The pages of the index, and what follows from them.
extension SyncEngine {
    mutating func handleIndex(_ result: SyncResult) {
        switch result {
        case .index(let page): handle(page)
        case .notModified: finishIndex()
        case .cursorExpired where index.cursor == nil && indexWork.page == nil:
            delayIndex(because: "the server has no list of records (410)")
        case .cursorExpired:
            index.cursor = nil
            storeIndex()
            indexWork.page = nil
            indexWork.want()
        case .forbidden(let status): pause(.forbidden, because: "the server rejects the user (\(status))")
        case .rejected(let status):
            delayIndex(because: "the server rejects the request for the list of records (\(status))")
        case .invalid(let reason): delayIndex(because: "the list of records cannot be read: \(reason)")
        default: delayIndex()
        }
    }

    private mutating func handle(_ page: RemoteIndex) {
        indexWork.isMonotonic = page.cursor != nil
        let awaitedBefore = indexWork.awaited.count
        for entry in page.entries { handle(entry) }
        for (id, reason) in page.unreadable.sorted(by: { $0.key < $1.key }) {
            // An entry without a readable identifier is reported under the empty one.
            indexWork.listed?.insert(id)
            setQuarantine(id, reason)
        }
        if !page.unreadable.isEmpty { indexWork.isComplete = false }
        indexWork.failures = 0
        if indexWork.listsContents { indexWork.contentsFailures = 0 }
        indexWork.retryAt = nil
        if mustListContents(page, missing: indexWork.awaited.count - awaitedBefore) {
            // The same page again, with the contents.
            indexWork.listsContents = true
            return indexWork.want()
        }
        if page.hasMore, let cursor = page.cursor, cursor != indexWork.page {
            indexWork.page = cursor
            storePosition(cursor)
            return indexWork.want()
        }
        if indexWork.isComplete {
            setQuarantine(RecordID(""), nil)
            if let listed = indexWork.listed {
                for id in records.keys.sorted() where !listed.contains(id) {
                    // A page may be older than a change that was acknowledged meanwhile.
                    if indexWork.written.contains(id) { fetch(id) } else { recordAbsence(of: id) }
                }
            }
            let isWhole = indexWork.listed != nil
            let isAdopting = index.isAdopting && !(isWhole && indexWork.adoptions.isEmpty)
            // A position is kept only when everything before it was read.
            let state = IndexState(
                cursor: isAdopting ? nil : page.cursor ?? index.cursor,
                entityTag: isWhole && !isAdopting ? page.entityTag : index.entityTag, isAdopting: isAdopting)
            index = state
            // A list with contents has another entity tag than the index.
            if indexWork.listsContents { index.entityTag = nil }
        }
        finishIndex()
        storeIndex()
    }

    /// Returns whether the contents of a page's records are read in a list, because that is faster than to read each record.
    private func mustListContents(_ page: RemoteIndex, missing: Int) -> Bool {
        guard mayListContents, !indexWork.listsContents, !index.isAdopting,
            indexWork.contentsFailures < Self.contentsFailuresMax
        else { return false }
        return ReadPlan.fastest(missing: missing, listed: page.entries.count, pathEstimate) == .list
    }

    private var mayListContents: Bool { resource.listsContents && policy.readsLists }

    /// Stores the position after a page with contents, so that a client that is killed continues there. Absences are found
    /// only by a whole index, so a load that began with records of the server keeps its position to itself.
    private mutating func storePosition(_ cursor: String) {
        guard indexWork.listsContents, indexWork.isComplete, !index.isAdopting,
            indexWork.listed == nil || indexWork.isFirstLoad
        else { return }
        index = IndexState(cursor: cursor)
        storeIndex()
    }

    /// Returns the operation that reads the next page of the index. The first load reads the contents with it.
    mutating func nextIndexOperation() -> SyncOperation {
        let cursor = indexWork.page ?? index.cursor
        if indexWork.page == nil {
            indexWork.written = []
            indexWork.isFirstLoad =
                cursor == nil && !index.isAdopting
                && !records.values.contains { $0.base != nil || $0.theirs != nil }
            if indexWork.isFirstLoad { indexWork.listsContents = mayListContents }
        }
        if cursor == nil { indexWork.listed = [] }
        if indexWork.contentsFailures >= Self.contentsFailuresMax { indexWork.listsContents = false }
        return indexWork.listsContents
            ? .contents(cursor: cursor) : .index(cursor: cursor, entityTag: cursor == nil ? index.entityTag : nil)
    }

    /// The failed attempts in a row to read a page with contents, after which the records are read one by one: a list may
    /// be longer than this path carries without a failure.
    private static let contentsFailuresMax = 2

    private mutating func finishIndex() {
        indexWork.finish(at: now)
        if policy.reads == .allRecords { for id in records.keys.sorted() { fetch(id) } }
        for id in quarantine.keys.sorted() where !id.text.isEmpty && schedules[id]?.queue.isEmpty ?? true { fetch(id) }
    }

    private mutating func handle(_ entry: RemoteIndex.Entry) {
        indexWork.listed?.insert(entry.id)
        guard let local = records[entry.id] else {
            // A page may be older than the deletion of a record.
            if !entry.isDeleted, !indexWork.written.contains(entry.id) { read(entry) }
            return
        }
        let hasChanges = !(schedules[entry.id]?.queue.isEmpty ?? true)
        if entry.isDeleted, recordAbsence(of: entry.id) != .kept || !hasChanges { return }
        if !entry.isDeleted, let known = local.theirs.map({ $0.revision }) ?? local.base {
            // Where revisions only grow, an older one is a late response. Otherwise the record was deleted and created
            // again.
            let isOlder = indexWork.isMonotonic && !index.isAdopting && entry.revision.precedes(known)
            if entry.revision == known || isOlder { return }
        }
        if index.isAdopting && !hasChanges { indexWork.adoptions.insert(entry.id) }
        if !hasChanges, let record = behavior.listing(local, entry) { store(record) }
        // The record's changes are sent before this fetch: the response to a repeated change may have an earlier
        // revision than this one.
        read(entry)
    }

    /// Takes the content of an entry, or requests the record.
    private mutating func read(_ entry: RemoteIndex.Entry) {
        let hasChanges = !(schedules[entry.id]?.queue.isEmpty ?? true)
        // A page may be older than a change that was acknowledged meanwhile.
        guard let content = entry.content, !hasChanges, !index.isAdopting, !indexWork.written.contains(entry.id) else {
            return fetch(entry.id, listed: entry.revision)
        }
        setQuarantine(entry.id, nil)
        take(RemoteRecord(id: entry.id, revision: entry.revision, content: content))
        if schedules[entry.id]?.wantsFetch == true { finishFetch(entry.id) }
    }

    /// Records that the server no longer has a record, and returns what has become of it.
    @discardableResult
    mutating func recordAbsence(of id: RecordID) -> AbsenceDecision {
        guard let local = records[id] else { return .kept }
        let hasChanges = !(schedules[id]?.queue.isEmpty ?? true)
        let decision = behavior.absence(
            RecordAbsence(record: local, hasChanges: hasChanges, isAdopting: index.isAdopting))
        switch decision {
        case .kept: break
        case .conflict: recordConflict(.deleted, id)
        case .removed: forget(id)
        }
        return decision
    }

    private mutating func fetch(_ id: RecordID, listed: RecordRevision? = nil) {
        requestFetch(of: id, listed: listed)
        schedule(id)
    }
}
