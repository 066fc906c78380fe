import Client
import Determinism
import NotesContract
import NotesService
import Testing
import Wire

/// Servers, gateways and accounts that are not what the client expects: accounts, validation and identifiers.
@Suite struct HostileServerTests {
    static let contracts = [APIContract.orig, .compat, .strict]

    /// A device with the synchronised notes `kept` and `edited`; the second has a change that is not sent.
    private static func deviceWithPendingEdit(_ world: World) -> (device: Device, kept: RecordID, edited: RecordID) {
        let device = world.startDevice()
        let kept = device.create("kept", "kept")
        let edited = device.create("edited", "old")
        world.settle()
        device.setInterface(isUp: false)
        device.edit(edited, "new")
        return (device, kept, edited)
    }

    // MARK: Accounts and histories

    @Test(arguments: contracts) func aStoreOfAnotherUserSendsAndDropsNothing(_ contract: APIContract) {
        let world = World(contract)
        let (device, kept, edited) = Self.deviceWithPendingEdit(world)
        device.kill()
        let (records, entries) = (device.store.records, device.store.entries)
        let arrivals = world.server.arrivals.count
        device.account?.user = "bo"
        device.authorization = World.bo
        device.setInterface(isUp: true)
        device.start()
        world.run(for: .seconds(300))
        #expect(world.server.arrivals.count == arrivals, "not one request is sent with the other user's password")
        #expect(device.store.records == records && device.store.entries == entries)
        #expect(device.status.mismatch?.stored.user == "ada" && device.status.mismatch?.found.user == "bo")
        #expect(device.texts == [kept: "kept", edited: "new"], "the notes can still be read")
        #expect(world.problems == [])
    }

    @Test func aStoreOfAnotherServerWithoutAHistorySendsNothing() {
        let world = World()
        let device = world.addDevice("A")
        device.store.replace(
            with: StoredState(
                records: [LocalRecord(id: "n", mine: device.content("n", "mine"), edits: 1)],
                entries: [
                    OutboxEntry(
                        operation: "o", sequence: 0, id: "n", kind: .create, content: device.content("n", "mine"),
                        edits: 1)
                ], account: SyncAccount(user: "ada", server: "elsewhere:80")))
        device.start()
        world.run(for: .seconds(60))
        #expect(world.server.arrivals.isEmpty)
        #expect(device.status.mismatch?.found.server == World.host)
        #expect(device.texts == ["n": "mine"])
    }

    /// The original contract names no history.
    @Test(arguments: [APIContract.compat, .strict]) func aServerThatWasReplacedIsSentNothingAndDeletesNothing(
        _ contract: APIContract
    ) throws {
        let world = World(contract)
        let empty = try world.server.store.snapshot()
        let (device, kept, edited) = Self.deviceWithPendingEdit(world)
        try world.server.store.restore(empty)
        device.setInterface(isUp: true)
        world.run(for: .seconds(300))
        #expect(device.texts == [kept: "kept", edited: "new"])
        #expect(device.store.entries.count == 1)
        #expect(device.status.mismatch != nil)
        #expect(world.server.texts.isEmpty, "the pending change is not sent to an unknown history")
        #expect(world.problems == [])
    }

    @Test(arguments: [APIContract.compat, .strict]) func aMismatchSurvivesARestart(_ contract: APIContract) throws {
        let world = World(contract)
        let empty = try world.server.store.snapshot()
        let (device, kept, edited) = Self.deviceWithPendingEdit(world)
        try world.server.store.restore(empty)
        device.setInterface(isUp: true)
        world.run(for: .seconds(30))
        for _ in 0..<3 {
            device.kill()
            device.start()
            world.run(for: .seconds(30))
        }
        #expect(device.status.mismatch != nil)
        #expect(device.texts == [kept: "kept", edited: "new"] && world.server.texts.isEmpty)
    }

