//  SyncEngine: the decisions of the sync client.
//
//  Owns: the outbox, the order of requests, the meaning of responses, conflicts, the retry policy.
//
//  Does not own: sockets, SQLite, clocks and randomness. Inputs, the time and a seed go in; commits and requests come
//  out.

public import Determinism
internal import NotesContract

/// The state machine of a sync client.
///
///     local change  -> note changed at once, entry added to the outbox   (one commit)
///     outbox        -> POST, PUT, DELETE in order, one at a time         (committed before it is sent)
///     response      -> validated; note and entry updated                 (one commit)
///     409           -> GET -> own change: done; otherwise a conflict     (base, mine and theirs are kept)
///     afterwards    -> GET of the index; changed notes are fetched
///
/// Inputs are facts with their time: ``started(at:)``, ``interfaceChanged(isUp:at:)``, ``responseReceived(_:to:at:)``
/// and so on. After each input, and after ``advance(to:)`` at ``nextDeadline``, the driver takes every action with
/// ``takeAction()``.
///
/// The engine is a value. A driver that cannot execute ``Action/commit(_:)`` discards the copy that requested it and
/// continues with the previous one.
public struct SyncEngine: Sendable {
    /// An action for the driver.
    public enum Action: Sendable {
        /// Make the change durable before any later action.
        case commit(StoreChange)
        /// Send the request.
        case send(SyncRequest)
    }

    /// The user's resolution of a conflict.
    public enum Resolution: Hashable, Sendable {
        /// Store this content; `nil` keeps the local value.
        case write(title: String?, text: String?)
        /// Keep the server's side.
        case theirs
        /// Keep the local side.
        case mine
    }

    /// The reason why a change by the user is rejected.
    public enum NoteError: Error, Hashable, Sendable, CustomStringConvertible {
        /// No note has that identifier.
        case unknownNote
        /// The note has no conflict to resolve.
        case notInConflict

        public var description: String {
            switch self {
            case .unknownNote: "no such note"
            case .notInConflict: "the note is not in conflict"
            }
        }
    }

    /// The purpose of an exchange.
    enum Activity: Hashable, Sendable {
        case push(sequence: Int)
        case reconcile(sequence: Int)
        case index
        case fetch(uuid: String)
    }

    var notes: [String: LocalNote]
    var outbox: [OutboxEntry]
    let policy: RetryPolicy
    let mutant: Mutant?
    private var ids: RandomStream
    private var jitter: RandomStream
    private var nextSequence: Int
    private var nextExchange = 0
    private var pendingChange = StoreChange()
    private var pendingRequest: SyncRequest?

    /// The exchange in flight.
    var current: (id: SyncExchangeID, activity: Activity)?
    /// Entries that the server rejected as conflicting; the server's note is fetched before anything else.
    var toReconcile: [Int] = []
    /// Notes to fetch, because the index lists another revision.
    var toFetch: [String] = []
    private var wantsIndex = false
    private var lastIndexFetch: Instant?
    private var isInterfaceUp = true
    private var failures = 0
    private var retryAt: Instant?
    /// Entries whose last attempt ended in a server error (500).
    var serverErrors: [Int: (count: Int, retryAt: Instant)] = [:]
    /// The reason why nothing is sent until ``syncRequested(at:)``; `nil` if not paused.
    public private(set) var pauseReason: String?
    /// Whether the last exchange succeeded; `nil` before the first.
    public private(set) var isReachable: Bool?
    /// Set when the last response came from a peer that is not a notes server. The engine keeps retrying, because a
    /// captive portal looks the same and goes away.
    public internal(set) var foreignServer: ForeignServerError?

