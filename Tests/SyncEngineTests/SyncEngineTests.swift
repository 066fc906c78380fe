import LinkModel
import NotesContract
import Testing

@testable import SyncEngine

@Suite struct EngineTests {
    @Test func creationsMadeOfflineGoOutInOrderOnceThereIsANetwork() {
        let world = World()
        world.answer()
        world.take(.interface(isUp: false))
        let made = ["a", "b", "c"].map { world.create($0) }
        #expect(world.pending == nil && world.engine.nextWake == nil, "nothing is tried without an interface")
        #expect(made.map(world.icon) == [.upload, .upload, .upload])
        world.take(.interface(isUp: true))
        world.settle()
        #expect(world.server.log.filter { $0.hasPrefix("POST") }.count == 3)
        #expect(world.server.notes.values.allSatisfy { $0.note.revision.number == 1 })
        #expect(made.compactMap(world.icon).filter { $0 == .none }.count == 3)
        let order = world.server.notes.sorted { $0.value.note.revision.suffix < $1.value.note.revision.suffix }
        #expect(order.map(\.key) == made)
    }

    @Test func whatHasNeverBeenSentIsFolded() {
        let world = World()
        world.answer()
        world.take(.interface(isUp: false))
        let kept = world.create("kept", "a")
        world.edit(kept, "ab")
        world.edit(kept, "abc")
        let dropped = world.create("dropped")
        world.delete(dropped)
        #expect(world.engine.view.outbox == 1)
        world.take(.interface(isUp: true))
        world.settle()
        #expect(world.serverTexts == [kept: "abc"])
        #expect(world.server.log.filter { $0.hasPrefix("POST") || $0.hasPrefix("PUT") }.count == 1)
        #expect(!world.server.log.contains { $0.contains(dropped) })
    }

    @Test func anEditWhileAnotherIsInFlightIsNeitherLostNorShownOlder() {
        let world = World()
        world.settle()
        let note = world.create("n", "a")
        world.settle()
        world.edit(note, "ab")
        #expect(world.pending?.method == "PUT")
        world.edit(note, "abc")
        world.answer()
        #expect(world.texts[note] == "abc")
        #expect(world.icon(note) == .upload)
        world.settle()
        #expect(world.serverTexts == [note: "abc"])
        #expect(world.icon(note) == NotesView.Icon.none)
        #expect(world.server.notes[note]?.note.revision.number == 3)
    }

    @Test(arguments: [true, false]) func aLostAnswerIsNoConflictWithOneself(_ knowsOperations: Bool) {
        let world = World()
        world.server.knowsOperations = knowsOperations
        world.settle()
        let note = world.create("n", "a")
        let key = world.pending?.headers.first { $0.name == "Idempotency-Key" }?.value
        world.loseAnswer()
        world.wake()
        #expect(world.pending?.method == "POST")
        #expect(world.pending?.headers.first { $0.name == "Idempotency-Key" }?.value == key)
        world.settle()
        #expect(world.server.notes.count == 1)
        #expect(world.icon(note) == NotesView.Icon.none)
        world.edit(note, "b")
        world.loseAnswer()
        world.settle()
        #expect(world.icon(note) == NotesView.Icon.none)
        #expect(world.server.notes[note]?.note.revision.number == 2)
        world.delete(note)
        world.loseAnswer()
        world.settle()
        #expect(world.engine.view.rows.isEmpty && world.engine.view.outbox == 0)
    }

