public import Determinism
public import NotesContract

/// The state machine of one resumable upload.
///
///     read a piece -> PUT the first, PATCH the others (next when the previous one is acknowledged)
///     no response  -> halve the piece size, wait, HEAD for the offset, continue there
///     422          -> the server has discarded the upload: start again, as often as the policy allows
///     complete     -> finished (`Upload-Complete: ?1`)
///
/// Inputs are facts with their time: ``bytesRead(_:of:at:)``, ``responseReceived(_:to:at:)``, ``requestFailed(_:to:at:)``
/// and so on. After each input, and after ``advance(to:)`` at ``nextDeadline``, the driver takes every action with
/// ``takeAction()``. The driver has the timeouts of requests and reports them as ``AttachmentRequestFailure/outcomeUnknown``.
///
/// The state need not be stored: after a restart of the client, an upload with `isResumed` asks the server for the offset.
public struct AttachmentUpload: Sendable {
    /// An action for the driver.
    public enum Action: Hashable, Sendable {
        /// Read these bytes of the attachment.
        case read(Range<Int>)
        /// Send the request.
        case send(AttachmentRequest)
        /// The server has the attachment, with its digest.
        case finished
        /// The upload has stopped until ``retry(at:)``.
        case failed(AttachmentTransferError)
    }

    private enum Phase {
        /// A HEAD or the next piece is due.
        case ready
        case reading(Range<Int>)
        /// A request is in flight: a HEAD, or one with a range.
        case sending(id: Int, method: String, Range<Int>)
        case waiting(until: Instant)
        case ended
    }

    private let target: String
    private let length: Int
    private let digest: AttachmentDigest
    private let policy: AttachmentPolicy
    private var jitter: RandomStream
    private var phase = Phase.ready
    private var actions: [Action] = []
    private var requestsCount = 0

    /// The number of bytes that the server has; a HEAD asks for it while `isOffsetKnown` is false.
    public private(set) var offset = 0
    private var isOffsetKnown: Bool
    /// Whether the server has created the upload.
    private var isCreated = false
    /// The end of the bytes that were sent. How many an earlier run sent is not known, so it counts as having sent all
    /// of them.
    private var sentEnd: Int
    /// The time at which the last piece was sent.
    private var sentAt = Instant.start
    /// The size of the next piece in bytes.
    public private(set) var piece: Int
    private var failures = 0
    private var mismatches = 0
    private var losses = 0
    /// The reason why the upload has stopped; `nil` while it runs.
    public private(set) var error: AttachmentTransferError?

    /// Creates an upload; it starts at once.
    ///
    /// - Parameters:
    ///   - uuid: The note.
    ///   - length: The size of the attachment in bytes.
    ///   - digest: The digest of the attachment.
    ///   - isResumed: Whether an earlier run may have begun the upload.
    ///   - seed: The random seed of delays.
    public init(
        uuid: String, name: AttachmentName, length: Int, digest: AttachmentDigest, isResumed: Bool = false,
        policy: AttachmentPolicy = AttachmentPolicy(), seed: UInt64
    ) {
        target = AttachmentHTTP.path(of: uuid, name)
        self.length = max(0, length)
        self.digest = digest
        self.policy = policy
        jitter = RandomStream(seed: seed, "attachment/upload")
        piece = policy.pieceFirst
        isOffsetKnown = !isResumed
        sentEnd = isResumed ? self.length : 0
        proceed()
    }

    // MARK: Actions and time

    /// Returns the next action; `nil` if there is none.
    public mutating func takeAction() -> Action? { actions.isEmpty ? nil : actions.removeFirst() }

    /// The time at which ``advance(to:)`` has an effect; `nil` if only an input has one.
    public var nextDeadline: Instant? {
        if case .waiting(let until) = phase { return until }
        return nil
    }

    /// Advances the time.
    public mutating func advance(to now: Instant) {
        guard case .waiting(let until) = phase, until <= now else { return }
        phase = .ready
        proceed()
    }

