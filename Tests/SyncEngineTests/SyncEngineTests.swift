import Determinism
import NotesContract
import Testing

@testable import SyncEngine

@Suite struct SyncEngineTests {
    @Test func notesCreatedOfflineAreSentInOrderOnceWhenTheInterfaceIsUp() {
        let world = EngineWorld()
        world.respond()
        world.setInterface(isUp: false)
        let created = ["a", "b", "c"].map { world.create($0) }
        #expect(world.pending == nil && world.engine.nextDeadline == nil, "nothing is sent while the interface is down")
        #expect(created.map(world.icon) == [.upload, .upload, .upload])
        world.setInterface(isUp: true)
        world.settle()
        #expect(world.server.log.filter { $0.hasPrefix("POST") }.count == 3)
        #expect(world.server.notes.values.allSatisfy { $0.note.revision.number == 1 })
        #expect(created.compactMap(world.icon).filter { $0 == .none }.count == 3)
        let order = world.server.notes.sorted { $0.value.note.revision.suffix < $1.value.note.revision.suffix }
        #expect(order.map(\.key) == created)
    }

    @Test func changesThatWereNeverSentAreMerged() {
        let world = EngineWorld()
        world.respond()
        world.setInterface(isUp: false)
        let kept = world.create("kept", "a")
        world.edit(kept, "ab")
        world.edit(kept, "abc")
        let dropped = world.create("dropped")
        world.delete(dropped)
        #expect(world.engine.view.outbox == 1)
        world.setInterface(isUp: true)
        world.settle()
        #expect(world.serverTexts == [kept: "abc"])
        #expect(world.server.log.filter { $0.hasPrefix("POST") || $0.hasPrefix("PUT") }.count == 1)
        #expect(!world.server.log.contains { $0.contains(dropped) })
    }

    @Test func anEditDuringAnExchangeIsKeptAndShown() {
        let world = EngineWorld()
        world.settle()
        let note = world.create("n", "a")
        world.settle()
        world.edit(note, "ab")
        #expect(world.pending?.method == "PUT")
        world.edit(note, "abc")
        world.respond()
        #expect(world.texts[note] == "abc")
        #expect(world.icon(note) == .upload)
        world.settle()
        #expect(world.serverTexts == [note: "abc"])
        #expect(world.icon(note) == NotesView.Icon.none)
        #expect(world.server.notes[note]?.note.revision.number == 3)
    }

    @Test(arguments: [true, false]) func aLostResponseCausesNoConflict(_ supportsOperationIDs: Bool) {
        let world = EngineWorld()
        world.server.supportsOperationIDs = supportsOperationIDs
        world.settle()
        let note = world.create("n", "a")
        let key = world.pending?.headers.first { $0.name == "Idempotency-Key" }?.value
        world.loseResponse()
        world.advance()
        #expect(world.pending?.method == "POST")
        #expect(world.pending?.headers.first { $0.name == "Idempotency-Key" }?.value == key)
        world.settle()
        #expect(world.server.notes.count == 1)
        #expect(world.icon(note) == NotesView.Icon.none)
        world.edit(note, "b")
        world.loseResponse()
        world.settle()
        #expect(world.icon(note) == NotesView.Icon.none)
        #expect(world.server.notes[note]?.note.revision.number == 2)
        world.delete(note)
        world.loseResponse()
        world.settle()
        #expect(world.engine.view.rows.isEmpty && world.engine.view.outbox == 0)
    }

    @Test func aConflictKeepsBothSidesAndSendsNothingUntilResolved() throws {
        let world = EngineWorld()
        world.settle()
        let note = world.create("Milk", "2 l")
        world.settle()
        world.setInterface(isUp: false)
        world.server.write(note, title: "Milk", text: "3 l")
        world.edit(note, "2 l, oat")
        world.setInterface(isUp: true)
        world.settle()
        let row = try #require(world.engine.view.rows.first)
        #expect(row.icon == .conflict)
        #expect(row.text == "2 l, oat" && row.title == "Milk")
        #expect(row.kept == ["2 l, oat", "3 l", "2 l"])
        let sent = world.server.log.count
        world.edit(note, "2 l, oat, cold")
        world.sync()
        world.settle()
        #expect(!world.server.log.dropFirst(sent).contains { $0.hasPrefix("PUT") })
        world.resolve(note, .write(title: nil, text: "3 l, oat"))
        world.settle()
        #expect(world.serverTexts == [note: "3 l, oat"])
        #expect(world.server.notes[note]?.note.revision.number == 3)
        #expect(world.icon(note) == NotesView.Icon.none)
    }

