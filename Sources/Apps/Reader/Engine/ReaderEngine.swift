//  Reader/Engine: the decisions of a network-first app, which shows what the server has and keeps little of it.
//
//  Owns: pages with a cache, kinds of errors, operations that a user starts, states such as likes with their rollback,
//  forms that block the app and forms that are sent in the background, the data saver.
//
//  Does not own: connections (Client/App), sockets, files and clocks (drivers), the server (ReaderService), apps that work
//  without a network (SyncEngine, ExpenseEngine).

public import Client
public import Determinism
internal import Wire

/// The decisions of the reader. A value without a socket, clock or file: its inputs are events and the time, its outputs are
/// commits and requests.
///
/// A change is committed before anything of it is sent or shown.
public struct ReaderEngine: AppEngine {
    /// What the user sees.
    enum Screen: Hashable {
        case page(ReaderPage)
        case form(ReaderForm)
        /// The page after a new account.
        case welcome
    }

    /// A request in flight.
    enum Activity: Hashable {
        case page(ReaderPage)
        case picture(RecordKey)
        case recommendation
        case like(Int)
        case outgoing(Int)
        case blockingForm
        /// A further request of a retry, whose response is not used.
        case further
    }

    /// A read in flight that the user waits for.
    struct Load {
        let since: Instant
        /// Whether it takes so long that the loading indicator is shown.
        var isSlow = false
    }

    public static let basePath = "/reader"
    public static let markerField = "Slowlane-Reader"

    /// The time after which a read that the user waits for has a loading indicator. A shorter one would only flicker.
    public static let indicatorDelay = Nanoseconds.milliseconds(300)
    /// The time for which a message that vanishes by itself is shown.
    public static let toastTime = Nanoseconds.seconds(3)
    /// The default lifetime of cached pages, the setting `life`.
    public static let cacheLife = Nanoseconds.seconds(300)
    /// The delays between attempts to send a form later.
    public static let backoff = Backoff(first: .seconds(5), longest: .seconds(60))
    /// The longest random delay of the first request after an interface has come up, so that many clients do not send at
    /// once.
    public static let recoverySpread = Nanoseconds.seconds(1)
    /// The maximum number of forms in the background; another one is refused.
    public static let formsMax = 20
    /// The maximum number of likes without a result; another one is refused.
    public static let likesMax = 100
    /// The maximum number of dialogs about likes that wait; the oldest are dropped.
    public static let dialogsMax = 10
    /// The longest input of a form in bytes.
    public static let inputBytesMax = 1_024
    /// The pool of connections of reads, and that of writes: a write does not wait for a slow read.
    static let (readPool, writePool) = (0, 1)

    let behavior: ReaderBehavior
    let life: Nanoseconds
    let savesData: Bool
    var clock: WallClock
    var interface = NetworkInterface(isUp: true)

    // What is stored.
    var cache: [ReaderPage: CachedPage] = [:]
    /// The likes that the server has confirmed.
    var likes: [RecordKey: Bool] = [:]
    var operations: [LikeOperation] = []
    var drafts: [ReaderForm: FormDraft] = [:]
    var outgoing: [OutgoingForm] = []
    var lastSequence = 0
    var openForm: ReaderForm?

    // What is not stored.
    var screen = Screen.page(.articles)
    /// The number of pages that were opened so far: tells whether the user is still on a page.
    var visit = 0
    var pageProblem: ReaderProblem?
    /// The status of the response to a failed read.
    var pageStatus: Int?
    var loads: [ReaderPage: Load] = [:]
    /// The pages whose requests are to be sent.
    var wantedPages: [ReaderPage] = []
    var wantedPictures: [RecordKey] = []
    /// The search for a recommendation, and the visit in which it began.
    var recommendation: (load: Load, visit: Int, isSent: Bool)?
    var recommendedTitle: String?
    /// Secret inputs of the open form.
    var secrets: RecordFields = [:]
    /// Whether the open form is being sent and the app is blocked.
    var isSubmitting = false
    var wantsSubmission = false
    /// What the open form shows.
    var formErrors: RecordFields = [:]
    /// Likes that have failed after the user has left their page.
    var likeFailures: [ReaderProblem] = []
    var toast: (kind: String, message: String?, until: Instant)?
    /// The times of the next attempts of forms that are sent later, and the failures of earlier ones.
    var laterRetries: [Int: (at: Instant, failures: Int)] = [:]
    /// The confirmed state before the first of several taps.
    var firstStates: [RecordKey: Bool] = [:]
    /// The number of the first request that was sent after the last result of a like: an earlier read may be older.
    var likeNumbers: [RecordKey: Int] = [:]
    var furtherRequests = 0

