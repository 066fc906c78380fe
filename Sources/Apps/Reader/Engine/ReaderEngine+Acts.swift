public import Client
public import Determinism

/// Acts of the user.
extension ReaderEngine {
    public mutating func perform(_ act: AppAct, at now: Instant) throws(AppActError) {
        // The user waits for the result of a blocking form.
        if isSubmitting, act != .sync { return }
        switch act {
        case .open(let key): open(.page(try page(key)), at: now)
        case .sync: refresh(at: now)
        case .call("like", let key?, _): try like(key, true, at: now)
        case .call("unlike", let key?, _): try like(key, false, at: now)
        case .call("recommend", nil, _): try recommend(at: now)
        case .call("feedback", nil, _): open(.form(.feedback), at: now)
        case .call("sign-up", nil, _): open(.form(.signUp), at: now)
        case .call("fill", nil, let fields): try fill(fields)
        case .call("submit", nil, _): try submit(at: now)
        case .call("retry", nil, _): retry(at: now)
        case .call("cancel", nil, _):
            if let form = failedForm { removeOutgoing(form.sequence) }
        case .call("later", nil, _): later(at: now)
        case .call("close", nil, _):
            if !likeFailures.isEmpty { likeFailures.removeFirst() }
        default: throw .unknown
        }
        pump(at: now)
    }

    private func page(_ key: RecordKey?) throws(AppActError) -> ReaderPage {
        guard let key else { return .articles }
        // What is no known article is the name of a profile; the server knows whether there is one.
        return isArticle(key) ? .article(key) : .profile(key)
    }

    /// Returns whether a key is that of a known article.
    func isArticle(_ key: RecordKey) -> Bool {
        likes[key] != nil || entries.contains { $0.key == key }
    }

    // MARK: Pages

    /// Opens a screen: it is shown at once, and loads while it is open.
    mutating func open(_ screen: Screen, at now: Instant) {
        self.screen = screen
        visit += 1
        pageProblem = nil
        pageStatus = nil
        formErrors = [:]
        secrets = [:]
        store(openForm: screen)
        guard case .page(let page) = screen else { return }
        if let cached = cache[page], isFresh(cached, at: now) {
            wantPicture(of: page)
        } else {
            load(page, at: now)
        }
    }

    /// Returns whether a page is shown without a request.
    func isFresh(_ cached: CachedPage, at now: Instant) -> Bool {
        let age = clock.milliseconds(at: now).subtractingReportingOverflow(cached.fetchedAt)
        // A clock that was set back says nothing about the age.
        return !age.overflow && (age.partialValue >= 0 || behavior.trustsFuturePages)
            && Int64(age.partialValue) < life.count / 1_000_000
    }

    mutating func load(_ page: ReaderPage, at now: Instant) {
        pageProblem = nil
        pageStatus = nil
        guard loads[page] == nil else { return }
        loads[page] = Load(since: now)
        wantedPages.append(page)
    }

    /// Wants the picture of a profile, unless the data saver says no.
    mutating func wantPicture(of page: ReaderPage) {
        guard case .profile(let key) = page, let cached = cache[page], cached.picture == .none,
            content(page, cached)?.picturePath != nil, !isSavingData,
            !wantedPictures.contains(key)
        else { return }
        wantedPictures.append(key)
    }

    /// Whether additional data are not loaded.
    var isSavingData: Bool { savesData && interface.isMetered }

    /// Tries again what the user sees to have failed: a form that was not sent, or the page.
    private mutating func retry(at now: Instant) {
        if var form = failedForm {
            form.state = .sending
            store(form)
        } else if case .page(let page) = screen, pageProblem?.canBeRetried == true {
            load(page, at: now)
            furtherRequests = behavior.requestsPerRetry - 1
        }
    }

    /// Reads what is visible and expired, and sends what waits.
    private mutating func refresh(at now: Instant) {
        var pages = [ReaderPage.articles]
        if case .page(let page) = screen, page != .articles { pages.append(page) }
        for page in pages where !(cache[page].map { isFresh($0, at: now) } ?? false) { load(page, at: now) }
        for form in outgoing where form.state == .later { laterRetries[form.sequence] = (now, 0) }
    }

    // MARK: Operations

