import Client
import Determinism
import Foundation
import NotesContract
import NotesService
import TestSupport
import Testing
import Wire

/// The work of a first pull and of a long queue is linear in the number of notes.
@Suite struct CostTests {
    private struct Cost {
        var actions = 0
        var commits = 0
        var requests = 0
        var bytes = 0

        /// Returns whether the cost per note is at most 10 % higher than another one.
        func isLinear(_ count: Int, to other: Cost, _ otherCount: Int) -> Bool {
            func grows(_ key: KeyPath<Cost, Int>) -> Bool {
                self[keyPath: key] * otherCount * 10 > other[keyPath: key] * count * 11
            }
            return !grows(\.actions) && !grows(\.commits) && !grows(\.requests) && !grows(\.bytes)
        }
    }

    private static func cost(of device: Device, _ body: () -> Void) -> Cost {
        let before = (device.actionCount, device.commits.count, device.sent.count, device.bytesSent)
        body()
        return Cost(
            actions: device.actionCount - before.0, commits: device.commits.count - before.1,
            requests: device.sent.count - before.2, bytes: device.bytesSent - before.3)
    }

    @Test(arguments: [APIContract.orig, .compat]) func theCostOfAFirstPullIsLinear(_ contract: APIContract) {
        func pull(_ count: Int) -> Cost {
            let world = World(contract)
            for number in 0..<count { world.server.write(HostileServerTests.id(number), text: "text") }
            let device = world.addDevice("A")
            let cost = Self.cost(of: device) {
                device.start()
                world.settle()
            }
            #expect(device.texts.count == count)
            return cost
        }
        let (small, large) = (pull(50), pull(200))
        #expect(large.isLinear(200, to: small, 50), "\(small) \(large)")
        #expect(large.requests == 1 && large.commits <= 3)
    }

    @Test(arguments: [APIContract.orig, .compat]) func theCostOfALongQueueIsLinear(_ contract: APIContract) {
        func drain(_ count: Int) -> Cost {
            let world = World(contract)
            let device = world.startDevice()
            world.settle()
            device.setInterface(isUp: false)
            for number in 0..<count { _ = device.create("\(number)", "text") }
            let cost = Self.cost(of: device) {
                device.setInterface(isUp: true)
                world.settle(limit: .seconds(600))
            }
            #expect(world.server.texts.count == count && device.store.entries.isEmpty)
            return cost
        }
        let (small, large) = (drain(50), drain(200))
        #expect(large.isLinear(200, to: small, 50), "\(small) \(large)")
        // Each attempt is committed before it is sent, together with the previous response.
        #expect(large.commits <= 2 * 200 + 10)
    }

    /// Each edit of a note that waits is merged, so that a queue does not grow with the edits of one note.
    @Test func editsOfAWaitingNoteAreOneChange() {
        let world = World()
        let device = world.startDevice()
        let note = device.create("n", "0")
        world.settle()
        device.setInterface(isUp: false)
        for number in 1...200 { device.edit(note, "\(number)") }
        #expect(device.store.entries.count == 1)
        let cost = Self.cost(of: device) {
            device.setInterface(isUp: true)
            world.settle()
        }
        #expect(world.server.texts == [note: "200"] && cost.requests <= 3)
    }

    // MARK: Wall-clock time

    /// An engine with a server that responds at once, and the time spent in the engine.
    private struct Bench {
        var engine: SyncEngine
        let store = MemoryStore()
        var notes: [RecordID: Note] = [:]
        var time = Duration.zero
        var now = Instant.start
        private var revisions = 0

        init() {
            engine = SyncEngine(
                SyncEngine.Configuration(account: SyncAccount(user: "ada", server: World.host), seed: 1))
        }

        mutating func measure<Value>(_ body: (inout SyncEngine, Instant) throws -> Value) rethrows -> Value {
            let start = ContinuousClock.now
            defer { time += ContinuousClock.now - start }
            return try body(&engine, now)
        }

        mutating func execute() {
            while let action = measure({ engine, _ in engine.takeAction() }) {
                switch action {
                case .commit(let change):
                    store.commit(change)
                    measure { engine, now in engine.committed(at: now) }
                case .send(let request):
                    now = now + .milliseconds(1)
                    let response = response(to: request)
                    measure { engine, now in engine.responseReceived(response, to: request.id, at: now) }
                    _ = measure { engine, _ in engine.takeViewChange() }
                case .cancel, .report: break
                }
            }
        }