    /// Ends the current delay, because the user asks for it or the network has changed. A stopped upload starts again.
    public mutating func retry(at now: Instant) {
        switch phase {
        case .waiting: phase = .ready
        case .ended where error != nil:
            (failures, mismatches, losses) = (0, 0, 0)
            error = nil
            isOffsetKnown = false
            sentEnd = length
            phase = .ready
        default: return
        }
        proceed()
    }

    // MARK: Inputs

    /// Records the bytes of an ``Action/read(_:)``.
    public mutating func bytesRead(_ bytes: [UInt8], of range: Range<Int>, at now: Instant) {
        guard case .reading(range) = phase else { return }
        guard bytes.count == range.count else {
            return fail(.unreadable("\(bytes.count) of \(range.count) bytes at \(range.lowerBound)"))
        }
        sentAt = now
        send(range, bytes)
    }

    /// Records that an ``Action/read(_:)`` failed.
    public mutating func readFailed(_ reason: String, of range: Range<Int>, at now: Instant) {
        guard case .reading(range) = phase else { return }
        fail(.unreadable(reason))
    }

    /// Records that a request ended without a response.
    public mutating func requestFailed(_ failure: AttachmentRequestFailure, to id: Int, at now: Instant) {
        guard case .sending(id, let method, _) = phase else { return }
        if failure == .outcomeUnknown && method != "HEAD" {
            isOffsetKnown = false
            piece = policy.halved(piece)
        }
        wait(at: now)
    }

    /// Records the response to a request.
    public mutating func responseReceived(_ response: AttachmentResponse, to id: Int, at now: Instant) {
        guard case .sending(id, let method, let range) = phase else { return }
        guard response.isFromNotesServer else {
            // A captive portal or a gateway; the request may have reached the server.
            isOffsetKnown = isOffsetKnown && method == "HEAD"
            return wait(at: now, atLeast: response.retryAfter)
        }
        switch response.status {
        case 200...299: adopt(response, method, range, at: now)
        case 409:
            // The state has changed, or another upload has the name; a HEAD tells which. An upload that a PUT finds was
            // begun by another client, or by an earlier transfer of this one, which may have sent all bytes.
            if method == "PUT" { sentEnd = length }
            isOffsetKnown = false
            failures += 1
            guard failures == 1 else { return wait(at: now, isCounted: true) }
            phase = .ready
            proceed()
        case 404: recordMissing(method, at: now)
        case 410: fail(.noteMissing)
        case 422 where method != "HEAD":
            mismatches += 1
            guard mismatches <= policy.mismatchesMax else { return fail(.digestMismatch) }
            restart()
        case 401, 403: fail(.unauthenticated(status: response.status))
        case 413:
            if let limit = response.sizeMax, length > limit { return fail(.tooLarge(size: length, limit: limit)) }
            // An intermediary may limit the body of a request.
            guard range.count > policy.pieceMin else { return fail(.rejected(status: 413)) }
            piece = policy.halved(min(piece, range.count))
            phase = .ready
            proceed()
        case 408, 500, 502...506, 508...599:
            if method != "HEAD" {
                isOffsetKnown = false
                piece = policy.halved(piece)
            }
            wait(at: now, atLeast: response.retryAfter)
        case 429: wait(at: now, atLeast: response.retryAfter)
        default: fail(.rejected(status: response.status))
        }
    }

    // MARK: Responses

