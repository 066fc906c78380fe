import Client
import Determinism
import NotesContract
import NotesService
import Testing
import Wire

/// The rules of a client whose server and network work.
@Suite struct SyncEngineTests {
    static let contracts = [APIContract.orig, .compat, .strict]

    @Test(arguments: contracts) func notesCreatedOfflineAreSentInOrderOnceWhenTheInterfaceIsUp(_ contract: APIContract)
    {
        let world = World(contract)
        let device = world.startDevice()
        world.settle()
        device.setInterface(isUp: false)
        let sent = device.sent.count
        let created = ["a", "b", "c"].map { device.create($0, $0) }
        world.run(for: .seconds(600))
        #expect(device.sent.count == sent, "nothing is sent while the interface is down")
        #expect(created.map(device.icon) == [.upload, .upload, .upload])
        #expect(device.status.outbox == 3 && device.status.connectivity == .interfaceDown)
        device.setInterface(isUp: true)
        world.settle()
        #expect(world.server.writes.map(\.id) == created)
        #expect(created.map(device.icon) == [.some(.none), .some(.none), .some(.none)])
        #expect(device.status.outbox == 0 && device.status.connectivity == .online)
        #expect(world.problems == [])
    }

    @Test(arguments: contracts) func changesThatWereNeverSentAreMerged(_ contract: APIContract) {
        let world = World(contract)
        let device = world.startDevice()
        let old = device.create("old", "1")
        world.settle()
        device.setInterface(isUp: false)
        let kept = device.create("kept", "a")
        device.edit(kept, "ab")
        device.edit(kept, "abc")
        let dropped = device.create("dropped", "x")
        device.delete(dropped)
        device.edit(old, "2")
        device.edit(old, "3")
        #expect(device.status.outbox == 2)
        device.setInterface(isUp: true)
        world.settle()
        #expect(world.server.texts == [kept: "abc", old: "3"])
        #expect(device.sentWrites.count == 3)
        #expect(!world.server.requests.contains { $0.target.contains(dropped.text) })
        device.setInterface(isUp: false)
        device.edit(old, "4")
        device.delete(old)
        device.setInterface(isUp: true)
        world.settle()
        #expect(device.sentWrites.count == 4 && device.sentWrites.last?.hasPrefix("DELETE") == true)
    }

    @Test(arguments: contracts) func anEditDuringAnExchangeIsKeptAndShown(_ contract: APIContract) {
        let world = World(contract)
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        device.edit(note, "ab")
        // The request is on its way.
        world.run(for: .milliseconds(10))
        device.edit(note, "abc")
        #expect(world.run { world.server.texts[note] == "ab" })
        world.run(for: .milliseconds(25))
        #expect(device.text(note) == "abc" && device.icon(note) == .upload)
        world.settle()
        #expect(world.server.texts == [note: "abc"] && device.icon(note) == RecordRow.Icon.none)
        #expect(world.server.history(of: note).count == 3)
    }

    @Test(arguments: contracts) func aConflictKeepsBothSidesAndSendsNothingUntilResolved(_ contract: APIContract) throws
    {
        let world = World(contract)
        let device = world.startDevice()
        let note = device.create("Milk", "2 l")
        world.settle()
        device.setInterface(isUp: false)
        world.server.write(note, title: "Milk", text: "3 l")
        device.edit(note, "2 l, oat", title: "Milk")
        device.setInterface(isUp: true)
        world.settle()
        let row = try #require(device.row(note))
        #expect(row.icon == .conflict)
        #expect(NoteContent(row.content).text == "2 l, oat" && NoteContent(row.content).title == "Milk")
        #expect(row.kept.map { NoteContent($0).text } == ["2 l, oat", "3 l", "2 l"])
        let sent = device.sentWrites.count
        device.edit(note, "2 l, oat, cold", title: "Milk")
        device.sync()
        world.run(for: .seconds(300))
        #expect(device.sentWrites.count == sent)
        device.resolve(note, .write(device.content(nil, "3 l, oat")))
        world.settle()
        #expect(world.server.texts == [note: "3 l, oat"])
        #expect(world.server.history(of: note).count == 3)
        #expect(device.icon(note) == RecordRow.Icon.none)
    }

    @Test(arguments: [SyncEngine.Resolution.theirs, .mine], contracts)
    func aDeletionOfANoteEditedOnTheServerIsAConflict(_ resolution: SyncEngine.Resolution, _ contract: APIContract) {
        let world = World(contract)
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        device.setInterface(isUp: false)
        world.server.write(note, text: "theirs")
        device.delete(note)
        device.setInterface(isUp: true)
        world.settle()
        #expect(device.icon(note) == .conflict)
        #expect(world.server.texts == [note: "theirs"])
        device.resolve(note, resolution)
        world.settle()
        #expect(world.server.texts == (resolution == .mine ? [:] : [note: "theirs"]))
        #expect(device.texts == world.server.texts)
        #expect(device.rows.allSatisfy { $0.icon == .none })
    }

