import Client
import Determinism
import NotesContract
import NotesService
import TestSupport
import Testing
import Wire

/// The first load: lists with contents, their positions, and single reads in their place.
@Suite struct FirstLoadTests {
    private static let text = String(repeating: "text ", count: 40)

    /// Returns a world whose server has notes of 200 bytes each.
    private static func world(_ contract: APIContract, notes: Int) -> World {
        let world = World(contract)
        for number in 0..<notes {
            let members = [
                ("uuid", JSONText.string(HostileServerTests.id(number).text)),
                ("date", JSONText.string("2026-03-01T08:00:00.000Z")), ("title", "null"),
                ("text", JSONText.string("\(number) \(text)")),
            ]
            world.server.execute("POST", NotesHTTP.notesPath, JSONText.object(members))
        }
        return world
    }

    private static func reads(_ device: Device) -> (lists: Int, notes: Int, indexes: Int) {
        let targets = device.sent.map { String($0.request.dropFirst(4)) }
        return (
            targets.count { isList($0) }, targets.count { World.id(ofPath: $0) != nil },
            targets.count { isIndex($0) && !isList($0) }
        )
    }

    @Test(arguments: [APIContract.orig, .compat, .strict]) func theFirstLoadReadsListsAndNoSingleNote(
        _ contract: APIContract
    ) {
        let world = Self.world(contract, notes: 1500)
        let device = world.startDevice()
        #expect(world.settle())
        #expect(device.texts == world.server.texts && device.texts.count == 1500)
        let reads = Self.reads(device)
        // A page ends after 256 KiB, with some 750 notes; the original server has no pages.
        #expect(reads.notes == 0 && reads.indexes == 0)
        #expect(contract == .orig ? reads.lists == 1 : (2...4).contains(reads.lists))
        #expect(world.problems == [])
    }

    /// A client that is killed after any commit has what its position says, and reads no page again.
    @Test(arguments: TestSettings.isSoak ? [APIContract.compat, .strict] : [.compat])
    func aKilledLoadContinuesAfterTheLastPage(_ contract: APIContract) {
        for commits in 1...4 {
            let world = Self.world(contract, notes: 2000)
            let device = world.addDevice("A")
            device.onCommit = { [unowned device] _ in
                if device.commits.count == commits { device.killPlan = .init(step: device.steps, isAfterAction: true) }
            }
            var wasKilled = false
            device.onKill = { wasKilled = true }
            device.start()
            world.run(for: .seconds(10))
            guard wasKilled else { continue }
            let (known, position) = (device.store.records.count, device.store.state.index.cursor)
            #expect((position != nil) == (known > 0), "\(commits): \(known)")
            let sent = device.sent.count
            device.start()
            #expect(world.settle() && device.texts == world.server.texts, "\(commits)")
            let targets = device.sent[sent...].map(\.request)
            // The notes that were stored are not read again.
            let pages = targets.count { isList(String($0.dropFirst(4))) }
            #expect(pages <= (2000 - known + 500) / 500, "\(commits): \(known), \(targets)")
            #expect(targets.count { World.id(ofPath: String($0.dropFirst(4))) != nil } <= ReadPlan.readsMin)
        }
    }

    @Test func whatIsWrittenDuringTheLoadIsNotLost() {
        for contract in [APIContract.compat, .orig] {
            let world = Self.world(contract, notes: 1500)
            let device = world.startDevice()
            device.link.rate = 50_000
            world.run(for: .seconds(2))
            world.server.write(HostileServerTests.id(3), text: "newer")
            world.server.remove(HostileServerTests.id(4))
            let own = device.create("own", "own")
            #expect(world.settle(limit: .seconds(300)))
            device.sync()
            #expect(world.settle() && device.texts == world.server.texts && device.texts[own] == "own")
            #expect(device.texts[HostileServerTests.id(3)] == "newer" && device.texts[HostileServerTests.id(4)] == nil)
        }
    }

    /// A list that breaks off twice is replaced by single reads, six at a time, each on a connection of its own.
    @Test(arguments: [APIContract.orig, .strict]) func aListThatFailsTwiceIsReplacedBySingleReads(
        _ contract: APIContract
    ) {
        let world = Self.world(contract, notes: 100)
        world.server.rules = [HostileRule("GET", .cutResponse(after: 5000), where: isList)]
        let device = world.addDevice("A")
        device.link.latency = .milliseconds(200)
        device.start()
        var (atOnce, most) = (0, 0)
        for _ in 0..<600 where device.texts.count < 100 {
            world.run(for: .milliseconds(100))
            let done = device.events.count {
                if case .responded = $0.event { true } else if case .failed = $0.event { true } else { false }
            }
            let begun = device.events.count { if case .sent = $0.event { true } else { false } }
            (atOnce, most) = (begun - done, max(most, begun - done))
        }
        #expect(world.settle() && device.texts == world.server.texts && atOnce >= 0)
        let reads = Self.reads(device)
        #expect(reads.lists == 2 && reads.notes == 100)
        #expect(most == ReadPlan.readsAtOnceMax)
    }

