import PatternEngine
import PatternStore
import TestSupport
import Testing

@Suite struct PatternStoreTests {
    private static func key(_ text: String) -> RecordKey { RecordKey(text)! }

    private static var change: PatternChange {
        var change = PatternChange()
        let failure = StoredRecord.Failure(
            action: .add, fields: ["amount": "800"], errors: ["amount": "too much", "": "x"])
        change.records[key("e1")] = StoredRecord(
            key: key("e1"), kind: "expense", parent: key("r1"), confirmed: ["title": "Taxi\n\"1\""], update: 7)
        change.records[key("e2")] = StoredRecord(
            key: key("e2"), kind: "expense", parent: nil, confirmed: nil, failure: failure)
        var write = QueuedWrite(
            sequence: 10, operation: "o", action: .update, record: key("e1"), kind: "expense", parent: key("r1"),
            pattern: .optimistic, fields: ["amount": "2"], wasTried: true)
        write.serverErrors = 3
        change.writes[10] = write
        change.writes[9] = QueuedWrite(
            sequence: 9, operation: "p", action: .delete, record: key("e2"), kind: "expense", parent: nil,
            pattern: .optimisticWithPendingUI)
        change.drafts["transfer"] = FormDraft(
            form: "transfer", fields: ["to": "Bo"], operation: "q", submission: .unknown, errors: ["to": "x"])
        change.lastUpdate = 7
        change.lastSequence = 10
        return change
    }

    @Test func whatIsCommittedIsReadAgain() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("store.db")
        let store = try PatternStore(path: path)
        #expect(try store.load() == PatternState())
        try store.commit(Self.change)
        store.close()
        let state = try PatternStore(path: path).load()
        // The same as in memory, where the writes are in the order of their numbers.
        #expect(state == PatternState().applying(Self.change))
        #expect(state.writes.map(\.sequence) == [9, 10])
    }

    @Test func aChangeReplacesAndRemovesRows() throws {
        let folder = try TemporaryFolder()
        let store = try PatternStore(path: folder.path("store.db"))
        try store.commit(Self.change)
        var change = PatternChange()
        change.records[Self.key("e2")] = .some(nil)
        change.writes[9] = .some(nil)
        change.drafts["transfer"] = .some(nil)
        try store.commit(change)
        let state = try store.load()
        #expect(state == PatternState().applying(Self.change).applying(change))
        #expect(state.records.count == 1 && state.writes.count == 1 && state.drafts.isEmpty && state.lastUpdate == 7)
    }

    @Test func aFileThatIsNoStoreIsRefused() throws {
        let folder = try TemporaryFolder()
        #expect(throws: PatternStoreError.self) { try PatternStore(path: folder.path("none/store.db")) }
    }
}
