import Client
import Determinism
import NotesService
import Testing
import Wire

/// One bad note among many: its failures delay nothing else.
@Suite struct PoisonTests {
    /// The request that fails.
    enum Request: String, CaseIterable, Sendable { case put, reconcilingGet, fetch }

    /// The way in which it fails, every time.
    enum Failure: String, CaseIterable, Sendable {
        case unavailable, serverError, cut, cutAfterExecution, forbidden, gateway, silence

        var effect: HostileRule.Effect {
            switch self {
            case .unavailable: .respond(.notes(503))
            case .serverError: .respond(.notes(500))
            case .cut: .cutRequest
            case .cutAfterExecution: .cutResponse(after: 10)
            case .forbidden: .respond(.notes(403))
            case .gateway: .respond(.foreign(502))
            case .silence: .silence(executes: false)
            }
        }
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let contract: APIContract
        let request: Request
        let failure: Failure

        var testDescription: String { "\(contract) \(request) \(failure)" }
    }

    /// The failures that every contract has to survive, and the others in one. `SLOWLANE_SEEDS` adds contracts.
    static let cases = Request.allCases.flatMap { request in
        Failure.allCases.flatMap { failure in
            let isCommon = [.unavailable, .serverError, .cut, .forbidden].contains(failure)
            return (isCommon ? KillPointTests.contracts : [.compat]).map {
                Case(contract: $0, request: request, failure: failure)
            }
        }
    }

    private static let noteCount = 50