    @Test(arguments: [APIContract.compat, .strict]) func adoptionSendsPendingChangesAndDeletesNothing(
        _ contract: APIContract
    ) throws {
        let world = World(contract)
        let empty = try world.server.store.snapshot()
        let (device, kept, edited) = Self.deviceWithPendingEdit(world)
        let new = device.create("new", "written offline")
        try world.server.store.restore(empty)
        world.server.write("99999999-0000-4000-8000-000000000009", text: "theirs")
        device.setInterface(isUp: true)
        world.run(for: .seconds(30))
        #expect(device.status.mismatch != nil)
        device.adopt()
        world.settle()
        #expect(device.status.mismatch == nil)
        #expect(device.texts[kept] == "kept" && device.texts[edited] == "new", "nothing is deleted")
        #expect(device.icon(kept) == .conflict && device.icon(edited) == .conflict)
        #expect(world.server.texts[new] == "written offline")
        #expect(device.texts["99999999-0000-4000-8000-000000000009"] == "theirs")
        device.resolve(kept, .mine)
        device.resolve(edited, .mine)
        world.settle()
        #expect(world.server.texts.values.sorted() == ["kept", "new", "theirs", "written offline"])
        #expect(device.rows.allSatisfy { $0.icon == .none })
        #expect(world.problems == [])
    }

    @Test(arguments: contracts) func aStoreOfAnotherServerIsMergedByAdoption(_ contract: APIContract) {
        let world = World(contract)
        let (device, kept, edited) = Self.deviceWithPendingEdit(world)
        // The server at another address: it has one of the notes, with another text.
        let other = World(contract, seed: 2)
        other.server.write(edited, text: "theirs")
        let moved = other.addDevice("A", store: device.store)
        var state = device.store.state
        state.account = SyncAccount(user: "ada", server: "elsewhere:80", history: state.account?.history)
        device.kill()
        device.store.replace(with: state)
        moved.start()
        other.run(for: .seconds(60))
        #expect(moved.status.mismatch != nil && other.server.texts == [edited: "theirs"])
        moved.adopt()
        other.settle()
        #expect(moved.status.mismatch == nil)
        #expect(moved.icon(kept) == .conflict && moved.text(kept) == "kept")
        #expect(moved.icon(edited) == .conflict && moved.text(edited) == "new")
        moved.resolve(kept, .mine)
        moved.resolve(edited, .theirs)
        other.settle()
        #expect(other.server.texts.values.sorted() == ["kept", "theirs"])
        #expect(moved.texts == other.server.texts && moved.rows.allSatisfy { $0.icon == .none })
        #expect(other.problems == [])
    }

    /// `nil`: the responses name no history.
    @Test(arguments: ["another", nil]) func aResponseOfAnotherHistoryAcknowledgesNothing(_ history: String?) {
        let world = World()
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        let base = device.store.records[note]?.base
        world.server.rules = [HostileRule("PUT", .replace { $0.with(NotesHTTP.historyName, history) })]
        device.edit(note, "b")
        world.run(for: .seconds(100))
        #expect(device.store.records[note]?.base == base && device.store.entries.count == 1)
        #expect(device.status.mismatch == nil, "the index is still that of the known history")
        #expect((2...10).contains(device.sentWrites.count { $0.hasPrefix("PUT") }), "the pauses grow")
        world.server.rules = []
        world.settle()
        #expect(world.server.texts == [note: "b"] && device.icon(note) == RecordRow.Icon.none)
        #expect(world.server.writes.count == 2)
        // Now the index confirms it.
        world.server.rules = [HostileRule(.replace { $0.with(NotesHTTP.historyName, history) })]
        device.edit(note, "c")
        world.run(for: .seconds(30))
        #expect(device.status.mismatch != nil && device.store.entries.count == 1)
        let arrived = world.server.arrivals.count
        world.run(for: .seconds(300))
        #expect(!world.server.arrivals.dropFirst(arrived).contains { $0.isWrite })
    }

    // MARK: Validation of responses to changes

    /// Responses that no notes server sends to a PUT, each with the reason why it must not count.
    enum Forgery: String, CaseIterable, Sendable {
        case fallingRevision, sameRevision, wrongUUID, html, htmlWithMarker, halfBody, wrongMediaType, noMediaType
        case noMarker, wrongMarker, emptyBody, array, null, redirect, noContent, accepted, junkRevision, notUTF8
        case truncatedByFIN

