import Client
import Foundation
import TestSupport
import Testing
import Wire

@testable import LiveClient

/// Several processes with one file.
@Suite struct SharedStoreTests {
    private static func edit(_ id: RecordID, _ text: String, _ sequence: Int, operation: String) -> StoreChange {
        var change = StoreChange()
        let content = SyncStoreTests.content(text)
        change.records[id] = LocalRecord(id: id, mine: content, edits: 1)
        change.entries[sequence] = OutboxEntry(
            operation: operation, sequence: sequence, id: id, kind: .update, content: content, edits: 1)
        return change
    }

    // MARK: The lease

    @Test func oneProcessHasTheLease() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path("s.db")
        let store = try SyncStoreTests.holder(path)
        try store.acquireLease()
        let second = try SyncStore(path: path, resource: "notes")
        let error = #expect(throws: SyncStoreError.self) { try second.acquireLease() }
        #expect(error?.kind == .inUse)
        #expect(error?.description.contains("\(path) is being synchronised by process \(getpid())") == true)
        await #expect(processExitsWith: .success) { [path = path as String, pid = getpid() as Int32] in
            let other = try SyncStore(path: path, resource: "notes")
            let error = #expect(throws: SyncStoreError.self) { try other.acquireLease() }
            #expect(error?.description.contains("by process \(pid)") == true)
        }
        store.releaseLease()
        #expect(!store.holdsLease)
        try second.acquireLease()
        second.close()
        store.close()
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path(".")) == ["s.db"])
    }

    @Test func aKilledProcessLosesTheLease() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path("s.db")
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let store = try SyncStoreTests.holder(path)
            _ = try store.commit(SyncStoreTests.change)
            kill(getpid(), SIGKILL)
        }
        #expect(FileManager.default.fileExists(atPath: path + "-sync.lock"))
        SyncStoreTests.expect(try SyncStoreTests.holder(path).load(), equals: SyncStoreTests.change)
    }

    @Test func aProcessWithoutTheLeaseNeitherCommitsNorTakesChanges() throws {
        let folder = try TemporaryFolder()
        let store = try SyncStore(path: folder.path("s.db"), resource: "notes")
        let commit = #expect(throws: SyncStoreError.self) { try store.commit(SyncStoreTests.change) }
        #expect(commit?.kind == .notLeaseHolder)
        let take = #expect(throws: SyncStoreError.self) { try store.takeForeignChanges() }
        #expect(take?.kind == .notLeaseHolder)
        #expect(try store.load().records.isEmpty)
    }

    // MARK: Foreign changes

    @Test func aCommitIsStaleOnceAfterAForeignChange() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("s.db")
        let holder = try SyncStoreTests.holder(path)
        _ = try holder.load()
        #expect(try holder.commit(Self.edit("a", "1", 1, operation: "o1")) == .committed)
        #expect(try !holder.hasForeignChanges)

        let other = try SyncStore(path: path, resource: "notes")
        let made = try other.change(of: "a") { state in
            #expect(state.records.map(\.id) == ["a"] && state.entries.map(\.operation) == ["o1"])
            // The number is free in the file, but may be in use by the holder.
            return Self.edit("a", "2", 2, operation: "o2")
        }
        let entry = try #require(made.entries.values.compactMap { $0 }.first)
        #expect(entry.sequence > 1 << 20 && entry.operation == "o2")
        #expect(try holder.hasForeignChanges)

        let mine = Self.edit("b", "mine", 2, operation: "o3")
        guard case .stale(let changes) = try holder.commit(mine) else { return #expect(Bool(false), "not stale") }
        #expect(changes.map(\.id) == ["a"])
        #expect(changes[0].record?.mine == SyncStoreTests.content("2"))
        #expect(changes[0].entries.map(\.operation) == ["o1", "o2"])
        #expect(try !holder.hasForeignChanges)
        #expect(try other.load().records.map(\.id) == ["a"])

        #expect(try holder.commit(mine) == .committed)
        #expect(try holder.load().entries.map(\.operation) == ["o1", "o3", "o2"])
        #expect(try other.hasForeignChanges)
    }

    @Test func foreignChangesAreTakenOnce() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("s.db")
        let other = try SyncStore(path: path, resource: "notes")
        try other.change(of: nil) { _ in Self.edit("early", "1", 1, operation: "o1") }
        let holder = try SyncStoreTests.holder(path)
        #expect(try holder.load().records.count == 1)
        #expect(try holder.takeForeignChanges().isEmpty)

        try other.change(of: "early") { state in
            // A dismissed entry leaves its record unchanged.
            var change = StoreChange()
            for entry in state.entries { change.entries[entry.sequence] = .some(nil) }
            return change
        }
        try other.change(of: "gone") { _ in
            var change = StoreChange()
            change.records["gone"] = .some(nil)
            return change
        }
        #expect(try holder.hasForeignChanges)
        let taken = try holder.takeForeignChanges()
        #expect(taken.map(\.id) == ["early", "gone"])
        #expect(taken[0].record != nil && taken[0].entries.isEmpty && taken[1].record == nil)
        #expect(try holder.takeForeignChanges().isEmpty && !holder.hasForeignChanges)
        #expect(try holder.commit(Self.edit("b", "x", 5, operation: "o5")) == .committed)
        // The holder may change single records too.
        try holder.change(of: "b") { _ in Self.edit("b", "y", 5, operation: "o6") }
        #expect(try holder.hasForeignChanges)
        #expect(try holder.takeForeignChanges().map(\.id) == ["b"])
    }

    @Test func aRejectedChangeWritesNothing() throws {
        struct Rejection: Error {}
        let folder = try TemporaryFolder()
        let holder = try SyncStoreTests.holder(folder.path("s.db"))
        #expect(try holder.commit(SyncStoreTests.change) == .committed)
        let other = try SyncStore(path: folder.path("s.db"), resource: "notes")
        #expect(throws: Rejection.self) { try other.change(of: "a") { _ in throw Rejection() } }
        // Neither the account, nor the index, nor entries of other records.
        try other.change(of: "a") { state in
            #expect(state.account == SyncStoreTests.change.account && state.index == SyncStoreTests.change.index)
            var change = StoreChange()
            change.account = SyncAccount(user: "bo", server: "x")
            change.index = IndexState()
            change.entries[9] = .some(nil)
            return change
        }
        #expect(try holder.takeForeignChanges().isEmpty)
        SyncStoreTests.expect(try holder.load(), equals: SyncStoreTests.change)
    }

    /// A holder that keeps records and numbers in memory, and processes that change records beside it. No operation
    /// is lost, none overwrites another, and the holder's memory equals the file.
    @Test(arguments: randomSeeds(5)) func noSequenceIsUsedTwice(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let folder = try TemporaryFolder()
        let path = folder.path("s.db")
        var holder = try SyncStoreTests.holder(path)
        let others = try (0..<2).map { _ in try SyncStore(path: path, resource: "notes") }
        var records: [RecordID: LocalRecord] = [:]
        var entries: [Int: OutboxEntry] = [:]
        var next = 1
        var live: Set<String> = []
        var made = 0

        func merge(_ changes: [ForeignChange]) {
            for change in changes {
                records[change.id] = change.record
                entries = entries.filter { $0.value.id != change.id }
                for entry in change.entries {
                    #expect(entries[entry.sequence] == nil, "seed \(seed)")
                    entries[entry.sequence] = entry
                    next = max(next, entry.sequence + 1)
                }
            }
        }

        for _ in 0..<120 {
            let id = RecordID("record-\(Int.random(in: 0..<6, using: &random))")
            made += 1
            let operation = "o\(made)"
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<4:
                // Up to three uncommitted entries at once.
                var pending: [StoreChange] = []
                for part in 0...Int.random(in: 0..<3, using: &random) {
                    pending.append(Self.edit(id, operation, next, operation: "\(operation).\(part)"))
                    next += 1
                }
                while let change = pending.first {
                    switch try holder.commit(change) {
                    case .committed:
                        pending.removeFirst()
                        for case let (sequence, entry?) in change.entries {
                            live.insert(entry.operation)
                            entries[sequence] = entry
                        }
                        for case let (id, record?) in change.records { records[id] = record }
                    case .stale(let changes):
                        merge(changes)
                        if changes.contains(where: { $0.id == id }) { pending = [] }
                    }
                }
            case 4..<8:
                let other = others[Int.random(in: 0..<2, using: &random)]
                try other.change(of: id) { state in
                    let own = (state.entries.last?.sequence ?? 0) + 1
                    return Self.edit(id, operation, own, operation: operation)
                }
                live.insert(operation)
            case 8:
                merge(try holder.takeForeignChanges())
                if let first = entries.min(by: { $0.key < $1.key }) {
                    var change = StoreChange()
                    change.entries[first.key] = .some(nil)
                    if try holder.commit(change) == .committed {
                        entries[first.key] = nil
                        live.remove(first.value.operation)
                    }
                }
            default:
                holder.close()
                holder = try SyncStoreTests.holder(path)
                let state = try holder.load()
                records = Dictionary(uniqueKeysWithValues: state.records.map { ($0.id, $0) })
                entries = Dictionary(uniqueKeysWithValues: state.entries.map { ($0.sequence, $0) })
                next = (entries.keys.max() ?? 0) + 1
            }
        }
        merge(try holder.takeForeignChanges())
        let state = try holder.load()
        #expect(Dictionary(uniqueKeysWithValues: state.records.map { ($0.id, $0) }) == records, "seed \(seed)")
        #expect(Dictionary(uniqueKeysWithValues: state.entries.map { ($0.sequence, $0) }) == entries, "seed \(seed)")
        #expect(Set(state.entries.map(\.operation)) == live, "seed \(seed)")
        #expect(state.entries.count == live.count, "seed \(seed)")
    }

    private static func openAndChange(_ path: String, _ name: String, times: Int) throws {
        for number in 0..<times {
            let store = try SyncStore(path: path, resource: "notes")
            let id = RecordID("\(name)-\(number)")
            try store.change(of: id) { _ in edit(id, "x", 1, operation: id.text) }
            if number % 5 == 0 { store.close() }
        }
    }

    /// The last process that closes the file removes the log, while others inspect and open it.
    @Test func processesOpenAndCloseOneFileAtTheSameTime() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path("s.db")
        await withTaskGroup(of: Void.self) { group in
            for name in ["a", "b", "c"] {
                group.addTask {
                    await #expect(processExitsWith: .success) { [path = path as String, name = name as String] in
                        try SharedStoreTests.openAndChange(path, name, times: 40)
                    }
                }
            }
        }
        let state = try SyncStore(path: path, resource: "notes").load()
        #expect(state.records.count == 120)
        #expect(Set(state.entries.map(\.operation)).count == 120)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path(".")) == ["s.db"])
    }

    @Test func aWriterThatHoldsTheLockTooLongIsReported() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("s.db")
        let holder = try SyncStore(path: path, resource: "notes", busySeconds: 0.1)
        try holder.acquireLease()
        let other = try SyncStore(path: path, resource: "notes")
        try other.change(of: nil) { _ in
            let error = #expect(throws: SyncStoreError.self) { try holder.commit(SyncStoreTests.change) }
            #expect(error?.kind == .inUse && error?.description.contains("another process is writing") == true)
            return StoreChange()
        }
        #expect(try holder.commit(SyncStoreTests.change) == .committed)
    }
}
