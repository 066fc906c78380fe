import Client
import Determinism
import NotesContract
import NotesService
import Testing
import Wire

/// Failing disks, and two processes on one store.
extension HostileServerTests {
    private static func reports(_ device: Device) -> (failed: Int, recovered: Int) {
        var (failed, recovered) = (0, 0)
        for (_, event) in device.events {
            if case .commitFailed = event { failed += 1 }
            if case .commitRecovered = event { recovered += 1 }
        }
        return (failed, recovered)
    }

    @Test func aUserChangeThatCannotBeCommittedHasNotHappened() {
        let world = World()
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        let arrived = world.server.arrivals.filter(\.isWrite).count
        device.disk = .full
        #expect(throws: Device.DiskFull.self) { try device.tryCreate("m", "b") }
        #expect(throws: Device.DiskFull.self) { try device.tryEdit(note, "c") }
        #expect(throws: Device.DiskFull.self) { try device.tryDelete(note) }
        #expect(device.texts == [note: "a"] && device.icon(note) == RecordRow.Icon.none)
        world.run(for: .seconds(300))
        #expect(world.server.arrivals.filter(\.isWrite).count == arrived)
        device.disk = .works
        device.edit(note, "d")
        world.settle()
        #expect(world.server.texts == [note: "d"] && device.texts == [note: "d"])
        #expect(device.store.records.count == 1 && world.problems == [])
    }