    @Test(arguments: [SyncEngine.Resolution.theirs, .mine]) func aDeletionOfANoteEditedOnTheServerIsAConflict(
        _ resolution: SyncEngine.Resolution
    ) {
        let world = EngineWorld()
        world.settle()
        let note = world.create("n", "a")
        world.settle()
        world.setInterface(isUp: false)
        world.server.write(note, title: "n", text: "theirs")
        world.delete(note)
        world.setInterface(isUp: true)
        world.settle()
        #expect(world.icon(note) == .conflict)
        #expect(world.serverTexts == [note: "theirs"])
        world.resolve(note, resolution)
        world.settle()
        #expect(world.serverTexts == (resolution == .mine ? [:] : [note: "theirs"]))
        #expect(world.texts == world.serverTexts)
    }

    @Test func anEditOfANoteDeletedOnTheServerIsKeptUnderANewUUID() throws {
        let world = EngineWorld()
        world.settle()
        let note = world.create("n", "a")
        world.settle()
        world.setInterface(isUp: false)
        world.server.remove(note)
        world.edit(note, "mine")
        world.setInterface(isUp: true)
        world.settle()
        #expect(world.icon(note) == .conflict)
        world.resolve(note, .mine)
        world.settle()
        #expect(world.texts.values.sorted() == ["mine"])
        #expect(world.serverTexts == world.texts)
        #expect(world.texts[note] == nil)
    }

    @Test func theIndexBringsChangesOfOtherClients() {
        let world = EngineWorld()
        for name in ["a", "b", "c"] { world.server.write(name, title: name, text: name) }
        world.settle()
        #expect(world.texts == ["a": "a", "b": "b", "c": "c"])
        world.server.write("b", title: "b", text: "new")
        world.server.remove("c")
        let before = world.server.log.count
        world.sync()
        world.settle()
        #expect(world.texts == ["a": "a", "b": "new"])
        #expect(world.server.log.count - before == 2, "the index and the changed note")
    }

    @Test(arguments: [
        SyncResponse(status: 200, headers: [(name: "Content-Type", value: "text/html")], body: Array("<html>".utf8)),
        SyncResponse(status: 200, headers: [(name: "Content-Type", value: "application/json")], body: Array("[]".utf8)),
        TestServer.response(200, "{\"half\":"), TestServer.response(200, "[]"), TestServer.response(200, "null"),
        TestServer.response(200, Note(uuid: "other", revision: Revision("9-x")!, date: "d", title: "", text: "").json),
        SyncResponse(status: 302, headers: [(name: "Location", value: "http://portal/")], body: []),
    ]) func onlyAValidatedResponseChangesState(_ response: SyncResponse) {
        let world = EngineWorld()
        world.settle()
        let note = world.create("n", "mine")
        let state = world.engine.note(note)
        #expect(world.pending != nil)
        world.respond(with: response)
        #expect(world.engine.note(note) == state)
        #expect(world.engine.view.outbox == 1)
        world.settle()
        #expect(world.serverTexts == [note: "mine"])
    }

    @Test func aForeignIndexDeletesNothing() {
        let world = EngineWorld()
        world.server.write("a", title: "a", text: "a")
        world.settle()
        world.sync()
        world.respond(with: TestServer.response(200, "{\"detail\": []}"))
        #expect(world.texts == ["a": "a"])
    }

    @Test func retryDelaysDoubleToAMinuteAndEndWhenTheInterfaceComesUp() {
        let world = EngineWorld()
        world.settle()
        _ = world.create("n")
        var delays: [Double] = []
        for _ in 0..<12 {
            world.fail()
            #expect(world.pending == nil)
            guard let deadline = world.engine.nextDeadline else { break }
            delays.append((deadline - world.now).inSeconds)
            world.advance()
        }
        #expect(delays.count == 12)
        for (index, delay) in delays.enumerated() {
            let whole = min(60, Double(1 << index))
            #expect(delay >= whole / 2 && delay <= whole, "\(index): \(delay)")
        }
        world.fail()
        world.setInterface(isUp: false)
        world.setInterface(isUp: true)
        #expect(world.pending?.method == "POST")
    }

