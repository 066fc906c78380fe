public import Determinism
public import NotesContract

/// The state machine of one resumable download.
///
///     GET -> head, then bytes as they arrive; each is written and hashed
///     early end -> wait, GET with a range from the first missing byte, under the entity tag of the first response
///     end -> compare the digest; a mismatch starts again, as often as the policy allows
///
/// With ``AttachmentPolicy/downloadPiece``, a HEAD comes first, then a GET for each piece.
///
/// Inputs and actions work as those of ``AttachmentUpload``. Bytes of a response that ends early are kept.
public struct AttachmentDownload: Sendable {
    /// An action for the driver.
    public enum Action: Hashable, Sendable {
        /// Send the request.
        case send(AttachmentRequest)
        /// Write the bytes at an offset.
        case write([UInt8], at: Int)
        /// Discard all bytes that were written: the attachment has changed, or its digest is wrong.
        case discard
        /// All bytes are written and have the digest.
        case finished
        /// The download has stopped until ``retry(at:)``.
        case failed(AttachmentTransferError)
    }

    /// The state that a client stores to continue after a restart.
    public struct Progress: Hashable, Sendable {
        /// The size of the attachment in bytes.
        public var length: Int
        /// The digest of the attachment.
        public var digest: AttachmentDigest
        /// The entity tag.
        public var tag: String
        /// The digest of the bytes that are written; its `count` is their number.
        public var hasher: SHA256Hasher

        /// Creates a state.
        public init(length: Int, digest: AttachmentDigest, tag: String, hasher: SHA256Hasher) {
            self.length = length
            self.digest = digest
            self.tag = tag
            self.hasher = hasher
        }

        /// The number of bytes that are written.
        public var received: Int { Int(clamping: hasher.count) }
    }

    private enum Phase {
        case sending(id: Int)
        /// The head has arrived; bytes follow.
        case receiving(id: Int)
        case waiting(until: Instant)
        case ended
    }

    private let target: String
    private let policy: AttachmentPolicy
    private var jitter: RandomStream
    private var phase = Phase.ended
    private var actions: [Action] = []
    private var requestsCount = 0
    private var failures = 0
    private var mismatches = 0
    private var losses = 0
    /// Whether the request in flight is a HEAD.
    private var isHead = false
    /// The range that was requested, and the time of the request.
    private var range = 0..<0
    private var sentAt = Instant.start
    /// The size of the next piece; `nil` requests all that is missing at once.
    public private(set) var piece: Int?
    /// The state after the first response; `nil` before it.
    public private(set) var progress: Progress?
    /// The reason why the download has stopped; `nil` while it runs.
    public private(set) var error: AttachmentTransferError?

    /// Creates a download; it starts at once.
    ///
    /// - Parameters:
    ///   - uuid: The note.
    ///   - progress: The state of an earlier run, whose bytes are still there.
    ///   - seed: The random seed of delays.
    public init(
        uuid: String, name: AttachmentName, resuming progress: Progress? = nil,
        policy: AttachmentPolicy = AttachmentPolicy(), seed: UInt64
    ) {
        target = AttachmentHTTP.path(of: uuid, name)
        self.policy = policy
        self.progress = progress
        piece = policy.downloadPiece
        jitter = RandomStream(seed: seed, "attachment/download")
        proceed(at: .start)
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
        proceed(at: now)
    }

    /// Ends the current delay, because the user asks for it or the network has changed. A stopped download continues.
    public mutating func retry(at now: Instant) {
        switch phase {
        case .waiting: break
        case .ended where error != nil:
            (failures, mismatches, losses) = (0, 0, 0)
            error = nil
        default: return
        }
        proceed(at: now)
    }

    // MARK: Inputs

    /// Records the head of a response.
    public mutating func headReceived(_ head: AttachmentResponse, to id: Int, at now: Instant) {
        guard case .sending(id) = phase else { return }
        // A captive portal or a gateway.
        guard head.isFromNotesServer else { return wait(at: now, atLeast: head.retryAfter) }
        switch head.status {
        case 200 where isHead:
            adopt(head, id, at: now)
            if case .receiving = phase { proceed(at: now) }
        case 204 where isHead: fail(.uploadIncomplete)
        case 200, 206: adopt(head, id, at: now)
        case 404: fail(.attachmentMissing)
        case 409: fail(.uploadIncomplete)
        case 410: fail(.noteMissing)
        case 416: restart(at: now)
        case 401, 403: fail(.unauthenticated(status: head.status))
        case 408, 429, 500...599: wait(at: now, atLeast: head.retryAfter)
        default: fail(.rejected(status: head.status))
        }
    }

