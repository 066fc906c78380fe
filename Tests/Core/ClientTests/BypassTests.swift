import Client
import Determinism
import NotesContract
import NotesService
import Testing

/// Changes beside a slow read: no change waits for a response, and no late response replaces a change.
@Suite struct BypassTests {
    static let contracts = SyncEngineTests.contracts

    /// A world with a device that has two notes, and whose next reads of an index or note take 10 s.
    private static func slowReads(
        _ contract: APIContract, where matches: @escaping (String) -> Bool
    ) -> (World, Device, notes: [RecordID]) {
        let world = World(contract)
        let device = world.startDevice()
        let notes = [device.create("n", "a"), device.create("m", "b")]
        world.settle()
        world.server.rules = [HostileRule("GET", nth: 1...1, .delay(.seconds(10)), where: matches)]
        return (world, device, notes)
    }

    private static func texts(_ world: World) -> [String?] { world.server.writes.map { $0.content?.text } }

    @Test(arguments: contracts) func changesAreSentInOrderBesideASlowIndex(_ contract: APIContract) {
        let (world, device, notes) = Self.slowReads(contract, where: isIndex)
        device.sync()
        world.run(for: .seconds(1))
        device.edit(notes[1], "b2")
        device.edit(notes[0], "a2")
        let created = device.create("k", "c")
        world.run(for: .seconds(1))
        #expect(Self.texts(world).suffix(3) == ["b2", "a2", "c"])
        #expect(device.status.outbox == 0 && device.icon(created) == RecordRow.Icon.none)
        #expect(!device.isSettled, "the index is still awaited")
        world.run(for: .seconds(9))
        // A response that is older than the changes neither removes nor replaces a note.
        #expect(device.texts == [notes[0]: "a2", notes[1]: "b2", created: "c"])
        world.settle()
        #expect(device.texts == world.server.texts && world.problems == [])
    }

    @Test(arguments: contracts) func aLateNoteDoesNotReplaceANewerOne(_ contract: APIContract) {
        let (world, device, notes) = Self.slowReads(contract, where: isNote("x"))
        world.server.rules[0].matches = isNote(notes[0])
        world.server.write(notes[0], text: "theirs")
        device.sync()
        world.run(for: .seconds(1))
        device.edit(notes[0], "mine")
        world.run(for: .seconds(1))
        #expect(device.icon(notes[0]) == .conflict, "the change was sent beside the slow read")
        device.resolve(notes[0], .write(device.content("n", "both")))
        world.run(for: .seconds(1))
        #expect(world.server.texts[notes[0]] == "both" && device.text(notes[0]) == "both")
        world.run(for: .seconds(10))
        #expect(device.text(notes[0]) == "both" && device.icon(notes[0]) == RecordRow.Icon.none)
        world.settle()
        #expect(device.row(notes[0])?.revision == world.server.notes()[notes[0]]?.revision.description)
        #expect(device.status.quarantine == [:] && world.problems == [])
    }

    @Test(arguments: contracts) func aNoteDeletedBesideASlowIndexIsNotReadAgain(_ contract: APIContract) {
        let (world, device, notes) = Self.slowReads(contract, where: isIndex)
        // The index lists the note with another revision.
        world.server.write(notes[1], text: "theirs")
        device.sync()
        world.run(for: .seconds(1))
        device.delete(notes[0])
        world.run(for: .seconds(1))
        #expect(world.server.texts == [notes[1]: "theirs"])
        world.settle()
        #expect(device.texts == world.server.texts)
        #expect(!device.sent.contains { $0.request == "GET \(World.path(notes[0]))" })
    }

    @Test(arguments: contracts) func changesWaitForASlowIndexAfterAFailureBesideIt(_ contract: APIContract) {
        let (world, device, notes) = Self.slowReads(contract, where: isIndex)
        world.server.rules.append(HostileRule("PUT", nth: 1...1, .cutResponse(after: 0)))
        device.sync()
        world.run(for: .seconds(1))
        device.edit(notes[0], "a2")
        world.run(for: .seconds(1))
        let sent = device.sent.count
        #expect(device.sent.last?.request == "PUT \(World.path(notes[0]))")
        device.edit(notes[1], "b2")
        world.run(for: .seconds(7))
        #expect(device.sent.count == sent, "the index takes the place of a probe")
        world.run(for: .seconds(2))
        #expect(device.texts == [notes[0]: "a2", notes[1]: "b2"] && device.status.outbox == 0)
        world.settle()
        #expect(device.texts == world.server.texts && world.problems == [])
    }

    @Test func nothingIsSentBesideAProbeOfAPathThatHasFailed() {
        let (world, device, notes) = Self.slowReads(.compat) { _ in false }
        world.run(for: .seconds(20))  // idle connections are closed
        device.link.set(.stalled)
        device.sync()
        world.run(for: .seconds(60))
        let sent = device.sent.count
        // The path has failed: each exchange is a probe, whatever the user does meanwhile.
        for number in 0..<50 {
            device.edit(notes[number % 2], "\(number)")
            world.run(for: .seconds(10))
        }
        #expect(!device.sent[sent...].contains { $0.request.hasPrefix("PUT") })
        device.link.set(.up)
        world.settle()
        #expect(device.texts == world.server.texts && device.status.outbox == 0)
    }

    /// The number of reads of a note after a lost response, when the index lists the revision that was lost.
    @Test(arguments: contracts) func aReconciliationTakesThePlaceOfTheReadThatTheIndexRequests(_ contract: APIContract)
    {
        let (world, device, notes) = Self.slowReads(contract) { _ in false }
        world.server.rules = [HostileRule("PUT", nth: 1...1, .cutResponse(after: 0))]
        device.edit(notes[0], "a2")
        // The index is the probe after the failure.
        world.run(for: .seconds(30))
        #expect(device.texts == world.server.texts && device.icon(notes[0]) == RecordRow.Icon.none)
        let reads = device.sent.count { $0.request == "GET \(World.path(notes[0]))" }
        #expect(reads == (contract == .orig ? 1 : 0))
    }
}
