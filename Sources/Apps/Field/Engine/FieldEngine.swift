//  Field/Engine: the decisions of the field app.
//
//  Owns: the sign-in, the payload and the records that are stitched into it, groups by submission period, runs (push, pull, photos,
//  files), the policy about interfaces, the daily pull, resumable transfers, the quota of files.
//
//  Does not own: connections (Client/App), sockets, files and clocks (drivers), the server (FieldService).

public import Client
public import Determinism
internal import NotesContract
internal import Wire

/// The decisions of the field app. A value without a socket, clock or file: its inputs are events and the time, its outputs are
/// commits and requests.
///
/// Work is done in runs: records are pushed, the payload is pulled, photos are uploaded, files are downloaded, one request
/// at a time. A run begins with a reason: a start, an interface that the policy allows, a new record, a user who opens
/// the list, or the interval between runs.
public struct FieldEngine: AppEngine {
    public static let basePath = "/field"
    public static let markerField = "Slowlane-Field"

    /// The screen that the user has opened.
    enum Screen: Hashable, Sendable {
        case list
        case record(RecordKey)
    }

    /// The steps of a run in their order.
    enum Phase: Int, Sendable { case push, pull, photos, files }

    /// A run.
    struct Run: Sendable {
        let start: Instant
        /// The time at which the run stops; `nil` for no limit.
        let stopAt: Instant?
        var phase = Phase.push
        var hasPulled = false
        /// Whether a push or pull has failed, so that another run follows after a delay.
        var mustRepeat = false
        /// Records that are not sent again in this run.
        var skipped: Set<RecordKey> = []
        /// Whether records are sent one by one, because the server has rejected a batch.
        var isIsolating = false
        /// Photos whose transfer has failed in this run.
        var failedPhotos: Set<RecordKey> = []
        /// The photo that is uploaded, with the offset if it is known.
        var photo: (key: RecordKey, offset: Int?)?
        /// Transfers that have failed.
        var failures = 0
        /// The file that is downloaded.
        var file: String?
        /// The size of the last transfer of a file, and the time that it took.
        var lastTransfer: (bytes: Int, time: Nanoseconds)?
    }

    /// The purpose of a request.
    enum Activity: Hashable, Sendable {
        /// The sign-in, before all other requests.
        case session
        case payload
        /// A push, with the edits of its records.
        case updates([RecordKey: Int])
        case photoState(RecordKey)
        case photoPiece(RecordKey, offset: Int, count: Int)
        case photoRestart(RecordKey)
        case file(String, range: Range<Int>)
        case events
    }

    /// The delays between runs that fail.
    static let backoff = Backoff(first: .seconds(1), longest: .seconds(60))
    /// The number of failed transfers that end a run.
    static let transferFailuresMax = 3
    /// The maximum number of records of a push.
    static let batchMax = 100
    /// The maximum number of records on the device; further ones are refused.
    static let recordsMax = 5000
    /// The maximum number of bytes of a photo.
    static let photoBytesMax = 4 << 20
    /// The greatest size of a file; greater ones are left out.
    static let fileBytesMax = 16 << 20
    /// The greatest size of a request for a file.
    static let fileRequestBytesMax = 256 << 10
    /// The bytes of a part of an upload.
    static let photoPieceBytes = 64 << 10
    /// The shortest and the longest delay between questions for events.
    static let eventsDelay = Nanoseconds.seconds(1)...Nanoseconds.seconds(3600)
    /// The greatest difference of the server's clock from its estimate that is ignored.
    static let clockToleranceMilliseconds = 1000

    let policy: FieldPolicy
    let behavior: FieldBehavior

    // What is stored.
    var payload: FieldPayload?
    /// The entity tag of the payload.
    var payloadTag: String?
    /// The milliseconds since 1970 of the device's clock at the last pull; 0 for none.
    var pulledAt = 0
    /// The beginning of the submission period in which the payload was pulled.
    var pulledPeriod = 0
    /// The difference of the server's clock from that of the device, in milliseconds.
    var serverOffset = 0
    /// Whether the server has accepted the user's credentials, and has not rejected them since.
    var isSignedIn = false
    /// The language of the device; `nil` for that of the server.
    var language: String?
    /// Whether the server has got records that the payload may not have.
    var needsPull = false
    var records: [RecordKey: FieldRecord] = [:]
    var photoBytes: [RecordKey: [UInt8]] = [:]
    var files: [String: StoredFile] = [:]
    var openings = 0

