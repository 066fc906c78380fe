internal import Client
internal import Wire

/// What is stored.
extension ReaderEngine {
    /// Reads the stored state.
    mutating func restore(_ state: AppState) throws(AppActError) {
        func unreadable(_ key: String) -> AppActError { AppActError("the stored value '\(key)' cannot be read") }
        func sequence(_ key: String) throws(AppActError) -> Int {
            guard let number = Int(key), number > 0 else { throw unreadable(key) }
            return number
        }
        for (id, bytes) in state.values(under: "page/") {
            guard let page = ReaderPage(id: id), let cached = JSONText.parse(bytes).flatMap({ CachedPage(stored: $0) })
            else { throw unreadable("page/\(id)") }
            cache[page] = cached
        }
        for (key, bytes) in state.values(under: "like/") {
            guard let article = RecordKey(key), case .bool(let isLiked)? = JSONText.parse(bytes) else {
                throw unreadable("like/\(key)")
            }
            likes[article] = isLiked
        }
        for (key, bytes) in state.values(under: "operation/") {
            let number = try sequence(key)
            guard let operation = JSONText.parse(bytes).flatMap({ LikeOperation(sequence: number, stored: $0) }) else {
                throw unreadable("operation/\(key)")
            }
            operations.append(operation)
        }
        operations.sort { $0.sequence < $1.sequence }
        for (name, bytes) in state.values(under: "draft/") {
            guard let form = ReaderForm(rawValue: name),
                let draft = JSONText.parse(bytes).flatMap({ FormDraft(stored: $0) })
            else { throw unreadable("draft/\(name)") }
            drafts[form] = draft
        }
        for (key, bytes) in state.values(under: "form/") {
            let number = try sequence(key)
            guard let form = JSONText.parse(bytes).flatMap({ OutgoingForm(sequence: number, stored: $0) }) else {
                throw unreadable("form/\(key)")
            }
            outgoing.append(form)
        }
        outgoing.sort { $0.sequence < $1.sequence }
        openForm = state.json("open-form")?.text.flatMap { ReaderForm(rawValue: $0) }
        if case .integer(let number)? = state.json("sequence") { lastSequence = Int(number) }
    }

    /// Stores which form is open, so that the app opens with it after it was killed.
    mutating func store(openForm screen: Screen) {
        var form: ReaderForm?
        if case .form(let open) = screen { form = open }
        guard form != openForm else { return }
        openForm = form
        commits.next.set("open-form", json: form.map { .text($0.rawValue) })
    }

    mutating func makeSequence() -> Int {
        lastSequence += 1
        commits.next.set("sequence", json: .integer(Int64(lastSequence)))
        return lastSequence
    }

    mutating func store(_ cached: CachedPage, as page: ReaderPage) {
        cache[page] = cached
        commits.next.set("page/\(page.id)", json: cached.stored)
        // The oldest pages of the kind make room.
        let others = cache.filter { $0.key.kind == page.kind && $0.key != page }
            .sorted { ($0.value.fetchedAt, $0.key.id) > ($1.value.fetchedAt, $1.key.id) }
        for (evicted, _) in others.dropFirst(page.kind.cachedMax - 1) { removeCached(evicted) }
    }

    mutating func removeCached(_ page: ReaderPage) {
        if cache.removeValue(forKey: page) != nil { commits.next.set("page/\(page.id)", nil) }
    }

    mutating func setLike(_ article: RecordKey, _ isLiked: Bool) {
        guard likes[article] != isLiked else { return }
        likes[article] = isLiked
        commits.next.set("like/\(article)", json: .bool(isLiked))
    }

    mutating func removeOperation(_ sequence: Int) {
        operations.removeAll { $0.sequence == sequence }
        commits.next.set("operation/\(sequence)", nil)
    }

    mutating func store(_ draft: FormDraft, of form: ReaderForm) {
        drafts[form] = draft
        var draft = draft
        if behavior.storesSecrets { draft.fields = draft.fields.merging(secrets) }
        commits.next.set("draft/\(form.rawValue)", json: draft.stored)
    }

    mutating func removeDraft(of form: ReaderForm) {
        if drafts.removeValue(forKey: form) != nil { commits.next.set("draft/\(form.rawValue)", nil) }
    }

    mutating func store(_ form: OutgoingForm) {
        if let index = outgoing.firstIndex(where: { $0.sequence == form.sequence }) {
            outgoing[index] = form
        } else {
            outgoing.append(form)
        }
        commits.next.set("form/\(form.sequence)", json: form.stored)
    }

    mutating func removeOutgoing(_ sequence: Int) {
        outgoing.removeAll { $0.sequence == sequence }
        laterRetries[sequence] = nil
        commits.next.set("form/\(sequence)", nil)
    }
}