    @Test(arguments: contracts) func anEditOfANoteDeletedOnTheServerIsKeptUnderANewIdentifier(_ contract: APIContract) {
        let world = World(contract)
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        device.setInterface(isUp: false)
        world.server.remove(note)
        device.edit(note, "mine")
        device.setInterface(isUp: true)
        world.settle()
        #expect(device.icon(note) == .conflict)
        let other = device.resolve(note, .mine)
        world.settle()
        #expect(other != note)
        #expect(device.texts == [other: "mine"] && world.server.texts == device.texts)
    }

    @Test(arguments: contracts) func equalChangesAreNoConflict(_ contract: APIContract) {
        let world = World(contract)
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        device.setInterface(isUp: false)
        world.server.write(note, title: "n", text: "same")
        device.edit(note, "same", title: "n")
        device.setInterface(isUp: true)
        world.settle()
        #expect(device.icon(note) == RecordRow.Icon.none && device.text(note) == "same")
        device.setInterface(isUp: false)
        world.server.remove(note)
        device.delete(note)
        device.setInterface(isUp: true)
        world.settle()
        #expect(device.rows.isEmpty && device.store.entries.isEmpty)
    }

    @Test(arguments: contracts) func theIndexBringsChangesOfOtherClients(_ contract: APIContract) {
        let world = World(contract)
        let ids = (1...3).map { HostileServerTests.id($0) }
        for id in ids { world.server.write(id, text: "old") }
        let device = world.startDevice()
        world.settle()
        #expect(device.texts == [ids[0]: "old", ids[1]: "old", ids[2]: "old"])
        world.server.write(ids[1], text: "new")
        world.server.remove(ids[2])
        let before = device.sent.count
        device.sync()
        world.settle()
        #expect(device.texts == [ids[0]: "old", ids[1]: "new"])
        #expect(device.sent.count - before == 2, "the index and the changed note")
        world.server.remove(ids[0])
        world.run(for: .seconds(61))
        #expect(device.texts == [ids[1]: "new"], "the index is read every minute")
    }

    @Test func anUnchangedIndexIsNotSentAgain() {
        let world = World()
        for number in 1...200 { world.server.write(HostileServerTests.id(number), text: "text") }
        let device = world.startDevice()
        world.settle()
        #expect(device.rows.count == 200)
        var received = 0
        world.server.rules = [
            HostileRule(
                "GET",
                .replace {
                    received += $0.body.count; return $0
                }, where: isIndex)
        ]
        world.run(for: .seconds(300))
        #expect(world.server.rules[0].matchedRequests >= 4 && received < 100)
        world.server.write(HostileServerTests.id(7), text: "new")
        device.kill()
        device.start()
        world.settle()
        #expect(device.text(HostileServerTests.id(7)) == "new")
        #expect(received < 500, "the next process goes on where the last one stopped")
    }

    @Test(arguments: contracts) func changesOfOneNoteAreSentInOrderAndOfOthersMeanwhile(_ contract: APIContract) {
        let world = World(contract)
        let device = world.startDevice()
        let (first, second) = (device.create("1", "1"), device.create("2", "2"))
        world.settle()
        device.edit(first, "1a")
        world.run(for: .milliseconds(10))
        device.edit(first, "1b")
        device.edit(second, "2a")
        world.run(for: .milliseconds(10))
        device.delete(first)
        world.settle()
        #expect(world.server.texts == [second: "2a"])
        let texts = world.server.writes.filter { $0.id == first }.map { $0.content?.text }
        #expect(texts == ["1", "1a", nil], "an edit that was never sent is merged with the deletion")
    }

    @Test(arguments: contracts) func twoDevicesConverge(_ contract: APIContract) {
        let world = World(contract)
        let (first, second) = (world.startDevice("A"), world.startDevice("B"))
        let note = first.create("n", "a")
        world.settle()
        second.sync()
        world.settle()
        second.edit(note, "b")
        world.settle()
        first.sync()
        world.settle()
        #expect(first.texts == [note: "b"] && second.texts == first.texts)
        first.edit(note, "from A")
        second.edit(note, "from B")
        world.settle()
        let loser = first.icon(note) == .conflict ? first : second
        #expect(loser.icon(note) == .conflict)
        loser.resolve(note, .mine)
        world.settle()
        for device in [first, second] { device.sync() }
        world.settle()
        #expect(first.texts == second.texts && first.texts == world.server.texts)
    }