    // What is not.
    var clock: WallClock
    var interface = NetworkInterface(isUp: false)
    var screen = Screen.list
    var run: Run?
    /// Whether a run is to begin.
    var wantsRun = true
    /// Whether the next run pulls in any case.
    var forcesPull = false
    /// A file that the user wants first.
    var wantedFile: String?
    /// The cursor of the payload whose list of files was found to be out of date.
    var outdatedCursor: Int?
    /// Whether the last exchange has ended without a response.
    var isUnreachable = false
    var hasPullFailed = false
    /// Whether the server rejects the user's credentials: nothing is sent until the user signs in, syncs or tries again.
    var needsSignIn = false
    var failures = 0
    /// The time before which no run begins after a failure.
    var retryAt: Instant?
    /// The time before which the server wants no request.
    var notBefore: Instant?
    /// The time of the next run without another reason.
    var nextRunAt: Instant?
    var eventsAt: Instant?
    var eventsTime = Nanoseconds.seconds(30)
    var exchanges: [Int: Activity] = [:]
    /// The times at which the requests in flight were sent.
    var sendTimes: [Int: Instant] = [:]
    /// The bytes of downloads in flight that are not in the store.
    var buffers: [Int: [UInt8]] = [:]
    /// The number of bytes that have arrived of each.
    var arrived: [Int: Int] = [:]

    var commits = CommitSequence<AppChange>()
    var actions: [AppAction] = []
    private var nextNumber = 0
    var random: RandomStream
    var choices: RandomStream
    var ids: RandomStream

    // MARK: State

    public var connectionsMax: Int { behavior.filesAtOnce }

    /// Whether the policy allows to use the interface.
    var isAllowed: Bool { policy.allows(interface) }

    /// Returns the milliseconds since 1970 of the server's clock.
    func serverTime(at now: Instant) -> Int { clock.milliseconds(at: now) + serverOffset }

    public var isBusy: Bool { !exchanges.isEmpty || isCommitPending }

    public var isCommitPending: Bool { commits.isPending }

    public var isSettled: Bool {
        if needsSignIn, exchanges.isEmpty, !isCommitPending { return true }
        return exchanges.isEmpty && !isCommitPending && run == nil && payload != nil && !wantsRun && !needsPull
            && !records.values.contains { $0.isPending || $0.needsUpload } && openFiles.isEmpty
    }

    /// The files that are to be downloaded and whose last transfer has not failed.
    private var openFiles: [String] { missingFiles.filter { files[$0]?.hasFailed == false } }

    /// The files that the device keeps by its quota.
    var keptFiles: [String] {
        var candidates: [FieldQuota.Candidate] = []
        for listed in payload?.files ?? [] {
            guard let file = files[listed.digest.description], !candidates.contains(where: { $0.id == file.id }) else {
                continue
            }
            candidates.append(
                FieldQuota.Candidate(id: file.id, bytes: file.size, isPinned: file.isPinned, opened: file.opened))
        }
        return FieldQuota.kept(candidates, quotaBytes: policy.quotaBytes)
    }

    /// The files that are to be downloaded.
    var missingFiles: [String] { keptFiles.filter { files[$0]?.isPulled == false } }

    public var nextDeadline: Instant? {
        if let commitAt = commits.retryAt { return commitAt }
        if commits.isAwaited { return nil }
        var next = Instant.never
        if let stopAt = run?.stopAt { next = min(next, stopAt) }
        if run == nil, isAllowed, !needsSignIn, exchanges.isEmpty {
            if wantsRun {
                next = min(next, max(retryAt ?? .start, notBefore ?? .start))
            } else if let nextRunAt {
                next = min(next, nextRunAt)
            }
            if policy.asksForEvents, payload != nil, !wantsRun, let eventsAt {
                next = min(next, max(eventsAt, notBefore ?? .start))
            }
        }
        if let boundary = periodEnd { next = min(next, boundary) }
        return next == .never ? nil : next
    }

    /// The end of the submission period, at which inputs become empty.
    private var periodEnd: Instant? {
        guard let payload, let shownPeriod else { return nil }
        return clock.time(of: shownPeriod.start + payload.periodLength - serverOffset)
    }

