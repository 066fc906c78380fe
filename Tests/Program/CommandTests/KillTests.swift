import Foundation
import GRDB
import NotesContract
import Synchronization
import TestSupport
import Testing

/// A notes server that is killed repeatedly while it writes to one database.
///
/// `SLOWLANE_SEEDS` adds kills.
@Suite(.tags(.tools), .timeLimit(.minutes(10))) struct KillTests {
    /// A write with its idempotency key and the response, if there was one.
    private struct Operation: Sendable {
        let method: String
        let path: String
        let body: String
        let key: String
        let uuid: String
        var reply: HTTPReply?
    }

    /// The number of writes with a response.
    private final class Count: Sendable {
        private let count = Atomic(0)

        func add() { count.add(1, ordering: .relaxed) }

        func reach(_ goal: Int) async throws {
            while count.load(ordering: .relaxed) < goal { try await Task.sleep(for: .milliseconds(1)) }
        }
    }

    private static let user = "Authorization: Basic YWRhOnNlY3JldA=="

    private static func send(_ operation: Operation, by peer: HTTPPeer) throws -> HTTPReply {
        try peer.ask(
            operation.method, operation.path, operation.body, [user, "Idempotency-Key: \(operation.key)"])
    }

    /// Returns whether two responses report the same result; the second response to a creation is 200 instead of 201.
    private static func isSame(_ first: HTTPReply, _ again: HTTPReply) -> Bool {
        (first.status == again.status || first.status == 201 && again.status == 200) && first.body == again.body
    }

    /// Writes notes one after the other until the server has ended, each with the revision of the previous response.
    private static func write(_ port: Int, _ name: String, seed: UInt64, _ done: Count) -> [Operation] {
        var random = SeededGenerator(seed: seed)
        let peer = HTTPPeer(port: port)
        var operations: [Operation] = []
        var current: (uuid: String, revision: String)?
        for number in 0... {
            let key = "\(name)-\(number)"
            var operation: Operation
            if let (uuid, revision) = current {
                let path = "/api/notes/\(uuid)/"
                switch Int.random(in: 0..<10, using: &random) {
                case 0:
                    operation = Operation(
                        method: "DELETE", path: path + "?revision=\(revision)", body: "", key: key, uuid: uuid)
                case 1..<5:
                    let body = #"{"revision":"\#(revision)","text":"\#(key)"}"#
                    operation = Operation(method: "PATCH", path: path, body: body, key: key, uuid: uuid)
                default:
                    let body =
                        #"{"revision":"\#(revision)","title":"\#(key)","text":null,"date":"2026-03-01T08:00:00Z"}"#
                    operation = Operation(method: "PUT", path: path, body: body, key: key, uuid: uuid)
                }
            } else {
                let uuid = UUID().uuidString.lowercased()
                operation = Operation(
                    method: "POST", path: "/api/notes/", body: #"{"uuid":"\#(uuid)","title":"\#(key)"}"#, key: key,
                    uuid: uuid)
            }
            operation.reply = try? send(operation, by: peer)
            operations.append(operation)
            guard let reply = operation.reply else { return operations }
            done.add()
            current = Note(json: Array(reply.body.utf8)).map { ($0.uuid, $0.revision.description) }
        }
        return operations
    }

    private static func start(_ path: String) async throws -> (command: Command, port: Int) {
        let command = try Command([
            "notes-server", "--user", "ada:secret", "--listen", "127.0.0.1:0", "--db", path, "--quiet",
        ])
        let line = try await command.output.line(with: "listening on")
        let port = line.firstMatch(of: #/127\.0\.0\.1:([0-9]+)/#).flatMap { Int($0.1) }
        return (command, try #require(port))
    }

    private static func problems(_ path: String) throws -> [String] {
        try DatabaseQueue(path: path).read { try String.fetchAll($0, sql: "PRAGMA integrity_check") }
    }

    private static let rounds = TestSettings.work(5, soak: 50)

    /// Every write with a response is stored, every operation returns its first result again, and the database is intact.
    @Test func acknowledgedWritesSurviveKills() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path("notes.db")
        var all: [Operation] = []
        var unanswered = 0
        for round in 0..<Self.rounds {
            let (command, port) = try await Self.start(path)
            let done = Count()
            async let written = withTaskGroup(of: [Operation].self) { group in
                for writer in 0..<4 {
                    group.addTask {
                        let operations = try? await blocking {
                            Self.write(port, "\(round)-\(writer)", seed: UInt64(round * 4 + writer), done)
                        }
                        return operations ?? []
                    }
                }
                return await group.reduce(into: []) { $0 += $1 }
            }
            // The kill comes while they write, after a different number of writes each time.
            try await done.reach(1 + round * 7 % 40)
            command.signal(SIGKILL)
            let status = await command.end()
            #expect(status == -SIGKILL)
            let operations = await written
            #expect(!operations.isEmpty)

            let problems = try Self.problems(path)
            #expect(problems == ["ok"], "round \(round)")

            let (again, secondPort) = try await Self.start(path)
            let sample = all.shuffled().prefix(20)
            all += try await blocking { try Self.check(operations, and: Array(sample), secondPort, "round \(round)") }
            unanswered += operations.count { $0.reply == nil }
            again.signal(SIGKILL)
            _ = await again.end()
        }
        let (last, port) = try await Self.start(path)
        let everything = all
        _ = try await blocking { try Self.check([], and: everything, port, "at the end") }
        last.signal(SIGTERM)
        let status = await last.end()
        #expect(status == 0)
        // Most kills came during a write.
        #expect(unanswered >= Self.rounds)
        #expect(all.count > 10 * Self.rounds, "\(all.count)")
    }

    /// - Returns: The operations, each with its result.
    private static func check(
        _ operations: [Operation], and older: [Operation], _ port: Int, _ when: String
    ) throws -> [Operation] {
        let peer = HTTPPeer(port: port)
        var notes: [String: HTTPReply] = [:]
        var done: [Operation] = []
        for var operation in operations {
            let first = try send(operation, by: peer)
            if let reply = operation.reply {
                #expect(isSame(reply, first), "\(when): \(operation.key): \(reply.status) became \(first.status)")
            } else {
                // The write was executed before the kill or is executed now; its result does not change afterwards.
                #expect((200...299).contains(first.status), "\(when): \(operation.key): \(first.status) \(first.body)")
                operation.reply = first
            }
            notes[operation.uuid] = first
            done.append(operation)
        }
        for operation in done + older {
            let again = try send(operation, by: peer)
            #expect(operation.reply.map { isSame($0, again) } == true, "\(when): \(operation.key)")
        }
        for (uuid, last) in notes {
            let shown = try peer.ask("GET", "/api/notes/\(uuid)/", "", [user])
            #expect(last.status == 204 ? shown.status == 404 : shown.body == last.body, "\(when): \(uuid)")
        }
        return done
    }
}
