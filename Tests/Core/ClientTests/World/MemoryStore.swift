import Client

/// The committed state of a client. A killed process leaves what it has committed; two processes may share a store.
final class MemoryStore {
    private(set) var records: [RecordID: LocalRecord] = [:]
    private(set) var entries: [Int: OutboxEntry] = [:]
    private(set) var quarantine: [RecordID: String] = [:]
    private(set) var account: SyncAccount?
    private(set) var index = IndexState()
    /// The number of commits.
    private(set) var version = 0
    /// The version of the last change of each record.
    private var recordVersions: [RecordID: Int] = [:]

    /// The content of the store.
    var state: StoredState {
        StoredState(
            records: records.values.sorted { $0.id < $1.id },
            entries: entries.values.sorted { $0.sequence < $1.sequence }, quarantine: quarantine, account: account,
            index: index)
    }

    /// Applies a change.
    func commit(_ change: StoreChange) {
        version += 1
        for (id, record) in change.records {
            records[id] = record
            recordVersions[id] = version
        }
        for (sequence, entry) in change.entries {
            if let id = entry?.id ?? entries[sequence]?.id { recordVersions[id] = version }
            entries[sequence] = entry
        }
        for (id, reason) in change.quarantine { quarantine[id] = reason }
        account = change.account ?? account
        index = change.index ?? index
    }

    /// Returns the records that were changed after a version.
    func changes(after version: Int) -> [ForeignChange] {
        recordVersions.filter { $0.value > version }.keys.sorted().map { id in
            ForeignChange(
                id: id, record: records[id],
                entries: entries.values.filter { $0.id == id }.sorted { $0.sequence < $1.sequence })
        }
    }

    /// Replaces the whole content, as another version of the program would have left it.
    func replace(with state: StoredState) {
        records = Dictionary(uniqueKeysWithValues: state.records.map { ($0.id, $0) })
        entries = Dictionary(uniqueKeysWithValues: state.entries.map { ($0.sequence, $0) })
        quarantine = state.quarantine
        account = state.account
        index = state.index
        version += 1
    }
}
