public import Client

/// What is shown.
extension ReaderEngine {
    public var view: AppView {
        AppView(
            rows: entries.sorted { $0.key < $1.key }.map { entry in
                AppView.Row(
                    key: entry.key, fields: ["title": entry.title, "text": isLiked(entry.key) ? "liked" : "not liked"])
            }, outbox: operations.count + outgoing.count { $0.state != .failed }, screen: visibleScreen,
            connectivity: interface.isUp ? .online : .interfaceDown)
    }

    /// The articles of the cached list.
    var entries: [PageContent.Entry] {
        cache[.articles].flatMap { content(.articles, $0) }?.entries ?? []
    }

    /// Returns the page in texts: with the name that other pages know of it.
    func subject(of page: ReaderPage) -> String {
        switch page {
        case .articles: "the list of articles"
        case .article(let key): entries.first { $0.key == key }.map { "the article '\($0.title)'" } ?? "the article"
        case .profile(let key): entries.first { $0.author == key }.map { "\($0.authorName)'s profile" } ?? "the profile"
        }
    }

    /// Returns the content of a cached page.
    func content(_ page: ReaderPage, _ cached: CachedPage) -> PageContent? {
        PageContent(page, cached.body, behavior.validation)
    }

    private var visibleScreen: AppView.Screen {
        var name = "list"
        var record: RecordKey?
        var controls: [String] = []
        var error: String?
        var fields: RecordFields = [:]
        switch screen {
        case .page(let page):
            (controls, fields) = contentOfPage(page)
            switch page {
            case .articles: break
            case .article(let key), .profile(let key): (name, record) = (key.text, key)
            }
            if let problem = pageProblem {
                error = problem.rawValue
                fields["message"] = behavior.message(problem, subject(of: page), pageStatus)
                if problem.canBeRetried { controls.append("retry") }
            }
        case .form(let form):
            name = form.rawValue
            controls = isSubmitting ? [] : ["back", "fill", "submit"]
            fields = drafts[form]?.fields ?? [:]
            for secret in form.secrets where secrets[secret] != nil || fields[secret] != nil {
                fields[secret] = ReaderText.concealed
            }
            if !formErrors.isEmpty {
                error = formErrors.sorted.map { "\($0.name): \($0.value)" }.joined(separator: "; ")
            }
        case .welcome: (name, controls) = ("welcome", ["back"])
        }
        var dialog: String?
        if isSubmitting {
            dialog = ReaderText.sending
        } else if let form = failedForm {
            dialog = ReaderText.notSent
            controls.append(contentsOf: ["cancel", "later", "retry"])
            fields["dialog-message"] = form.problem.message(about: form.form.subject)
        } else if let problem = likeFailures.first {
            dialog = ReaderText.notSaved
            controls.append("close")
            fields["dialog-message"] = problem.message(about: "your like")
        }
        fields["toast-message"] = toast?.message
        let waiting = outgoing.count { $0.state == .later }
        if waiting > 0 { fields["sent-later"] = "\(waiting)" }
        return AppView.Screen(
            name: name, record: record, controls: Set(controls).sorted(), dialog: dialog, toast: toast?.kind,
            error: error, fields: fields)
    }

    /// Returns the controls and the parts of a page: what the cache has, otherwise what other pages know of it.
    private func contentOfPage(_ page: ReaderPage) -> (controls: [String], fields: RecordFields) {
        var fields: RecordFields = [:]
        var controls = page == .articles ? ["feedback", "open", "sign-up"] : ["back"]
        let isShown = behavior.showsCacheDuringReads || loads[page] == nil
        let cached = isShown ? cache[page] : nil
        let content = cached.flatMap { self.content(page, $0) }
        switch page {
        case .articles:
            if !entries.isEmpty { controls.append("like") }
            if recommendation == nil || behavior.recommendsInParallel { controls.append("recommend") }
            if recommendation?.load.isSlow == true { fields["recommended"] = "loading" }
            if let recommendedTitle { fields["recommended"] = recommendedTitle }
        case .article(let key):
            fields["title"] = entries.first { $0.key == key }?.title
            if let content {
                fields = fields.merging(content.fields)
                // The operation needs the article.
                controls.append("like")
                fields["liked"] = isLiked(key) ? "yes" : "no"
            }
        case .profile(let key):
            fields["name"] = entries.first { $0.author == key }?.authorName
            if let content {
                fields = fields.merging(content.fields)
                for name in content.flawed { fields[name] = ReaderText.missing(name) }
            }
            if content?.picturePath != nil { fields["picture"] = picture(cached?.picture ?? .none) }
        }
        if content == nil, loads[page]?.isSlow == true { fields["indicator"] = "loading" }
        return (controls, fields)
    }

    private func picture(_ picture: CachedPage.Picture) -> String? {
        switch picture {
        case .loaded(let text): text
        case .failed: ReaderText.missing("picture")
        case .none: isSavingData ? ReaderText.notLoaded : nil
        }
    }
}