    /// Records bytes of a response.
    public mutating func bytesReceived(_ bytes: [UInt8], to id: Int, at now: Instant) {
        guard case .receiving(id) = phase, var known = progress, !bytes.isEmpty else { return }
        guard bytes.count <= known.length - known.received else { return fail(.rejected(status: 200)) }
        actions.append(.write(bytes, at: known.received))
        known.hasher.update(bytes)
        progress = known
        failures = 0
    }

    /// Records the end of a response.
    public mutating func responseEnded(to id: Int, at now: Instant) {
        guard case .receiving(id) = phase else { return }
        end(at: now)
    }

    /// Records that a request ended without a response, or in the middle of one.
    public mutating func requestFailed(to id: Int, at now: Instant) {
        switch phase {
        case .sending(id): wait(at: now)
        case .receiving(id): end(at: now)
        default: break
        }
    }

    // MARK: Steps

    private mutating func adopt(_ head: AttachmentResponse, _ id: Int, at now: Instant) {
        guard let digest = head.digest, let tag = head.field("ETag"), let length = head.length else {
            return fail(.rejected(status: head.status))
        }
        let received = progress?.received ?? 0
        let isSame = progress.map { $0.digest == digest && $0.length == length } ?? true
        if head.status == 206 {
            guard isSame else { return restart(at: now) }
            guard head.field("Content-Range")?.hasPrefix("bytes \(received)-") == true else {
                return fail(.rejected(status: 206))
            }
        } else if received > 0 {
            // The entity tag does not match any more, or the server ignores ranges.
            guard recordLoss() else { return }
        }
        if progress == nil || head.status == 200 {
            progress = Progress(length: length, digest: digest, tag: tag, hasher: SHA256Hasher())
        }
        phase = .receiving(id: id)
    }

    private mutating func end(at now: Instant) {
        guard let known = progress else { return wait(at: now) }
        guard known.received == known.length else {
            guard known.received == range.upperBound else {
                piece = piece.map(policy.halved)
                return wait(at: now)
            }
            piece = piece.map { policy.grown($0, after: range.count, in: now - sentAt) }
            return proceed(at: now)
        }
        guard AttachmentDigest(of: known.hasher) == known.digest else {
            mismatches += 1
            guard mismatches <= policy.mismatchesMax else {
                discard()
                return fail(.digestMismatch)
            }
            discard()
            return proceed(at: now)
        }
        phase = .ended
        actions.append(.finished)
    }

    /// Starts again, because the attachment has changed.
    private mutating func restart(at now: Instant) {
        guard recordLoss() else { return }
        proceed(at: now)
    }

    /// Discards the bytes of the earlier content; returns whether the policy allows to start again.
    private mutating func recordLoss() -> Bool {
        discard()
        losses += 1
        if losses > policy.lossesMax { fail(.uploadLost) }
        return losses <= policy.lossesMax
    }

    private mutating func discard() {
        progress = nil
        actions.append(.discard)
    }

    private mutating func proceed(at now: Instant) {
        var fields: [AttachmentRequest.Field] = []
        range = 0..<0
        sentAt = now
        if let known = progress {
            // A run that ended between the last byte and the comparison of the digest.
            if known.received == known.length { return end(at: now) }
            range = known.received..<max(known.received, known.length)
            if let piece, piece < range.count {
                range = range.lowerBound..<range.lowerBound + piece
                fields = [.init("Range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)")]
            } else if known.received > 0 {
                fields = [.init("Range", "bytes=\(known.received)-")]
            }
            if !fields.isEmpty { fields.append(.init("If-Range", known.tag)) }
        }
        isHead = progress == nil && policy.downloadPiece != nil
        let request = AttachmentRequest(
            id: requestsCount, method: isHead ? "HEAD" : "GET", target: target, fields: fields, range: range, body: [])
        requestsCount += 1
        phase = .sending(id: request.id)
        actions.append(.send(request))
    }

    private mutating func wait(at now: Instant, atLeast span: Nanoseconds = .zero) {
        failures += 1
        let delay = policy.delay(afterFailures: failures, random: &jitter)
        phase = .waiting(until: now + max(delay, min(span, policy.retryAfterMax)))
    }

    private mutating func fail(_ error: AttachmentTransferError) {
        self.error = error
        phase = .ended
        actions.append(.failed(error))
    }
}
