import Client
import Determinism
import NotesContract
import NotesService
import Testing
import Wire

/// Operations whose outcome is unknown.
extension HostileServerTests {
    /// The change whose first attempt is executed without a response.
    enum Change: String, CaseIterable, Sendable { case create, update }

    /// Lets a change be executed without a response, and park while its repetitions are rejected.
    private static func parkedWithUnknownOutcome(
        _ change: Change, _ world: World, _ status: Int
    ) -> (device: Device, note: RecordID) {
        let device = world.startDevice()
        world.settle()
        let note: RecordID = "00000000-0000-4000-8000-000000000001"
        if change == .update {
            _ = device.create("n", "before", id: note)
            world.settle()
        }
        let method = change == .create ? "POST" : "PUT"
        world.server.rules = [
            HostileRule(method, nth: 1...1, .cutResponse(after: 0)),
            HostileRule(method, .respond(.notes(status))),
            // What the client needs to find out what happened is not there either.
            HostileRule("GET", .respond(.notes(500)), where: isNote(note)),
        ]
        if change == .create { _ = device.create("n", "mine", id: note) } else { device.edit(note, "mine", title: "n") }
        world.run(for: .seconds(240))
        return (device, note)
    }

    struct ParkedCase: Sendable, CustomTestStringConvertible {
        let contract: APIContract
        let change: Change
        let status: Int

        var testDescription: String { "\(contract) \(change) \(status)" }
    }

    static let parkedCases = contracts.flatMap { contract in
        Change.allCases.flatMap { change in
            [500, 422].map { ParkedCase(contract: contract, change: change, status: $0) }
        }
    }

    @Test(arguments: parkedCases) func aParkedChangeOfUnknownOutcomeThatIsDeletedLeavesNoZombie(_ parked: ParkedCase) {
        let world = World(parked.contract)
        let (device, note) = Self.parkedWithUnknownOutcome(parked.change, world, parked.status)
        #expect(device.icon(note) == .error)
        #expect(world.server.texts[note] == "mine", "it was executed")
        device.delete(note)
        world.server.rules = []
        world.settle()
        device.sync()
        world.settle()
        #expect(world.server.texts.isEmpty)
        #expect(device.rows.isEmpty && device.store.entries.isEmpty)
        #expect(world.problems == [])
    }

    @Test(arguments: parkedCases) func aParkedChangeOfUnknownOutcomeThatIsEditedIsNoConflictWithOneself(
        _ parked: ParkedCase
    ) {
        let world = World(parked.contract)
        let (device, note) = Self.parkedWithUnknownOutcome(parked.change, world, parked.status)
        #expect(device.icon(note) == .error)
        device.edit(note, "mine, again", title: "n")
        world.server.rules = []
        world.settle()
        #expect(world.server.texts == [note: "mine, again"])
        #expect(device.icon(note) == RecordRow.Icon.none && device.store.entries.isEmpty)
        #expect(world.server.history(of: note).count == (parked.change == .create ? 2 : 3))
    }

    @Test(arguments: parkedCases) func aParkedChangeOfUnknownOutcomeIsRememberedByTheNextProcess(_ parked: ParkedCase) {
        let world = World(parked.contract)
        let (device, note) = Self.parkedWithUnknownOutcome(parked.change, world, parked.status)
        device.kill()
        device.start()
        device.delete(note)
        device.kill()
        world.server.rules = []
        device.start()
        world.settle()
        device.sync()
        world.settle()
        #expect(world.server.texts.isEmpty && device.rows.isEmpty)
    }

    @Test(arguments: parkedCases) func aRetryOfAParkedChangeOfUnknownOutcomeIsNotExecutedTwice(_ parked: ParkedCase) {
        let world = World(parked.contract)
        let (device, note) = Self.parkedWithUnknownOutcome(parked.change, world, parked.status)
        world.server.rules = []
        device.retry(note)
        world.settle()
        #expect(world.server.texts == [note: "mine"] && device.icon(note) == RecordRow.Icon.none)
        #expect(world.server.history(of: note).count == (parked.change == .create ? 1 : 2))
    }

