public import Client
public import Determinism
internal import Wire

/// Results of requests.
extension ReaderEngine {
    public mutating func responseReceived(_ response: AppResponse, to number: Int, at now: Instant) {
        guard let activity = exchanges.removeValue(forKey: number) else { return }
        switch activity {
        case .page(let page): pageReceived(page, response, number, at: now)
        case .picture(let key): pictureReceived(key, response)
        case .recommendation: recommendationReceived(response, at: now)
        case .like(let sequence): liked(sequence, response, at: now)
        case .outgoing(let sequence): sent(sequence, response, at: now)
        case .blockingForm: submitted(response, at: now)
        case .further: break
        }
        pump(at: now)
    }

    public mutating func requestFailed(_ number: Int, _ failure: AppFailure, at now: Instant) {
        guard let activity = exchanges.removeValue(forKey: number) else { return }
        failed(activity, ReaderProblem(failure.cause), at: now)
        pump(at: now)
    }

    /// Applies that a request has no response of the service, or was not sent.
    mutating func failed(_ activity: Activity, _ problem: ReaderProblem, at now: Instant) {
        switch activity {
        case .page(let page): pageFailed(page, problem, at: now)
        case .picture(let key): cache[.profile(key)]?.picture = .failed
        case .recommendation: recommendationFailed(problem, at: now)
        case .like(let sequence): likeFailed(sequence, problem, at: now)
        case .outgoing(let sequence): outgoingFailed(sequence, problem, at: now)
        case .blockingForm: submissionFailed(problem, at: now)
        case .further: break
        }
    }

    // MARK: Pages

    private mutating func pageReceived(
        _ page: ReaderPage, _ response: AppResponse, _ number: Int, at now: Instant
    ) {
        // A body that may be older than the result of a like is shown, but not for long.
        let time = mayBeOlderThanLike(number) ? .min : clock.milliseconds(at: now)
        switch response.status {
        case 304:
            guard var cached = cache[page] else { return pageFailed(page, .receivedData, at: now) }
            loads[page] = nil
            cached.fetchedAt = time
            // The body may have arrived while a like had no result.
            if let content = content(page, cached) { applyLikes(content, page, number) }
            if cached.picture == .failed { cached.picture = .none }
            store(cached, as: page)
        case 200:
            guard response.body.count <= CachedPage.bytesMax, let body = response.json,
                let content = PageContent(page, body, behavior.validation)
            else { return pageFailed(page, .receivedData, at: now) }
            loads[page] = nil
            applyLikes(content, page, number)
            // The cache has one profile: that of the user's page.
            if case .profile = page, case .page(.profile) = screen, screen != .page(page) { return }
            store(CachedPage(body: body, tag: response["ETag"], fetchedAt: time), as: page)
        default:
            if screen == .page(page) { pageStatus = response.status }
            return pageFailed(page, ReaderProblem(status: response.status), at: now)
        }
        wantPicture(of: page)
    }

    private mutating func pageFailed(_ page: ReaderPage, _ problem: ReaderProblem, at now: Instant) {
        loads[page] = nil
        // Another page is not disturbed; this one is read again when it is opened.
        guard screen == .page(page) else { return }
        guard behavior.keepsPageErrors else { return showProblem(problem, about: subject(of: page), at: now) }
        pageProblem = problem
    }

    /// Applies the likes of a page, unless the user has changed them meanwhile.
    private mutating func applyLikes(_ content: PageContent, _ page: ReaderPage, _ number: Int) {
        var found = content.entries.map { ($0.key, $0.isLiked) }
        if case .article(let key) = page, let isLiked = content.isLiked { found.append((key, isLiked)) }
        for (article, isLiked) in found {
            let isPending = operations.contains { $0.article == article }
            if !isPending, likeNumbers[article].map({ $0 <= number }) ?? true { setLike(article, isLiked) }
        }
        if page == .articles, content.entries.count < likes.count {
            // Articles that are not listed any more are forgotten.
            let listed = Set(content.entries.map(\.key))
            for article in likes.keys.sorted() where !listed.contains(article) {
                likes[article] = nil
                commits.next.set("like/\(article)", nil)
            }
        }
    }

    /// Returns whether the response to a request may have been made before the result of a like.
    private func mayBeOlderThanLike(_ number: Int) -> Bool { likeNumbers.values.contains { $0 > number } }

    private mutating func pictureReceived(_ key: RecordKey, _ response: AppResponse) {
        let page = ReaderPage.profile(key)
        guard var cached = cache[page] else { return }
        if response.status == 200, let picture = response.json.flatMap({ PageContent.text($0["picture"]) }) {
            cached.picture = .loaded(picture)
            store(cached, as: page)
        } else {
            cache[page]?.picture = .failed
        }
    }

