//  LiveClient/NotesStore: the sync client's durable store, a SQLite file.
//
//  Owns: the schema, atomic commits, the lease of the process that synchronises, and the log of other processes' changes.
//
//  Does not own: the meaning of the rows (SyncEngine).

public import Client
internal import Foundation
internal import GRDB
internal import GRDBSQLite
internal import Synchronization
internal import Wire

/// The client's records and outbox in a SQLite file.
///
/// Several processes can open the file. One of them at a time, the holder of the lease, synchronises it and keeps its
/// content in memory; the others read it and change single records with ``change(of:_:)``, which logs the change for
/// the holder. A commit is on disk when it returns (write-ahead log, `synchronous = FULL`), before anything of it is
/// sent.
public final class SyncStore: Sendable {
    /// What another process may change at any time.
    private struct View {
        var lease: StoreLease?
        /// SQLite's `data_version` when the foreign changes were last read.
        var dataVersion: Int?
        /// Whether this object has logged a foreign change since.
        var hasLogged = false
    }

    let queue: DatabaseQueue
    /// The path as the user wrote it.
    let name: String
    /// The path without symbolic links; `nil` in memory.
    let resolved: String?
    private let view = Mutex(View())
    /// The state of the files when they were copied for reading; `nil` if the file itself is open.
    private let copied: StoreFile.Files?

    /// One opening at a time in this process: a file descriptor that is closed ends all POSIX locks of the process on
    /// its file, so none may be open outside SQLite while SQLite has the file.
    private static let opening = Mutex(())

    /// The limit on the wait for the write lock of another process.
    private static let busySeconds = 5.0
    private static let switchAttemptsMax = 250
    private static let switchPauseMicroseconds: UInt32 = 20_000
    /// The distance between the highest sequence in the file and one that is assigned by ``change(of:_:)``. The holder of
    /// the lease assigns the numbers between them to entries that it has not committed yet.
    static let sequenceGap = 1 << 20

    // MARK: Opening and closing

    /// Opens a store, creates it if there is none, or migrates it from an earlier version.
    ///
    /// A file that is newer, of another program or of another resource is not changed.
    ///
    /// - Parameters:
    ///   - path: The file; `nil` keeps the store in memory, where it has the lease from the beginning.
    ///   - resource: The name of the ``SyncResource``.
    public convenience init(path: String?, resource: String) throws(SyncStoreError) {
        try self.init(path: path, resource: resource, busySeconds: Self.busySeconds)
    }

    init(path: String?, resource: String, busySeconds: Double) throws(SyncStoreError) {
        name = path ?? "memory"
        copied = nil
        guard let path else {
            resolved = nil
            queue = try Self.memory { try Self.createSchema($0, resource: resource) }
            return
        }
        var configuration = Configuration()
        configuration.label = "slowlane.sync-store"
        configuration.busyMode = .timeout(busySeconds)
        let resolved = try StoreFile.resolve(path)
        self.resolved = resolved
        let opened = Self.opening.withLock { [configuration] _ in
            Result { () throws(SyncStoreError) in
                try Self.open(resolved, name: path, resource: resource, configuration)
            }
        }
        queue = try opened.get()
    }

    /// Reads a store into memory, migrated if it has an earlier version; changes are rejected.
    ///
    /// The store is not created, and nothing is written to its directory or locked for writing, so both may be
    /// read-only. ``hasForeignChanges`` shows whether the file has changed since.
    public init(reading path: String, resource: String) throws(SyncStoreError) {
        name = path
        let resolved = try StoreFile.resolve(path, isReading: true)
        self.resolved = resolved
        let opened = Self.opening.withLock { _ in
            Result { () throws(SyncStoreError) in try Self.copy(resolved, name: path, resource: resource) }
        }
        (queue, copied) = try opened.get()
    }

    private static func copy(
        _ resolved: String, name: String, resource: String
    ) throws(SyncStoreError) -> (DatabaseQueue, StoreFile.Files) {
        do {
            let queue = try DatabaseQueue()
            let files = try queue.writeWithoutTransaction { database in
                let files = try StoreFile.copy(resolved, name: name, resource: resource, to: database)
                try prepareSchema(database, name: name, resource: resource)
                try database.execute(sql: "PRAGMA query_only = ON")
                return files
            }
            return (queue, files)
        } catch {
            throw SyncStoreError(error, path: name)
        }
    }

