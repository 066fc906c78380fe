import Foundation
import GRDB
import NotesContract
import SyncEngine
import TestSupport
import Testing

@testable import SyncStore

@Suite struct SyncStoreTests {
    private var change: StoreChange {
        var change = StoreChange()
        let content = LocalNote.Content(title: nil, text: "ä\u{0}\"'", date: "2026-01-01T00:00:00.000Z")
        change.notes = [
            LocalNote(uuid: "a", mine: content, edits: 3),
            LocalNote(
                uuid: "b", base: Revision("2-x"), baseContent: content, mine: content, isDeleted: true,
                theirs: LocalNote.Theirs(revision: nil, content: nil), problem: "p"),
            LocalNote(
                uuid: "c", mine: content, theirs: LocalNote.Theirs(revision: Revision("7-y"), content: content)),
        ]
        change.entries = [
            OutboxEntry(
                operation: "o", sequence: 4, uuid: "a", kind: .create,
                draft: NoteDraft(date: "d", title: "t", text: nil), edits: 3, base: Revision("1-z"), attempts: 2)
        ]
        return change
    }

    @Test func aCommittedChangeIsLoadedAgain() throws {
        let folder = try TemporaryFolder()
        do {
            let store = try SyncStore(path: folder.path("s.db"))
            try store.commit(change)
        }
        let state = try SyncStore(path: folder.path("s.db")).load()
        #expect(state.notes == change.notes)
        #expect(state.entries == change.entries)
    }

    @Test func aChangeDeletesNotesAndEntries() throws {
        let folder = try TemporaryFolder()
        let store = try SyncStore(path: folder.path("s.db"))
        try store.commit(change)
        var second = StoreChange()
        second.deletedNotes = ["a", "b"]
        second.deletedEntries = [4]
        try store.commit(second)
        let state = try store.load()
        #expect(state.notes.map(\.uuid) == ["c"])
        #expect(state.entries.isEmpty)
    }

    @Test func aSecondOpenOfTheFileIsRejected() throws {
        let folder = try TemporaryFolder()
        let store = try SyncStore(path: folder.path("s.db"))
        try store.commit(change)
        let error = #expect(throws: SyncStoreError.self) { try SyncStore(path: folder.path("s.db")) }
        #expect(error?.kind == .inUse)
        _ = try store.load()
    }

    @Test func aNewerOrForeignFileIsRejectedAndUnchanged() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("new.db")
        do {
            let queue = try DatabaseQueue(path: path)
            try queue.write { try $0.execute(sql: "PRAGMA user_version = 9") }
        }
        let newer = #expect(throws: SyncStoreError.self) { try SyncStore(path: path) }
        #expect(newer?.kind == .newer && newer?.description.contains("newer version (9") == true)

        let foreign = folder.path("letter.txt")
        let text = Data(String(repeating: "Dear Bo, ", count: 200).utf8)
        try text.write(to: URL(fileURLWithPath: foreign))
        let unreadable = #expect(throws: SyncStoreError.self) { try SyncStore(path: foreign) }
        #expect(unreadable?.kind == .unreadable)
        #expect(try Data(contentsOf: URL(fileURLWithPath: foreign)) == text)

        let missing = #expect(throws: SyncStoreError.self) { try SyncStore(path: folder.path("none/s.db")) }
        #expect(missing?.kind == .unwritable)
    }

    /// A full disk is simulated by a page limit.
    @Test func aFullDiskLosesNothing() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("s.db")
        let store = try SyncStore(path: path)
        try store.commit(change)
        try store.limitPages()
        var large = StoreChange()
        large.notes = [
            LocalNote(
                uuid: "large",
                mine: LocalNote.Content(title: nil, text: String(repeating: "x", count: 500_000), date: ""))
        ]
        let error = #expect(throws: SyncStoreError.self) { try store.commit(large) }
        #expect(error?.kind == .unwritable && error?.description.contains("disk is full") == true)
        #expect(try store.load().notes == change.notes)
    }
}