    var exchanges: [Int: Activity] = [:]
    var commits = CommitSequence<AppChange>()
    var actions: [AppAction] = []
    var nextNumber = 0
    var random: RandomStream
    var ids: RandomStream

    /// The maximum number of connections of a pool: other pages stay reachable while one is loading.
    public var connectionsMax: Int { 4 }

    /// Creates an engine on a stored state.
    ///
    /// - Throws: If a stored value cannot be read.
    public init(
        _ configuration: AppConfiguration, restoring state: AppState = AppState(),
        behavior: ReaderBehavior = ReaderBehavior()
    ) throws(AppActError) {
        self.behavior = behavior
        clock = configuration.clock
        life = configuration.time("life", default: Self.cacheLife)
        savesData = configuration.settings["data-saver"] == "on"
        random = RandomStream(seed: configuration.seed, "reader/delays")
        ids = RandomStream(seed: configuration.seed, "reader/operations")
        try restore(state)
    }

    // MARK: State

    public var isSettled: Bool {
        !isBusy && toast == nil && operations.isEmpty && !outgoing.contains { $0.state != .failed }
            && wantedPages.isEmpty && recommendation == nil && !isSubmitting
    }

    public var isBusy: Bool { !exchanges.isEmpty || isCommitPending }

    public var isCommitPending: Bool { commits.isPending }

    public var nextDeadline: Instant? {
        var next = Instant.never
        if let toast { next = min(next, toast.until) }
        for load in loads.values where !load.isSlow { next = min(next, load.since + behavior.indicatorDelay) }
        if let load = recommendation?.load, !load.isSlow { next = min(next, load.since + behavior.indicatorDelay) }
        if let commitAt = commits.retryAt { next = min(next, commitAt) }
        if !commits.isAwaited, interface.isUp, !isSending {
            for form in outgoing where form.state == .later {
                next = min(next, laterRetries[form.sequence]?.at ?? .never)
            }
        }
        return next == .never ? nil : next
    }

    public mutating func nextAction() -> AppAction? { actions.isEmpty ? nil : actions.removeFirst() }

    /// Whether a form of the background is in flight.
    var isSending: Bool {
        exchanges.values.contains { if case .outgoing = $0 { true } else { false } }
    }

    // MARK: Inputs of the device

    public mutating func started(_ interface: NetworkInterface, at now: Instant) {
        self.interface = interface
        for form in outgoing where form.state == .later { laterRetries[form.sequence] = (now, 0) }
        open(openForm.map { .form($0) } ?? .page(.articles), at: now)
        pump(at: now)
    }

    public mutating func interfaceChanged(_ interface: NetworkInterface, at now: Instant) {
        let (wasUp, wasMetered) = (self.interface.isUp, self.interface.isMetered)
        self.interface = interface
        if !interface.isUp {
            // Their connections are lost with the interface.
            for (number, activity) in exchanges.sorted(by: { $0.key < $1.key }) {
                actions.append(.cancel(number))
                exchanges[number] = nil
                failed(activity, .noConnection, at: now)
            }
        } else if !wasUp {
            // What was promised to be sent later is sent.
            let at = now + Nanoseconds(random.integer(below: Self.recoverySpread.count))
            for form in outgoing where form.state == .later { laterRetries[form.sequence] = (at, 0) }
            if behavior.rereadsPages, case .page(let page) = screen, pageProblem != nil {
                load(page, at: now)
            }
        } else if wasMetered, !interface.isMetered, case .page(let page) = screen {
            wantPicture(of: page)
        }
        pump(at: now)
    }

    public mutating func wallClockChanged(_ clock: WallClock, at now: Instant) { self.clock = clock }

    public mutating func advance(to now: Instant) {
        if let until = toast?.until, until <= now { toast = nil }
        for (page, load) in loads where load.since + behavior.indicatorDelay <= now { loads[page]?.isSlow = true }
        if let load = recommendation?.load, load.since + behavior.indicatorDelay <= now {
            recommendation?.load.isSlow = true
        }
        if let change = commits.retry(at: now) { actions.append(.commit(change)) }
        pump(at: now)
    }