    @Test(arguments: cases) func fortyNineOfFiftyNotesAreDoneWithinTenSeconds(_ poison: Case) {
        let world = World(poison.contract)
        let device = world.startDevice()
        let ids = (1...Self.noteCount).map { HostileServerTests.id($0) }
        for id in ids { world.server.write(id, text: "old") }
        device.sync()
        world.settle()
        #expect(device.texts.count == Self.noteCount)
        device.setInterface(isUp: false)
        // In the middle of the queue.
        let bad = ids[20]
        switch poison.request {
        case .put:
            for id in ids { device.edit(id, "new") }
            world.server.rules.append(HostileRule("PUT", poison.failure.effect, where: isNote(bad)))
        case .reconcilingGet:
            for id in ids { device.edit(id, "new") }
            world.server.write(bad, text: "theirs")
            world.server.rules.append(HostileRule("GET", poison.failure.effect, where: isNote(bad)))
        case .fetch:
            for id in ids { world.server.write(id, text: "new") }
            world.server.rules.append(HostileRule("GET", poison.failure.effect, where: isNote(bad)))
        }
        device.setInterface(isUp: true)
        let healed = world.now
        func isDone(_ id: RecordID) -> Bool {
            id == bad
                || device.text(id) == "new" && device.icon(id) == RecordRow.Icon.none
                    && (poison.request == .fetch
                        || world.server.writes[world.server.latest[id] ?? 0].content?.text == "new")
        }
        // The note that was not done at the last call is asked first.
        var pending = ids[0]
        func areDone() -> Bool {
            guard isDone(pending) else { return false }
            pending = ids.first { !isDone($0) } ?? pending
            return isDone(pending)
        }
        // Silence is noticed by a timeout only.
        let limit = Nanoseconds.seconds(poison.failure == .silence ? 45 : 10)
        #expect(world.run(limit: limit, until: areDone), "\(world.now - healed)")
        // The index and new notes are not delayed either.
        world.server.write(ids[30], text: "later")
        device.sync()
        let other = device.create("other", "written meanwhile")
        #expect(
            world.run(limit: limit) { device.text(ids[30]) == "later" && world.server.texts[other] != nil })
        #expect(world.problems == [])
        // The bad note is done when it is good again.
        world.server.rules = []
        device.credentials()
        if device.icon(bad) == .error { device.retry(bad) }
        world.run(for: .seconds(180))
        if device.icon(bad) == .conflict { device.resolve(bad, .mine) }
        world.run(for: .seconds(120))
        #expect(device.texts[bad] == "new" && world.server.texts[bad] == "new")
        #expect(device.rows.allSatisfy { $0.icon == .none } && device.status.quarantine.isEmpty)
        #expect(world.problems == [])
    }

    /// Attempts of a bad note become rare.
    @Test(arguments: [Failure.unavailable, .serverError, .cut, .forbidden]) func aBadNoteIsTriedRarely(
        _ failure: Failure
    ) {
        let world = World()
        let device = world.startDevice()
        let note = device.create("n", "old")
        world.settle()
        world.server.rules.append(HostileRule("PUT", failure.effect, where: isNote(note)))
        device.edit(note, "new")
        world.run(for: .seconds(600))
        let attempts = world.server.arrivals.filter { $0.method == "PUT" }.count
        #expect((1...30).contains(attempts))
        #expect(world.server.arrivals.count < 120)
    }

    /// Restarts do not change the number of attempts, neither of the first five nor of a retry.
    @Test(arguments: 1...4) func serverErrorsCountAcrossRestarts(_ errorsBefore: Int) {
        let world = World()
        let device = world.startDevice()
        let note = device.create("n", "old")
        world.settle()
        world.server.rules.append(HostileRule("PUT", Failure.serverError.effect, where: isNote(note)))
        func attempts() -> Int { world.server.arrivals.count { $0.method == "PUT" } }
        func restart() {
            device.kill()
            device.start()
        }
        device.edit(note, "new")
        #expect(world.run { device.engine.entries(of: note).first?.serverErrors == errorsBefore })
        restart()
        world.run(for: .seconds(120))
        #expect(attempts() == 5 && device.icon(note) == .error)
        restart()
        device.retry(note)
        restart()
        world.run(for: .seconds(120))
        #expect(attempts() == 6 && device.icon(note) == .error && device.texts[note] == "new")
    }

    // MARK: Large changes

    private static func text(_ size: Int) -> String { String(repeating: "0123456789", count: size / 10) }

    /// On a link of 4 kB/s, 60 kB take 15 s.
    @Test func aLargeUploadOnASlowLinkDelaysNeitherSmallChangesNorReads() throws {
        let world = World()
        let device = world.startDevice()
        let small = device.create("small", "a")
        world.settle()
        device.link.rate = 4_000
        let large = device.create("large", Self.text(60_000))
        world.run(for: .seconds(2))
        #expect(world.server.texts[large] == nil)
        world.server.write("00000000-0000-4000-8000-00000000000b", text: "theirs")
        device.edit(small, "b")
        device.sync()
        #expect(
            world.run(limit: .seconds(5)) {
                world.server.texts[small] == "b" && device.texts["00000000-0000-4000-8000-00000000000b"] == "theirs"
            })
        #expect(world.server.texts[large] == nil, "the large note is still on its way")
        #expect(world.run(limit: .seconds(30)) { device.icon(large) == RecordRow.Icon.none })
        #expect(device.sentWrites.filter { $0.hasPrefix("POST") }.count == 2, "and is sent once")
    }

    /// 900 kB at 8 kB/s take 112 s in each direction, longer than the limit of a small exchange.
    @Test func aLargeUploadOnASlowLinkArrivesAtItsFirstAttempt() {
        let world = World()
        let device = world.startDevice()
        world.settle()
        device.link.rate = 8_000
        let large = device.create("large", Self.text(900_000))
        #expect(world.run(limit: .seconds(120)) { world.server.texts[large] != nil })
        #expect(world.run(limit: .seconds(120)) { device.icon(large) == RecordRow.Icon.none })
        #expect(device.sentWrites == ["POST /api/notes/"])
        #expect(world.server.texts[large]?.utf8.count == 900_000)
    }

    @Test func aLargeUploadThatMakesNoProgressIsGivenUp() {
        let world = World()
        let device = world.startDevice()
        world.settle()
        let large = device.create("large", Self.text(200_000))
        world.run(for: .milliseconds(50))
        device.link.set(.stalled)
        world.run(for: .seconds(300))
        device.link.set(.up)
        #expect(world.run(limit: .seconds(70)) { device.icon(large) == RecordRow.Icon.none })
        #expect(world.server.writes.count == 1)
    }

    @Test func largeChangesAreSentOneAfterTheOtherAndSmallOnesFirst() {
        let world = World()
        let device = world.startDevice()
        world.settle()
        device.setInterface(isUp: false)
        let large = (0..<3).map { device.create("large \($0)", Self.text(40_000)) }
        let small = (0..<5).map { device.create("small \($0)", "s") }
        device.link.rate = 10_000
        device.setInterface(isUp: true)
        #expect(world.run(limit: .seconds(60)) { world.server.texts.count == 8 })
        let order = world.server.writes.map(\.id)
        #expect(Set(order.prefix(5)) == Set(small))
        #expect(Array(order.suffix(3)) == large)
    }
}
