internal import Foundation
internal import NotesContract
internal import Synchronization
internal import Wire

/// The content of a store in collections, without attachments and snapshots: the same results as those of the tables
/// (``NotesStore/createSchema(_:from:_:epoch:)``) at a fraction of their time. For explorations.
///
/// Its functions are called within a transaction of ``NotesStore``, one at a time.
final class NotesMemory: Sendable {
    /// The stored result of an operation.
    struct Operation {
        let digest: Int64
        let status: Int
        let entityTag: String?
        let body: String
        /// The ``DatabaseUptime`` of the operation.
        let made: Int
    }

    /// A stored token.
    struct Token {
        let owner: String
        let kind: String
        let csrf: String?
        let expires: Int
        let proof: String
        /// The position in the order of all tokens.
        var order = 0
    }

    /// A row. A reference, because lists select and sort rows.
    private final class Row: Sendable {
        /// The row's identifier, which never changes.
        let id: Int
        let note: StoredNote
        /// The ``DatabaseUptime`` of the deletion; `nil` if the note is not a tombstone.
        let deleted: Int?

        init(id: Int, note: StoredNote, deleted: Int?) {
            self.id = id
            self.note = note
            self.deleted = deleted
        }
    }

    private struct Owned: Hashable {
        let owner: ByteKey
        let name: ByteKey
    }

    private struct State {
        var rows: [ByteKey: [ByteKey: Row]] = [:]
        var pruned: [ByteKey: Int] = [:]
        var operations: [Owned: Operation] = [:]
        var tokens: [ByteKey: Token] = [:]
        var nextRow = 1
        var nextToken = 1
        /// What a failed transaction reverts, in the order of its changes.
        var changes: [Change] = []
        /// The earliest time of an operation, and the earliest end of a token.
        var oldestOperation = Int.max
        var earliestExpiry = Int.max
    }

    /// An element before its change; `nil` if there was none.
    private enum Change {
        case row(Owned, Row?)
        case pruned(ByteKey, Int?)
        case operation(Owned, Operation?)
        case token(ByteKey, Token?)
    }

    private let state = Mutex(State())
    /// Held during a transaction.
    private let turn = NSLock()

    // MARK: Transactions

    /// Runs a transaction; its changes are reverted if it throws.
    func transaction<Result>(_ body: () throws -> Result) throws -> Result {
        turn.lock()
        defer { turn.unlock() }
        state.withLock { $0.changes.removeAll(keepingCapacity: true) }
        do {
            return try body()
        } catch {
            state.withLock { state in
                for change in state.changes.reversed() { Self.revert(change, &state) }
            }
            throw error
        }
    }

    private static func revert(_ change: Change, _ state: inout State) {
        switch change {
        case .row(let key, let row): state.rows[key.owner, default: [:]][key.name] = row
        case .pruned(let owner, let sequence): state.pruned[owner] = sequence
        case .operation(let key, let operation): state.operations[key] = operation
        case .token(let id, let token): state.tokens[id] = token
        }
    }

    // MARK: Notes

    func note(owner: String, uuid: String) -> StoredNote? {
        state.withLock { $0.rows[ByteKey(owner)]?[ByteKey(uuid)]?.note }
    }

    /// Returns the first note of any owner with an identifier.
    func note(uuid: String) -> StoredNote? {
        state.withLock { state in
            let key = ByteKey(uuid)
            return state.rows.values.compactMap { $0[key] }.min { $0.id < $1.id }?.note
        }
    }

    /// Returns the notes of a selection with their rows' identifiers, in its order.
    func rows(_ selection: StoredNote.Selection, lastState: Int) -> [NoteRow] {
        var found = state.withLock { state in
            (state.rows[ByteKey(selection.owner)] ?? [:]).values.filter {
                $0.note.state.rawValue <= lastState && $0.note.sequence > selection.afterSequence
            }
        }
        switch selection.order {
        case .bySequence: found.sort { $0.note.sequence < $1.note.sequence }
        case .byDate:
            found.sort { one, two in
                let (left, right) = (one.note.note, two.note.note)
                let (date, other) = (ByteKey(left.date), ByteKey(right.date))
                return date == other ? ByteKey(left.uuid) < ByteKey(right.uuid) : date < other
            }
        }
        return found.prefix(selection.limit).map { .memory($0.note, position: $0.id) }
    }

    /// Returns the given rows of a selection, in the order of `ids`, with the indices in `ids`.
    func rows(ids: ArraySlice<Int64>, _ selection: StoredNote.Selection, lastState: Int) -> [NoteRow] {
        var byID: [Int: StoredNote] = [:]
        for row in rows(selection, lastState: lastState) {
            if case .memory(let note, let id) = row { byID[id] = note }
        }
        return ids.enumerated().compactMap { index, id in
            byID[Int(id)].map { .memory($0, position: index) }
        }
    }

