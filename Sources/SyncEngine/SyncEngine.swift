public import LinkModel
internal import NotesContract

/// The sync client's brain: what the user does and what the network brings go in, what must be durable and what is to be
/// sent comes out.
///
///     user's change -> note changed at once, entry in the outbox      (one commit)
///     outbox        -> POST, PUT, DELETE in order, one at a time      (committed before it is sent)
///     answer        -> validated; note and entry settled              (one commit)
///     409           -> GET -> own echo: settled; otherwise a conflict (base, mine and theirs are kept)
///     then          -> the index; what differs is fetched
///
/// Whoever drives it makes each ``Output/change`` durable before acting on the rest, and drops the engine's new value if
/// that fails: it is a value, the old one is still good.
public struct SyncEngine: Sendable {
    /// What happened.
    public enum Input: Sendable {
        /// The client is there; whatever was in flight is not known any more.
        case start
        /// The user asks to look at the server now.
        case sync
        /// The device's network interface is up, or not.
        case interface(isUp: Bool)
        /// ``SyncEngine/nextWake`` has come.
        case wake
        /// An answer has come whole.
        case answered(SyncExchangeID, SyncAnswer)
        /// No answer has come.
        case failed(SyncExchangeID, SyncFailure)
    }

    /// What to do about it, in this order.
    public struct Output: Sendable {
        /// To be made durable first.
        public var change = StoreChange()
        /// To be sent then.
        public var request: SyncRequest?
        /// A note that has been created.
        public var created: String?
    }

    /// What the user wants of a conflict.
    public enum Resolution: Hashable, Sendable {
        /// This, whatever either side says.
        case write(title: String?, text: String?)
        /// What the server has.
        case theirs
        /// What is here.
        case mine
    }

    /// Why a user's action cannot be done.
    public enum Refusal: Error, Hashable, Sendable {
        /// There is no such note.
        case unknownNote
        /// The note is not in conflict.
        case notInConflict
    }

    var notes: [String: LocalNote]
    var outbox: [OutboxEntry]
    let policy: RetryPolicy
    let mutant: Mutant?
    private var ids: RandomStream
    private var jitter: RandomStream
    private var nextSequence: Int
    private var nextExchange = 0

    /// What is being exchanged.
    enum Activity: Hashable, Sendable {
        case push(sequence: Int)
        case reconcile(sequence: Int)
        case index
        case fetch(uuid: String)
    }

    var current: (id: SyncExchangeID, activity: Activity)?
    /// An entry whose outcome has to be looked up before anything else of its note.
    var toReconcile: [Int] = []
    /// Notes that differ at the server.
    var toFetch: [String] = []
    private var wantsIndex = false
    private var lastLook: Instant?
    private var isInterfaceUp = true
    private var failures = 0
    private var notBefore: Instant?
    /// Entries that the server fails to carry out: how often, and not before when.
    var serverErrors: [Int: (count: Int, notBefore: Instant)] = [:]
    /// Why nothing is sent until the user asks.
    public private(set) var pausedBecause: String?
    /// Whether the last exchange succeeded; `nil` before the first.
    public private(set) var isReachable: Bool?

    /// Takes up where the client was.
    ///
    /// - Parameters:
    ///   - seed: Where identifiers and the chance of pauses come from; must be another one each time a client starts.
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

    // MARK: What can be asked

    /// What a client would draw.
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

    /// A note as it is held.
    public func note(_ uuid: String) -> LocalNote? { notes[uuid] }

    /// When ``Input/wake`` is to be taken; `nil` while something else has to happen first.
    public var nextWake: Instant? {
        guard current == nil, isInterfaceUp, pausedBecause == nil else { return nil }
        var wake = lastLook.map { $0 + policy.poll }
        if hasWork { wake = .start }
        for (_, error) in serverErrors { wake = min(wake ?? .never, error.notBefore) }
        return wake.map { max($0, notBefore ?? .start) }
    }

    /// Whether nothing is in flight and nothing waits that could be sent.
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

    // MARK: What the user does

    /// A new note, `created` in the output.
    ///
    /// - Parameter uuid: What it is called; a new name unless given.
    public mutating func create(
        title: String?, text: String?, date: String, uuid: String? = nil, at now: Instant
    ) -> Output {
        var output = Output()
        let note = LocalNote(
            uuid: uuid ?? makeUUID(), mine: LocalNote.Content(title: title, text: text, date: date), edits: 1)
        queue(.create, note, &output)
        put(note, &output)
        output.created = note.uuid
        return sendNext(output, at: now)
    }