    @Test(arguments: parkedCases) func aDismissedChangeOfUnknownOutcomeShowsWhatTheServerHas(_ parked: ParkedCase) {
        let world = World(parked.contract)
        let (device, note) = Self.parkedWithUnknownOutcome(parked.change, world, parked.status)
        world.server.rules = []
        device.dismiss(note)
        world.settle()
        device.sync()
        world.settle()
        #expect(device.texts == [note: "mine"], "the change was executed before it was rejected")
        #expect(world.server.texts == device.texts && device.icon(note) == RecordRow.Icon.none)
    }

    struct LostCase: Sendable, CustomTestStringConvertible {
        let contract: APIContract
        let operation: String
        /// The bytes of the response that arrive; negative from its end.
        let bytes: Int

        var testDescription: String { "\(contract) \(operation) \(bytes)" }
    }

    static let lostCases = contracts.flatMap { contract in
        ["POST", "PUT", "DELETE"].flatMap { operation in
            [0, 1, 60, -1].map { LostCase(contract: contract, operation: operation, bytes: $0) }
        }
    }

    @Test(arguments: lostCases) func aLostResponseCausesNoConflictAndNoSecondEffect(_ lost: LostCase) {
        let world = World(lost.contract)
        let device = world.startDevice()
        world.settle()
        world.server.rules = [HostileRule(lost.operation, nth: 1...1, .cutResponse(after: lost.bytes))]
        let note = device.create("n", "a")
        world.settle()
        #expect(device.icon(note) == RecordRow.Icon.none && world.server.texts == [note: "a"])
        device.edit(note, "b")
        world.settle()
        #expect(device.icon(note) == RecordRow.Icon.none && world.server.texts == [note: "b"])
        device.delete(note)
        world.settle()
        #expect(device.rows.isEmpty && world.server.texts.isEmpty)
        #expect(world.server.writes.count == 3)
        #expect(
            !device.events.contains {
                if case .view(let change) = $0.event { change.rows.contains { $0.icon == .conflict } } else { false }
            })
    }

    /// The user changes the note again before the outcome of the lost response is known.
    @Test(arguments: contracts) func aChangeDuringAnUnknownOutcomeFollowsIt(_ contract: APIContract) {
        for isDeletion in [false, true] {
            for operation in ["POST", "PUT"] {
                let world = World(contract)
                let device = world.startDevice()
                world.settle()
                var note: RecordID = ""
                if operation == "PUT" {
                    note = device.create("n", "a")
                    world.settle()
                }
                world.server.rules = [
                    HostileRule(operation, nth: 1...1, .cutResponse(after: 0)),
                    HostileRule(.cutRequest, nth: 1...4),
                ]
                if operation == "PUT" { device.edit(note, "b") } else { note = device.create("n", "b") }
                world.run(for: .milliseconds(200))
                if isDeletion { device.delete(note) } else { device.edit(note, "c") }
                world.settle()
                device.sync()
                world.settle()
                #expect(world.server.texts == (isDeletion ? [:] : [note: "c"]))
                #expect(device.texts == world.server.texts)
                #expect(device.rows.allSatisfy { $0.icon == .none } && device.store.entries.isEmpty)
            }
        }
    }

    @Test(arguments: contracts) func aLostResponseAfterWhichAnotherClientWroteLosesNeitherText(_ contract: APIContract)
    {
        let world = World(contract)
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        world.server.rules = [HostileRule("PUT", nth: 1...1, .cutResponse(after: 0))]
        device.edit(note, "mine")
        world.run(for: .milliseconds(100))
        world.server.write(note, text: "theirs, after mine")
        world.settle()
        device.sync()
        world.settle()
        // With operation ids the client learns that its change was executed before; without, it keeps both sides.
        if device.icon(note) == .conflict {
            #expect(contract == .orig)
            #expect(device.row(note)?.kept.contains { NoteContent($0).text == "mine" } == true)
        } else {
            #expect(device.texts == [note: "theirs, after mine"])
        }
        #expect(world.server.texts == [note: "theirs, after mine"])
    }
}