    /// Creates an engine with the state of the previous run.
    ///
    /// - Parameters:
    ///   - seed: The random seed of identifiers and retry delays; must differ each time a client starts.
    ///   - mutant: A deliberate defect.
    public init(
        restoring state: StoredState = StoredState(), policy: RetryPolicy = RetryPolicy(), seed: UInt64,
        mutant: Mutant? = nil
    ) {
        notes = Dictionary(state.notes.map { ($0.uuid, $0) }) { first, _ in first }
        outbox = state.entries.sorted { $0.sequence < $1.sequence }
        self.policy = policy
        self.mutant = mutant
        ids = RandomStream(seed: seed, "client/ids")
        jitter = RandomStream(seed: seed, "client/jitter")
        nextSequence = (outbox.last?.sequence ?? -1) + 1
    }

    // MARK: State

    /// The notes as a user interface would draw them.
    public var view: NotesView {
        let rows = notes.values.map { note in
            NotesView.Row(
                uuid: note.uuid, title: note.mine.title, text: note.mine.text, icon: icon(of: note),
                isDeleted: note.isDeleted, revision: note.base?.description, kept: kept(of: note),
                problem: note.problem)
        }
        let dates = notes.mapValues(\.mine.date)
        return NotesView(
            rows: rows.sorted { (dates[$0.uuid] ?? "", $0.uuid) < (dates[$1.uuid] ?? "", $1.uuid) },
            outbox: outbox.count, isReachable: isReachable)
    }

    /// Returns a note as it is stored.
    public func note(_ uuid: String) -> LocalNote? { notes[uuid] }

    /// The time of the next ``advance(to:)``; `nil` until another input changes it.
    public var nextDeadline: Instant? {
        guard current == nil, isInterfaceUp, pauseReason == nil else { return nil }
        var deadline = lastIndexFetch.map { $0 + policy.poll }
        if hasWork { deadline = .start }
        for (_, error) in serverErrors { deadline = min(deadline ?? .never, error.retryAt) }
        return deadline.map { max($0, retryAt ?? .start) }
    }

    /// Whether nothing is in flight and nothing is ready to be sent.
    public var isSettled: Bool { current == nil && !hasWork && serverErrors.isEmpty }

    private var hasWork: Bool {
        !toReconcile.isEmpty || wantsIndex || !toFetch.isEmpty || outbox.contains { canBeSent($0, at: nil) }
    }

    private func icon(of note: LocalNote) -> NotesView.Icon {
        if note.problem != nil { return .error }
        if note.theirs != nil { return .conflict }
        return outbox.contains { $0.uuid == note.uuid } ? .upload : .none
    }

    private func kept(of note: LocalNote) -> [String] {
        var texts: [String] = []
        for text in [note.mine.text, note.theirs?.content?.text, note.theirs == nil ? nil : note.baseContent?.text] {
            if let text, !texts.contains(text) { texts.append(text) }
        }
        return texts
    }

    // MARK: Inputs

    /// The client has started. An exchange of the previous run has an unknown outcome.
    public mutating func started(at now: Instant) { syncRequested(at: now) }

    /// The user has requested a sync: the index is fetched, and retry delays end.
    public mutating func syncRequested(at now: Instant) {
        pauseReason = nil
        foreignServer = nil
        endRetryDelays()
        wantsIndex = true
        sendNext(at: now)
    }

    /// The device's network interface has gone up or down. Nothing is sent while it is down.
    public mutating func interfaceChanged(isUp: Bool, at now: Instant) {
        if isUp && !isInterfaceUp {
            endRetryDelays()
            wantsIndex = true
        }
        isInterfaceUp = isUp
        sendNext(at: now)
    }

    /// A complete response has arrived.
    public mutating func responseReceived(_ response: SyncResponse, to id: SyncExchangeID, at now: Instant) {
        guard let current, current.id == id else { return }
        self.current = nil
        handleResponse(response, to: current.activity, at: now)
        sendNext(at: now)
    }

    /// An exchange has ended without a response.
    public mutating func exchangeFailed(_ id: SyncExchangeID, _ failure: SyncFailure, at now: Instant) {
        guard let current, current.id == id else { return }
        self.current = nil
        handleFailure(failure, of: current.activity, at: now)
        sendNext(at: now)
    }