    private mutating func recommend(at now: Instant) throws(AppActError) {
        guard screen == .page(.articles) else { throw AppActError("a recommendation is on the list of articles") }
        // The button is mostly inert until the end.
        if recommendation != nil {
            if behavior.recommendsInParallel { send(.recommendation, "GET", "/recommendations") }
            return
        }
        recommendedTitle = nil
        recommendation = (Load(since: now), visit, false)
    }

    private mutating func like(_ article: RecordKey, _ isLiked: Bool, at now: Instant) throws(AppActError) {
        guard isArticle(article) else { throw AppActError("there is no article \(article)") }
        guard self.isLiked(article) != isLiked else { return }
        guard operations.count < Self.likesMax else {
            throw AppActError("\(Self.likesMax) likes have no result")
        }
        // Without a connection, success is not promised.
        guard interface.isUp else { return showProblem(.noConnection, about: "your like", at: now) }
        if !operations.contains(where: { $0.article == article }) { firstStates[article] = likes[article] ?? false }
        let operation = LikeOperation(sequence: makeSequence(), article: article, isLiked: isLiked, visit: visit)
        operations.append(operation)
        commits.next.set("operation/\(operation.sequence)", json: operation.stored)
    }

    /// Returns whether an article is shown as one that the user likes.
    func isLiked(_ article: RecordKey) -> Bool {
        let confirmed = likes[article] ?? false
        guard behavior.showsLikesAtOnce else { return confirmed }
        return operations.last { $0.article == article }?.isLiked ?? confirmed
    }

    // MARK: Forms

    private mutating func fill(_ fields: RecordFields) throws(AppActError) {
        guard case .form(let form) = screen else { throw AppActError("no form is open") }
        var draft = drafts[form] ?? FormDraft()
        for (name, value) in fields.sorted {
            guard form.inputs.contains(name) else {
                throw AppActError(
                    "the form '\(form.rawValue)' has no input '\(name)' (known: "
                        + "\(form.inputs.joined(separator: ", ")))")
            }
            guard value.utf8.count <= Self.inputBytesMax else {
                throw AppActError("the input '\(name)' has more than \(Self.inputBytesMax) bytes")
            }
            let isSecret = form.secrets.contains(name)
            let old = isSecret ? secrets[name] : draft.fields[name]
            // Other inputs are another operation. A password that was lost with the process is no other one.
            if let old, !old.utf8.elementsEqual(value.utf8) { draft.operation = nil }
            if isSecret { secrets[name] = value } else { draft.fields[name] = value }
            formErrors[name] = nil
        }
        store(draft, of: form)
    }

    private mutating func submit(at now: Instant) throws(AppActError) {
        guard case .form(let form) = screen else { throw AppActError("no form is open") }
        var draft = drafts[form] ?? FormDraft()
        formErrors = [:]
        guard !form.isBlocking else {
            draft.operation = draft.operation ?? makeOperation()
            store(draft, of: form)
            isSubmitting = true
            wantsSubmission = true
            return
        }
        guard outgoing.count < Self.formsMax else { throw AppActError("\(Self.formsMax) forms wait to be sent") }
        // The form is stored first, then it closes, and then it is sent.
        removeDraft(of: form)
        store(
            OutgoingForm(
                sequence: makeSequence(), form: form, fields: draft.fields, operation: makeOperation()))
        open(.page(.articles), at: now)
    }

    /// The form whose failure is shown.
    var failedForm: OutgoingForm? { outgoing.first { $0.state == .failed } }

    private mutating func later(at now: Instant) {
        guard var form = failedForm else { return }
        form.state = .later
        laterRetries[form.sequence] = (now, 0)
        delayLater(form.sequence, at: now)
        show(ReaderText.sentLater, nil, at: now)
        guard behavior.keepsForm(.later) else { return removeOutgoing(form.sequence) }
        store(form)
    }

    mutating func delayLater(_ sequence: Int, at now: Instant) {
        let failures = (laterRetries[sequence]?.failures ?? 0) + 1
        laterRetries[sequence] = (now + Self.backoff.delay(afterFailures: failures, random: &random), failures)
    }

    // MARK: Messages

    mutating func show(_ kind: String, _ message: String?, at now: Instant) {
        toast = (kind, message, now + Self.toastTime)
    }

    mutating func showProblem(_ problem: ReaderProblem, about subject: String, at now: Instant) {
        show(problem.rawValue, problem.message(about: subject), at: now)
    }
}