        func effect(_ uuid: RecordID) -> HostileRule.Effect {
            func note(_ revision: String, _ id: String? = nil) -> String {
                JSONText.object([
                    ("uuid", JSONText.string(id ?? uuid.text)), ("revision", JSONText.string(revision)),
                    ("date", JSONText.string("2026-03-01T08:00:00.000Z")), ("title", "null"),
                    ("text", JSONText.string("forged")),
                ])
            }
            switch self {
            case .fallingRevision: return .respond(.notes(200, note("1-old")))
            case .sameRevision: return .respond(.notes(200, note("2-other")))
            case .wrongUUID: return .respond(.notes(200, note("9-x", "00000000-0000-4000-8000-00000000ffff")))
            case .html: return .respond(.foreign(200))
            case .htmlWithMarker:
                return .respond(.foreign(200, headers: [(NotesHTTP.markerName, NotesHTTP.markerValue)]))
            case .halfBody: return .respond(.notes(200, String(note("9-x").dropLast(20))))
            case .wrongMediaType:
                return .respond(WireResponse.notes(200, note("9-x")).with("Content-Type", "text/plain"))
            case .noMediaType: return .respond(WireResponse.notes(200, note("9-x")).with("Content-Type", nil))
            case .noMarker: return .respond(WireResponse.notes(200, note("9-x")).with(NotesHTTP.markerName, nil))
            case .wrongMarker: return .respond(WireResponse.notes(200, note("9-x")).with(NotesHTTP.markerName, "0"))
            case .emptyBody: return .respond(.notes(200, ""))
            case .array: return .respond(.notes(200, "[\(note("9-x"))]"))
            case .null: return .respond(.notes(200, "null"))
            case .redirect: return .respond(.foreign(302, headers: [("Location", "http://portal.example/")]))
            case .noContent: return .respond(.notes(204, ""))
            case .accepted: return .respond(.notes(202, note("9-x")))
            case .junkRevision: return .respond(.notes(200, note("junk")))
            case .notUTF8:
                var response = WireResponse.notes(200, note("9-x"))
                response.body.insert(0xFF, at: response.body.count - 4)
                return .respond(response)
            case .truncatedByFIN:
                return .raw(
                    Array(
                        ("HTTP/1.1 200 OK\r\n\(NotesHTTP.markerName): 1\r\nContent-Type: application/json\r\n"
                            + "Content-Length: 999\r\n\r\n" + note("9-x")).utf8))
            }
        }
    }

    @Test(arguments: Forgery.allCases) func aForgedResponseToAPutChangesNothing(_ forgery: Forgery) throws {
        let world = World()
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        device.edit(note, "b")
        world.settle()
        let before = try #require(device.store.records[note])
        #expect(before.base?.number == 2)
        world.server.rules.append(HostileRule("PUT", nth: 1...1, forgery.effect(note)))
        device.edit(note, "c")
        world.run(for: .milliseconds(300))
        let after = try #require(device.store.records[note])
        #expect(after.base == before.base && after.baseContent == before.baseContent)
        #expect(device.text(note) == "c" && device.store.entries.count == 1, "the change still waits")
        #expect(after.theirs == nil)
        world.settle()
        #expect(world.server.texts == [note: "c"] && device.icon(note) == RecordRow.Icon.none)
        #expect(world.problems == [])
    }

    @Test(arguments: Forgery.allCases) func aForgedResponseToAPostChangesNothing(_ forgery: Forgery) throws {
        // A first revision has no predecessor, so that every revision is plausible.
        guard ![.fallingRevision, .sameRevision].contains(forgery) else { return }
        let world = World()
        let device = world.startDevice()
        world.settle()
        let id: RecordID = "00000000-0000-4000-8000-000000000001"
        world.server.rules.append(HostileRule("POST", nth: 1...1, forgery.effect(id)))
        _ = device.create("n", "mine", id: id)
        world.run(for: .milliseconds(300))
        #expect(device.store.records[id]?.base == nil && device.text(id) == "mine")
        #expect(device.store.entries.count == 1)
        world.settle()
        #expect(world.server.texts == [id: "mine"] && device.icon(id) == RecordRow.Icon.none)
        #expect(world.server.writes.count == 1)
    }

