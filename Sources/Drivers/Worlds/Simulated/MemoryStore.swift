internal import Client
internal import LiveClient

/// The store of a device in memory. A kill of the client leaves what was committed.
struct MemoryStore {
    private var records: [RecordID: LocalRecord] = [:]
    private var entries: [Int: OutboxEntry] = [:]
    private var quarantine: [RecordID: String] = [:]
    private var account: SyncAccount?
    private var index = IndexState()
    /// The version of the client that has written the store.
    private(set) var version: ClientVersion

    init(version: ClientVersion) { self.version = version }

    /// The content, in an order that is the same in every process.
    var state: StoredState {
        StoredState(
            records: records.values.sorted { $0.id < $1.id },
            entries: entries.values.sorted { $0.sequence < $1.sequence }, quarantine: quarantine, account: account,
            index: index)
    }

    /// Applies a change as a whole.
    mutating func commit(_ change: StoreChange) {
        for (id, record) in change.records { records[id] = record }
        for (sequence, entry) in change.entries { entries[sequence] = entry }
        for (id, reason) in change.quarantine { quarantine[id] = reason }
        account = change.account ?? account
        index = change.index ?? index
    }

    /// Migrates the store of the first version.
    mutating func migrate(_ ids: RandomIdentifiers) throws {
        guard version == .first else { return }
        let migrated = try SyncStore.migrate(version1: state) { ids.uuid() }
        self = MemoryStore(version: .current)
        for record in migrated.records { records[record.id] = record }
        for entry in migrated.entries { entries[entry.sequence] = entry }
        (quarantine, account, index) = (migrated.quarantine, migrated.account, migrated.index)
    }
}