    /// Returns the sequence of a user's last write, and that of the last pruned tombstone.
    func sequences(owner: String) -> (last: Int, pruned: Int) {
        state.withLock { state in
            let key = ByteKey(owner)
            var last = 0
            for row in (state.rows[key] ?? [:]).values { last = max(last, row.note.sequence) }
            return (last, state.pruned[key] ?? 0)
        }
    }

    /// Inserts or replaces a note.
    ///
    /// - Parameter deleted: The ``DatabaseUptime`` of the deletion; `nil` if the note is not a tombstone.
    func save(_ note: StoredNote, deleted: Int?) {
        state.withLock { state in
            let key = Owned(owner: ByteKey(note.owner), name: ByteKey(note.note.uuid))
            let old = state.rows[key.owner]?[key.name]
            state.changes.append(.row(key, old))
            let id = old?.id ?? state.nextRow
            if old == nil { state.nextRow += 1 }
            state.rows[key.owner, default: [:]][key.name] = Row(id: id, note: note, deleted: deleted)
        }
    }

    func erase(owner: String, uuid: String) {
        state.withLock { state in
            let key = Owned(owner: ByteKey(owner), name: ByteKey(uuid))
            state.changes.append(.row(key, state.rows[key.owner]?[key.name]))
            state.rows[key.owner]?[key.name] = nil
        }
    }

    /// Prunes tombstones: ``StoredNote/prune(_:before:)``.
    func prune(before time: Int) {
        state.withLock { state in
            for (owner, rows) in state.rows {
                var last: Int?
                for (uuid, row) in rows where row.note.state == .deleted {
                    guard let deleted = row.deleted, deleted < time else { continue }
                    last = max(last ?? 0, row.note.sequence)
                    var pruned = row.note
                    pruned.state = .pruned
                    pruned.note = Note(
                        uuid: row.note.note.uuid,
                        revision: Revision(number: row.note.note.revision.number, suffix: ""), date: "",
                        title: row.note.note.title, text: row.note.note.text)
                    state.changes.append(.row(Owned(owner: owner, name: uuid), row))
                    state.rows[owner]?[uuid] = Row(id: row.id, note: pruned, deleted: nil)
                }
                guard let last else { continue }
                state.changes.append(.pruned(owner, state.pruned[owner]))
                state.pruned[owner] = max(last, state.pruned[owner] ?? 0)
            }
        }
    }

    // MARK: Operations

    func operation(owner: String, key: String) -> Operation? {
        state.withLock { $0.operations[Owned(owner: ByteKey(owner), name: ByteKey(key))] }
    }

    func insert(_ operation: Operation, owner: String, key: String) {
        state.withLock { state in
            let key = Owned(owner: ByteKey(owner), name: ByteKey(key))
            state.changes.append(.operation(key, nil))
            state.operations[key] = operation
            state.oldestOperation = min(state.oldestOperation, operation.made)
        }
    }

    func removeOperations(before time: Int) {
        state.withLock { state in
            guard state.oldestOperation < time else { return }
            for (key, operation) in state.operations where operation.made < time {
                state.changes.append(.operation(key, operation))
                state.operations[key] = nil
            }
            state.oldestOperation = state.operations.values.map(\.made).min() ?? .max
        }
    }

    // MARK: Tokens

    func token(id: String) -> Token? { state.withLock { $0.tokens[ByteKey(id)] } }

    /// Inserts a token, and removes the oldest ones of its owner and kind above a number.
    func insert(_ token: Token, id: String, max: Int) {
        state.withLock { state in
            var token = token
            token.order = state.nextToken
            state.nextToken += 1
            state.changes.append(.token(ByteKey(id), state.tokens[ByteKey(id)]))
            state.tokens[ByteKey(id)] = token
            state.earliestExpiry = min(state.earliestExpiry, token.expires)
            guard state.tokens.count > max else { return }
            let same = state.tokens.filter {
                $0.value.owner.hasSameBytes(as: token.owner) && $0.value.kind == token.kind
            }
            for (id, old) in same.sorted(by: { $0.value.order > $1.value.order }).dropFirst(max) {
                state.changes.append(.token(id, old))
                state.tokens[id] = nil
            }
        }
    }

    func removeToken(id: String) {
        state.withLock { state in
            state.changes.append(.token(ByteKey(id), state.tokens[ByteKey(id)]))
            state.tokens[ByteKey(id)] = nil
        }
    }

    func removeTokens(where isRemoved: (Token) -> Bool) {
        state.withLock { state in
            for (id, token) in state.tokens where isRemoved(token) {
                state.changes.append(.token(id, token))
                state.tokens[id] = nil
            }
        }
    }

    func removeTokens(expiredAt time: Int) {
        let isDue = state.withLock { $0.earliestExpiry < time }
        guard isDue else { return }
        removeTokens { $0.expires < time }
        state.withLock { state in state.earliestExpiry = state.tokens.values.map(\.expires).min() ?? .max }
    }
}
