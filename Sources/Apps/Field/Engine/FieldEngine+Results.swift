public import Client
public import Determinism
internal import Wire

/// Results of requests.
extension FieldEngine {
    public mutating func responseReceived(_ response: AppResponse, to number: Int, at now: Instant) {
        guard let activity = exchanges.removeValue(forKey: number) else { return }
        isUnreachable = false
        let elapsed = now - (sendTimes.removeValue(forKey: number) ?? now)
        if let time = response["Slowlane-Field-Time"].flatMap({ Int($0) }) {
            adjustClock(to: time, withinMilliseconds: Int(elapsed.count / 1_000_000), at: now)
        }
        if let seconds = response.retryAfterSeconds, !response.isSuccess {
            notBefore = max(notBefore ?? now, now + .seconds(Int64(seconds)))
        }
        if response.status == 401 {
            rejected(activity, of: number, at: now)
            return pump(at: now)
        }
        switch activity {
        case .session:
            if response.isSuccess { setSignedIn(true) } else { signInFailed(at: now) }
        case .payload: payloadReceived(response, at: now)
        case .updates(let edits):
            if response.isSuccess, let results = response.json?["results"].array {
                pushed(edits, results)
            } else if [400, 413, 422, 500].contains(response.status) {
                pushRejected(edits, status: response.status)
            } else {
                // The rest of the run goes on.
                run?.skipped.formUnion(edits.keys)
                run?.mustRepeat = true
            }
        case .photoState(let key):
            photoStateReceived(key, response)
            if !behavior.resumesUploads, let offset = run?.photo?.offset, offset > 0 {
                return send(.photoRestart(key), at: now)
            }
        case .photoPiece(let key, let offset, let count):
            photoPieceReceived(key, end: offset + count, response)
        case .photoRestart(let key): run?.photo = (key, 0)
        case .file(let id, let range): filePieceReceived(id, range, response, of: number, after: elapsed)
        case .events: eventsReceived(response, at: now)
        }
        if notBefore ?? .start > now, run != nil {
            run?.mustRepeat = true
            endRun(at: now)
        }
        pump(at: now)
    }

    public mutating func requestFailed(_ number: Int, _ failure: AppFailure, at now: Instant) {
        guard let activity = exchanges.removeValue(forKey: number) else { return }
        sendTimes[number] = nil
        isUnreachable = true
        switch activity {
        case .session: signInFailed(at: now)
        case .payload, .updates:
            if case .payload = activity { hasPullFailed = true }
            run?.mustRepeat = true
            endRun(at: now)
        case .photoState(let key), .photoRestart(let key): photoFailed(key)
        case .photoPiece(let key, _, _):
            // A part of it may have arrived: the server is asked.
            run?.photo = (key, nil)
            run?.failures += 1
            run?.mustRepeat = true
        case .file(let id, _):
            keepBytes(of: number, file: id)
            arrived[number] = nil
            fileFailed(id)
        case .events: eventsAt = now + eventsTime
        }
        pump(at: now)
    }

    /// The server rejects the user's credentials. What waits is sent after the next sign-in.
    private mutating func rejected(_ activity: Activity, of number: Int, at now: Instant) {
        needsSignIn = true
        setSignedIn(false)
        if case .payload = activity { hasPullFailed = true }
        buffers[number] = nil
        arrived[number] = nil
        run?.mustRepeat = true
        endRun(at: now)
    }

    private mutating func setSignedIn(_ isSignedIn: Bool) {
        self.isSignedIn = isSignedIn
        commits.next.set("counter/session", json: isSignedIn ? .integer(1) : nil)
    }

    /// The sign-in has no result; another run follows.
    private mutating func signInFailed(at now: Instant) {
        if payload == nil { hasPullFailed = true }
        run?.mustRepeat = true
        endRun(at: now)
    }

    private mutating func payloadReceived(_ response: AppResponse, at now: Instant) {
        run?.hasPulled = true
        let isUnchanged = response.status == 304 && payload != nil
        let json = response.status == 200 ? response.json : nil
        let received = json.flatMap { FieldPayload($0, scansTree: behavior.scansTree) }
        guard let current = isUnchanged ? payload : received else {
            // The payload of the last pull stays visible.
            hasPullFailed = true
            run?.mustRepeat = true
            return
        }
        hasPullFailed = false
        needsPull = false
        forcesPull = false
        pulledAt = clock.milliseconds(at: now)
        pulledPeriod = SubmissionPeriod(containing: serverTime(at: now), length: current.periodLength).start
        commits.next.set("counter/period", json: .integer(Int64(pulledPeriod)))
        commits.next.set("counter/pull", nil)
        commits.next.set("counter/pulled", json: .integer(Int64(pulledAt)))
        guard let json, let payload = received else { return }
        self.payload = payload
        payloadTag = response["ETag"]
        commits.next.set("payload", json: json)
        commits.next.set("tag", json: payloadTag.map { .text($0) })
        for var record in records.values.sorted(by: { $0.key < $1.key }) where record.isPushed {
            if payload.contains(record) {
                remove(record)
            } else if record.needsUpload {
                // A payload lists it when all of it has arrived.
                continue
            } else {
                // The server has lost it: it was restored from an earlier backup.
                (record.isPushed, record.isUploaded) = (false, false)
                store(record)
                wantsRun = true
            }
        }
        adoptFiles()
        evictFiles()
    }

    private mutating func eventsReceived(_ response: AppResponse, at now: Instant) {
        let lines = String(decoding: response.body, as: UTF8.self).split(separator: "\n")
        for line in lines {
            if line.hasPrefix("retry: "), let time = Int64(line.dropFirst("retry: ".count)) {
                eventsTime = min(max(.milliseconds(time), Self.eventsDelay.lowerBound), Self.eventsDelay.upperBound)
            } else if line.hasPrefix("id: "), let cursor = Int(line.dropFirst("id: ".count)),
                cursor > payload?.cursor ?? 0
            {
                forcesPull = true
                wantsRun = true
            }
        }
        eventsAt = now + eventsTime
    }

    /// The greatest time of a server's clock that is believed, in milliseconds since 1970: the year 9999.
    private static let timeMax = 253_402_300_799_999

    /// Corrects the estimate of the server's clock. A response has the server's time at some moment since its request.
    private mutating func adjustClock(to time: Int, withinMilliseconds elapsed: Int, at now: Instant) {
        guard (0...Self.timeMax).contains(time) else { return }
        let tolerance = Self.clockToleranceMilliseconds
        let estimate = serverTime(at: now)
        if estimate >= time - tolerance, estimate <= time + elapsed + tolerance { return }
        setServerOffset(serverOffset + time + elapsed / 2 - estimate)
    }

    mutating func setServerOffset(_ offset: Int) {
        serverOffset = offset
        commits.next.set("counter/offset", json: .integer(Int64(offset)))
    }
}