    /// The commit that fails: of an attempt, of a response, or of what the index brings.
    @Test(arguments: ["attempt", "response", "index"], contracts)
    func aFailingDiskIsToldOnceAndRecoversByItself(_ moment: String, _ contract: APIContract) {
        let world = World(contract)
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        switch moment {
        case "attempt":
            device.setInterface(isUp: false)
            device.edit(note, "b")
            device.disk = .full
            device.setInterface(isUp: true)
        case "response":
            device.edit(note, "b")
            device.disk = .full
        default:
            world.server.write(note, text: "theirs")
            world.server.write(Self.id(1), text: "new")
            device.disk = .full
            device.sync()
        }
        let (actions, sent) = (device.actionCount, device.sent.count)
        world.run(for: .seconds(600))
        #expect(Self.reports(device) == (1, 0), "told once")
        #expect((2...30).contains(device.failedCommits.count), "retried with growing pauses")
        let gaps = zip(device.failedCommits.dropFirst(), device.failedCommits).map { ($0 - $1).inSeconds }
        for (number, gap) in gaps.enumerated() { #expect(gap >= min(60, Double(1 << number)) / 2) }
        #expect(device.actionCount - actions < 100, "the machine does not spin")
        #expect(device.sent.count - sent <= 3, "nothing is sent meanwhile")
        #expect(device.status.isCommitFailing)
        let texts = device.shown.mapValues { NoteContent($0.content).text }
        #expect(texts == [note: moment == "index" ? "a" : "b"], "nothing is shown that is not stored")
        #expect(device.shown[note]?.icon == (moment == "index" ? RecordRow.Icon.none : .upload))
        device.disk = .works
        world.run(for: .seconds(61))
        #expect(Self.reports(device) == (1, 1))
        world.settle()
        #expect(!device.status.isCommitFailing)
        #expect(device.texts == world.server.texts && device.rows.allSatisfy { $0.icon == .none })
        #expect(device.texts[note] == (moment == "index" ? "theirs" : "b"))
        #expect(world.server.history(of: note).count == 2, "no change is executed twice")
        #expect(device.store.records.count == device.rows.count && device.store.entries.isEmpty)
        #expect(world.problems == [])
    }

    /// Deadlines that pass during a commit have no effect until its end, and do not wake the client again and again.
    @Test(arguments: contracts) func aSlowDiskDelaysTheClient(_ contract: APIContract) {
        let world = World(contract)
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        device.disk = .slow
        for number in 1...20 {
            world.server.write(note, text: "text \(number)")
            device.sync()
            world.run(for: .seconds(Int64(number)))
        }
        #expect(device.commits.count > 10)
        device.disk = .works
        device.sync()
        world.settle()
        #expect(device.texts == world.server.texts && world.problems == [])
    }

    /// What a response brings is shown after its commit. A change that the user makes before is based on what is shown, so
    /// that it does not replace what nobody has seen.
    @Test(arguments: ["edit", "delete", "resolve", "deleted there"], contracts)
    func aChangeDuringASlowCommitIsBasedOnWhatIsShown(_ change: String, _ contract: APIContract) {
        let world = World(contract)
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        if change == "resolve" {
            device.setInterface(isUp: false)
            device.edit(note, "mine")
            world.server.write(note, text: "theirs")
            device.setInterface(isUp: true)
            world.settle()
            #expect(device.shown[note]?.icon == .conflict)
        }
        if change == "deleted there" { world.server.remove(note) } else { world.server.write(note, text: "unseen") }
        let shown = device.shown[note]?.content
        device.disk = .slow
        device.sync()
        func isUnseen() -> Bool {
            guard let record = device.engine.record(note) else { return true }
            let known = device.engine.shownRecord(note).map { $0.theirs?.content ?? $0.mine }
            return (record.theirs?.content ?? record.mine) != known
        }
        while !isUnseen(), world.now < .start + .seconds(600) { world.run(for: .milliseconds(50)) }
        #expect(isUnseen() && device.shown[note]?.content == shown)
        switch change {
        case "delete": device.delete(note)
        case "resolve": device.resolve(note, .mine)
        default: device.edit(note, "mine")
        }
        world.settle()
        #expect(device.icon(note) == .conflict)
        let theirs = device.engine.record(note)?.theirs?.content.flatMap { NoteContent($0).text }
        #expect(theirs == world.server.texts[note])
        if change != "deleted there" { #expect(world.server.texts == [note: "unseen"]) }
        #expect(world.problems == [])
    }

    @Test func aProcessThatEndsWhileTheDiskIsFullRepeatsWhatWasNotCommitted() {
        let world = World(.orig)
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        device.edit(note, "b")
        device.disk = .full
        world.run(for: .seconds(10))
        device.kill()
        device.disk = .works
        device.start()
        world.settle()
        #expect(world.server.texts == [note: "b"] && device.icon(note) == RecordRow.Icon.none)
        #expect(world.server.writes.count == 2)
    }

    @Test func aChangeOfAnUnknownKindIsParkedAndKept() {
        let world = World()
        let device = world.addDevice("A")
        let content = device.content("n", "mine")
        let entry = OutboxEntry(
            operation: "o", sequence: 3, id: Self.id(1), kind: .unknown("pin"), content: content, edits: 1)
        device.store.replace(
            with: StoredState(records: [LocalRecord(id: Self.id(1), mine: content, edits: 1)], entries: [entry]))
        device.start()
        world.settle()
        #expect(device.icon(Self.id(1)) == .error && device.row(Self.id(1))?.problem?.contains("pin") == true)
        #expect(device.sentWrites.isEmpty)
        let other = device.create("other", "x")
        world.settle()
        #expect(world.server.texts == [other: "x"])
        #expect(device.store.entries[3]?.kind == .unknown("pin") && device.store.entries[3]?.content == content)
    }

    // MARK: Two processes

    /// A process that syncs with a server that never responds, and a second one on the same store.
    private static func twoProcesses(_ world: World) -> (syncing: Device, other: Device) {
        let syncing = world.startDevice("A")
        world.settle()
        let other = world.addDevice("B", store: syncing.store)
        other.setInterface(isUp: false)
        return (syncing, other)
    }

    @Test func aNoteOfAnotherProcessIsSentByTheOneThatWaits() {
        let world = World()
        let (syncing, other) = Self.twoProcesses(world)
        syncing.link.set(.stalled)
        syncing.sync()
        world.run(for: .seconds(5))
        other.start()
        let note = other.create("n", "from another process")
        #expect(other.texts == [note: "from another process"])
        other.kill()
        syncing.readStore()
        #expect(syncing.texts == [note: "from another process"])
        syncing.link.set(.up)
        world.settle()
        #expect(world.server.texts == [note: "from another process"])
        #expect(syncing.icon(note) == RecordRow.Icon.none)
        #expect(world.problems == [])
    }

    /// The second process changes the note at each step of the first one's upload.
    @Test(arguments: contracts) func aChangeOfAnotherProcessDuringAnUploadIsKept(_ contract: APIContract) {
        for isDeletion in [false, true] {
            for isRead in [false, true] {
                for milliseconds in stride(from: Int64(0), through: 120, by: 15) {
                    let world = World(contract)
                    let (syncing, other) = Self.twoProcesses(world)
                    let note = syncing.create("n", "a")
                    world.settle()
                    syncing.edit(note, "b")
                    world.run(for: .milliseconds(milliseconds))
                    other.start()
                    if isDeletion { other.delete(note) } else { other.edit(note, "c") }
                    other.kill()
                    if isRead { syncing.readStore() }
                    world.settle()
                    syncing.readStore()
                    syncing.sync()
                    world.settle()
                    let label: Comment = "deletion: \(isDeletion), read: \(isRead), after \(milliseconds) ms"
                    #expect(world.server.texts == (isDeletion ? [:] : [note: "c"]), label)
                    #expect(syncing.texts == world.server.texts, label)
                    #expect(syncing.rows.allSatisfy { $0.icon == .none } && syncing.store.entries.isEmpty, label)
                    #expect(world.problems == [], label)
                }
            }
        }
    }

    @Test func changesOfTwoProcessesAtTheSameTimeAreAllSent() {
        let world = World()
        let (syncing, other) = Self.twoProcesses(world)
        other.start()
        syncing.link.set(.refusing)
        var ids: [RecordID] = []
        for number in 0..<5 {
            ids.append(syncing.create("A\(number)", "A\(number)"))
            ids.append(other.create("B\(number)", "B\(number)"))
        }
        #expect(syncing.store.records.count == 10 && syncing.store.entries.count == 10)
        syncing.link.set(.up)
        syncing.readStore()
        syncing.sync()
        world.settle()
        #expect(Set(world.server.texts.keys) == Set(ids))
        #expect(syncing.store.entries.isEmpty && world.server.writes.count == 10)
        #expect(world.problems == [])
    }

    @Test func twoProcessesThatEditTheSameNoteLeaveOneOfTheirTexts() {
        let world = World()
        let (syncing, other) = Self.twoProcesses(world)
        let note = syncing.create("n", "a")
        world.settle()
        syncing.setInterface(isUp: false)
        other.start()
        syncing.edit(note, "from A")
        other.edit(note, "from B")
        syncing.readStore()
        #expect(syncing.text(note) == "from B")
        syncing.setInterface(isUp: true)
        world.settle()
        #expect(world.server.texts == [note: "from B"] && syncing.icon(note) == RecordRow.Icon.none)
        #expect(syncing.store.entries.isEmpty && world.problems == [])
    }

    /// What could not be committed is no longer needed after another process has changed the note.
    @Test func aChangeOfAnotherProcessWhileCommitsFailReplacesWhatWasNotCommitted() {
        let world = World()
        let (syncing, other) = Self.twoProcesses(world)
        let note = syncing.create("n", "a")
        world.settle()
        world.server.write(note, text: "theirs")
        syncing.sync()
        syncing.disk = .full
        world.run(for: .seconds(30))
        #expect(syncing.status.isCommitFailing)
        other.start()
        other.edit(note, "mine")
        other.kill()
        syncing.readStore()
        syncing.disk = .works
        world.settle()
        #expect(!syncing.status.isCommitFailing && syncing.icon(note) == .conflict)
        #expect(world.server.texts == [note: "theirs"] && syncing.text(note) == "mine")
        #expect(world.problems == [])
    }

    @Test func aStaleCommitDuringTheFirstPullLosesNothing() {
        let world = World()
        for number in 1...20 { world.server.write(Self.id(number), text: "\(number)") }
        let store = MemoryStore()
        let other = world.addDevice("B", store: store)
        other.setInterface(isUp: false)
        other.start()
        let syncing = world.startDevice("A", store: store)
        var ids: [RecordID] = []
        for number in 0..<20 {
            world.run(for: .milliseconds(40))
            ids.append(other.create("\(number)", "B\(number)"))
            other.readStore()
        }
        syncing.readStore()
        world.settle()
        #expect(world.server.texts.count == 40 && syncing.texts == world.server.texts)
        #expect(store.entries.isEmpty && store.records.count == 40)
        #expect(world.problems == [])
    }
}