    /// Another title or text; `nil` leaves it as it is.
    public mutating func edit(
        _ uuid: String, title: String?, text: String?, date: String, at now: Instant
    ) throws(Refusal) -> Output {
        guard var note = notes[uuid], !note.isDeleted else { throw .unknownNote }
        var output = Output()
        note.mine = LocalNote.Content(title: title ?? note.mine.title, text: text ?? note.mine.text, date: date)
        note.edits += 1
        note.problem = nil
        // Until the user decides about a conflict nothing is sent.
        if note.theirs == nil { queue(note.base == nil && !hasEntry(uuid) ? .create : .update, note, &output) }
        put(note, &output)
        return sendNext(output, at: now)
    }

    /// The note goes, here at once and at the server as soon as it can be told.
    public mutating func delete(_ uuid: String, at now: Instant) throws(Refusal) -> Output {
        // A deletion that the server would not have may be asked for again.
        guard var note = notes[uuid], !note.isDeleted || note.problem != nil else { throw .unknownNote }
        var output = Output()
        note.edits += 1
        note.isDeleted = true
        note.problem = nil
        for entry in outbox where entry.uuid == uuid && entry.attempts == 0 { drop(entry, &output) }
        if note.base == nil && !hasEntry(uuid) {
            forget(uuid, &output)  // the server has never heard of it
        } else {
            if note.theirs == nil { queue(.delete, note, &output) }
            put(note, &output)
        }
        return sendNext(output, at: now)
    }

    /// The user decides about a conflict.
    public mutating func resolve(
        _ uuid: String, _ resolution: Resolution, date: String, at now: Instant
    ) throws(Refusal) -> Output {
        guard var note = notes[uuid] else { throw .unknownNote }
        guard let theirs = note.theirs else { throw .notInConflict }
        var output = Output()
        note.theirs = nil
        note.edits += 1
        note.base = theirs.revision
        note.baseContent = theirs.content
        switch resolution {
        case .theirs:
            guard let content = theirs.content else {
                forget(uuid, &output)
                return sendNext(output, at: now)
            }
            note.mine = content
            note.isDeleted = false
            put(note, &output)
        case .mine where note.isDeleted:
            guard theirs.revision != nil else {
                forget(uuid, &output)
                return sendNext(output, at: now)
            }
            queue(.delete, note, &output)
            put(note, &output)
        case .mine, .write:
            if case .write(let title, let text) = resolution {
                note.mine = LocalNote.Content(
                    title: title ?? note.mine.title, text: text ?? note.mine.text, date: date)
            }
            note.isDeleted = false
            if theirs.revision == nil {
                // A name that has been deleted is never used again.
                forget(uuid, &output)
                note.uuid = makeUUID()
                output.created = note.uuid
            }
            queue(theirs.revision == nil ? .create : .update, note, &output)
            put(note, &output)
        }
        return sendNext(output, at: now)
    }

    // MARK: What happens

    /// Takes what happened.
    public mutating func take(_ input: Input, at now: Instant) -> Output {
        var output = Output()
        switch input {
        case .start, .sync:
            pausedBecause = nil
            forgetPauses()
            wantsIndex = true
        case .interface(let isUp):
            if isUp && !isInterfaceUp {
                forgetPauses()
                wantsIndex = true
            }
            isInterfaceUp = isUp
        case .wake:
            if let lastLook, now >= lastLook + policy.poll { wantsIndex = true }
        case .answered(let id, let answer):
            guard let current, current.id == id else { return output }
            self.current = nil
            takeAnswer(answer, to: current.activity, &output, at: now)
        case .failed(let id, let failure):
            guard let current, current.id == id else { return output }
            self.current = nil
            takeFailure(failure, of: current.activity, &output, at: now)
        }
        return sendNext(output, at: now)
    }

    private mutating func forgetPauses() {
        failures = 0
        notBefore = nil
        for sequence in serverErrors.keys { serverErrors[sequence]?.notBefore = .start }
    }

    /// A validated answer has come.
    mutating func noteSuccess() {
        failures = 0
        notBefore = nil
        isReachable = true
    }

    /// Something failed that may work later.
    mutating func noteFailure(retryAfter: Nanoseconds = .zero, at now: Instant) {
        failures += 1
        isReachable = false
        notBefore = now + max(retryAfter, policy.pause(after: failures, chance: &jitter))
    }

    mutating func pauseForEntry(_ count: Int) -> Nanoseconds { policy.pause(after: count, chance: &jitter) }

    mutating func pause(because reason: String) { pausedBecause = reason }

    mutating func noteLook(at now: Instant) { lastLook = now }

    mutating func lookAgain() { wantsIndex = true }

    // MARK: Sending

