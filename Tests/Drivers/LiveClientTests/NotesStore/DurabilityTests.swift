import Client
import Foundation
import GRDB
import TestSupport
import Testing
import Wire

@testable import LiveClient

/// Full disks and killed processes.
@Suite struct DurabilityTests {
    private static var large: StoreChange {
        var change = StoreChange()
        change.records["large"] = LocalRecord(
            id: "large", mine: RecordContent([UInt8](repeating: 120, count: 500_000)), edits: 1)
        change.entries[20] = OutboxEntry(
            operation: "large", sequence: 20, id: "large", kind: .create, content: SyncStoreTests.content("x"), edits: 1
        )
        return change
    }

    private static func expectFull(_ store: SyncStore, _ path: String) {
        let error = #expect(throws: SyncStoreError.self) { try store.commit(large) }
        #expect(error?.kind == .unwritable)
        #expect(
            error?.description.contains("cannot write \(path): the disk is full") == true, "\(error?.description ?? "")"
        )
        #expect(error?.description.contains("nothing was changed") == true)
    }

    /// A full disk is simulated by a page limit.
    @Test func aFullDiskLosesNothing() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("s.db")
        let store = try SyncStoreTests.holder(path)
        #expect(try store.commit(SyncStoreTests.change) == .committed)
        try store.queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA max_page_count = 1") }
        Self.expectFull(store, path)
        SyncStoreTests.expect(try store.load(), equals: SyncStoreTests.change)
        try store.queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA max_page_count = 1000000") }
        #expect(try store.commit(Self.large) == .committed)
        #expect(try store.load().records.contains { $0.id == "large" })
    }

    #if os(Linux)
    /// A full disk is simulated by a limit on file sizes, which fails the writes of the log.
    @Test func aFailedWriteLosesNothing() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path("s.db")
        await #expect(processExitsWith: .success) { [path = path as String] in
            signal(SIGXFSZ, SIG_IGN)
            func limit(_ bytes: UInt) {
                var limit = rlimit(rlim_cur: bytes, rlim_max: rlim_t.max)
                #expect(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
            }
            let store = try SyncStoreTests.holder(path)
            #expect(try store.commit(SyncStoreTests.change) == .committed)
            for _ in 0..<3 {
                limit(200_000)
                DurabilityTests.expectFull(store, path)
                SyncStoreTests.expect(try store.load(), equals: SyncStoreTests.change)
                limit(.max)
                #expect(try store.commit(DurabilityTests.large) == .committed)
                var removal = StoreChange()
                removal.records["large"] = .some(nil)
                removal.entries[20] = .some(nil)
                #expect(try store.commit(removal) == .committed)
            }
        }
        SyncStoreTests.expect(try SyncStore(path: path, resource: "notes").load(), equals: SyncStoreTests.change)
    }

    /// Commits rewrite one record of 50 kB 300 times. SQLite writes the log to the database every 4 MiB. If the log cannot grow
    /// so far, it is written and cut earlier, and no commit fails.
    @Test(arguments: [nil, 1_000_000] as [UInt?]) func theLogIsBoundedAlsoOnAFullDisk(limit: UInt?) async throws {
        let folder = try TemporaryFolder()
        let path = folder.path("s.db")
        await #expect(processExitsWith: .success) { [path = path as String, limit = limit as UInt?] in
            signal(SIGXFSZ, SIG_IGN)
            let store = try SyncStoreTests.holder(path)
            if let limit {
                var limit = rlimit(rlim_cur: limit, rlim_max: rlim_t.max)
                #expect(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
            }
            var largest = 0
            for number in 0..<300 {
                var change = StoreChange()
                let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 50_000)
                change.records["a"] = LocalRecord(id: "a", mine: RecordContent(bytes), edits: number + 1)
                #expect(try store.commit(change) == .committed, "commit \(number)")
                let attributes = try FileManager.default.attributesOfItem(atPath: path + "-wal")
                largest = max(largest, attributes[.size] as? Int ?? .max)
            }
            #expect(largest <= limit.map { Int($0) } ?? 4_400_000, "\(largest) B")
            #expect(try store.load().records.first?.mine.bytes.first == 43)
        }
    }

    /// The file is cut off where the disk was full, within a page; the log has everything.
    @Test func anInterruptedCheckpointLosesNothing() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path("s.db")
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            signal(SIGXFSZ, SIG_IGN)
            let store = try SyncStoreTests.holder(path)
            #expect(try store.commit(DurabilityTests.large) == .committed)
            var limit = rlimit(rlim_cur: 200_000, rlim_max: rlim_t.max)
            #expect(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
            store.close()
            kill(getpid(), SIGKILL)
        }
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int == 200_000)
        SyncStoreTests.expect(try SyncStore(path: path, resource: "notes").load(), equals: Self.large)
    }
    #endif

    private static func commitUntilKilled(_ path: String, _ log: String, _ round: Int) throws {
        let store = try SyncStoreTests.holder(path)
        let descriptor = open(log, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        for number in 0... {
            let id = RecordID("record-\(number)")
            var change = StoreChange()
            change.records[id] = LocalRecord(
                id: id, mine: RecordContent([UInt8](repeating: 1, count: 3000)), edits: 1)
            change.entries[number] = OutboxEntry(
                operation: "o\(number)", sequence: number, id: id, kind: .create,
                content: SyncStoreTests.content("x"), edits: 1)
            _ = try store.commit(change)
            write(descriptor, [1], 1)
            // Odd rounds are killed by the clock, even ones within a transaction.
            if round % 2 == 1, number == 0 {
                Thread.detachNewThread {
                    usleep(UInt32(20_000 * round))
                    kill(getpid(), SIGKILL)
                }
            }
            if round % 2 == 0, number == 7 * round {
                try store.queue.write { database in
                    try database.execute(sql: "DELETE FROM record; DELETE FROM outbox; PRAGMA cache_spill = 1")
                    kill(getpid(), SIGKILL)
                }
            }
        }
    }

    /// A process that commits records with their entries, one after the other, is killed at any time.
    @Test(arguments: 0..<6) func aKilledProcessLosesNoCommit(round: Int) async throws {
        let folder = try TemporaryFolder()
        let (path, log) = (folder.path("s.db"), folder.path("log"))
        await #expect(processExitsWith: .signal(SIGKILL)) {
            [path = path as String, log = log as String, round = round as Int] in
            try DurabilityTests.commitUntilKilled(path, log, round)
        }
        let acknowledged = try Data(contentsOf: URL(filePath: log)).count
        let store = try SyncStoreTests.holder(path)
        let state = try store.load()
        #expect(acknowledged > 0)
        #expect((acknowledged...acknowledged + 1).contains(state.records.count))
        #expect(state.entries.map(\.sequence) == Array(0..<state.records.count))
        #expect(Set(state.entries.map(\.id)) == Set(state.records.map(\.id)) && state.quarantine.isEmpty)
        let check = try await store.queue.read { try String.fetchAll($0, sql: "PRAGMA integrity_check") }
        #expect(check == ["ok"])
    }
}