    @Test(arguments: Forgery.allCases) func aForgedResponseToAGetChangesNothing(_ forgery: Forgery) throws {
        // "9-x" in place of "3-..." is what a real server could send; a revision below the index's is not.
        guard ![.sameRevision].contains(forgery) else { return }
        let world = World()
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        device.edit(note, "b")
        world.settle()
        let before = try #require(device.store.records[note])
        world.server.rules.append(HostileRule("GET", nth: 1...1, forgery.effect(note), where: isNote(note)))
        world.server.write(note, text: "c")
        device.sync()
        world.run(for: .milliseconds(300))
        let after = try #require(device.store.records[note])
        #expect(after.mine == before.mine && after.base == before.base)
        world.run(for: .seconds(90))
        #expect(device.texts == [note: "c"], "a later read succeeds")
        #expect(device.status.quarantine.isEmpty)
    }

    @Test(arguments: [Forgery.html, .redirect, .emptyBody, .accepted, .noMarker])
    func aForgedResponseToADeleteDeletesNothingForGood(_ forgery: Forgery) {
        let world = World()
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        world.server.rules.append(HostileRule("DELETE", nth: 1...1, forgery.effect(note)))
        device.delete(note)
        world.run(for: .milliseconds(300))
        #expect(device.row(note)?.isDeleted == true, "the tombstone stays")
        world.settle()
        #expect(world.server.texts.isEmpty && device.rows.isEmpty)
    }

    @Test(arguments: contracts) func aDeleteAnsweredWithAnUnknownNoteIsDone(_ contract: APIContract) {
        let world = World(contract)
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        device.setInterface(isUp: false)
        world.server.remove(note)
        device.delete(note)
        device.setInterface(isUp: true)
        world.settle()
        #expect(device.rows.isEmpty && device.store.entries.isEmpty && device.store.records.isEmpty)
    }

    // MARK: Validation of the index

    /// Responses to the index that do not say which notes exist.
    enum BadIndex: String, CaseIterable, Sendable {
        case html, emptyWithoutMarker, object, half, cut, notFound, empty204, serverError, wrongType, brokenEntry,
            nothing