    /// Creates a store in memory.
    init(_ prepare: (Database) throws -> Void) throws(SyncStoreError) {
        (name, resolved, copied) = ("memory", nil, nil)
        queue = try Self.memory(prepare)
    }

    private static func memory(_ prepare: (Database) throws -> Void) throws(SyncStoreError) -> DatabaseQueue {
        do {
            let queue = try DatabaseQueue()
            try queue.write(prepare)
            return queue
        } catch {
            throw SyncStoreError(error, path: "memory")
        }
    }

    private static func open(
        _ path: String, name: String, resource: String, _ configuration: Configuration
    ) throws(SyncStoreError) -> DatabaseQueue {
        _ = try StoreFile.inspect(path, name: name, resource: resource)
        try StoreFile.create(path, name: name)
        let systemError = Mutex<Int32>(0)
        do {
            var configuration = configuration
            configuration.prepareDatabase { database in
                // SQLite silently opens a file without write permission read-only.
                guard sqlite3_db_readonly(database.sqliteConnection, "main") == 0 else {
                    throw DatabaseError(resultCode: .SQLITE_READONLY)
                }
                try database.execute(sql: "PRAGMA synchronous = FULL")
                try limitLog(database)
            }
            let queue = try DatabaseQueue(path: path, configuration: configuration)
            try queue.writeWithoutTransaction { database in
                do {
                    // The schema is created before the switch to a write-ahead log, so that the file's own header always
                    // identifies it.
                    try prepareSchema(database, name: name, resource: resource)
                    try switchToLog(database, name: name)
                } catch {
                    systemError.withLock { $0 = database.systemError }
                    throw error
                }
            }
            return queue
        } catch {
            throw SyncStoreError(error, systemError: systemError.withLock { $0 }, path: name)
        }
    }

    /// Switches to a write-ahead log. SQLite does not wait for the other processes that do the same.
    private static func switchToLog(_ database: Database, name: String) throws {
        for attempt in 1... {
            do {
                let mode = try String.fetchOne(database, sql: "PRAGMA journal_mode = WAL")
                guard mode == "wal" else {
                    throw SyncStoreError(
                        .unwritable,
                        "cannot open \(name): its file system does not support a write-ahead log (\(mode ?? "none")); name "
                            + "a file on a local disk")
                }
                return
            } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY && attempt < switchAttemptsMax {
                usleep(switchPauseMicroseconds)
            }
        }
    }

    /// Closes the file and releases the lease. The store is unusable afterwards.
    public func close() {
        try? queue.close()
        releaseLease()
    }

    // MARK: The lease

    /// Acquires the right to synchronise the file. The system releases it when the process ends, however it ends.
    public func acquireLease() throws(SyncStoreError) {
        guard let resolved, !holdsLease else { return }
        let lease = try StoreLease(store: resolved, name: name)
        view.withLock { $0.lease = lease }
    }

    /// Releases the lease.
    public func releaseLease() {
        _ = view.withLock { $0.lease.take() }
    }

    /// Whether this object has the lease.
    public var holdsLease: Bool { resolved == nil || view.withLock { $0.lease != nil } }

    func requireLease(_ action: String) throws(SyncStoreError) {
        guard holdsLease else {
            throw SyncStoreError(.notLeaseHolder, "cannot \(action) \(name): this process does not synchronise it")
        }
    }

    // MARK: Reading

    /// Returns the content of the store. For the holder of the lease, the foreign changes are part of it.
    ///
    /// A row that cannot be read is quarantined; the holder of the lease moves it to a table of damaged rows.
    public func load() throws(SyncStoreError) -> StoredState {
        let isHolder = holdsLease
        return try transaction(isHolder ? .immediate : .deferred) { database in
            var state = StoredState()
            var damage = Damage()
            try loadSettings(database, &state)
            let records = try Row.fetchCursor(
                database.cachedStatement(sql: "SELECT \(LocalRecord.columns) FROM record ORDER BY id"))
            while let row = try records.next() {
                do { state.records.append(try LocalRecord(row)) } catch let error as RowError {
                    damage.append(
                        row, id: RowReader.name(row, at: 0), "the stored record cannot be read: \(error.description)")
                }
            }
            let entries = try Row.fetchCursor(
                database.cachedStatement(sql: "SELECT \(OutboxEntry.columns) FROM outbox ORDER BY sequence"))
            while let row = try entries.next() {
                do { state.entries.append(try OutboxEntry(row)) } catch let error as RowError {
                    damage.append(
                        sequence: row[0], id: RowReader.name(row, at: OutboxEntry.idColumn),
                        "a stored change cannot be read: \(error.description)")
                }
            }
            state.quarantine.merge(damage.reasons) { $1 }
            if isHolder {
                try damage.save(database)
                // SQLite writes a page even to empty an empty table, and a full disk must not prevent a start.
                try database.cachedStatement(sql: "DELETE FROM foreign_change WHERE id IS NOT NULL").execute()
            }
            try recordView(database)
            return state
        }
    }