    /// The period for which inputs are shown; set at each input.
    var shownPeriod: SubmissionPeriod?

    public mutating func nextAction() -> AppAction? { actions.isEmpty ? nil : actions.removeFirst() }

    // MARK: Inputs of the device

    public mutating func started(_ interface: NetworkInterface, at now: Instant) {
        self.interface = interface
        pump(at: now)
    }

    public mutating func interfaceChanged(_ interface: NetworkInterface, at now: Instant) {
        let wasAllowed = isAllowed
        let wasUp = self.interface.isUp
        self.interface = interface
        if wasAllowed || wasUp, !isAllowed { stopRun(at: now) }
        if isAllowed, !wasAllowed {
            isUnreachable = false
            wantsRun = true
            clearRetry()
        }
        pump(at: now)
    }

    public mutating func wallClockChanged(_ clock: WallClock, at now: Instant) {
        // The server's clock does not change with that of the device.
        setServerOffset(serverOffset + self.clock.milliseconds(at: now) - clock.milliseconds(at: now))
        self.clock = clock
        pump(at: now)
    }

    public mutating func advance(to now: Instant) {
        if let change = commits.retry(at: now) { actions.append(.commit(change)) }
        if let at = retryAt, at <= now { retryAt = nil }
        if let at = notBefore, at <= now { notBefore = nil }
        if let at = nextRunAt, at <= now {
            nextRunAt = nil
            wantsRun = true
        }
        if let stopAt = run?.stopAt, stopAt <= now { stopRun(at: now) }
        pump(at: now)
    }

    public mutating func committed(at now: Instant) {
        commits.succeeded()
        pump(at: now)
    }

    public mutating func commitFailed(at now: Instant) {
        if behavior.repeatsFailedCommits { commits.failed(at: now) } else { committed(at: now) }
    }

    /// The user or the system gives a reason to try again now.
    mutating func clearRetry() {
        failures = 0
        retryAt = nil
    }

    // MARK: Runs

    /// Commits what has changed, or does the next step of a run.
    mutating func pump(at now: Instant) {
        shownPeriod = payload.map { SubmissionPeriod(containing: serverTime(at: now), length: $0.periodLength) }
        if let change = commits.begin() { actions.append(.commit(change)) }
        if commits.isAwaited { return }
        guard isAllowed, !needsSignIn, exchanges.isEmpty || isParallel else { return }
        if run == nil { beginRun(at: now) }
        if run != nil { return step(at: now) }
        if policy.asksForEvents, payload != nil, exchanges.isEmpty, !wantsRun, eventsAt ?? .never <= now,
            notBefore ?? .start <= now
        {
            send(.events, at: now)
        }
    }

    /// Whether another request may be sent although some are in flight.
    private var isParallel: Bool { behavior.filesAtOnce > 1 && run?.phase == .files }

    private mutating func beginRun(at now: Instant) {
        guard wantsRun, exchanges.isEmpty, retryAt ?? .start <= now, notBefore ?? .start <= now else { return }
        wantsRun = false
        nextRunAt = nil
        run = Run(start: now, stopAt: policy.stop(ofRunFrom: now))
    }

    /// Ends the run; the next one begins after the interval, or after a delay if this one has failed.
    mutating func endRun(at now: Instant) {
        guard let run else { return }
        self.run = nil
        if !behavior.resumesDownloads { discardPartialFiles() }
        eventsAt = eventsAt ?? now + eventsTime
        nextRunAt = run.start + policy.interval
        if let next = nextRunAt, next <= now { nextRunAt = now + FieldPolicy.intervalMin }
        if run.mustRepeat {
            failures += 1
            retryAt = now + Self.backoff.delay(afterFailures: failures, random: &random)
            wantsRun = true
        } else {
            failures = 0
        }
    }

    /// Ends the run at the end of its window, or because its interface may not be used any more. What has arrived is kept.
    private mutating func stopRun(at now: Instant) {
        for (number, activity) in exchanges.sorted(by: { $0.key < $1.key }) {
            actions.append(.cancel(number))
            exchanges[number] = nil
            if case .file(let id, _) = activity { keepBytes(of: number, file: id) }
            buffers[number] = nil
            sendTimes[number] = nil
            arrived[number] = nil
        }
        if run != nil { endRun(at: now) }
    }

