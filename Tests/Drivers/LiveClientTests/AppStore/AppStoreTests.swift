import Client
import LiveClient
import TestSupport
import Testing
import Wire

@Suite struct AppStoreTests {
    private static var change: AppChange {
        var change = AppChange()
        change.set("record/e1", json: ["title": "Taxi\n\"1\"", "amount": .null])
        change.set("file/f1/0", [0, 255, 10, 13])
        change.set("file/empty", [])
        change.set("counter", json: .integer(7))
        return change
    }

    @Test func whatIsCommittedIsReadAgain() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("store.db")
        let store = try AppStore(path: path)
        #expect(try store.load() == AppState())
        try store.commit(Self.change)
        store.close()
        var expected = AppState()
        expected.apply(Self.change)
        let state = try AppStore(path: path).load()
        #expect(state == expected)
        #expect(state["file/f1/0"] == [0, 255, 10, 13] && state["file/empty"] == [])
        #expect(state.values(under: "file/").map(\.key) == ["empty", "f1/0"])
        #expect(state.json("record/e1")?["title"].text == "Taxi\n\"1\"")
    }

    @Test func aChangeReplacesAndRemovesValues() throws {
        let folder = try TemporaryFolder()
        let store = try AppStore(path: folder.path("store.db"))
        try store.commit(Self.change)
        var change = AppChange()
        change.set("file/f1/0", nil)
        change.set("record/e1", json: ["title": "Bus"])
        try store.commit(change)
        let state = try store.load()
        #expect(state["file/f1/0"] == nil && state.json("record/e1") == ["title": "Bus"])
        #expect(state.json("counter") == .integer(7))
    }

    @Test func theDigestOfAChangeDependsOnKeysValuesAndRemovals() {
        var changes: [AppChange] = []
        for (key, value) in [("a", [1]), ("a", [1, 1]), ("a1", []), ("a", []), ("b", [1])] as [(String, [UInt8])] {
            var change = AppChange()
            change.set(key, value)
            changes.append(change)
        }
        var removal = AppChange()
        removal.set("a", nil)
        changes.append(removal)
        changes.append(AppChange())
        #expect(Set(changes.map(\.digest)).count == changes.count)
        #expect(Self.change.digest == Self.change.digest)
    }

    @Test func aFileThatIsNoStoreIsRefused() throws {
        let folder = try TemporaryFolder()
        #expect(throws: AppStoreError.self) { try AppStore(path: folder.path("none/store.db")) }
    }
}
