import Determinism
import NotesContract
import NotesServer
import NotesService
import SyncEngine
import TestSupport
import Testing

@testable import SyncClient

/// The client with a real notes server over the loopback interface.
@Suite(.serialized, .timeLimit(.minutes(1))) struct SyncClientTests {
    private static func server() async throws -> (NotesServer, NotesStore) {
        let store = try NotesStore(path: nil)
        let server = try await NotesServer.start(
            NotesService(store: store, users: ["ada": "secret"]), host: "127.0.0.1", port: 0)
        return (server, store)
    }

    private static func configuration(_ port: Int, store: String? = nil) -> SyncClientConfiguration {
        SyncClientConfiguration(host: "127.0.0.1", port: port, user: "ada", password: "secret", storePath: store)
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
        try await Self.waitUntil { try await phone.status().isSettled }
        #expect(try store.notes(of: "ada").map(\.title) == ["Milk"])
        let laptop = try await SyncClient.start(Self.configuration(server.port))
        try await Self.waitUntil { try await laptop.view().rows.map(\.uuid) == [uuid] }
        await phone.stop()
        await laptop.stop()
        await server.stop()
    }

    @Test func changesAreKeptInTheStoreOfAStoppedClient() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path("notes.db")
        let (server, store) = try await Self.server()
        let offline = try await SyncClient.start(Self.configuration(server.port, store: path), isOnline: false)
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
        configuration.policy = RetryPolicy(first: .milliseconds(10), longest: .milliseconds(20))
        let client = try await SyncClient.start(configuration)
        _ = try await client.create(title: "Milk", text: nil)
        try await Self.waitUntil { try await client.view().isReachable == false }
        #expect(try store.notes(of: "ada").isEmpty)
        isKnown.set()
        try await Self.waitUntil { try await client.view().outbox == 0 }
        await client.stop()
        await server.stop()
    }

    @Test func anUnknownNoteIsRejected() async throws {
        let client = try await SyncClient.start(Self.configuration(1), isOnline: false)
        await #expect(throws: SyncEngine.NoteError.unknownNote) { try await client.delete("none") }
        await client.stop()
    }
}