    @Test func aConflictKeepsBothAndSendsNothingUntilTheUserDecides() throws {
        let world = World()
        world.settle()
        let note = world.create("Milk", "2 l")
        world.settle()
        world.take(.interface(isUp: false))
        world.server.write(note, title: "Milk", text: "3 l")
        world.edit(note, "2 l, oat")
        world.take(.interface(isUp: true))
        world.settle()
        let row = try #require(world.engine.view.rows.first)
        #expect(row.icon == .conflict)
        #expect(row.text == "2 l, oat" && row.title == "Milk")
        #expect(row.kept == ["2 l, oat", "3 l", "2 l"])
        let sent = world.server.log.count
        world.edit(note, "2 l, oat, cold")
        world.take(.sync)
        world.settle()
        #expect(!world.server.log.dropFirst(sent).contains { $0.hasPrefix("PUT") })
        world.resolve(note, .write(title: nil, text: "3 l, oat"))
        world.settle()
        #expect(world.serverTexts == [note: "3 l, oat"])
        #expect(world.server.notes[note]?.note.revision.number == 3)
        #expect(world.icon(note) == NotesView.Icon.none)
    }

    @Test(arguments: [SyncEngine.Resolution.theirs, .mine]) func aDeletionAgainstAnEditIsTheUsersToDecide(
        _ resolution: SyncEngine.Resolution
    ) {
        let world = World()
        world.settle()
        let note = world.create("n", "a")
        world.settle()
        world.take(.interface(isUp: false))
        world.server.write(note, title: "n", text: "theirs")
        world.delete(note)
        world.take(.interface(isUp: true))
        world.settle()
        #expect(world.icon(note) == .conflict)
        #expect(world.serverTexts == [note: "theirs"])
        world.resolve(note, resolution)
        world.settle()
        #expect(world.serverTexts == (resolution == .mine ? [:] : [note: "theirs"]))
        #expect(world.texts == world.serverTexts)
    }

    @Test func anEditOfWhatIsGoneThereIsKeptUnderANewName() throws {
        let world = World()
        world.settle()
        let note = world.create("n", "a")
        world.settle()
        world.take(.interface(isUp: false))
        world.server.remove(note)
        world.edit(note, "mine")
        world.take(.interface(isUp: true))
        world.settle()
        #expect(world.icon(note) == .conflict)
        world.resolve(note, .mine)
        world.settle()
        #expect(world.texts.values.sorted() == ["mine"])
        #expect(world.serverTexts == world.texts)
        #expect(world.texts[note] == nil)
    }

    @Test func theIndexBringsWhatOthersDid() {
        let world = World()
        for name in ["a", "b", "c"] { world.server.write(name, title: name, text: name) }
        world.settle()
        #expect(world.texts == ["a": "a", "b": "b", "c": "c"])
        world.server.write("b", title: "b", text: "new")
        world.server.remove("c")
        let before = world.server.log.count
        world.take(.sync)
        world.settle()
        #expect(world.texts == ["a": "a", "b": "new"])
        #expect(world.server.log.count - before == 2, "the index, and what has changed")
    }

    @Test(arguments: [
        SyncAnswer(status: 200, headers: [(name: "Content-Type", value: "text/html")], body: Array("<html>".utf8)),
        SyncAnswer(status: 200, headers: [(name: "Content-Type", value: "application/json")], body: Array("[]".utf8)),
        PlainServer.answer(200, "{\"half\":"), PlainServer.answer(200, "[]"), PlainServer.answer(200, "null"),
        PlainServer.answer(200, Note(uuid: "other", revision: Revision("9-x")!, date: "d", title: "", text: "").json),
        SyncAnswer(status: 302, headers: [(name: "Location", value: "http://portal/")], body: []),
    ]) func onlyAValidatedAnswerChangesAnything(_ answer: SyncAnswer) {
        let world = World()
        world.settle()
        let note = world.create("n", "mine")
        let state = world.engine.note(note)
        guard let request = world.pending else {
            Issue.record("nothing was sent")
            return
        }
        world.pending = nil
        world.take(.answered(request.id, answer))
        #expect(world.engine.note(note) == state)
        #expect(world.engine.view.outbox == 1)
        world.settle()
        #expect(world.serverTexts == [note: "mine"])
    }