    /// Advances the time; due at ``nextDeadline``.
    public mutating func advance(to now: Instant) {
        if let lastIndexFetch, now >= lastIndexFetch + policy.poll { wantsIndex = true }
        sendNext(at: now)
    }

    /// Returns the next action; `nil` if there is none.
    public mutating func takeAction() -> Action? {
        if !pendingChange.isEmpty {
            defer { pendingChange = StoreChange() }
            return .commit(pendingChange)
        }
        defer { pendingRequest = nil }
        return pendingRequest.map(Action.send)
    }

    private mutating func endRetryDelays() {
        failures = 0
        retryAt = nil
        for sequence in serverErrors.keys { serverErrors[sequence]?.retryAt = .start }
    }

    // MARK: Records

    /// Records a validated response.
    mutating func recordSuccess() {
        failures = 0
        retryAt = nil
        isReachable = true
        foreignServer = nil
    }

    /// Records a failure that is worth a retry.
    mutating func recordFailure(retryAfter: Nanoseconds = .zero, at now: Instant) {
        failures += 1
        isReachable = false
        retryAt = now + max(retryAfter, policy.delay(afterFailures: failures, random: &jitter))
    }

    mutating func retryDelay(ofEntryAfter failures: Int) -> Nanoseconds {
        policy.delay(afterFailures: failures, random: &jitter)
    }

    mutating func pause(because reason: String) { pauseReason = reason }

    mutating func recordIndexFetch(at now: Instant) { lastIndexFetch = now }

    mutating func requestIndex() { wantsIndex = true }

    // MARK: Sending

    /// Starts the next exchange, unless one is in flight or nothing may be sent now.
    mutating func sendNext(at now: Instant) {
        guard current == nil, isInterfaceUp, pauseReason == nil, now >= retryAt ?? .start,
            let activity = nextActivity(at: now)
        else { return }
        let id = SyncExchangeID(number: nextExchange)
        nextExchange += 1
        current = (id, activity)
        func get(_ target: String) -> SyncRequest {
            SyncRequest(id: id, method: "GET", target: target, headers: [], body: "")
        }
        switch activity {
        case .push(let sequence): pendingRequest = push(sequence, id)
        case .reconcile(let sequence):
            pendingRequest = get(NotesHTTP.path(of: outbox.first { $0.sequence == sequence }?.uuid ?? ""))
        case .index:
            wantsIndex = false
            pendingRequest = get(NotesHTTP.indexPath)
        case .fetch(let uuid):
            toFetch.removeAll { $0 == uuid }
            pendingRequest = get(NotesHTTP.path(of: uuid))
        }
    }

    private func nextActivity(at now: Instant) -> Activity? {
        if let sequence = toReconcile.first { return .reconcile(sequence: sequence) }
        if let entry = outbox.first(where: { canBeSent($0, at: now) }) { return .push(sequence: entry.sequence) }
        if wantsIndex { return .index }
        return toFetch.first.map { .fetch(uuid: $0) }
    }

    /// Returns whether an entry is the first of its note and may be sent now.
    ///
    /// - Parameter now: The time; `nil` excludes every entry that waits after a server error.
    private func canBeSent(_ entry: OutboxEntry, at now: Instant?) -> Bool {
        guard let note = notes[entry.uuid], note.theirs == nil, note.problem == nil,
            outbox.first(where: { $0.uuid == entry.uuid })?.sequence == entry.sequence
        else { return false }
        guard let error = serverErrors[entry.sequence] else { return true }
        return now.map { $0 >= error.retryAt } ?? false
    }

