import Client
import Determinism
import Foundation
import NotesContract
import NotesServer
import NotesService
import TestSupport
import Testing

@testable import LiveClient

/// Attachments over the loopback interface.
@Suite(.tags(.services), .serialized, .timeLimit(.minutes(10))) struct SyncClientAttachmentTests {
    private static func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) } }

    private static func server() async throws -> NotesServer {
        try await NotesServer.start(
            NotesService(store: try NotesStore(path: nil), users: ["ada": "secret"]), host: "127.0.0.1", port: 0)
    }

    private static func configuration(_ port: Int, _ store: String) -> SyncClientConfiguration {
        SyncClientConfiguration(host: "127.0.0.1", port: port, user: "ada", password: "secret", storePath: store)
    }

    @Test func anAttachmentReachesAnotherClient() async throws {
        let folder = try TemporaryFolder()
        let server = try await Self.server()
        let bytes = Self.bytes(600_000)
        let file = folder.path("photo.jpg")
        try Data(bytes).write(to: URL(filePath: file))
        // The note and the attachment are added offline, and the original is deleted.
        let phone = try await SyncClient.start(
            Self.configuration(server.port, folder.path("phone.db")), interface: NetworkInterface(isUp: false))
        let uuid = try await phone.create(title: "Trip", text: nil)
        try await phone.attach(RecordID(uuid), file: file)
        try FileManager.default.removeItem(atPath: file)
        #expect(try await phone.attachments(of: RecordID(uuid)).map(\.state) == [.waiting])
        try await phone.setInterface(NetworkInterface(isUp: true))
        #expect(try await phone.waitUntilComplete(timeout: .seconds(30)) == .complete)
        #expect(try await phone.attachments(of: RecordID(uuid)).map(\.state) == [.done])
        await phone.stop()

        let laptop = try await SyncClient.start(Self.configuration(server.port, folder.path("laptop.db")))
        #expect(try await laptop.waitUntilComplete(timeout: .seconds(30)) == .complete)
        let copy = folder.path("copy.jpg")
        try await laptop.download(RecordID(uuid), name: "photo.jpg", to: copy)
        #expect(try Data(contentsOf: URL(filePath: copy)) == Data(bytes))
        #expect(try await laptop.attachments(of: RecordID(uuid)).isEmpty)
        let error = await #expect(throws: SyncClient.AttachmentError.self) {
            try await laptop.download(RecordID(uuid), name: "none.jpg", to: copy)
        }
        #expect(error?.description == "the attachment does not exist on the server")
        await #expect(throws: SyncClient.AttachmentError.self) {
            try await laptop.download(RecordID(uuid), name: "..", to: copy)
        }
        await laptop.stop()
        await server.stop()
    }

    /// A metered interface transfers notes; the policy excludes attachments.
    @Test func attachmentsWaitForAnUnmeteredInterface() async throws {
        let folder = try TemporaryFolder()
        let server = try await Self.server()
        let file = folder.path("a")
        try Data([1, 2, 3]).write(to: URL(filePath: file))
        var configuration = Self.configuration(server.port, folder.path("notes.db"))
        configuration.policy.attachmentInterfaces = .unmetered
        configuration.policy.recoverySpread = .zero
        let client = try await SyncClient.start(
            configuration, interface: NetworkInterface(isUp: true, isMetered: true))
        let uuid = try await client.create(title: "Trip", text: nil)
        try await client.attach(RecordID(uuid), file: file)
        #expect(try await client.waitUntilComplete(timeout: .seconds(30)) == .complete)
        #expect(try await client.view().outbox == 0)
        #expect(try await client.attachments(of: RecordID(uuid)).map(\.state) == [.waiting])
        try await client.setInterface(NetworkInterface(isUp: true))
        #expect(try await client.waitUntilComplete(timeout: .seconds(30)) == .complete)
        #expect(try await client.attachments(of: RecordID(uuid)).map(\.state) == [.done])
        await client.stop()
        await server.stop()
    }

    /// An attachment that the server rejects is parked; a note and another attachment are sent.
    @Test func aRejectedAttachmentDelaysNothing() async throws {
        let folder = try TemporaryFolder()
        let server = try await Self.server()
        for (name, byte) in [("phone", 1), ("laptop", 2)] as [(String, UInt8)] {
            try Data([byte]).write(to: URL(filePath: folder.path(name)))
        }
        let phone = try await SyncClient.start(Self.configuration(server.port, folder.path("phone.db")))
        let uuid = try await phone.create(title: "Trip", text: nil)
        try await phone.attach(RecordID(uuid), file: folder.path("phone"), name: "a")
        #expect(try await phone.waitUntilComplete(timeout: .seconds(30)) == .complete)
        await phone.stop()
        let laptop = try await SyncClient.start(Self.configuration(server.port, folder.path("laptop.db")))
        #expect(try await laptop.waitUntilComplete(timeout: .seconds(30)) == .complete)
        try await laptop.attach(RecordID(uuid), file: folder.path("laptop"), name: "a")
        try await laptop.attach(RecordID(uuid), file: folder.path("laptop"), name: "b")
        try await laptop.edit(uuid, title: "Long trip", text: nil)
        #expect(try await laptop.waitUntilComplete(timeout: .seconds(30)) == .complete)
        let states = try await laptop.attachments(of: RecordID(uuid)).map(\.state)
        #expect(states == [.parked("another attachment has this name; delete it or use another name"), .done])
        #expect(try await laptop.view().outbox == 0)
        try await laptop.delete(uuid)
        #expect(try await laptop.waitUntilComplete(timeout: .seconds(30)) == .complete)
        #expect(try await laptop.attachments(of: RecordID(uuid)).isEmpty)
        await laptop.stop()
        await server.stop()
    }
}