    @Test func aForeignIndexDeletesNothing() {
        let world = World()
        world.server.write("a", title: "a", text: "a")
        world.settle()
        world.take(.sync)
        guard let request = world.pending else { return }
        world.pending = nil
        world.take(.answered(request.id, PlainServer.answer(200, "{\"detail\": []}")))
        #expect(world.texts == ["a": "a"])
    }

    @Test func pausesDoubleToAMinuteAndNoEditWakesTheQueue() {
        let world = World()
        world.settle()
        _ = world.create("n")
        var pauses: [Double] = []
        for _ in 0..<12 {
            world.fail()
            #expect(world.pending == nil)
            guard let wake = world.engine.nextWake else { break }
            pauses.append((wake - world.now).inSeconds)
            world.wake()
        }
        #expect(pauses.count == 12)
        for (index, pause) in pauses.enumerated() {
            let whole = min(60, Double(1 << index))
            #expect(pause >= whole / 2 && pause <= whole, "\(index): \(pause)")
        }
        // The way back is tried at once when the interface says so.
        world.fail()
        world.take(.interface(isUp: false))
        world.take(.interface(isUp: true))
        #expect(world.pending?.method == "POST")
    }

    @Test func retryAfterIsAFloor() {
        let world = World()
        world.settle()
        _ = world.create("n")
        guard let request = world.pending else { return }
        world.pending = nil
        let busy = SyncAnswer(
            status: 503, headers: PlainServer.headers + [(name: "Retry-After", value: "90")], body: Array("{}".utf8))
        world.take(.answered(request.id, busy))
        #expect((world.engine.nextWake ?? .start) - world.now == .seconds(90))
    }

    @Test func oneNoteThatFailsDoesNotHoldUpTheOthers() {
        let world = World()
        world.settle()
        let bad = world.create("bad")
        let good = world.create("good")
        for _ in 0..<40 where world.engine.view.outbox > 0 {
            if let request = world.pending, request.body.contains(bad) {
                world.pending = nil
                world.take(.answered(request.id, PlainServer.answer(500, "{}")))
            } else if world.pending != nil {
                world.answer()
            } else {
                world.wake()
            }
        }
        #expect(world.icon(bad) == .error)
        #expect(world.icon(good) == NotesView.Icon.none)
        #expect(world.serverTexts.keys.sorted() == [good])
        world.edit(bad, "again")
        world.settle()
        #expect(world.icon(bad) == NotesView.Icon.none, "an edit tries again")
    }

    @Test func refusedCredentialsStopEverythingUntilTheUserAsks() {
        let world = World()
        world.settle()
        let note = world.create("n")
        guard let request = world.pending else { return }
        world.pending = nil
        world.take(.answered(request.id, PlainServer.answer(403, "{}")))
        #expect(world.engine.pausedBecause != nil && world.engine.nextWake == nil)
        world.take(.sync)
        world.settle()
        #expect(world.icon(note) == NotesView.Icon.none)
    }

    @Test func eachMutantDoesWhatItIsNamedFor() {
        let doubled = World(mutant: .postsAgainUnderNewID)
        doubled.settle()
        _ = doubled.create("n")
        doubled.loseAnswer()
        doubled.settle()
        #expect(doubled.server.notes.count == 2)

        let dropped = World(mutant: .dropsOnLostAnswer)
        dropped.settle()
        let note = dropped.create("n")
        dropped.fail()
        #expect(dropped.icon(note) == .upload, "what was never sent is not lost")
        dropped.wake()
        dropped.loseAnswer()
        #expect(dropped.engine.view.outbox == 0)

        let overwriting = World(mutant: .overwritesOnConflict)
        overwriting.settle()
        let both = overwriting.create("n", "a")
        overwriting.settle()
        overwriting.take(.interface(isUp: false))
        overwriting.server.write(both, title: "n", text: "theirs")
        overwriting.edit(both, "mine")
        overwriting.take(.interface(isUp: true))
        overwriting.settle()
        #expect(overwriting.serverTexts == [both: "mine"])
        #expect(overwriting.icon(both) == NotesView.Icon.none)
    }
}
