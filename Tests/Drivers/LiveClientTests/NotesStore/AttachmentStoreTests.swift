import Client
import Foundation
import NotesContract
import TestSupport
import Testing

@testable import LiveClient

/// The attachments of a store: rows, files and their removal.
@Suite struct AttachmentStoreTests {
    private static func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) } }

    private static func write(_ bytes: [UInt8], to path: String) throws {
        try Data(bytes).write(to: URL(filePath: path))
    }

    private static func name(_ text: String) throws -> AttachmentName { try #require(AttachmentName(text)) }

    private static func files(_ store: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: store + "-attachments")) ?? []).sorted()
    }

    /// Returns a store with the lease and one record.
    private static func holder(_ path: String) throws -> SyncStore {
        let store = try SyncStoreTests.holder(path)
        var change = StoreChange()
        change.records["a"] = .some(LocalRecord(id: "a", mine: SyncStoreTests.content("x"), edits: 1))
        #expect(try store.commit(change) == .committed)
        return store
    }

    @Test func theOriginalMayBeDeletedAndTheRowSurvives() throws {
        let folder = try TemporaryFolder()
        let (path, file) = (folder.path("notes.db"), folder.path("photo.jpg"))
        let bytes = Self.bytes(700_000)
        try Self.write(bytes, to: file)
        let store = try Self.holder(path)
        let attached = try store.attach(store.stage(file: file), to: "a", name: Self.name("é.jpg"))
        try FileManager.default.removeItem(atPath: file)
        store.close()
        let again = try SyncStoreTests.holder(path)
        #expect(try again.attachments() == [attached])
        #expect(
            attached.size == 700_000 && attached.digest == AttachmentDigest(of: bytes) && attached.state == .waiting)
        #expect(try again.bytes(of: attached, in: 0..<10) == Array(bytes[..<10]))
        #expect(try again.bytes(of: attached, in: 300_000..<700_000) == Array(bytes[300_000...]))
        #expect(try again.bytes(of: attached, in: 699_999..<700_005).count == 1)
        again.close()
    }

    @Test func aNameHasOneContent() throws {
        let folder = try TemporaryFolder()
        let store = try Self.holder(folder.path("notes.db"))
        try Self.write([1], to: folder.path("one"))
        try Self.write([2], to: folder.path("two"))
        let first = try store.attach(store.stage(file: folder.path("one")), to: "a", name: Self.name("x"))
        #expect(try store.attach(store.stage(file: folder.path("one")), to: "a", name: Self.name("x")) == first)
        #expect(throws: SyncStoreError.self) {
            try store.attach(store.stage(file: folder.path("two")), to: "a", name: Self.name("x"))
        }
        #expect(throws: SyncStoreError.self) {
            try store.attach(store.stage(file: folder.path("two")), to: "none", name: Self.name("x"))
        }
        #expect(try store.attachments() == [first])
        #expect(Self.files(folder.path("notes.db")).count == 1)
        // A rejected upload is sent again, under a new number.
        var parked = first
        parked.state = .parked("no")
        try store.commit([parked])
        #expect(try store.attachments() == [parked])
        let again = try store.attach(store.stage(file: folder.path("one")), to: "a", name: Self.name("x"))
        #expect(again.id > first.id && again.state == .waiting)
        #expect(try store.attachments() == [again])
        store.close()
    }

    @Test func aFileAboveTheLimitOfTheServerIsRefused() throws {
        let folder = try TemporaryFolder()
        let store = try Self.holder(folder.path("notes.db"))
        let file = folder.path("large")
        try Self.write([], to: file)
        #expect(truncate(file, off_t(AttachmentHTTP.bytesMax) + 1) == 0)
        let error = #expect(throws: SyncStoreError.self) { try store.stage(file: file) }
        #expect(error?.description.contains("67108865 bytes") == true)
        #expect(error?.description.contains("64 MiB") == true)
        #expect(throws: SyncStoreError.self) { try store.stage(file: folder.path("missing")) }
        #expect(throws: SyncStoreError.self) { try store.stage(file: folder.path("")) }
        #expect(Self.files(folder.path("notes.db")).isEmpty)
        store.close()
    }

    @Test func attachmentsAreRemovedWithTheirRecord() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("notes.db")
        let store = try Self.holder(path)
        try Self.write([1], to: folder.path("one"))
        _ = try store.attach(store.stage(file: folder.path("one")), to: "a", name: Self.name("x"))
        var change = StoreChange()
        change.records["a"] = .some(nil)
        #expect(try store.commit(change) == .committed)
        #expect(try store.attachments().isEmpty)
        try store.removeUnusedAttachmentFiles()
        #expect(Self.files(path).isEmpty)
        store.close()
    }

    @Test func theFileOfAnUploadIsKeptUntilNoUploadNeedsIt() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("notes.db")
        let store = try Self.holder(path)
        try Self.write([1], to: folder.path("one"))
        var first = try store.attach(store.stage(file: folder.path("one")), to: "a", name: Self.name("x"))
        var second = try store.attach(store.stage(file: folder.path("one")), to: "a", name: Self.name("y"))
        first.state = .done
        try store.commit([first])
        #expect(Self.files(path).count == 1)
        #expect(try store.bytes(of: second, in: 0..<1) == [1])
        second.state = .done
        try store.commit([second])
        #expect(Self.files(path).isEmpty)
        #expect(try store.attachments() == [first, second])
        store.close()
    }

    @Test func aDownloadContinuesAfterAReopen() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("notes.db")
        var store = try Self.holder(path)
        let bytes = Self.bytes(1000)
        var download = try store.requestDownload(of: Self.name("x"), record: "a")
        #expect(try store.requestDownload(of: Self.name("x"), record: "a") == download)
        (download.size, download.digest, download.entityTag) = (1000, AttachmentDigest(of: bytes), "\"t\"")
        download.state = .sending
        try store.commit([download])
        try store.write(Array(bytes[..<600]), at: 0, to: download)
        store.close()
        store = try SyncStoreTests.holder(path)
        try store.removeUnusedAttachmentFiles()
        #expect(try store.attachments() == [download])
        #expect(try store.hash(of: download)?.count == 600)
        try store.write(Array(bytes[600...]), at: 600, to: download)
        #expect(try store.hash(of: download).map { AttachmentDigest(of: $0) } == download.digest)
        download.state = .done
        try store.commit([download])
        #expect(try Data(contentsOf: URL(filePath: store.path(of: download))) == Data(bytes))
        try store.remove(download)
        #expect(Self.files(path).isEmpty)
        store.close()
    }

    @Test func theHolderOfTheLeaseLearnsOfAnotherProcess() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("notes.db")
        let holder = try Self.holder(path)
        let other = try SyncStore(path: path, resource: SyncStoreTests.resource)
        try Self.write([1], to: folder.path("one"))
        let attached = try other.attach(other.stage(file: folder.path("one")), to: "a", name: Self.name("x"))
        #expect(try holder.hasForeignChanges)
        var change = StoreChange()
        change.index = IndexState(cursor: "c")
        // The next commit reports it, so that it is not missed between two looks.
        guard case .stale(let changes) = try holder.commit(change) else {
            Issue.record("not stale")
            return
        }
        #expect(changes.map(\.id) == ["a"])
        #expect(try holder.attachments() == [attached])
        #expect(throws: SyncStoreError.self) { try other.commit([attached]) }
        other.close()
        holder.close()
    }

    @Test func aStoreInMemoryHasNoAttachments() throws {
        let store = try SyncStore(path: nil, resource: SyncStoreTests.resource)
        #expect(try store.attachments().isEmpty)
        #expect(throws: SyncStoreError.self) { try store.stage(file: "/etc/hosts") }
    }
}
