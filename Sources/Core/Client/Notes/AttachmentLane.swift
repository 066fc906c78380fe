public import Determinism
public import NotesContract

/// The state machine that transfers attachments one after the other, beside the exchanges of the engine.
///
///     waiting -> committed as sending -> transfer -> committed as done or parked
///     failure -> the transfer is delayed, and the next one starts meanwhile
///     record not on the server -> the transfer waits until it is
///
/// Inputs and actions work as those of ``SyncEngine``. After each input, ``proceed(_:at:isOnServer:)`` chooses what
/// follows; then the driver takes every action.
public struct AttachmentLane: Sendable {
    private enum Transfer: Sendable {
        case upload(AttachmentUpload)
        case download(AttachmentDownload)
        case deletion(AttachmentDeletion)
        /// A download whose stored bytes are being hashed.
        case hashing

        var nextDeadline: Instant? {
            switch self {
            case .upload(let upload): upload.nextDeadline
            case .download(let download): download.nextDeadline
            case .deletion(let deletion): deletion.nextDeadline
            case .hashing: nil
            }
        }

        var transferred: Int {
            switch self {
            case .upload(let upload): upload.offset
            case .download(let download): download.progress?.received ?? 0
            case .deletion, .hashing: 0
            }
        }
    }

    /// A request in flight.
    private struct Flight: Sendable {
        let number: Int
        let attachment: Int
        let request: Int
    }

    /// The policy; its first pieces have the size that the transfers so far have reached.
    private var policy: AttachmentPolicy
    private var seeds: RandomStream
    private var jitter: RandomStream
    private var rows: [Int: LocalAttachment] = [:]
    /// Pending attachments: downloads first, because the user waits for them, then the oldest.
    private var pending: [Int] = []
    private var transfers: [Int: Transfer] = [:]
    /// Attachments that no earlier run has begun to send.
    private var fresh: Set<Int> = []
    private var current: Int?
    private var flight: Flight?
    /// A request that waits for the gate.
    private var held: AttachmentRequest?
    private var nextNumber = 0
    private var gate = Gate(isUsable: false, isOpen: false)
    private var isPaused = false
    private var floor: Instant?
    /// Requests in a row that ended without a response of the server.
    private var failures = 0
    private var uncommitted: [Int: LocalAttachment] = [:]
    private var committing: [Int: LocalAttachment]?
    private var commitFailures = 0
    private var commitAt: Instant?
    private var actions: [Action] = []
    private var reported: AttachmentProgress?

    /// The time of the next ``proceed(_:at:isOnServer:)``; `nil` until another input changes it.
    public private(set) var nextDeadline: Instant?
    /// Whether nothing is in flight and nothing can be transferred now or after a delay.
    public private(set) var isSettled = true

    /// Creates a lane with the attachments of the store.
    ///
    /// - Parameter seed: The random seed of retry delays; must differ each time a client starts.
    public init(restoring attachments: [LocalAttachment] = [], policy: AttachmentPolicy = .ranged, seed: UInt64) {
        self.policy = policy
        seeds = RandomStream(seed: seed, "attachment/seeds")
        jitter = RandomStream(seed: seed, "attachment/lane")
        attachmentsChanged(attachments)
    }

    /// The attachments in the order of their numbers.
    public var attachments: [LocalAttachment] { rows.values.sorted { $0.id < $1.id } }

    /// Returns the next action; `nil` if there is none.
    public mutating func takeAction() -> Action? { actions.isEmpty ? nil : actions.removeFirst() }

    /// Whether ``proceed(_:at:isOnServer:)`` has nothing to do.
    var isIdle: Bool {
        pending.isEmpty && current == nil && flight == nil && uncommitted.isEmpty && committing == nil
            && actions.isEmpty
            && isSettled && nextDeadline == nil
    }

    // MARK: Inputs of the store

    /// The store has these attachments. What it no longer has is not transferred.
    public mutating func attachmentsChanged(_ attachments: [LocalAttachment]) {
        let found = Dictionary(attachments.map { ($0.id, $0) }) { first, _ in first }
        for id in rows.keys.sorted() where found[id] == nil { remove(id) }
        for (id, row) in found {
            // The lane's own state is the newer one, except for a transfer that the user requests again.
            if let old = rows[id], old.isPending || !row.isPending || uncommitted[id] != nil || committing?[id] != nil {
                continue
            }
            rows[id] = row
            transfers[id] = nil
        }
        sortPending()
    }

    /// Records have been removed from the store with their attachments.
    public mutating func recordsRemoved(_ ids: Set<RecordID>) {
        for row in attachments where ids.contains(row.record) { remove(row.id) }
        sortPending()
    }

