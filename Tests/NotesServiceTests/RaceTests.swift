import Foundation
import JSON
import NotesContract
import NotesServer
import NotesService
import TestSupport
import Testing

/// Writers at once, over real HTTP. By itself, for it keeps both processors busy.
@Suite(.serialized, .timeLimit(.minutes(10))) struct RaceTests {
    /// What one of the writers of a round does.
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

    /// All writers of a round begin from one revision; some send what another sends, and some what was done long ago.
    @Test(arguments: [(APIContract.compat, true), (.strict, false), (.orig, false)])
    func ofManyWritersOneWinsEachTime(contract: APIContract, isFile: Bool) async throws {
        let folder = try TemporaryFolder()
        let store = try NotesStore(path: isFile ? folder.path("notes.db") : nil, contract: contract)
        let fixture = try Fixture(contract, store: store)
        let server = try await NotesServer.start(fixture.service, host: "127.0.0.1", port: 0)
        let port = server.port
        let isRepaired = contract != .orig
        var random = SeededGenerator(seed: 7)
        var uuid = ""
        var base: Revision?
        /// Each accepted write of a note: from which revision to which.
        var chains: [String: [(base: Revision, result: Revision?)]] = [:]
        var done: [(attempt: Attempt, reply: HTTPReply)] = []
        let peers = (0..<8).map { _ in HTTPPeer(port: port) }
        for round in 0..<1000 {
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
                switch Int.random(in: 0..<40, using: &random) {
                case 0:
                    return Attempt(
                        writer: writer, method: "DELETE", path: path + "?revision=\(from)", body: "", key: key)
                case 1..<20:
                    return Attempt(
                        writer: writer, method: "PATCH", path: path,
                        body: #"{"revision":"\#(from)","text":"\#(round) \#(writer)"}"#, key: key)
                default:
                    return Attempt(
                        writer: writer, method: "PUT", path: path, body: draft.json(uuid: uuid, base: from), key: key)
                }
            }
            if isRepaired {
                // Two writers send the same operation; one sends an old one.
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
                    isRepaired, !attempt.key.hasPrefix("\(round)-")
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
                    // The same operation twice at once: one result.
                    #expect(result == base, "round \(round)")
                }
            }
            // Where deleting what is gone is as good as deleting it, several may.
            let areDeletions = attempts.allSatisfy { !winners.contains($0.key) || $0.method == "DELETE" }
            #expect(
                winners.count == 1 || contract == .strict && areDeletions && !winners.isEmpty,
                "round \(round): \(winners.sorted())")
        }
        let accepted = chains.values.map(\.count).reduce(0, +)
        #expect(accepted == 1000)
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
        // There were enough of each kind.
        #expect(chains.count > 10)
        #expect(Set(done.map(\.attempt.method)) == ["PUT", "PATCH", "DELETE"])
        await server.stop()
    }
}
