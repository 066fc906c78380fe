import Foundation
import NotesContract
import NotesServer
import NotesService
import TestSupport
import Testing
import Wire

/// Concurrent writers over HTTP. The suite is serialized because each test keeps several cores busy.
///
/// `SLOWLANE_SEEDS` adds rounds.
@Suite(.tags(.services), .serialized, .timeLimit(.minutes(10))) struct RaceTests {
    private static let rounds = TestSettings.work(100, soak: 1000)

    /// The request of one writer in a round.
    private struct Attempt: Sendable {
        let writer: Int
        let method: String
        let path: String
        let body: String
        let key: String
    }

    private static func ask(_ peer: HTTPPeer, _ attempt: Attempt) throws -> HTTPReply {
        try peer.ask(
            attempt.method, attempt.path, attempt.body,
            ["Authorization: \(Fixture.ada)", "Idempotency-Key: \(attempt.key)"])
    }

    /// All writers of a round start from one revision. Some repeat the operation of another writer, some an earlier
    /// one.
    @Test(arguments: [(APIContract.compat, true), (.strict, false), (.orig, false)])
    func oneWriterWinsEachRound(contract: APIContract, isFile: Bool) async throws {
        let folder = try TemporaryFolder()
        let store = try NotesStore(path: isFile ? folder.path("notes.db") : nil, contract: contract)
        let fixture = try Fixture(contract, store: store)
        let server = try await NotesServer.start(fixture.service, host: "127.0.0.1", port: 0)
        let port = server.port
        let hasIdempotencyKeys = contract != .orig
        var random = SeededGenerator(seed: 7)
        var uuid = ""
        var base: Revision?
        /// The accepted writes of each note, from base to result.
        var chains: [String: [(base: Revision, result: Revision?)]] = [:]
        var done: [(attempt: Attempt, reply: HTTPReply)] = []
        let peers = (0..<8).map { _ in HTTPPeer(port: port) }
        for round in 0..<Self.rounds {
            if base == nil {
                uuid = "10000000-0000-4000-8000-" + String(100_000_000_000 + round)
                base = Revision(fixture.create(uuid))
            }
            let from = try #require(base)
            var attempts = (0..<8).map { writer -> Attempt in
                let path = "/api/notes/\(uuid)/"
                let key = "\(round)-\(writer)"
                let draft = NoteDraft(
                    date: "2026-03-01T08:00:00.000Z", title: "round \(round)", text: "writer \(writer)")
                switch Int.random(in: 0..<20, using: &random) {
                case 0:
                    return Attempt(
                        writer: writer, method: "DELETE", path: path + "?revision=\(from)", body: "", key: key)
                case 1..<10:
                    return Attempt(
                        writer: writer, method: "PATCH", path: path,
                        body: #"{"revision":"\#(from)","text":"\#(round) \#(writer)"}"#, key: key)
                default:
                    return Attempt(
                        writer: writer, method: "PUT", path: path, body: draft.json(uuid: uuid, base: from), key: key)
                }
            }
            if hasIdempotencyKeys {
                // Two writers send the same operation, one repeats an earlier operation.
                attempts[7] = attempts[6]
                if let old = done.randomElement(using: &random) { attempts[5] = old.attempt }
            }
            let sent = attempts
            let replies = try await withThrowingTaskGroup(of: (Int, HTTPReply).self) { group in
                for (index, attempt) in sent.enumerated() {
                    group.addTask {
                        try await blocking { (index, try Self.ask(peers[index], attempt)) }
                    }
                }
                return try await group.reduce(into: [Int: HTTPReply]()) { $0[$1.0] = $1.1 }
            }
            var winners: Set<String> = []
            for (index, attempt) in attempts.enumerated() {
                let reply = try #require(replies[index])
                #expect(reply.status < 500, "round \(round): \(reply.status) \(reply.body)")
                if let old = done.first(where: { $0.attempt.key == attempt.key && $0.attempt.writer == attempt.writer }
                ),
                    hasIdempotencyKeys, !attempt.key.hasPrefix("\(round)-")
                {
                    #expect(reply.status == old.reply.status && reply.body == old.reply.body, "round \(round)")
                    continue
                }
                guard (200...299).contains(reply.status) else {
                    #expect([404, 409, 410].contains(reply.status), "round \(round): \(reply.status)")
                    continue
                }
                let result = Note(json: Array(reply.body.utf8))?.revision
                let isFirst = winners.isEmpty
                if winners.insert(attempt.key).inserted {
                    done.append((attempt, reply))
                    guard isFirst || result != nil else { continue }
                    chains[uuid, default: []].append((from, result))
                    base = result
                } else {
                    // Both retries get the same result.
                    #expect(result == base, "round \(round)")
                }
            }
            // Under strict several DELETEs succeed, because deleting a tombstone is a 204.
            let areDeletions = attempts.allSatisfy { !winners.contains($0.key) || $0.method == "DELETE" }
            #expect(
                winners.count == 1 || contract == .strict && areDeletions && !winners.isEmpty,
                "round \(round): \(winners.sorted())")
        }
        let accepted = chains.values.map(\.count).reduce(0, +)
        #expect(accepted == Self.rounds)
        for (uuid, writes) in chains {
            var last = writes[0].base
            #expect(last.number == 1)
            for write in writes {
                #expect(write.base == last, "\(uuid)")
                guard let result = write.result else { break }
                #expect(result.number == last.number + 1)
                last = result
            }
            let isDeleted = writes.last?.result == nil
            let shown = fixture.send("GET", "/api/notes/\(uuid)/")
            #expect((shown.status != 200) == isDeleted)
            if !isDeleted { #expect(shown.note?.revision == last) }
        }
        // Writes of every method have succeeded; after a successful DELETE the next round uses a new note.
        if Self.rounds >= 100 {
            #expect(chains.count > Self.rounds / 100)
            #expect(Set(done.map(\.attempt.method)) == ["PUT", "PATCH", "DELETE"])
        }
        await server.stop()
    }
}