    // MARK: Operations

    private mutating func recommendationReceived(_ response: AppResponse, at now: Instant) {
        guard response.status == 200 else {
            return recommendationFailed(ReaderProblem(status: response.status), at: now)
        }
        // Without its required data, the operation is cancelled as a whole.
        guard let body = response.json, let title = PageContent.text(body["title"]), !title.isEmpty,
            body["key"].text.flatMap({ RecordKey($0) }) != nil
        else { return recommendationFailed(.receivedData, at: now) }
        recommendation = nil
        recommendedTitle = title
    }

    private mutating func recommendationFailed(_ problem: ReaderProblem, at now: Instant) {
        guard let ended = recommendation else { return }
        recommendation = nil
        guard ended.visit == visit || behavior.reportsAfterLeaving(.recommendation) else { return }
        showProblem(problem, about: "a recommendation", at: now)
    }

    private mutating func liked(_ sequence: Int, _ response: AppResponse, at now: Instant) {
        guard let operation = operations.first(where: { $0.sequence == sequence }) else { return }
        guard response.isSuccess else {
            return likeFailed(sequence, ReaderProblem(status: response.status, other: .cannotSave), at: now)
        }
        removeOperation(sequence)
        likeNumbers[operation.article] = nextNumber
        setLike(operation.article, operation.isLiked)
    }

    private mutating func likeFailed(_ sequence: Int, _ problem: ReaderProblem, at now: Instant) {
        guard let operation = operations.first(where: { $0.sequence == sequence }) else { return }
        // The state before this operation is the last one that the server has confirmed.
        removeOperation(sequence)
        likeNumbers[operation.article] = nextNumber
        if behavior.rollback == .first, let first = firstStates[operation.article] {
            setLike(operation.article, first)
        }
        // The server may have executed the request: the next visit of the pages reads them again.
        for page in [ReaderPage.articles, .article(operation.article)] {
            guard var cached = cache[page] else { continue }
            cached.fetchedAt = .min
            store(cached, as: page)
        }
        if operation.visit == visit {
            showProblem(problem, about: "your like", at: now)
        } else if behavior.reportsAfterLeaving(.like) {
            likeFailures.append(problem)
            if likeFailures.count > Self.dialogsMax { likeFailures.removeFirst() }
        }
    }

    // MARK: Forms

    private mutating func sent(_ sequence: Int, _ response: AppResponse, at now: Instant) {
        guard response.isSuccess else {
            let problem = ReaderProblem(status: response.status, other: .cannotSave)
            return outgoingFailed(sequence, problem, at: now, response)
        }
        removeOutgoing(sequence)
        show(ReaderText.sent, nil, at: now)
    }

    private mutating func outgoingFailed(
        _ sequence: Int, _ problem: ReaderProblem, at now: Instant, _ response: AppResponse? = nil
    ) {
        guard var form = outgoing.first(where: { $0.sequence == sequence }) else { return }
        form.problem = problem
        let isRejected =
            response.map { (400...499).contains($0.status) && ![408, 425, 429].contains($0.status) } ?? false
        // A form that is sent later waits for the next attempt, unless the server will never accept it.
        if form.state == .later, !isRejected {
            delayLater(sequence, at: now)
            if let seconds = response?.retryAfterSeconds, let retry = laterRetries[sequence] {
                laterRetries[sequence] = (max(retry.at, now + .seconds(Int64(seconds))), retry.failures)
            }
        } else if !behavior.keepsForm(.failed) {
            return removeOutgoing(sequence)
        } else {
            form.state = .failed
        }
        store(form)
    }

    private mutating func submitted(_ response: AppResponse, at now: Instant) {
        guard case .form(let form) = screen else { return }
        if response.isSuccess {
            endSubmission()
            removeDraft(of: form)
            return open(.welcome, at: now)
        }
        if (400...499).contains(response.status), var draft = drafts[form] {
            // The operation was not executed.
            draft.operation = nil
            store(draft, of: form)
        }
        guard response.status == 422, !response.isKeyReused,
            let errors = RecordFields(response.json?["errors"] ?? .null), !errors.isEmpty
        else { return submissionFailed(ReaderProblem(status: response.status, other: .cannotSave), at: now) }
        endSubmission()
        formErrors = errors
    }

    private mutating func submissionFailed(_ problem: ReaderProblem, at now: Instant) {
        guard isSubmitting, case .form(let form) = screen else { return }
        endSubmission()
        if !behavior.keepsForm(.failed) {
            removeDraft(of: form)
            secrets = [:]
        }
        showProblem(problem, about: form.subject, at: now)
    }

    private mutating func endSubmission() {
        isSubmitting = false
        wantsSubmission = false
    }
}
