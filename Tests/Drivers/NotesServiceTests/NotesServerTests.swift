import Foundation
import GRDB
import NotesContract
import NotesServer
import NotesService
import TestSupport
import Testing

/// The server over real sockets.
@Suite(.tags(.services), .timeLimit(.minutes(10))) struct NotesServerTests {
    private static func withServer(
        _ service: NotesService, _ body: (Int) async throws -> Void
    ) async throws {
        let server = try await NotesServer.start(service, host: "127.0.0.1", port: 0)
        do { try await body(server.port) } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    /// Sends a request on a new connection; returns status and body.
    private static func ask(
        _ port: Int, _ method: String, _ path: String, _ body: String = "", _ fields: [String] = []
    ) async throws -> (status: Int, body: String) {
        let lines = ["Authorization: \(Fixture.ada)"] + fields
        let reply = try await blocking { try HTTPPeer(port: port).ask(method, path, body, lines) }
        return (reply.status, reply.body)
    }

    private static func revision(_ port: Int) async throws -> Revision {
        let note = Note(json: Array(try await ask(port, "GET", "/api/notes/\(Fixture.n1)/").body.utf8))
        return try #require(note).revision
    }

    /// The database is in memory or in a file.
    @Test(arguments: [false, true]) func oneOfEightConcurrentWritersWins(isFile: Bool) async throws {
        let folder = try TemporaryFolder()
        let store = try NotesStore(path: isFile ? folder.path("notes.db") : nil)
        let fixture = try Fixture(store: store)
        fixture.create()
        try await Self.withServer(fixture.service) { (port: Int) async throws -> Void in
            for round in 0..<50 {
                let base = try await Self.revision(port)
                let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                    for writer in 0..<8 {
                        group.addTask {
                            let draft = NoteDraft(
                                date: "2026-03-01T08:00:00.000Z", title: "round \(round)", text: "writer \(writer)")
                            return try await Self.ask(
                                port, "PUT", "/api/notes/\(Fixture.n1)/", draft.json(uuid: Fixture.n1, base: base)
                            ).status
                        }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(statuses.sorted() == [200] + Array(repeating: 409, count: 7), "round \(round)")
                #expect(try await Self.revision(port).number == base.number + 1)
            }
        }
    }

    @Test func aConcurrentDeleteAndPutHaveOneWinner() async throws {
        let fixture = try Fixture()
        try await Self.withServer(fixture.service) { (port: Int) async throws -> Void in
            for _ in 0..<50 {
                let uuid = UUIDs.random()
                let base = try #require(Revision(fixture.create(uuid)))
                let path = "/api/notes/\(uuid)/"
                let draft = NoteDraft(date: "2026-03-01T08:00:00.000Z", title: "a", text: "b")
                async let put = Self.ask(port, "PUT", path, draft.json(uuid: uuid, base: base)).status
                async let delete = Self.ask(port, "DELETE", path + "?revision=\(base)").status
                let statuses = try await (put, delete)
                #expect(statuses == (200, 409) || statuses == (404, 204), "\(statuses)")
            }
        }
    }

    @Test func eightConcurrentRetriesExecuteTheOperationOnce() async throws {
        let fixture = try Fixture()
        try await Self.withServer(fixture.service) { (port: Int) async throws -> Void in
            for round in 0..<20 {
                let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                    for _ in 0..<8 {
                        group.addTask {
                            try await Self.ask(
                                port, "POST", "/api/notes/", #"{"title":"\#(round)"}"#, ["Idempotency-Key: r\(round)"]
                            ).status
                        }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(statuses.sorted() == Array(repeating: 200, count: 7) + [201])
            }
            let notes = try fixture.notes
            #expect(notes.count == 20)
        }
    }

    @Test func aBodyOverTheLimitIsRejected() async throws {
        let fixture = try Fixture()
        try await Self.withServer(fixture.service) { (port: Int) async throws -> Void in
            let body = #"{"title":"\#(String(repeating: "x", count: NotesService.Limits.bodyBytesMax))"}"#
            #expect(try await Self.ask(port, "POST", "/api/notes/", body).status == 413)
            #expect(try await Self.ask(port, "GET", "/api/notes/").body == "[]")
        }
    }

    @Test func aTakenPortIsNamedWithCauseAndRemedy() async throws {
        let fixture = try Fixture()
        try await Self.withServer(fixture.service) { (port: Int) async throws -> Void in
            let error = await #expect(throws: NotesServer.StartError.self) {
                try await NotesServer.start(fixture.service, host: "127.0.0.1", port: port)
            }
            #expect(
                error?.description == "cannot bind 127.0.0.1:\(port): address already in use (EADDRINUSE); "
                    + "choose another port with --listen")
        }
    }
}

/// Reopening database files.
@Suite struct NotesStoreTests {
    private func expectFailure(containing text: String, _ body: () throws -> Void) throws {
        let error = #expect(throws: NotesStoreError.self, performing: body)
        let description = try #require(error).description
        #expect(description.contains(text))
    }

    @Test func aReopenedFileHasTheNotesAndOperations() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("notes.db")
        let key = ["Idempotency-Key": "a"]
        let made = try Fixture(store: NotesStore(path: path)).send(
            "POST", "/api/notes/", #"{"title":"Milk"}"#, with: key)
        let again = try Fixture(store: NotesStore(path: path))
        let notes = try again.notes
        #expect(notes == [made.note])
        #expect(again.send("POST", "/api/notes/", #"{"title":"Milk"}"#, with: key).note == made.note)
    }

    @Test func aNewerDatabaseIsRejectedUnchanged() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("notes.db")
        _ = try NotesStore(path: path)
        try DatabaseQueue(path: path).writeWithoutTransaction { try $0.execute(sql: "PRAGMA user_version = 99") }
        let before = try Data(contentsOf: URL(filePath: path))
        try expectFailure(containing: "newer version (99") { () throws -> Void in _ = try NotesStore(path: path) }
        #expect(try Data(contentsOf: URL(filePath: path)) == before)
    }

    @Test func aFileThatIsNotADatabaseIsRejectedUnchanged() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("notes.txt")
        let text = Data(String(repeating: "These are my notes. ", count: 100).utf8)
        try text.write(to: URL(filePath: path))
        try expectFailure(containing: "is not a notes database") { () throws -> Void in _ = try NotesStore(path: path) }
        #expect(try Data(contentsOf: URL(filePath: path)) == text)
        try expectFailure(containing: "cannot be created") { () throws -> Void in
            _ = try NotesStore(path: folder.path("none/notes.db"))
        }
    }
}