    /// Six reads that fail together are one failure of the path.
    @Test func readsThatFailTogetherAreOneFailure() {
        let world = Self.world(.compat, notes: 60)
        var policy = SyncPolicy()
        policy.readsLists = false
        let device = world.addDevice("A", policy: policy)
        device.link.latency = .milliseconds(200)
        device.start()
        #expect(world.run { device.texts.count >= 10 })
        device.link.set(.refusing)
        world.run(for: .seconds(300))
        #expect(device.texts.count < 60)
        let attempts = device.events.count { if case .failed = $0.event { true } else { false } }
        #expect(attempts <= policy.attemptsMax(duringOutage: .seconds(300)), "\(attempts)")
        device.link.set(.up)
        #expect(world.settle() && device.texts == world.server.texts)
    }

    /// After a long absence the changes are read in lists, from the known position on.
    @Test(arguments: [APIContract.orig, .compat, .strict]) func manyChangesAreReadInAList(_ contract: APIContract) {
        let world = Self.world(contract, notes: 300)
        let device = world.startDevice()
        #expect(world.settle())
        for number in 0..<250 { world.server.write(HostileServerTests.id(number), text: "new \(number)") }
        world.server.remove(HostileServerTests.id(299))
        let before = Self.reads(device)
        device.sync()
        #expect(world.settle() && device.texts == world.server.texts)
        let after = Self.reads(device)
        #expect(after.lists == before.lists + 1 && after.notes == before.notes, "\(after)")
        // A few changes are read one by one.
        for number in 0..<3 { world.server.write(HostileServerTests.id(number), text: "newer \(number)") }
        device.sync()
        #expect(world.settle() && device.texts == world.server.texts)
        #expect(Self.reads(device).lists == after.lists && Self.reads(device).notes == after.notes + 3)
    }

    @Test func aNoteThatTheListCannotShowIsReadByItself() {
        let world = Self.world(.compat, notes: 3)
        let bad = HostileServerTests.id(1).text
        world.server.rules = [
            HostileRule(
                "GET",
                .replace { response in
                    let text = String(decoding: response.body, as: UTF8.self)
                    let parts = text.split(separator: "},{").map(String.init)
                    return response.with(
                        body: parts.map { $0.contains(bad) ? $0.replacingNull() : $0 }.joined(separator: "},{"))
                }, where: isList)
        ]
        let device = world.startDevice()
        #expect(world.settle() && device.texts == world.server.texts)
        #expect(Self.reads(device).notes == 1)
    }

    // MARK: The choice

    private static func path(_ roundTrip: Double, _ rate: Double, record: Int = 300) -> PathEstimate {
        var path = PathEstimate()
        path.record(bytes: 100, in: Nanoseconds(Int64(roundTrip * 1e9)))
        path.record(bytes: 100_000, in: Nanoseconds(Int64((roundTrip + 100_000 / rate) * 1e9)))
        path.record(recordBytes: record)
        return path
    }

    @Test func anEstimateIsThatOfTheObservedResponses() {
        let path = Self.path(0.2, 97_500)
        #expect(abs(path.roundTrip - 0.2) < 0.001 && abs(path.rate - 97_500) < 100 && path.recordBytes == 300)
        var strange = PathEstimate()
        strange.record(bytes: .max, in: .zero)
        strange.record(bytes: 0, in: Nanoseconds(-1))
        strange.record(recordBytes: .max)
        #expect(strange.rate.isFinite && strange.roundTrip > 0 && strange.recordBytes.isFinite)
        #expect(ReadPlan.fastest(missing: .max, listed: .max, strange) == .list)
    }

    @Test(arguments: [
        // missing, listed, round trip, bytes per second, bytes of a record
        (5000, 5000, 0.2, 97_500.0, 300, true),  // all of a 3G link
        (16, 16, 0.2, 97_500.0, 300, false),  // few
        (17, 17, 0.2, 97_500.0, 300, true),
        (20, 5000, 0.2, 97_500.0, 300, false),  // few of many
        (200, 5000, 0.84, 30_000.0, 300, false),  // a slow link with long round trips
        (2000, 5000, 0.84, 30_000.0, 300, true),
        (200, 5000, 0.84, 30_000_000.0, 300, true),  // a fast link with long round trips
        (100, 120, 0.001, 1_000_000.0, 100_000, false),  // large records on a local network
    ])
    func theFasterWayIsChosen(
        missing: Int, listed: Int, roundTrip: Double, rate: Double, record: Int, isList: Bool
    ) {
        let plan = ReadPlan.fastest(missing: missing, listed: listed, Self.path(roundTrip, rate, record: record))
        #expect((plan == .list) == isList, "\(plan)")
        if !isList { #expect(plan == .records(atOnce: 6)) }
    }

    @Test func upToSixReadsAreSentAtOnce() {
        #expect([0, 1, 6, 7, 1000].map(ReadPlan.readsAtOnce) == [1, 1, 1, 6, 6])
    }
}

extension String {
    /// Returns the text of a note with a number as its title, which is no note.
    fileprivate func replacingNull() -> String {
        guard let range = firstRange(of: "\"title\":null") else { return self }
        return replacingCharacters(in: range, with: "\"title\":5")
    }

    private func firstRange(of part: String) -> Range<String.Index>? {
        indices.first { self[$0...].hasPrefix(part) }.map { $0..<index($0, offsetBy: part.count) }
    }

    private func replacingCharacters(in range: Range<String.Index>, with text: String) -> String {
        String(self[..<range.lowerBound]) + text + String(self[range.upperBound...])
    }
}