    @Test func retryAfterIsTheMinimumDelay() {
        let world = EngineWorld()
        world.settle()
        _ = world.create("n")
        let busy = SyncResponse(
            status: 503, headers: TestServer.headers + [(name: "Retry-After", value: "90")], body: Array("{}".utf8))
        world.respond(with: busy)
        #expect((world.engine.nextDeadline ?? .start) - world.now == .seconds(90))
    }

    @Test func aNoteThatTheServerCannotStoreDoesNotBlockOthers() {
        let world = EngineWorld()
        world.settle()
        let bad = world.create("bad")
        let good = world.create("good")
        for _ in 0..<40 where world.engine.view.outbox > 0 {
            if let request = world.pending, request.body.contains(bad) {
                world.respond(with: TestServer.response(500, "{}"))
            } else if world.pending != nil {
                world.respond()
            } else {
                world.advance()
            }
        }
        #expect(world.icon(bad) == .error)
        #expect(world.icon(good) == NotesView.Icon.none)
        #expect(world.serverTexts.keys.sorted() == [good])
        world.edit(bad, "again")
        world.settle()
        #expect(world.icon(bad) == NotesView.Icon.none, "an edit tries again")
    }

    @Test func rejectedCredentialsPauseUntilASyncIsRequested() {
        let world = EngineWorld()
        world.settle()
        let note = world.create("n")
        world.respond(with: TestServer.response(403, "{}"))
        #expect(world.engine.pauseReason != nil && world.engine.nextDeadline == nil)
        world.sync()
        world.settle()
        #expect(world.icon(note) == NotesView.Icon.none)
    }

    /// Responses of peers that are no notes server, and the reported error's text.
    @Test(arguments: [
        (
            SyncResponse(
                status: 200, headers: [(name: "Content-Type", value: "text/html; charset=utf-8")], body: []),
            "status 200 and content type text/html; charset=utf-8"
        ),
        (SyncResponse(status: 404, headers: [], body: []), "status 404 and no content type"),
        (
            SyncResponse(status: 511, headers: [(name: "Content-Type", value: "text/html")], body: []),
            "status 511 and content type text/html"
        ),
    ]) func aPeerThatIsNotANotesServerIsReportedAfterItsFirstResponse(_ response: SyncResponse, _ text: String) {
        let world = EngineWorld()
        #expect(world.engine.foreignServer == nil)
        world.respond(with: response)
        #expect(world.engine.foreignServer?.status == response.status)
        #expect(world.engine.foreignServer?.description.contains(text) == true)
        #expect(world.engine.pauseReason == nil && world.engine.nextDeadline != nil, "a captive portal may go away")
        world.advance()
        world.respond()
        #expect(world.engine.foreignServer == nil)
    }

    @Test func bytesThatAreNotHTTPAreReportedAsAForeignServer() {
        let world = EngineWorld()
        world.fail(.notHTTP("not HTTP"))
        #expect(world.engine.foreignServer == ForeignServerError(status: nil, contentType: nil))
        #expect(world.engine.nextDeadline != nil)
    }

    @Test(arguments: [502, 503, 504]) func aGatewayErrorSaysNothingAboutTheServer(status: Int) {
        let world = EngineWorld()
        world.respond(
            with: SyncResponse(status: status, headers: [(name: "Content-Type", value: "text/html")], body: []))
        #expect(world.engine.foreignServer == nil)
        #expect(world.engine.nextDeadline != nil)
    }

    @Test func eachMutantHasItsDefect() {
        let duplicating = EngineWorld(mutant: .postsAgainUnderNewID)
        duplicating.settle()
        _ = duplicating.create("n")
        duplicating.loseResponse()
        duplicating.settle()
        #expect(duplicating.server.notes.count == 2)

        let dropping = EngineWorld(mutant: .dropsOnLostResponse)
        dropping.settle()
        let note = dropping.create("n")
        dropping.fail()
        #expect(dropping.icon(note) == .upload, "an entry that was never sent is kept")
        dropping.advance()
        dropping.loseResponse()
        #expect(dropping.engine.view.outbox == 0)

        let overwriting = EngineWorld(mutant: .overwritesOnConflict)
        overwriting.settle()
        let both = overwriting.create("n", "a")
        overwriting.settle()
        overwriting.setInterface(isUp: false)
        overwriting.server.write(both, title: "n", text: "theirs")
        overwriting.edit(both, "mine")
        overwriting.setInterface(isUp: true)
        overwriting.settle()
        #expect(overwriting.serverTexts == [both: "mine"])
        #expect(overwriting.icon(both) == NotesView.Icon.none)
    }
}