    /// Sends the next thing, if something may be sent.
    private mutating func sendNext(_ output: Output, at now: Instant) -> Output {
        var output = output
        guard current == nil, isInterfaceUp, pausedBecause == nil, now >= notBefore ?? .start,
            let activity = nextActivity(at: now)
        else { return output }
        let id = SyncExchangeID(number: nextExchange)
        nextExchange += 1
        current = (id, activity)
        switch activity {
        case .push(let sequence): output.request = push(sequence, id, &output)
        case .reconcile(let sequence):
            let uuid = outbox.first { $0.sequence == sequence }?.uuid ?? ""
            output.request = SyncRequest(
                id: id, method: "GET", target: NotesHTTP.path(of: uuid), headers: [], body: "")
        case .index:
            wantsIndex = false
            output.request = SyncRequest(id: id, method: "GET", target: NotesHTTP.indexPath, headers: [], body: "")
        case .fetch(let uuid):
            toFetch.removeAll { $0 == uuid }
            output.request = SyncRequest(
                id: id, method: "GET", target: NotesHTTP.path(of: uuid), headers: [], body: "")
        }
        return output
    }

    private func nextActivity(at now: Instant) -> Activity? {
        if let sequence = toReconcile.first { return .reconcile(sequence: sequence) }
        if let entry = outbox.first(where: { canBeSent($0, at: now) }) { return .push(sequence: entry.sequence) }
        if wantsIndex { return .index }
        return toFetch.first.map { .fetch(uuid: $0) }
    }

    /// Whether an entry is the first of its note, and nothing holds it up; `nil` asks whether anything could at any time.
    private func canBeSent(_ entry: OutboxEntry, at now: Instant?) -> Bool {
        guard let note = notes[entry.uuid], note.theirs == nil, note.problem == nil,
            outbox.first(where: { $0.uuid == entry.uuid })?.sequence == entry.sequence
        else { return false }
        guard let error = serverErrors[entry.sequence] else { return true }
        return now.map { $0 >= error.notBefore } ?? false
    }

    private mutating func push(_ sequence: Int, _ id: SyncExchangeID, _ output: inout Output) -> SyncRequest? {
        guard let index = outbox.firstIndex(where: { $0.sequence == sequence }) else { return nil }
        if outbox[index].attempts == 0 { outbox[index].base = notes[outbox[index].uuid]?.base }
        outbox[index].attempts += 1
        let entry = outbox[index]
        output.change.entries.removeAll { $0.sequence == sequence }
        output.change.entries.append(entry)
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
                id: id, method: "DELETE", target: "\(path)?revision=\(Self.escaped(entry.base?.description ?? ""))",
                headers: [key], body: "")
        }
    }

    /// Percent-encodes what has a meaning in a query (RFC 3986, 2.3).
    private static func escaped(_ text: String) -> String {
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

    // MARK: The books

    func hasEntry(_ uuid: String) -> Bool { outbox.contains { $0.uuid == uuid } }

    mutating func put(_ note: LocalNote, _ output: inout Output) {
        notes[note.uuid] = note
        output.change.notes.removeAll { $0.uuid == note.uuid }
        output.change.forgottenNotes.removeAll { $0 == note.uuid }
        output.change.notes.append(note)
    }

    mutating func forget(_ uuid: String, _ output: inout Output) {
        notes[uuid] = nil
        output.change.notes.removeAll { $0.uuid == uuid }
        output.change.forgottenNotes.append(uuid)
        for entry in outbox where entry.uuid == uuid { drop(entry, &output) }
        toFetch.removeAll { $0 == uuid }
    }

    mutating func drop(_ entry: OutboxEntry, _ output: inout Output) {
        outbox.removeAll { $0.sequence == entry.sequence }
        toReconcile.removeAll { $0 == entry.sequence }
        serverErrors[entry.sequence] = nil
        output.change.entries.removeAll { $0.sequence == entry.sequence }
        output.change.forgottenEntries.append(entry.sequence)
    }

    /// Queues a change, or folds it into one that has never been sent.
    mutating func queue(_ kind: OutboxEntry.Kind, _ note: LocalNote, _ output: inout Output) {
        if kind == .update, let index = outbox.lastIndex(where: { $0.uuid == note.uuid }),
            outbox[index].attempts == 0, outbox[index].kind != .delete
        {
            outbox[index].draft = note.mine.draft()
            outbox[index].edits = note.edits
            output.change.entries.append(outbox[index])
            return
        }
        let entry = OutboxEntry(
            operation: makeUUID(), sequence: nextSequence, uuid: note.uuid, kind: kind, draft: note.mine.draft(),
            edits: note.edits)
        nextSequence += 1
        outbox.append(entry)
        output.change.entries.append(entry)
    }

    /// A random UUID (RFC 9562, version 4).
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