    private mutating func remove(_ id: Int) {
        if flight?.attachment == id { cancelFlight() }
        if current == id { clearCurrent() }
        rows[id] = nil
        transfers[id] = nil
        uncommitted[id] = nil
        fresh.remove(id)
    }

    private mutating func sortPending() {
        pending = rows.values.filter(\.isPending).sorted {
            ($0.direction == .download ? 0 : 1, $0.id) < ($1.direction == .download ? 0 : 1, $1.id)
        }.map(\.id)
    }

    /// The states of the last commit are durable.
    public mutating func committed(at now: Instant) {
        committing = nil
        commitFailures = 0
        commitAt = nil
    }

    /// The states of the last commit could not be made durable; they are committed again after a pause.
    public mutating func commitFailed(at now: Instant) {
        uncommitted.merge(committing ?? [:]) { later, _ in later }
        committing = nil
        commitFailures = min(commitFailures + 1, 1 << 20)
        commitAt = now + policy.delay(afterFailures: commitFailures, random: &jitter)
    }

    /// Records bytes of an upload.
    public mutating func bytesRead(_ bytes: [UInt8], of id: Int, range: Range<Int>, at now: Instant) {
        guard case .upload(var upload)? = transfers[id] else { return }
        upload.bytesRead(bytes, of: range, at: now)
        transfers[id] = .upload(upload)
    }

    /// Records that bytes of an upload cannot be read.
    public mutating func readFailed(_ reason: String, of id: Int, range: Range<Int>, at now: Instant) {
        guard case .upload(var upload)? = transfers[id] else { return }
        upload.readFailed(reason, of: range, at: now)
        transfers[id] = .upload(upload)
    }

    /// Records the hash of the stored bytes of a download; `nil` if they are unusable.
    public mutating func partHashed(_ hasher: SHA256Hasher?, of id: Int, at now: Instant) {
        guard case .hashing? = transfers[id], let row = rows[id] else { return }
        var progress: AttachmentDownload.Progress?
        if let hasher, let size = row.size, let digest = row.digest, let tag = row.entityTag, hasher.count <= size {
            progress = AttachmentDownload.Progress(length: size, digest: digest, tag: tag, hasher: hasher)
        }
        transfers[id] = .download(download(row, resuming: progress))
    }

    /// Records that bytes of a download cannot be written.
    public mutating func writeFailed(_ reason: String, of id: Int, at now: Instant) {
        if flight?.attachment == id { cancelFlight() }
        finish(id, .parked("the attachment cannot be written: \(reason)"))
    }

    // MARK: Inputs of the network

    /// Records a complete response.
    public mutating func responseReceived(
        _ response: AttachmentResponse, body: [UInt8], to number: Int, at now: Instant
    ) {
        guard let flight = end(number) else { return }
        if let history = response.field(NotesHTTP.historyName), let stored = gate.history,
            !history.utf8.elementsEqual(stored.utf8)
        {
            actions.append(.historyDiffers)
            return fail(flight, .outcomeUnknown, at: now)
        }
        if response.isFromNotesServer { failures = 0 } else { recordFailure(at: now) }
        if response.retryAfter > .zero {
            floor = max(floor ?? .start, now + min(response.retryAfter, policy.retryAfterMax))
        }
        switch transfers[flight.attachment] {
        case .upload(var upload)?:
            upload.responseReceived(response, to: flight.request, at: now)
            policy.pieceFirst = upload.piece
            transfers[flight.attachment] = .upload(upload)
        case .download(var download)?:
            download.headReceived(response, to: flight.request, at: now)
            download.bytesReceived(body, to: flight.request, at: now)
            download.responseEnded(to: flight.request, at: now)
            policy.downloadPiece = download.piece
            transfers[flight.attachment] = .download(download)
        case .deletion(var deletion)?:
            deletion.responseReceived(response, to: flight.request, at: now)
            transfers[flight.attachment] = .deletion(deletion)
        case .hashing?, nil: break
        }
    }

    /// Records that a request ended without a response.
    public mutating func requestFailed(_ failure: AttachmentRequestFailure, to number: Int, at now: Instant) {
        guard let flight = end(number) else { return }
        recordFailure(at: now)
        fail(flight, failure, at: now)
    }

    private mutating func end(_ number: Int) -> Flight? {
        guard let flight, flight.number == number else { return nil }
        self.flight = nil
        return flight
    }

    private mutating func fail(_ flight: Flight, _ failure: AttachmentRequestFailure, at now: Instant) {
        switch transfers[flight.attachment] {
        case .upload(var upload)?:
            upload.requestFailed(failure, to: flight.request, at: now)
            transfers[flight.attachment] = .upload(upload)
        case .download(var download)?:
            download.requestFailed(to: flight.request, at: now)
            transfers[flight.attachment] = .download(download)
        case .deletion(var deletion)?:
            deletion.requestFailed(to: flight.request, at: now)
            transfers[flight.attachment] = .deletion(deletion)
        case .hashing?, nil: break
        }
    }