        var effect: HostileRule.Effect {
            switch self {
            case .html: .respond(.foreign(200))
            case .emptyWithoutMarker: .respond(WireResponse.notes(200, "[]").with(NotesHTTP.markerName, nil))
            case .object: .respond(.notes(200, #"{"detail":[]}"#))
            case .half: .replace { $0.with(body: String(decoding: $0.body.dropLast(5), as: UTF8.self)) }
            case .cut: .cutResponse(after: -1)
            case .notFound: .respond(.notes(404))
            case .empty204: .respond(.notes(204, ""))
            case .serverError: .respond(.notes(500, "[]"))
            case .wrongType: .respond(WireResponse.notes(200, "[]").with("Content-Type", "text/html"))
            case .brokenEntry: .respond(.notes(200, #"[{"uuid":7,"revision":"1-a"}]"#))
            case .nothing: .endResponse(after: 0)
            }
        }
    }

    @Test(arguments: BadIndex.allCases) func absenceInABadIndexDeletesNothing(_ index: BadIndex) {
        let world = World(.orig)
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        world.server.rules.append(HostileRule("GET", nth: 1...3, index.effect, where: isIndex))
        device.sync()
        world.run(for: .milliseconds(500))
        #expect(device.texts == [note: "a"])
        world.run(for: .seconds(120))
        #expect(device.texts == [note: "a"] && device.icon(note) == RecordRow.Icon.none)
    }

    @Test func absenceInACompleteIndexDeletesAnUnchangedNoteOnly() {
        let world = World(.orig)
        let device = world.startDevice()
        let (clean, dirty) = (device.create("c", "clean"), device.create("d", "dirty"))
        world.settle()
        device.setInterface(isUp: false)
        device.edit(dirty, "edited")
        world.server.remove(clean)
        world.server.remove(dirty)
        device.setInterface(isUp: true)
        world.settle()
        #expect(device.row(clean) == nil)
        #expect(device.icon(dirty) == .conflict && device.text(dirty) == "edited")
    }

    @Test func absenceBeforeTheLastPageDeletesNothing() {
        let world = World()
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        device.kill()
        var state = device.store.state
        state.index = IndexState()
        device.store.replace(with: state)
        // The first page names a next one, which never comes.
        world.server.rules.append(
            HostileRule(
                "GET", nth: 1...1,
                .replace {
                    $0.with(body: "[]").with("Link", "<\(NotesHTTP.indexPath)?since=epoch1.1.0&limit=1>; rel=\"next\"")
                }, where: isIndex))
        world.server.rules.append(HostileRule("GET", .respond(.notes(500)), where: isIndex))
        device.start()
        world.run(for: .seconds(90))
        #expect(device.texts == [note: "a"])
    }

    @Test func anExpiredCursorReadsTheWholeIndexAgain() {
        let world = World()
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        world.server.write("00000000-0000-4000-8000-00000000000b", text: "b")
        world.server.rules.append(HostileRule("GET", nth: 1...1, .respond(.notes(410)), where: isIndex))
        device.sync()
        world.settle()
        #expect(device.texts == [note: "a", "00000000-0000-4000-8000-00000000000b": "b"])
    }

    @Test(arguments: [
        #"{"uuid":7,"revision":"1-a"}"#, #"{"uuid":"x"}"#, #"{"uuid":"x","revision":null}"#,
        #"{"uuid":"x","revision":"junk"}"#, "null", "[]", #""x""#, #"{"revision":"1-a"}"#,
    ]) func anUnreadableIndexEntryIsSetAsideAlone(_ entry: String) {
        let world = World()
        let device = world.startDevice()
        for number in 1...3 { world.server.write(Self.id(number), text: "\(number)") }
        world.server.rules.append(
            HostileRule(
                "GET",
                .replace { $0.with(body: "[\(entry)," + String(decoding: $0.body.dropFirst(), as: UTF8.self)) },
                where: isIndex))
        world.server.rules.append(HostileRule("GET", .respond(.notes(200, "{}")), where: isNote("x")))
        world.settle()
        #expect(device.texts.values.sorted() == ["1", "2", "3"])
        world.server.write(Self.id(2), text: "two")
        device.sync()
        world.settle()
        #expect(device.texts[Self.id(2)] == "two", "the next index is read, too")
        if entry.contains(#""uuid":"x""#) { #expect(device.status.quarantine["x"] != nil) }
    }

    static func id(_ number: Int) -> RecordID {
        RecordID("00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - "\(number)".count) + "\(number)")
    }

    @Test(arguments: [
        #"{"uuid":"x"}"#, "[]", "null", #"{"uuid":"00000000-0000-4000-8000-000000000002","revision":"9-x"}"#,
        #"{"uuid":"00000000-0000-4000-8000-000000000002","revision":"9-x","date":"d","title":7,"text":"t"}"#,
    ]) func anUnreadableNoteIsSetAsideAloneAndReadWhenItIsGood(_ body: String) {
        let world = World()
        let device = world.startDevice(policy: .singleReads)
        for number in 1...5 { world.server.write(Self.id(number), text: "\(number)") }
        world.server.rules.append(HostileRule("GET", .respond(.notes(200, body)), where: isNote(Self.id(2))))
        world.run(for: .seconds(10))
        #expect(device.texts.values.sorted() == ["1", "3", "4", "5"])
        #expect(device.status.quarantine[Self.id(2)] != nil)
        #expect(device.store.quarantine[Self.id(2)] != nil, "the reason is stored")
        world.server.rules = []
        device.sync()
        world.run(for: .seconds(10))
        #expect(device.texts.values.sorted() == ["1", "2", "3", "4", "5"])
        #expect(device.status.quarantine.isEmpty && device.store.quarantine.isEmpty)
    }

    @Test(arguments: contracts) func nullsFractionsAndUnknownKeysAreRead(_ contract: APIContract) {
        let world = World(contract)
        let device = world.startDevice()
        world.settle()
        world.server.write(Self.id(1), title: nil, text: nil)
        world.server.write(Self.id(2), title: "t", text: "")
        world.server.rules.append(
            HostileRule(
                "GET",
                .replace {
                    $0.with(body: #"{"extra":{"a":[1]},"# + String(decoding: $0.body.dropFirst(), as: UTF8.self))
                },
                where: isNote(Self.id(2))))
        device.sync()
        world.settle()
        #expect(device.rows.count == 2)
        #expect(device.text(Self.id(1)) == nil && device.text(Self.id(2)) == "")
    }

    // MARK: Identifiers of the original server

    @Test(arguments: ["a b", "50%", "%2F", "a?b", "a#b", "..", ".", "ä", "日本", "a+b", "UPPER-case", "a;b=c", "\"'<>"])
    func anOddIdentifierIsCreatedEditedReadAndDeleted(_ text: String) {
        let id = RecordID(text)
        let world = World(.orig)
        let first = world.startDevice("A")
        let second = world.startDevice("B")
        world.settle()
        _ = first.create("n", "one", id: id)
        world.settle()
        first.edit(id, "two")
        world.settle()
        second.sync()
        world.settle()
        #expect(second.texts == [id: "two"])
        second.edit(id, "three")
        world.settle()
        first.sync()
        world.settle()
        #expect(first.texts == [id: "three"] && first.icon(id) == RecordRow.Icon.none)
        first.delete(id)
        world.settle()
        second.sync()
        world.settle()
        #expect(world.server.texts.isEmpty && first.rows.isEmpty && second.rows.isEmpty)
        #expect(world.problems == [])
    }

    @Test func identifiersThatDifferInCaseOrNormalisationAreDifferentNotes() {
        let world = World(.orig)
        let device = world.startDevice()
        let ids: [RecordID] = ["note", "NOTE", "Note", "\u{FC}", "u\u{308}"]
        for id in ids { world.server.write(id, text: "text of \(Array(id.text.utf8))") }
        device.sync()
        world.settle()
        #expect(device.rows.count == 5)
        for id in ids { #expect(device.text(id) == "text of \(Array(id.text.utf8))") }
        for id in ids { device.edit(id, "new \(Array(id.text.utf8))") }
        world.settle()
        for id in ids { #expect(world.server.texts[id] == "new \(Array(id.text.utf8))") }
        device.delete("\u{FC}")
        world.settle()
        #expect(world.server.texts.count == 4 && device.rows.count == 4)
        #expect(world.server.texts["u\u{308}"] != nil)
    }

    @Test func aNoteWhosePathTheServerCannotFindHarmsNoOther() {
        let world = World(.orig)
        let device = world.startDevice(policy: .singleReads)
        world.settle()
        world.server.write("a/b", text: "slash")
        world.server.write("plain", text: "plain")
        device.sync()
        world.run(for: .seconds(300))
        #expect(device.texts["plain"] == "plain")
        device.edit("plain", "edited")
        #expect(world.run(limit: .seconds(5)) { world.server.texts["plain"] == "edited" })
        let reads = world.server.arrivals.filter { $0.target == "/api/notes/a%2Fb/" }.count
        #expect((1...12).contains(reads), "the path is percent-encoded, and asked for once per index")
    }

    @Test(arguments: [false, true]) func aNoteDeletedAndCreatedAgainBetweenTwoLooksIsNoticed(isEdited: Bool) {
        let world = World(.orig)
        let device = world.startDevice()
        let note = device.create("n", "first life")
        world.settle()
        device.edit(note, "first life, edited")
        world.settle()
        device.setInterface(isUp: false)
        if isEdited { device.edit(note, "mine") }
        world.server.remove(note)
        world.server.write(note, text: "second life")
        device.setInterface(isUp: true)
        world.settle()
        #expect(world.server.texts == [note: "second life"])
        if isEdited {
            #expect(device.icon(note) == .conflict && device.text(note) == "mine")
            device.resolve(note, .mine)
            world.settle()
            #expect(world.server.texts == [note: "mine"])
        } else {
            #expect(device.texts == [note: "second life"])
        }
        #expect(device.icon(note) == RecordRow.Icon.none)
    }

    @Test func aDeletionOfANoteThatWasCreatedAgainIsAConflict() {
        let world = World(.orig)
        let device = world.startDevice()
        let note = device.create("n", "first life")
        world.settle()
        device.setInterface(isUp: false)
        device.delete(note)
        world.server.remove(note)
        world.server.write(note, text: "second life")
        device.setInterface(isUp: true)
        world.settle()
        #expect(world.server.texts == [note: "second life"])
        #expect(device.icon(note) == .conflict)
    }
}