    /// A conflict whose other side changes again before it is resolved.
    @Test(arguments: contracts) func aConflictFollowsTheServer(_ contract: APIContract) {
        let world = World(contract)
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        device.setInterface(isUp: false)
        world.server.write(note, text: "theirs 1")
        device.edit(note, "mine")
        device.setInterface(isUp: true)
        world.settle()
        world.server.write(note, text: "theirs 2")
        device.sync()
        world.settle()
        #expect(device.row(note)?.kept.contains { NoteContent($0).text == "theirs 2" } == true)
        world.server.remove(note)
        device.sync()
        world.settle()
        #expect(device.icon(note) == .conflict && device.text(note) == "mine")
        #expect(device.engine.record(note)?.theirs?.revision == nil)
        device.resolve(note, .theirs)
        world.settle()
        #expect(device.rows.isEmpty)
    }

    @Test func aChangeOfWhatIsNotThereIsRejected() throws {
        let world = World()
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        let content = device.content("x", "x")
        #expect(throws: SyncEngine.RecordError.unknown) { try device.tryEdit("none", "x") }
        #expect(throws: SyncEngine.RecordError.unknown) { try device.tryDelete("none") }
        #expect(throws: SyncEngine.RecordError.unknown) { try device.tryResolve("none", .mine) }
        #expect(throws: SyncEngine.RecordError.unknown) { try device.tryRetry("none") }
        #expect(throws: SyncEngine.RecordError.unknown) { try device.tryDismiss("none") }
        #expect(throws: SyncEngine.RecordError.notInConflict) { try device.tryResolve(note, .write(content)) }
        #expect(throws: SyncEngine.RecordError.notParked) { try device.tryRetry(note) }
        #expect(throws: SyncEngine.RecordError.notParked) { try device.tryDismiss(note) }
        #expect(throws: SyncEngine.RecordError.exists) { try device.tryCreate("n", "b", id: note) }
        device.delete(note)
        #expect(throws: SyncEngine.RecordError.unknown) { try device.tryEdit(note, "x") }
        for error in [SyncEngine.RecordError.unknown, .exists, .notInConflict, .notParked] {
            #expect(!error.description.isEmpty)
        }
        world.settle()
        #expect(world.server.texts.isEmpty && world.problems == [])
    }

    @Test func aClientWithoutAnAccountSendsNothing() {
        let world = World()
        let device = world.addDevice("A", account: nil)
        device.start()
        let note = device.create("n", "a")
        device.edit(note, "b")
        world.run(for: .seconds(600))
        #expect(world.server.arrivals.isEmpty && device.texts == [note: "b"])
        #expect(device.status.outbox == 1 && device.status.connectivity == .unknown)
        device.kill()
        device.account = SyncAccount(user: "ada", server: World.host)
        device.start()
        world.settle()
        #expect(world.server.texts == [note: "b"])
    }

    @Test func theReportedChangesBuildUpTheView() {
        let world = World()
        let device = world.startDevice()
        let notes = (0..<5).map { device.create("\($0)", "\($0)") }
        #expect(device.shown.count == 5 && device.outboxShown == 5)
        world.settle()
        device.edit(notes[0], "x")
        device.delete(notes[1])
        #expect(device.shown[notes[0]]?.icon == .upload && device.shown[notes[1]]?.isDeleted == true)
        world.settle()
        #expect(device.shown.values.sorted { $0.id < $1.id } == device.rows)
        #expect(device.outboxShown == 0)
        let view = NotesView(rows: device.rows, outbox: 0, connectivity: device.status.connectivity)
        #expect(view.rows.map(\.uuid).count == 4 && view.rows.allSatisfy { $0.revision != nil && $0.problem == nil })
        #expect(view.rows.map(\.date) == view.rows.map(\.date).sorted())
    }

    @Test func anotherBehaviorDecidesOtherwise() {
        let duplicating = World()
        let first = duplicating.addDevice("A")
        first.adapt = { $0.behavior = .createsAgain }
        first.start()
        duplicating.settle()
        duplicating.server.rules = [HostileRule("POST", nth: 1...1, .cutResponse(after: 0))]
        _ = first.create("n", "a")
        duplicating.settle()
        #expect(duplicating.server.texts.count == 2)

        let dropping = World()
        let second = dropping.addDevice("A")
        second.adapt = { $0.behavior = .dropsLostChanges }
        second.start()
        dropping.settle()
        dropping.server.rules = [HostileRule("POST", nth: 1...1, .cutRequest)]
        _ = second.create("n", "a")
        dropping.settle()
        #expect(second.store.entries.isEmpty && dropping.server.texts.isEmpty)

        let overwriting = World()
        let third = overwriting.addDevice("A")
        third.adapt = { $0.behavior = .winsConflicts }
        third.start()
        let both = third.create("n", "a")
        overwriting.settle()
        third.setInterface(isUp: false)
        overwriting.server.write(both, text: "theirs")
        third.edit(both, "mine")
        third.setInterface(isUp: true)
        overwriting.settle()
        #expect(overwriting.server.texts == [both: "mine"] && third.icon(both) == RecordRow.Icon.none)
    }
}