    /// Records a failure. The first one delays its attachment only; further ones in a row delay all attachments,
    /// because the path to the server is the probable cause.
    private mutating func recordFailure(at now: Instant) {
        failures = min(failures + 1, 1 << 20)
        guard failures > 1 else { return }
        floor = max(floor ?? .start, now + policy.delay(afterFailures: failures - 1, random: &jitter))
    }

    // MARK: Steps

    /// Chooses the next steps, under the engine's conditions; to be called after each input and at ``nextDeadline``.
    ///
    /// - Parameter isOnServer: Returns whether the server has a record, and no deletion of it is pending.
    public mutating func proceed(_ gate: Gate, at now: Instant, isOnServer: (RecordID) -> Bool) {
        if gate.rounds != self.gate.rounds { endDelays(at: now) }
        self.gate = gate
        if !gate.isUsable, let flight {
            cancelFlight()
            fail(flight, .outcomeUnknown, at: now)
        }
        if let time = floor, time <= now { floor = nil }
        // Each step commits, sends, delays or ends a transfer, or starts the transfer of another attachment.
        for _ in 0...(4 * pending.count + 8) {
            drive()
            startCommit(at: now)
            guard committing == nil, uncommitted.isEmpty, current == nil, let next = choose(at: now, isOnServer) else {
                break
            }
            begin(next, at: now)
        }
        sendHeld(at: now)
        updateDeadline(at: now, isOnServer)
    }

    private mutating func endDelays(at now: Instant) {
        isPaused = false
        failures = 0
        floor = nil
        for (id, transfer) in transfers where transfer.nextDeadline != nil {
            switch transfer {
            case .upload(var upload):
                upload.retry(at: now)
                transfers[id] = .upload(upload)
            case .download(var download):
                download.retry(at: now)
                transfers[id] = .download(download)
            case .deletion(var deletion):
                deletion.retry()
                transfers[id] = .deletion(deletion)
            case .hashing: break
            }
        }
    }

    private mutating func startCommit(at now: Instant) {
        guard committing == nil, !uncommitted.isEmpty, commitAt ?? .start <= now else { return }
        committing = uncommitted
        uncommitted = [:]
        actions.append(.store(.commit((committing ?? [:]).values.sorted { $0.id < $1.id })))
    }

    private func mayStart(at now: Instant) -> Bool { gate.isUsable && gate.isOpen && !isPaused && earliest <= now }

    /// The time before which no request starts.
    private var earliest: Instant { max(floor ?? .start, gate.floor ?? .start) }

    private func choose(at now: Instant, _ isOnServer: (RecordID) -> Bool) -> Int? {
        guard mayStart(at: now) else { return nil }
        return pending.first { id in
            guard let row = rows[id], isOnServer(row.record) else { return false }
            if pending.contains(where: { rows[$0].map(row.follows) ?? false }) { return false }
            return transfers[id]?.nextDeadline ?? .start <= now
        }
    }

    /// Makes an attachment the current one, or commits that it will be.
    private mutating func begin(_ id: Int, at now: Instant) {
        guard var row = rows[id] else { return }
        if row.state == .waiting {
            row.state = .sending
            fresh.insert(id)
            store(row)
            return
        }
        current = id
        switch transfers[id] {
        case .upload(var upload)?:
            upload.advance(to: now)
            transfers[id] = .upload(upload)
        case .download(var download)?:
            download.advance(to: now)
            transfers[id] = .download(download)
        case .deletion(var deletion)?:
            deletion.advance(to: now)
            transfers[id] = .deletion(deletion)
        case .hashing?: break
        case nil:
            let isResumed = fresh.remove(id) == nil
            switch row.direction {
            case .upload:
                guard let size = row.size, let digest = row.digest else {
                    return finish(id, .parked("the size and the digest are not known"))
                }
                transfers[id] = .upload(
                    AttachmentUpload(
                        uuid: row.record.text, name: row.name, length: size, digest: digest, isResumed: isResumed,
                        policy: policy, seed: seeds.next()))
            case .download where row.digest != nil:
                transfers[id] = .hashing
                actions.append(.store(.hashPart(row)))
            case .download: transfers[id] = .download(download(row, resuming: nil))
            case .deletion:
                transfers[id] = .deletion(
                    AttachmentDeletion(uuid: row.record.text, name: row.name, policy: policy, seed: seeds.next()))
            }
        }
    }