    private mutating func push(_ sequence: Int, _ id: SyncExchangeID) -> SyncRequest? {
        guard let index = outbox.firstIndex(where: { $0.sequence == sequence }) else { return nil }
        if outbox[index].attempts == 0 { outbox[index].base = notes[outbox[index].uuid]?.base }
        outbox[index].attempts += 1
        let entry = outbox[index]
        store(entry)
        let key = (name: NotesHTTP.idempotencyKeyName, value: entry.operation)
        let json = (name: "Content-Type", value: "application/json")
        let path = NotesHTTP.path(of: entry.uuid)
        switch entry.kind {
        case .create:
            return SyncRequest(
                id: id, method: "POST", target: NotesHTTP.notesPath, headers: [key, json],
                body: entry.draft.json(uuid: entry.uuid, base: nil))
        case .update:
            return SyncRequest(
                id: id, method: "PUT", target: path, headers: [key, json],
                body: entry.draft.json(uuid: entry.uuid, base: entry.base))
        case .delete:
            return SyncRequest(
                id: id, method: "DELETE",
                target: "\(path)?revision=\(Self.percentEncoded(entry.base?.description ?? ""))",
                headers: [key], body: "")
        }
    }

    /// Returns a text with every byte but the unreserved characters percent-encoded (RFC 3986, 2.3).
    private static func percentEncoded(_ text: String) -> String {
        var out = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                out.unicodeScalars.append(Unicode.Scalar(byte))
            default: out += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return out
    }

    // MARK: Storage

    func hasEntry(_ uuid: String) -> Bool { outbox.contains { $0.uuid == uuid } }

    mutating func store(_ note: LocalNote) {
        notes[note.uuid] = note
        pendingChange.notes.removeAll { $0.uuid == note.uuid }
        pendingChange.deletedNotes.removeAll { $0 == note.uuid }
        pendingChange.notes.append(note)
    }

    private mutating func store(_ entry: OutboxEntry) {
        pendingChange.entries.removeAll { $0.sequence == entry.sequence }
        pendingChange.entries.append(entry)
    }

    /// Deletes a note and its entries from the store.
    mutating func forget(_ uuid: String) {
        notes[uuid] = nil
        pendingChange.notes.removeAll { $0.uuid == uuid }
        pendingChange.deletedNotes.append(uuid)
        for entry in outbox where entry.uuid == uuid { drop(entry) }
        toFetch.removeAll { $0 == uuid }
    }

    /// Removes an entry from the outbox.
    mutating func drop(_ entry: OutboxEntry) {
        outbox.removeAll { $0.sequence == entry.sequence }
        toReconcile.removeAll { $0 == entry.sequence }
        serverErrors[entry.sequence] = nil
        pendingChange.entries.removeAll { $0.sequence == entry.sequence }
        pendingChange.deletedEntries.append(entry.sequence)
    }

    /// Adds a change to the outbox, or merges it into an entry that has never been sent.
    mutating func enqueue(_ kind: OutboxEntry.Kind, _ note: LocalNote) {
        if kind == .update, let index = outbox.lastIndex(where: { $0.uuid == note.uuid }),
            outbox[index].attempts == 0, outbox[index].kind != .delete
        {
            outbox[index].draft = note.mine.draft()
            outbox[index].edits = note.edits
            store(outbox[index])
            return
        }
        let entry = OutboxEntry(
            operation: makeUUID(), sequence: nextSequence, uuid: note.uuid, kind: kind, draft: note.mine.draft(),
            edits: note.edits)
        nextSequence += 1
        outbox.append(entry)
        store(entry)
    }

    /// Returns a random UUID (RFC 9562, version 4).
    mutating func makeUUID() -> String {
        let high = ids.next() & 0xFFFF_FFFF_FFFF_0FFF | 0x4000
        let low = ids.next() & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
        func hex(_ value: UInt64, _ digits: Int) -> String {
            let text = String(value, radix: 16)
            return String(repeating: "0", count: digits - text.count) + text
        }
        return [
            hex(high >> 32, 8), hex(high >> 16 & 0xFFFF, 4), hex(high & 0xFFFF, 4), hex(low >> 48, 4),
            hex(low & 0xFFFF_FFFF_FFFF, 12),
        ].joined(separator: "-")
    }
}