    // MARK: Commits

    public mutating func committed(at now: Instant) {
        commits.succeeded()
        pump(at: now)
    }

    public mutating func commitFailed(at now: Instant) { commits.failed(at: now) }

    // MARK: Sending

    /// Commits what has changed, or sends what can be sent.
    mutating func pump(at now: Instant) {
        // What cannot be sent fails at once, which may change what is stored.
        if !interface.isUp { failUnsent(at: now) }
        if let change = commits.begin() { actions.append(.commit(change)) }
        if commits.isAwaited { return }
        guard interface.isUp else { return }
        for page in wantedPages { sendPage(page) }
        wantedPages = []
        for key in wantedPictures { sendPicture(key) }
        wantedPictures = []
        if recommendation?.isSent == false {
            recommendation?.isSent = true
            send(.recommendation, "GET", "/recommendations")
        }
        for operation in operations { sendLike(operation) }
        sendForms(at: now)
        for _ in 0..<furtherRequests { sendFurther() }
        furtherRequests = 0
    }

    /// Ends what is to be sent: the interface is down.
    private mutating func failUnsent(at now: Instant) {
        for page in wantedPages { failed(.page(page), .noConnection, at: now) }
        wantedPages = []
        wantedPictures = []
        if recommendation?.isSent == false { failed(.recommendation, .noConnection, at: now) }
        for operation in operations { failed(.like(operation.sequence), .noConnection, at: now) }
        for form in outgoing where form.state == .sending { failed(.outgoing(form.sequence), .noConnection, at: now) }
        if wantsSubmission { failed(.blockingForm, .noConnection, at: now) }
        furtherRequests = 0
    }

    mutating func send(
        _ activity: Activity, _ method: String, _ path: String, operation: String? = nil, _ json: JSONValue? = nil,
        tag: String? = nil
    ) {
        let isRead = method == "GET"
        var request = AppRequest(
            number: nextNumber, method: method, target: Self.basePath + path, operation: operation, json: json,
            pool: isRead ? Self.readPool : Self.writePool)
        if let tag { request.fields.append((name: "If-None-Match", value: tag)) }
        exchanges[nextNumber] = activity
        nextNumber += 1
        actions.append(.send(request))
    }

    private mutating func sendPage(_ page: ReaderPage) {
        guard !exchanges.values.contains(.page(page)) else { return }
        send(.page(page), "GET", page.path, tag: cache[page]?.tag)
    }

    private mutating func sendPicture(_ key: RecordKey) {
        let page = ReaderPage.profile(key)
        guard !exchanges.values.contains(.picture(key)), let cached = cache[page],
            let path = content(page, cached)?.picturePath
        else { return }
        send(.picture(key), "GET", String(path.dropFirst(Self.basePath.count)))
    }

    private mutating func sendLike(_ operation: LikeOperation) {
        // The taps on one article are sent one after the other.
        guard operations.first(where: { $0.article == operation.article })?.sequence == operation.sequence,
            !exchanges.values.contains(.like(operation.sequence))
        else { return }
        send(.like(operation.sequence), operation.isLiked ? "PUT" : "DELETE", "/articles/\(operation.article)/like")
    }

    private mutating func sendForms(at now: Instant) {
        if wantsSubmission, case .form(let form) = screen {
            wantsSubmission = false
            let draft = drafts[form] ?? FormDraft()
            send(
                .blockingForm, "POST", form.path, operation: draft.operation,
                ["fields": draft.fields.merging(secrets).json])
        }
        guard !isSending else { return }
        let due = outgoing.first { form in
            form.state == .sending || form.state == .later && laterRetries[form.sequence].map { $0.at <= now } ?? false
        }
        guard let due else { return }
        send(
            .outgoing(due.sequence), "POST", due.form.path, operation: due.operation, ["fields": due.fields.json])
    }

    private mutating func sendFurther() {
        if case .page(let page) = screen { send(.further, "GET", page.path) }
    }

    /// Returns a new operation id of 32 hexadecimal digits.
    mutating func makeOperation() -> String {
        func digits(_ value: UInt64) -> String {
            let text = String(value, radix: 16)
            return String(repeating: "0", count: 16 - text.utf8.count) + text
        }
        return digits(ids.next()) + digits(ids.next())
    }
}