    private func loadSettings(_ database: Database, _ state: inout StoredState) throws {
        if let row = try Row.fetchOne(database.cachedStatement(sql: "SELECT user, server, history FROM account")) {
            state.account = try SyncAccount(row)
        }
        if let row = try Row.fetchOne(
            database.cachedStatement(sql: "SELECT cursor, entity_tag, is_adopting FROM index_state"))
        {
            // Without its state, the whole index is read.
            state.index = (try? IndexState(row)) ?? IndexState(isAdopting: true)
        }
        let rows = try Row.fetchCursor(database.cachedStatement(sql: "SELECT id, reason FROM quarantine"))
        while let row = try rows.next() {
            state.quarantine[RowReader.name(row, at: 0)] = RowReader.name(row, at: 1).text
        }
    }

    private func record(_ id: RecordID, _ database: Database) throws -> LocalRecord? {
        try Row.fetchOne(
            database.cachedStatement(sql: "SELECT \(LocalRecord.columns) FROM record WHERE id = ?"),
            arguments: [id.data]
        ).map(LocalRecord.init)
    }

    private func entries(of id: RecordID, _ database: Database) throws -> [OutboxEntry] {
        let rows = try Row.fetchCursor(
            database.cachedStatement(
                sql: "SELECT \(OutboxEntry.columns) FROM outbox WHERE id = ? ORDER BY sequence"), arguments: [id.data])
        var entries: [OutboxEntry] = []
        while let row = try rows.next() { entries.append(try OutboxEntry(row)) }
        return entries
    }

    // MARK: Changes of the lease holder

    /// The result of a commit.
    public enum CommitResult: Hashable, Sendable {
        /// The change is on disk.
        case committed
        /// Nothing was written, because other processes have changed records since the last look. The changes are
        /// returned once.
        case stale([ForeignChange])
    }

    /// Commits a change in one transaction. Only the holder of the lease commits.
    public func commit(_ change: StoreChange) throws(SyncStoreError) -> CommitResult {
        if change.isEmpty { return .committed }
        try requireLease("commit to")
        return try transaction(.immediate) { database in
            let foreign = try takeForeignChanges(database)
            if foreign.isEmpty { try write(change, database) }
            try recordView(database)
            return foreign.isEmpty ? .committed : .stale(foreign)
        }
    }

    /// Whether the store is a copy for reading (``init(reading:resource:)``).
    public var isCopy: Bool { copied != nil }

    /// Whether another process may have changed the file since the last load, commit or ``takeForeignChanges()``.
    /// Cheap enough for polling.
    public var hasForeignChanges: Bool {
        get throws(SyncStoreError) {
            if let copied, let resolved { return StoreFile.Files(resolved) != copied }
            let seen = view.withLock { $0 }
            if seen.hasLogged { return true }
            return try perform { try dataVersion($0) != seen.dataVersion }
        }
    }

    /// Returns the records that other processes have changed since the last look, once. Only the holder of the lease
    /// takes them.
    public func takeForeignChanges() throws(SyncStoreError) -> [ForeignChange] {
        try requireLease("take changes from")
        return try transaction(.immediate) { database in
            let changes = try takeForeignChanges(database)
            try recordView(database)
            return changes
        }
    }

    private func takeForeignChanges(_ database: Database) throws -> [ForeignChange] {
        let rows = try Row.fetchCursor(database.cachedStatement(sql: "SELECT id FROM foreign_change ORDER BY id"))
        var ids: [RecordID] = []
        while let row = try rows.next() { ids.append(RowReader.name(row, at: 0)) }
        if ids.isEmpty { return [] }
        var changes: [ForeignChange] = []
        for id in ids {
            do {
                changes.append(
                    ForeignChange(id: id, record: try record(id, database), entries: try entries(of: id, database)))
            } catch is RowError {
                // The holder keeps what it has; the next load quarantines the row.
            }
        }
        try database.cachedStatement(sql: "DELETE FROM foreign_change").execute()
        return changes
    }