        private mutating func response(to request: SyncRequest) -> SyncResponse {
            var headers = [
                (name: NotesHTTP.markerName, value: NotesHTTP.markerValue),
                (name: "Content-Type", value: "application/json"),
            ]
            let body: String
            switch request.operation {
            case .probe, .refresh: body = "{}"
            case .index(let cursor, _), .contents(let cursor):
                let first = cursor.flatMap(Int.init) ?? 0
                let ids = (first..<min(first + 1000, notes.count)).map(HostileServerTests.id)
                let entries = ids.compactMap { id in
                    notes[id].map { note in
                        if case .contents = request.operation { return note.json }
                        return IndexEntry(uuid: note.uuid, revision: note.revision).json
                    }
                }
                headers.append((name: NotesHTTP.cursorName, value: "\(first + ids.count)"))
                if first + ids.count < notes.count { headers.append((name: "Link", value: "<x>; rel=\"next\"")) }
                body = JSONText.array(entries)
            case .fetch(let id): body = notes[id]?.json ?? "{}"
            case .create(let id, let content, _), .update(let id, let content, _, _):
                revisions += 1
                let content = NoteContent(content)
                let number = (notes[id]?.revision.number ?? 0) + 1
                let note = Note(
                    uuid: id.text, revision: Revision(number: number, suffix: "r\(revisions)"), date: content.date,
                    title: content.title, text: content.text)
                notes[id] = note
                body = note.json
            case .delete: body = "{}"
            }
            return SyncResponse(status: 200, headers: headers, body: Array(body.utf8))
        }
    }

    /// Prints the time of the engine per note. A debug build says nothing about it, and takes minutes.
    @Test(.enabled(if: !_isDebugAssertConfiguration(), "times are those of a release build"))
    func theTimeOfAFirstPullAndOfALongQueueIsLinear() throws {
        var perNote: [Int: Double] = [:]
        for count in [500, 5_000, 50_000] {
            var best = Double.infinity
            for _ in 0..<3 {
                var bench = Bench()
                for number in 0..<count {
                    let id = HostileServerTests.id(number)
                    bench.notes[id] = Note(
                        uuid: id.text, revision: Revision(number: 1, suffix: "a"), date: "2026-03-01T08:00:00.000Z",
                        title: "Title \(number)", text: String(repeating: "text ", count: 20))
                }
                bench.measure { engine, now in engine.started(at: now) }
                bench.execute()
                #expect(bench.store.records.count == count)
                best = min(best, bench.time / .microseconds(1) / Double(count))
            }
            perNote[count] = best
            print(
                "first pull of \(count) notes: \((best * Double(count) / 1e6).formatted()) s, \(best.formatted()) us per note"
            )
        }
        #expect(try #require(perNote[50_000]) <= 1.2 * #require(perNote[5_000]))
        var perEdit: [Int: Double] = [:]
        for count in [500, 5_000, 50_000] {
            var best = Double.infinity
            for _ in 0..<3 {
                var bench = Bench()
                bench.measure { engine, now in
                    engine.started(interface: NetworkInterface(isUp: false), at: now)
                }
                bench.execute()
                for number in 0..<count {
                    let content = NoteContent(title: "\(number)", text: "text", date: "2026-03-01T08:00:00.000Z")
                        .encoded
                    _ = try bench.measure { engine, now in try engine.create(content, at: now) }
                    bench.execute()
                }
                bench.time = .zero
                bench.measure { engine, now in engine.interfaceChanged(NetworkInterface(isUp: true), at: now) }
                while !bench.engine.isSettled {
                    bench.now = max(bench.now, bench.engine.nextDeadline ?? bench.now)
                    bench.measure { engine, now in engine.advance(to: now) }
                    bench.execute()
                }
                #expect(bench.store.entries.isEmpty && bench.notes.count == count)
                best = min(best, bench.time / .microseconds(1) / Double(count))
            }
            perEdit[count] = best
            print(
                "\(count) queued changes: \((best * Double(count) / 1e6).formatted()) s, \(best.formatted()) us per change"
            )
        }
        #expect(try #require(perEdit[5_000]) <= 1.2 * #require(perEdit[500]))
    }
}
