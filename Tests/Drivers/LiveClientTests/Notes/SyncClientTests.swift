import Client
import Determinism
import Foundation
import NotesContract
import NotesServer
import NotesService
import Synchronization
import TestSupport
import Testing
import Wire

@testable import LiveClient
@testable import ShoppingListExample

/// The client with a real notes server over the loopback interface.
@Suite(.tags(.services), .serialized, .timeLimit(.minutes(1))) struct SyncClientTests {
    private static func server() async throws -> (NotesServer, NotesStore) {
        let store = try NotesStore(path: nil)
        let server = try await NotesServer.start(
            NotesService(store: store, users: ["ada": "secret", "bo": "secret"]), host: "127.0.0.1", port: 0)
        return (server, store)
    }

    private static func configuration(
        _ port: Int, user: String = "ada", store: String? = nil
    ) -> SyncClientConfiguration {
        SyncClientConfiguration(host: "127.0.0.1", port: port, user: user, password: "secret", storePath: store)
    }

    private static func waitUntil(_ condition: () async throws -> Bool) async throws {
        let end = ContinuousClock.now + .seconds(20)
        while try await !condition() {
            try #require(ContinuousClock.now < end)
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    @Test func aNoteReachesTheServerAndAnotherClient() async throws {
        let (server, store) = try await Self.server()
        let phone = try await SyncClient.start(Self.configuration(server.port))
        let uuid = try await phone.create(title: "Milk", text: "2 l")
        #expect(try await phone.waitUntilComplete(timeout: .seconds(20)) == .complete)
        #expect(try store.notes(of: "ada").map(\.title) == ["Milk"])
        let laptop = try await SyncClient.start(Self.configuration(server.port))
        try await Self.waitUntil { try await laptop.view().rows.map(\.uuid) == [uuid] }
        await phone.stop()
        await laptop.stop()
        await server.stop()
    }

    /// Its connection is closed, and its store can be opened again.
    @Test func aClientThatIsReleasedWithoutAStopEnds() async throws {
        let folder = try TemporaryFolder()
        let (server, _) = try await Self.server()
        let configuration = Self.configuration(server.port, store: folder.path("phone.db"))
        for _ in 0..<3 {
            try await Self.waitUntil {
                guard let client = try? await SyncClient.start(configuration) else { return false }
                return try await client.waitUntilComplete(timeout: .seconds(20)) == .complete
            }
        }
        await server.stop()
    }

    @Test func changesAreKeptInTheStoreOfAStoppedClient() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path("notes.db")
        let (server, store) = try await Self.server()
        let offline = try await SyncClient.start(
            Self.configuration(server.port, store: path), interface: NetworkInterface(isUp: false))
        _ = try await offline.create(title: "Milk", text: nil)
        await offline.stop()
        #expect(try store.notes(of: "ada").isEmpty)
        let online = try await SyncClient.start(Self.configuration(server.port, store: path))
        try await Self.waitUntil { try await online.view().outbox == 0 }
        #expect(try store.notes(of: "ada").map(\.title) == ["Milk"])
        await online.stop()
        await server.stop()
    }

    @Test func noConnectionIsOpenedToAHostThatDoesNotResolve() async throws {
        let (server, store) = try await Self.server()
        let isKnown = Flag()
        var configuration = Self.configuration(server.port)
        configuration.isHostResolvable = { isKnown.isSet }
        configuration.policy.firstDelay = .milliseconds(10)
        configuration.policy.longestDelay = .milliseconds(20)
        let client = try await SyncClient.start(configuration)
        _ = try await client.create(title: "Milk", text: nil)
        try await Self.waitUntil {
            if case .unreachable = try await client.status().connectivity { true } else { false }
        }
        #expect(try store.notes(of: "ada").isEmpty)
        isKnown.set()
        try await Self.waitUntil { try await client.view().outbox == 0 }
        await client.stop()
        await server.stop()
    }

    @Test func anUnknownNoteIsRejected() async throws {
        let client = try await SyncClient.start(Self.configuration(1), interface: NetworkInterface(isUp: false))
        await #expect(throws: SyncEngine.RecordError.unknown) { try await client.delete("none") }
        await client.stop()
        await #expect(throws: SyncClient.StoppedError.self) { try await client.create(title: "Milk", text: nil) }
    }

    /// A large note is written in pieces; the client sees its progress and the server gets all of it.
    @Test func aLargeNoteArrives() async throws {
        let (server, store) = try await Self.server()
        let client = try await SyncClient.start(Self.configuration(server.port))
        let text = String(repeating: "x", count: 800_000)
        _ = try await client.create(title: "Large", text: text)
        _ = try await client.create(title: "Small", text: "y")
        #expect(try await client.waitUntilComplete(timeout: .seconds(30)) == .complete)
        #expect(try Set(store.notes(of: "ada").map { $0.text?.utf8.count }) == [800_000, 1])
        await client.stop()
        await server.stop()
    }

    @Test func theLogOfTheViewHasEachIconWithItsTime() async throws {
        let (server, _) = try await Self.server()
        let log = ViewLog()
        let client = try await SyncClient.start(
            Self.configuration(server.port), interface: NetworkInterface(isUp: false), onEvent: log.record)
        let uuid = try await client.create(title: "Milk", text: nil)
        try await client.setInterface(NetworkInterface(isUp: true))
        try await Self.waitUntil { try await client.view().outbox == 0 }
        let icons = log.icons(of: RecordID(uuid))
        #expect(icons.map(\.icon) == [.upload, RecordRow.Icon.none])
        #expect(icons.map(\.time) == icons.map(\.time).sorted())
        let beliefs = log.entries.map(\.change.connectivity)
        #expect(beliefs.first == .interfaceDown && beliefs.last == .online)
        await client.stop()
        await server.stop()
    }

    @Test func rejectedCredentialsPauseTheQueueUntilOthersAreGiven() async throws {
        let (server, store) = try await Self.server()
        var configuration = Self.configuration(server.port)
        configuration.credentials = .password("expired")
        let client = try await SyncClient.start(configuration)
        _ = try await client.create(title: "Milk", text: nil)
        guard case .paused = try await client.waitUntilComplete(timeout: .seconds(20)) else {
            Issue.record("not paused")
            return
        }
        #expect(try await client.sync(within: .seconds(20))?.kind == .credentialsRejected)
        #expect(try store.notes(of: "ada").isEmpty)
        try await client.setCredentials(.password("secret"))
        #expect(try await client.waitUntilComplete(timeout: .seconds(20)) == .complete)
        #expect(try store.notes(of: "ada").map(\.title) == ["Milk"])
        await client.stop()
        await server.stop()
    }

    // MARK: Several processes and accounts

    @Test func aSecondClientOfOneStoreIsRefusedWithTheProcessOfTheFirst() async throws {
        let folder = try TemporaryFolder()
        let configuration = Self.configuration(1, store: folder.path("notes.db"))
        let first = try await SyncClient.start(configuration)
        let error = await #expect(throws: SyncStoreError.self) { try await SyncClient.start(configuration) }
        #expect(error?.kind == .inUse)
        #expect(error?.description.contains("\(ProcessInfo.processInfo.processIdentifier)") == true)
        await first.stop()
        let second = try await SyncClient.start(configuration)
        await second.stop()
    }

    @Test func changesOfAnotherProcessAreSentWhileTheClientRuns() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path("notes.db")
        let (server, store) = try await Self.server()
        let client = try await SyncClient.start(Self.configuration(server.port, store: path))
        #expect(try await client.waitUntilComplete(timeout: .seconds(20)) == .complete)
        var other = try OfflineNotes(path: path)
        let uuid = try other.create(title: "Milk", text: "2 l")
        try await Self.waitUntil { try store.notes(of: "ada").map(\.title) == ["Milk"] }
        // Both change the same note in turn.
        for round in 0..<10 {
            try other.edit(uuid, title: nil, text: "other \(round)")
            try await client.edit(uuid, title: "Milk \(round)", text: nil)
        }
        #expect(try await client.waitUntilComplete(timeout: .seconds(20)) == .complete)
        try await Self.waitUntil { try store.notes(of: "ada").map(\.title) == ["Milk 9"] }
        #expect(try store.notes(of: "ada").map(\.text) == ["other 9"])
        await client.stop()
        await server.stop()
    }

    @Test func theStoreOfAnotherUserIsSentOnlyAfterItsAdoption() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path("notes.db")
        let (server, store) = try await Self.server()
        let first = try await SyncClient.start(Self.configuration(server.port, store: path))
        _ = try await first.create(title: "Milk", text: "2 l")
        #expect(try await first.waitUntilComplete(timeout: .seconds(20)) == .complete)
        await first.stop()
        var offline = try OfflineNotes(path: path)
        _ = try offline.create(title: "Bread", text: "")
        let second = try await SyncClient.start(Self.configuration(server.port, user: "bo", store: path))
        guard case .accountMismatch(let mismatch) = try await second.waitUntilComplete(timeout: .seconds(20)) else {
            Issue.record("no mismatch")
            return
        }
        #expect(mismatch.stored.user == "ada" && mismatch.found.user == "bo")
        #expect(try store.notes(of: "bo").isEmpty)
        try await second.adopt()
        #expect(try await second.waitUntilComplete(timeout: .seconds(20)) == .complete)
        #expect(try store.notes(of: "bo").map(\.title) == ["Bread"])
        let rows = try await second.view().rows
        #expect(rows.first { $0.title == "Milk" }?.icon == .conflict)
        #expect(rows.first { $0.title == "Bread" }?.icon == RecordRow.Icon.none)
        await second.stop()
        await server.stop()
    }

    // MARK: Another resource

    /// Runs the code of Examples/ShoppingList.
    @Test func aShoppingListIsSynchronisedWithAServerOfItsOwn() async throws {
        let folder = try TemporaryFolder()
        let server = try await ItemsServer.start()
        func list(_ name: String) async throws -> ShoppingList {
            try await ShoppingList(
                file: folder.path(name), url: "http://127.0.0.1:\(server.port)", user: "ada", password: "secret")
        }
        let phone = try await list("phone.db")
        try await phone.add("Milk")
        try await phone.add("Bread")
        try await phone.buy("Milk")
        #expect(try await phone.client.waitUntilComplete(timeout: .seconds(20)) == .complete)
        let laptop = try await list("laptop.db")
        try await Self.waitUntil { try await laptop.rows().count == 2 }
        #expect(
            try await laptop.rows().map(\.item) == [Item(name: "Bread"), Item(name: "Milk", isBought: true)])
        #expect(server.items.count == 2)
        // Both change one item: a conflict, which is resolved.
        try await laptop.buy("Bread")
        #expect(try await laptop.client.waitUntilComplete(timeout: .seconds(20)) == .complete)
        let bread = try #require(try await phone.rows().first { $0.item.name == "Bread" }?.id)
        try await phone.client.edit(bread, RecordContent(encoding: Item(name: "Rye bread")))
        try await Self.waitUntil { try await phone.client.row(bread)?.icon == .conflict }
        try await phone.client.resolve(bread, .write(RecordContent(encoding: Item(name: "Rye bread", isBought: true))))
        #expect(try await phone.client.waitUntilComplete(timeout: .seconds(20)) == .complete)
        #expect(server.items.contains { $0["name"] == "Rye bread" && $0["isBought"] == true })
        try await phone.client.delete(bread)
        #expect(try await phone.client.waitUntilComplete(timeout: .seconds(20)) == .complete)
        #expect(server.items.map { $0["name"] } == ["Milk"])
        await phone.client.stop()
        await laptop.client.stop()
        await server.stop()
    }

    /// A change of a value keeps the members that its type does not have, and is made to the record as it is then.
    @Test func anEditOfAValueKeepsUnknownMembers() async throws {
        let server = try await ItemsServer.start()
        server.set("1", ["name": "Milk", "isBought": false, "colour": "white", "size": ["litres": 2]])
        var configuration = Self.configuration(server.port)
        configuration.resource = JSONResource(name: "items", path: "/items/")
        let client = try await SyncClient.start(configuration)
        try await Self.waitUntil { try await client.row("1") != nil }
        async let first: Void = client.edit("1") { (item: inout Item) in item.name += "!" }
        async let second: Void = client.edit("1") { (item: inout Item) in item.name += "?" }
        _ = try await (first, second)
        try await client.edit("1", as: Item.self) { $0.isBought = true }
        #expect(try await client.waitUntilComplete(timeout: .seconds(20)) == .complete)
        let item = try #require(server.items.first)
        #expect(item["isBought"] == true && item["colour"] == "white" && item["size"] == ["litres": 2])
        #expect(["Milk!?", "Milk?!"].contains(item["name"]?.text))
        await #expect(throws: SyncEngine.RecordError.unknown) {
            try await client.edit("2", as: Item.self) { $0.isBought = true }
        }
        await client.stop()
        await server.stop()
    }

    @Test func theRecordsAreObservedUntilTheClientStops() async throws {
        let (server, _) = try await Self.server()
        let client = try await SyncClient.start(Self.configuration(server.port))
        let updates = try await client.updates()
        let reading = Task {
            var titles: [[String?]] = []
            for await rows in updates {
                let found = rows.map { NoteContent($0.content).title }
                if titles.last != found { titles.append(found) }
                if found == ["Oat"] { break }
            }
            return titles
        }
        let uuid = try await client.create(title: "Milk", text: nil)
        var more = try await client.updates().makeAsyncIterator()
        #expect(await more.next()?.count == 1)
        try await client.edit(uuid, title: "Oat", text: nil)
        try await Self.waitUntil { await more.next()?.first.map { NoteContent($0.content).title } == "Oat" }
        // A client that has stopped has no rows for an observer that has not yet read them.
        let titles = await reading.value
        #expect(titles.last == ["Oat"] && titles.count <= 3, "\(titles)")
        await client.stop()
        while await more.next() != nil {}
        await server.stop()
    }

    @Test func aStoreOfAnotherResourceIsRefused() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path("notes.db")
        _ = try OfflineNotes(path: path)
        let error = await #expect(throws: SyncStoreError.self) {
            try await ShoppingList(file: path, url: "127.0.0.1:1", user: "ada", password: "secret")
        }
        #expect(error?.kind == .foreign)
    }
}