    private mutating func step(at now: Instant) {
        while let run {
            if behavior.signsInFirst, !isSignedIn { return send(.session, at: now) }
            switch run.phase {
            case .push:
                if let batch = nextBatch(at: now) { return send(.updates(batch), at: now) }
            case .pull:
                if mustPull(at: now), !run.hasPulled { return send(.payload, at: now) }
            case .photos: if let activity = nextPhoto() { return send(activity, at: now) }
            case .files:
                guard behavior.filesAtOnce > 1 else {
                    if let activity = nextFile(at: now) { return send(activity, at: now) }
                    break
                }
                while let activity = nextParallelFile() { send(activity, at: now) }
                if !exchanges.isEmpty { return }
            }
            if !commits.next.isEmpty { return pump(at: now) }
            guard let next = Phase(rawValue: run.phase.rawValue + 1) else {
                endRun(at: now)
                // A reason that has come up meanwhile.
                if wantsRun { beginRun(at: now) }
                continue
            }
            self.run?.phase = next
        }
    }

    /// Returns whether the payload is to be pulled: there is none, the server has got records since, the user wants it, or
    /// it is of another submission period or calendar day.
    private func mustPull(at now: Instant) -> Bool {
        if payload == nil || needsPull || forcesPull { return true }
        if behavior.pullsEachPeriod, let shownPeriod, shownPeriod.start != pulledPeriod { return true }
        return behavior.pullsDaily
            && calendar.isStale(readAt: pulledAt, now: clock.milliseconds(at: now))
    }

    /// The calendar of the place: the payload has it.
    private var calendar: FieldCalendar {
        behavior.followsZones ? payload?.calendar ?? .utc : .utc
    }

    // MARK: Requests

    mutating func send(_ activity: Activity, at now: Instant) {
        guard let request = request(for: activity, number: nextNumber) else { return }
        exchanges[nextNumber] = activity
        sendTimes[nextNumber] = now
        nextNumber += 1
        actions.append(.send(request))
    }

    private func request(for activity: Activity, number: Int) -> AppRequest? {
        switch activity {
        case .session: return AppRequest(number: number, method: "PUT", target: "\(Self.basePath)/session")
        case .payload:
            var request = AppRequest(number: number, method: "GET", target: "\(Self.basePath)/payload", json: nil)
            if payload != nil, let payloadTag {
                request.fields.append((name: "If-None-Match", value: payloadTag))
            }
            if let language, behavior.languageChange != .ignored {
                request.fields.append((name: "Accept-Language", value: language))
            }
            return request
        case .updates(let edits):
            return AppRequest(
                number: number, method: "POST", target: "\(Self.basePath)/updates",
                json: ["groups": groups(of: edits.keys.sorted())])
        case .photoState(let key):
            return AppRequest(number: number, method: "HEAD", target: "\(Self.basePath)/photos/\(key)")
        case .photoRestart(let key):
            return AppRequest(number: number, method: "DELETE", target: "\(Self.basePath)/photos/\(key)")
        case .photoPiece(let key, let offset, let count):
            guard let bytes = photoBytes[key] else { return nil }
            return AppRequest(
                number: number, method: "PATCH", target: "\(Self.basePath)/photos/\(key)",
                fields: [
                    (name: "Content-Type", value: "application/partial-upload"),
                    (name: "Upload-Offset", value: "\(offset)"),
                    (name: "Upload-Complete", value: offset + count == bytes.count ? "?1" : "?0"),
                ], body: Array(bytes[offset..<offset + count]))
        case .file(let id, let range):
            guard let file = files[id] else { return nil }
            return AppRequest(
                number: number, method: "GET", target: file.url,
                fields: [
                    (name: "Range", value: "bytes=\(range.lowerBound)-\(range.upperBound - 1)"),
                    (name: "If-Range", value: file.entityTag),
                ], isStreamed: true)
        case .events:
            return AppRequest(
                number: number, method: "GET", target: "\(Self.basePath)/events",
                fields: [
                    (name: "Accept", value: "text/event-stream"),
                    (name: "Last-Event-ID", value: "\(payload?.cursor ?? 0)"),
                ])
        }
    }
}