    private mutating func download(
        _ row: LocalAttachment, resuming progress: AttachmentDownload.Progress?
    ) -> AttachmentDownload {
        AttachmentDownload(
            uuid: row.record.text, name: row.name, resuming: progress, policy: policy, seed: seeds.next())
    }

    /// Takes the actions of the current transfer.
    private mutating func drive() {
        guard let id = current, let row = rows[id] else { return }
        switch transfers[id] {
        case .upload(var upload)?:
            while let action = upload.takeAction() {
                switch action {
                case .read(let range): actions.append(.store(.read(row, range)))
                case .send(let request): held = request
                case .finished: return finish(id, .done, transferred: row.size)
                case .failed(let error): return stop(id, error)
                }
            }
            transfers[id] = .upload(upload)
        case .download(var download)?:
            while let action = download.takeAction() {
                switch action {
                case .write(let bytes, let offset): actions.append(.store(.write(bytes, at: offset, row)))
                case .discard: actions.append(.store(.discard(row)))
                case .send(let request): held = request
                case .finished:
                    adopt(download.progress, id)
                    return finish(id, .done, transferred: download.progress?.length)
                case .failed(let error): return stop(id, error)
                }
            }
            transfers[id] = .download(download)
            adopt(download.progress, id)
        case .deletion(var deletion)?:
            while let action = deletion.takeAction() {
                switch action {
                case .send(let request): held = request
                case .finished: return finish(id, .done)
                case .failed(let error): return stop(id, error)
                }
            }
            transfers[id] = .deletion(deletion)
        case .hashing?, nil: break
        }
        report(id)
        if transfers[id]?.nextDeadline != nil { clearCurrent() }
    }

    /// Commits the size, digest and entity tag of a download when they have changed.
    private mutating func adopt(_ progress: AttachmentDownload.Progress?, _ id: Int) {
        guard let progress, var row = rows[id] else { return }
        guard row.size != progress.length || row.digest != progress.digest || row.entityTag != progress.tag else {
            return
        }
        (row.size, row.digest, row.entityTag) = (progress.length, progress.digest, progress.tag)
        store(row)
    }

    private mutating func store(_ row: LocalAttachment) {
        rows[row.id] = row
        uncommitted[row.id] = row
    }

    private mutating func stop(_ id: Int, _ error: AttachmentTransferError) {
        if case .unauthenticated(let status) = error {
            // Not the attachment's fault: it continues with other credentials.
            transfers[id] = nil
            clearCurrent()
            isPaused = true
            actions.append(.credentialsRejected(status: status))
        } else {
            finish(id, .parked(error.description))
        }
    }

    private mutating func finish(_ id: Int, _ state: LocalAttachment.State, transferred: Int? = nil) {
        guard var row = rows[id] else { return }
        row.state = state
        store(row)
        let count = transferred ?? transfers[id]?.transferred ?? 0
        transfers[id] = nil
        if current == id { clearCurrent() }
        pending.removeAll { $0 == id }
        actions.append(.report(AttachmentProgress(attachment: row, transferred: count)))
    }

    private mutating func report(_ id: Int) {
        guard let row = rows[id] else { return }
        let progress = AttachmentProgress(attachment: row, transferred: transfers[id]?.transferred ?? 0)
        guard progress != reported else { return }
        reported = progress
        actions.append(.report(progress))
    }

    private mutating func sendHeld(at now: Instant) {
        guard let request = held, let id = current, flight == nil, committing == nil, uncommitted.isEmpty,
            mayStart(at: now)
        else { return }
        held = nil
        flight = Flight(number: nextNumber, attachment: id, request: request.id)
        actions.append(.send(nextNumber, request))
        nextNumber += 1
    }

    private mutating func cancelFlight() {
        guard let number = flight?.number else { return }
        flight = nil
        actions.append(.cancel(number))
    }

    private mutating func clearCurrent() {
        current = nil
        held = nil
    }

    private mutating func updateDeadline(at now: Instant, _ isOnServer: (RecordID) -> Bool) {
        let isCommitting = committing != nil || !uncommitted.isEmpty
        let waiting = current != nil ? [] : pending.filter { rows[$0].map { isOnServer($0.record) } ?? false }
        isSettled = !isCommitting && (!gate.isUsable || (current == nil && waiting.isEmpty))
        nextDeadline = nil
        if committing != nil { return }
        if isCommitting {
            nextDeadline = commitAt
        } else if gate.isUsable, gate.isOpen, !isPaused {
            if current != nil {
                nextDeadline = held == nil ? nil : earliest
            } else {
                nextDeadline = waiting.map { max(transfers[$0]?.nextDeadline ?? .start, earliest) }.min()
            }
        }
    }
}