    // MARK: Changes of any process

    /// Changes one record in one transaction, and logs the change for the holder of the lease.
    ///
    /// The body must not call the store. New entries get sequences that neither the file nor the holder of the lease
    /// uses; the account and the index of the change are not stored, because only the holder synchronises.
    ///
    /// - Parameters:
    ///   - id: The record to change; `nil` for a new one.
    ///   - body: Returns the change, from a state with the record and its entries only.
    /// - Returns: The change as it was committed.
    /// - Throws: The body's error, or a ``SyncStoreError``.
    @discardableResult
    public func change(of id: RecordID?, _ body: (StoredState) throws -> StoreChange) throws -> StoreChange {
        var bodyError: (any Error)?
        do {
            return try transaction(.immediate) { database in
                var state = StoredState()
                try loadSettings(database, &state)
                state.quarantine = state.quarantine.filter { $0.key == id }
                if let id {
                    do {
                        state.entries = try entries(of: id, database)
                        state.records = try record(id, database).map { [$0] } ?? []
                    } catch let error as RowError {
                        throw SyncStoreError(
                            .unreadable, "cannot read a record in \(name): \(error.description); it was not changed")
                    }
                }
                var change: StoreChange
                do { change = try body(state) } catch {
                    bodyError = error
                    throw error
                }
                change.account = nil
                change.index = nil
                try assignSequences(&change, known: Set(state.entries.map(\.sequence)), database)
                try write(change, database)
                if !change.isEmpty { try log(change, id, database) }
                return change
            }
        } catch {
            throw bodyError ?? error
        }
    }

    /// Gives new entries sequences of their own. Those of the record's present entries are kept.
    private func assignSequences(_ change: inout StoreChange, known: Set<Int>, _ database: Database) throws {
        var entries: [Int: OutboxEntry?] = [:]
        var last = try lastSequence(database)
        var distance = Self.sequenceGap
        for (sequence, entry) in change.entries.sorted(by: { $0.key < $1.key }) {
            if known.contains(sequence) {
                entries[sequence] = .some(entry)
            } else if let entry {
                let (next, isOverflow) = last.addingReportingOverflow(distance)
                guard !isOverflow else {
                    throw SyncStoreError(.unreadable, "cannot change \(name): the outbox has no sequence numbers left")
                }
                (last, distance) = (next, 1)
                entries[next] = .some(entry.numbered(next))
            }
            // The deletion of an entry that was never stored has no effect.
        }
        change.entries = entries
    }

    private func lastSequence(_ database: Database) throws -> Int {
        let sql = "SELECT max(last_sequence, (SELECT coalesce(max(sequence), 0) FROM outbox)) FROM store"
        return try Int.fetchOne(database.cachedStatement(sql: sql)) ?? 0
    }

    private func log(_ change: StoreChange, _ id: RecordID?, _ database: Database) throws {
        var ids = Set(change.records.keys)
        if let id { ids.insert(id) }
        for case let entry? in change.entries.values { ids.insert(entry.id) }
        ids.formUnion(change.quarantine.keys)
        for id in ids {
            try database.cachedStatement(sql: "INSERT OR IGNORE INTO foreign_change VALUES (?)")
                .execute(arguments: [id.data])
        }
        view.withLock { $0.hasLogged = true }
    }

    // MARK: Transactions

    private func write(_ change: StoreChange, _ database: Database) throws {
        for (id, record) in change.records {
            if let record { try record.save(database) } else { try LocalRecord.delete(id, database) }
        }
        var last: Int?
        for (sequence, entry) in change.entries {
            guard let entry else {
                try OutboxEntry.delete(sequence, database)
                continue
            }
            try entry.save(database)
            last = max(last ?? sequence, sequence)
        }
        if let last {
            try database.cachedStatement(sql: "UPDATE store SET last_sequence = ?1 WHERE last_sequence < ?1")
                .execute(arguments: [last])
        }
        for (id, reason) in change.quarantine { try Quarantine.save(id, reason, database) }
        if let account = change.account { try SyncAccount.save(account, database) }
        try change.index?.save(database)
    }

    private func dataVersion(_ database: Database) throws -> Int? {
        try Int.fetchOne(database.cachedStatement(sql: "PRAGMA data_version"))
    }

    /// Records that the foreign changes so far are known.
    private func recordView(_ database: Database) throws {
        let version = try dataVersion(database)
        view.withLock {
            $0.dataVersion = version
            $0.hasLogged = false
        }
    }
}