    private mutating func adopt(
        _ response: AttachmentResponse, _ method: String, _ range: Range<Int>, at now: Instant
    ) {
        guard describesThisUpload(response) else { return fail(.nameTaken) }
        guard let received = response.offset, let isComplete = response.isComplete else {
            // A server without resumable uploads would also accept the PUT.
            return fail(.rejected(status: response.status))
        }
        if isComplete {
            // Another client may have uploaded the same bytes. The server compares the digest of a PUT or PATCH.
            guard received == length, response.digest == digest || method != "HEAD" else {
                return fail(.rejected(status: response.status))
            }
            return finish()
        }
        guard received <= sentEnd else { return fail(.offsetBeyondSent(offset: received, sent: sentEnd)) }
        if method == "HEAD" {
            // An offset alone is no progress: the server may have been restored to an earlier state. Only an
            // acknowledged piece resets `failures`.
        } else if received == range.upperBound {
            piece = policy.grown(piece, after: range.count, in: now - sentAt)
            failures = 0
        }
        // An offset that stays the same would otherwise repeat one request without end.
        let isStuck = method != "HEAD" && received <= range.lowerBound && !range.isEmpty
        (offset, isOffsetKnown, isCreated) = (received, true, true)
        if isStuck { return wait(at: now) }
        phase = .ready
        proceed()
    }

    private mutating func recordMissing(_ method: String, at now: Instant) {
        switch method {
        case "PUT": fail(.noteMissing)
        case "HEAD" where !isCreated: restart()
        default:
            // The upload has expired, was deleted, or the server went back to a state before it.
            losses += 1
            guard losses <= policy.lossesMax else { return fail(.uploadLost) }
            restart()
        }
    }

    /// Returns whether a response is about an upload with this length and digest. Fields that are missing do not count.
    private func describesThisUpload(_ response: AttachmentResponse) -> Bool {
        (response.digest ?? digest) == digest && (response.length ?? length) == length
    }

    // MARK: Steps

    private mutating func restart() {
        // Requests from before the restart may still reach the server, so `sentEnd` stays.
        (offset, isOffsetKnown, isCreated) = (0, true, false)
        phase = .ready
        proceed()
    }

    private mutating func proceed() {
        guard case .ready = phase else { return }
        guard isOffsetKnown else {
            return send("HEAD", 0..<0, [], [])
        }
        let range = offset..<(offset + min(piece, length - offset))
        if range.isEmpty {
            send(range, [])
        } else {
            phase = .reading(range)
            actions.append(.read(range))
        }
    }

    private mutating func send(_ range: Range<Int>, _ bytes: [UInt8]) {
        var fields = [
            AttachmentRequest.Field(
                AttachmentHTTP.uploadCompleteName, AttachmentHTTP.text(range.upperBound == length)),
            AttachmentRequest.Field(AttachmentHTTP.uploadLengthName, String(length)),
            AttachmentRequest.Field(AttachmentHTTP.digestName, digest.field),
        ]
        if isCreated {
            fields.append(.init(AttachmentHTTP.uploadOffsetName, String(range.lowerBound)))
            fields.append(.init("Content-Type", AttachmentHTTP.partialUploadType))
        }
        send(isCreated ? "PATCH" : "PUT", range, fields, bytes)
    }

    private mutating func send(
        _ method: String, _ range: Range<Int>, _ fields: [AttachmentRequest.Field], _ body: [UInt8]
    ) {
        let request = AttachmentRequest(
            id: requestsCount, method: method, target: target, fields: fields, range: range, body: body)
        requestsCount += 1
        sentEnd = max(sentEnd, range.upperBound)
        phase = .sending(id: request.id, method: method, range)
        actions.append(.send(request))
    }

    /// - Parameter isCounted: Whether the failure is in `failures` already.
    private mutating func wait(at now: Instant, atLeast span: Nanoseconds = .zero, isCounted: Bool = false) {
        if !isCounted { failures += 1 }
        let delay = policy.delay(afterFailures: failures, random: &jitter)
        phase = .waiting(until: now + max(delay, min(span, policy.retryAfterMax)))
    }

    private mutating func finish() {
        offset = length
        phase = .ended
        actions.append(.finished)
    }

    private mutating func fail(_ error: AttachmentTransferError) {
        self.error = error
        phase = .ended
        actions.append(.failed(error))
    }
}
