import HTTPTypes
import NotesContract
import NotesService
import Testing

/// Responses of the service, and the precedence of errors.
@Suite struct NotesServiceTests {
    // MARK: Authentication

    @Test(arguments: [
        nil, "Basic", "Basic !!", "Basic YWRh", "Basic YWRhOndyb25n", "Basic bm9ib2R5OnNlY3JldA==", "Bearer x",
        "Basic YWRhOg==",
    ]) func authenticationComesBeforeAllOtherChecks(credentials: String?) throws {
        let fixture = try Fixture()
        fixture.create()
        for (method, path) in [
            ("GET", "/api/"), ("GET", "/api/notes/"), ("POST", "/api/notes/"), ("PUT", "/api/notes/\(Fixture.n1)/"),
            ("BREW", "/api/notes/"),
        ] { #expect(fixture.send(method, path, "{", as: credentials).status == 403) }
    }

    @Test func aPasswordMayContainColons() throws {
        #expect(try Fixture().send("GET", "/api/", as: Fixture.bo).status == 200)
    }

    @Test func anotherUsersNoteLooksLikeAMissingOne() throws {
        let fixture = try Fixture()
        let revision = fixture.create()
        let path = "/api/notes/\(Fixture.n1)/"
        let body = #"{"revision":"\#(revision)","title":"x","text":"y","date":"2026-03-01T08:00:00Z"}"#
        #expect(fixture.send("GET", path, as: Fixture.bo).status == 404)
        #expect(fixture.send("PUT", path, body, as: Fixture.bo).status == 404)
        #expect(fixture.send("DELETE", path + "?revision=\(revision)", as: Fixture.bo).status == 404)
        #expect(fixture.send("GET", path).note?.title == "Milk")
        // Each user may use the same uuid.
        #expect(fixture.send("POST", "/api/notes/", #"{"uuid":"\#(Fixture.n1)"}"#, as: Fixture.bo).status == 201)
        #expect(fixture.send("GET", "/api/notes/", as: Fixture.bo).body.contains("Milk") == false)
    }

    // MARK: Creation

    @Test(arguments: [APIContract.orig, .compat]) func aCreatedNoteCanBeRead(contract: APIContract) throws {
        let fixture = try Fixture(contract)
        let body =
            #"{"uuid":"\#(Fixture.n1.uppercased())","title":"Milk","text":null,"date":"2026-03-01T09:30:00+01:00"}"#
        let made = fixture.send("POST", "/api/notes/", body)
        #expect(made.status == 201)
        let note = try #require(made.note)
        #expect(note.title == "Milk")
        #expect(note.text == nil)
        #expect(note.revision.number == 1)
        let shown = fixture.send("GET", "/api/notes/\(note.uuid)/").note
        #expect(shown?.date == (contract == .orig ? "2026-03-01T08:30:00Z" : "2026-03-01T08:30:00.000Z"))
        #expect(shown?.revision == note.revision)
        #expect(fixture.send("GET", "/api/notes/").body == shown.map { "[\($0.json)]" })
        #expect(IndexEntry.index(json: Array(fixture.send("GET", "/api/notes-uuids/").body.utf8))?.count == 1)
        #expect((made.field("ETag") == "\"\(note.revision)\"") == (contract == .compat))
    }

    @Test func theServerSetsMissingUUIDAndDate() throws {
        let made = try Fixture().send("POST", "/api/notes/", "{}")
        #expect(made.status == 201)
        #expect(made.note?.date == "2026-03-01T08:00:00.000Z")
        #expect(made.note?.uuid.count == 36)
    }

    @Test func aSecondCreationIsComparedInCompatAndRejectedInOrig() throws {
        let same = #"{"uuid":"\#(Fixture.n1)","title":"Milk","text":"two"}"#
        let other = #"{"uuid":"\#(Fixture.n1)","title":"Bread","text":"two"}"#
        let orig = try Fixture(.orig)
        orig.create()
        #expect(orig.send("POST", "/api/notes/", same).status == 400)
        #expect(orig.send("POST", "/api/notes/", same, with: ["Idempotency-Key": "k"]).body.contains("already exists"))
        let compat = try Fixture()
        let revision = compat.create()
        let again = compat.send("POST", "/api/notes/", same)
        #expect(again.status == 200)
        #expect(again.revision == revision)
        let refused = compat.send("POST", "/api/notes/", other)
        #expect(refused.status == 409)
        #expect(refused.body.contains(#""current":{"#))
        #expect(refused.field("ETag") == "\"\(revision)\"")
        #expect(compat.send("GET", "/api/notes/\(Fixture.n1)/").note?.title == "Milk")
    }

    @Test(arguments: [
        (#"{"uuid":"short"}"#, "uuid"), (#"{"uuid":7}"#, "uuid"), (#"{"uuid":null}"#, "uuid"),
        (#"{"title":7}"#, "title"), (#"{"text":["x"]}"#, "text"), (#"{"date":"2026-03-01T08:00:00"}"#, "date"),
        (#"{"date":"yesterday"}"#, "date"), (#"{"date":null}"#, "date"), ("[]", "non_field_errors"), ("{", "detail"),
        ("\"text\"", "non_field_errors"), (#"{"title":"\uD800"}"#, "title"),
    ]) func invalidFieldsAreNamed(body: String, field: String) throws {
        let fixture = try Fixture()
        let response = fixture.send("POST", "/api/notes/", body)
        #expect(response.status == 400, "\(body) -> \(response.body)")
        #expect(response.body.contains("\"\(field)\":"), "\(response.body)")
        #expect(fixture.send("GET", "/api/notes/").body == "[]")
    }

    @Test func textsAreKeptByteForByte() throws {
        let fixture = try Fixture()
        for text in ["", "a\u{0}b", "e\u{301}", "é", "🧭\u{200D}🧭", "\u{FEFF}x", "\r\n\t\\\"/"] {
            let draft = NoteDraft(date: "2026-03-01T08:00:00.000Z", title: text, text: text)
            let uuid = UUIDs.random()
            #expect(fixture.send("POST", "/api/notes/", draft.json(uuid: uuid, base: nil)).status == 201)
            let back = fixture.send("GET", "/api/notes/\(uuid)/").note
            #expect(back?.title.map { Array($0.unicodeScalars) } == Array(text.unicodeScalars))
            #expect(back?.text.map { Array($0.unicodeScalars) } == Array(text.unicodeScalars))
        }
    }

    // MARK: Updates

    /// 404 takes precedence over errors in the body, 400 over 409.
    @Test(arguments: [
        ("PUT", "/api/notes/\(Fixture.n2)/", "{", 404),
        ("PUT", "/api/notes/\(Fixture.n1)/", "{", 400),
        ("PUT", "/api/notes/\(Fixture.n1)/", "{}", 400),
        ("PUT", "/api/notes/\(Fixture.n1)/", #"{"revision":""}"#, 400),
        ("PUT", "/api/notes/\(Fixture.n1)/", #"{"revision":null}"#, 400),
        ("PUT", "/api/notes/\(Fixture.n1)/", #"{"revision":"9-x"}"#, 409),
        ("PUT", "/api/notes/\(Fixture.n1)/", #"{"revision":9}"#, 409),
        ("PUT", "/api/notes/\(Fixture.n1)/", #"{"revision":"9-x","title":7}"#, 409),
        ("DELETE", "/api/notes/\(Fixture.n2)/", "", 404),
        ("DELETE", "/api/notes/\(Fixture.n1)/", "", 400),
        ("DELETE", "/api/notes/\(Fixture.n1)/?revision=", "", 400),
        ("DELETE", "/api/notes/\(Fixture.n1)/?revision=9-x", "", 409),
        ("PATCH", "/api/notes/\(Fixture.n1)/", #"{"revision":"9-x"}"#, 409),
        ("POST", "/api/notes/\(Fixture.n1)/", "{}", 405),
        ("DELETE", "/api/notes/", "", 405),
        ("PUT", "/api/notes-uuids/", "{}", 405),
        ("GET", "/api/other/", "", 404),
        ("GET", "/api/notes/not-a-uuid/", "", 404),
    ]) func errorsHaveAPrecedence(method: String, path: String, body: String, status: Int) throws {
        for contract in [APIContract.orig, .compat] {
            let fixture = try Fixture(contract)
            let revision = fixture.create()
            #expect(fixture.send(method, path, body).status == status, "\(contract.name)")
            #expect(fixture.send("GET", "/api/notes/\(Fixture.n1)/").revision == revision)
        }
    }

    @Test func anUpdateOfTheCurrentRevisionIncrementsIt() throws {
        for contract in [APIContract.orig, .compat] {
            let fixture = try Fixture(contract)
            let first = fixture.create()
            let body = #"{"revision":"\#(first)","title":"Bread","text":"one","date":"2026-03-02T08:00:00Z"}"#
            let changed = fixture.send("PUT", "/api/notes/\(Fixture.n1)/", body)
            #expect(changed.status == 200)
            #expect(changed.note?.revision.number == 2)
            #expect(changed.note?.title == "Bread")
            let late = fixture.send("PUT", "/api/notes/\(Fixture.n1)/", body)
            #expect(late.status == 409)
            #expect(late.body.contains("Bread") == (contract == .compat))
        }
    }

    @Test func aPutReplacesInCompatAndMergesInOrig() throws {
        let compat = try Fixture()
        let part = #"{"revision":"\#(compat.create())","title":"Bread"}"#
        let refused = compat.send("PUT", "/api/notes/\(Fixture.n1)/", part)
        #expect(refused.status == 400)
        #expect(refused.body.contains(#""text":"#))
        #expect(compat.send("PATCH", "/api/notes/\(Fixture.n1)/", part).note?.text == "two")
        let orig = try Fixture(.orig)
        let merged = orig.send("PUT", "/api/notes/\(Fixture.n1)/", #"{"revision":"\#(orig.create())","title":"Bread"}"#)
        #expect(merged.note?.text == "two")
        #expect(merged.note?.title == "Bread")
    }

    @Test func aPutWithoutChangesKeepsTheRevisionInCompat() throws {
        for contract in [APIContract.orig, .compat] {
            let fixture = try Fixture(contract)
            let first = fixture.create()
            let date = try #require(fixture.send("GET", "/api/notes/\(Fixture.n1)/").note?.date)
            let same = #"{"revision":"\#(first)","title":"Milk","text":"two","date":"\#(date)"}"#
            let response = fixture.send("PUT", "/api/notes/\(Fixture.n1)/", same)
            #expect((response.revision == first) == (contract == .compat))
        }
    }

    @Test func aTombstoneKeepsTheUUIDInCompat() throws {
        for contract in [APIContract.orig, .compat] {
            let fixture = try Fixture(contract)
            let path = "/api/notes/\(Fixture.n1)/"
            #expect(fixture.send("DELETE", path + "?revision=\(fixture.create())").status == 204)
            #expect(fixture.send("GET", path).status == 404)
            #expect(fixture.send("DELETE", path + "?revision=x").status == 404)
            #expect(fixture.send("GET", "/api/notes/").body == "[]")
            let index = try #require(IndexEntry.index(json: Array(fixture.send("GET", "/api/notes-uuids/").body.utf8)))
            #expect(index.map(\.isDeleted) == (contract == .compat ? [true] : []))
            #expect(index.map(\.revision.number) == (contract == .compat ? [2] : []))
            let again = fixture.send("POST", "/api/notes/", #"{"uuid":"\#(Fixture.n1)"}"#)
            #expect(again.status == (contract == .compat ? 409 : 201))
            // The content of the note is gone.
            #expect(!again.body.contains("Milk"))
        }
    }

    // MARK: Preconditions

    @Test func ifMatchIsAPrecondition() throws {
        let fixture = try Fixture()
        let path = "/api/notes/\(Fixture.n1)/"
        let first = fixture.create()
        func put(_ tag: String, _ revision: String? = nil, _ title: String) -> Fixture.Response {
            let named = revision.map { #","revision":"\#($0)""# } ?? ""
            let body = #"{"title":"\#(title)","text":"x","date":"2026-03-01T08:00:00Z"\#(named)}"#
            return fixture.send("PUT", path, body, with: ["If-Match": tag])
        }
        #expect(put("\"9-x\"", nil, "a").status == 412)
        #expect(put("\"9-x\"", nil, "a").body.contains("current"))
        #expect(put("W/\"\(first)\"", nil, "a").status == 412)
        #expect(put("\"\(first)\"", "9-x", "a").status == 400)
        let second = put("\"9-x\", \"\(first)\"", nil, "b")
        #expect(second.status == 200)
        #expect(put("\"\(second.revision)\"", second.revision, "c").status == 200)
        #expect(put("*", nil, "d").status == 200)
        #expect(fixture.send("DELETE", path, with: ["If-Match": "*"]).status == 204)
        #expect(put("*", nil, "e").status == 404)
    }

    @Test func ifNoneMatchGets304() throws {
        let fixture = try Fixture()
        let tag = "\"\(fixture.create())\""
        let path = "/api/notes/\(Fixture.n1)/"
        for matching in [tag, "W/\(tag)", "\"x\", \(tag)", "*", String(tag.dropFirst().dropLast())] {
            let response = fixture.send("GET", path, with: ["If-None-Match": matching])
            #expect(response.status == 304)
            #expect(response.body.isEmpty)
            #expect(response.field("ETag") == tag)
        }
        #expect(fixture.send("GET", path, with: ["If-None-Match": "\"x\""]).status == 200)
    }

    // MARK: Idempotency

    @Test func aRepeatedOperationGetsTheStoredResult() throws {
        let fixture = try Fixture()
        let path = "/api/notes/\(Fixture.n1)/"
        let create = #"{"uuid":"\#(Fixture.n1)","title":"Milk"}"#
        let made = fixture.send("POST", "/api/notes/", create, with: ["Idempotency-Key": "a"])
        #expect(made.status == 201)
        let put = #"{"revision":"\#(made.revision)","title":"Bread","text":null,"date":"2026-03-01T08:00:00Z"}"#
        let changed = fixture.send("PUT", path, put, with: ["Idempotency-Key": "b"])
        // The note is deleted before the operations are repeated.
        let gone = fixture.send("DELETE", path + "?revision=\(changed.revision)", with: ["Idempotency-Key": "c"])
        #expect(gone.status == 204)

        let madeAgain = fixture.send("POST", "/api/notes/", create, with: ["Idempotency-Key": "a"])
        #expect(madeAgain.status == 200)
        #expect(madeAgain.note == made.note)
        let changedAgain = fixture.send("PUT", path, put, with: ["Idempotency-Key": "b"])
        #expect(changedAgain.status == 200)
        #expect(changedAgain.revision == changed.revision)
        #expect(changedAgain.field("ETag") == changed.field("ETag"))
        #expect(
            fixture.send("DELETE", path + "?revision=\(changed.revision)", with: ["Idempotency-Key": "c"]).status == 204
        )
        #expect(fixture.send("GET", path).status == 404)
    }

    @Test func aKeyIdentifiesOneRequestOfOneUser() throws {
        let fixture = try Fixture()
        let key = ["Idempotency-Key": "a"]
        #expect(fixture.send("POST", "/api/notes/", #"{"title":"Milk"}"#, with: key).status == 201)
        #expect(fixture.send("POST", "/api/notes/", #"{"title":"Bread"}"#, with: key).status == 422)
        #expect(fixture.send("PUT", "/api/notes/\(Fixture.n1)/", #"{"title":"Milk"}"#, with: key).status == 422)
        #expect(fixture.send("POST", "/api/notes/", #"{"title":"Bread"}"#, as: Fixture.bo, with: key).status == 201)
        #expect(fixture.send("POST", "/api/notes/", "{}", with: ["Idempotency-Key": ""]).status == 400)
        #expect(
            fixture.send("POST", "/api/notes/", "{}", with: ["Idempotency-Key": String(repeating: "k", count: 256)])
                .status
                == 400
        )
    }

    @Test func aRejectedOperationIsNotStored() throws {
        let fixture = try Fixture()
        let key = ["Idempotency-Key": "a"]
        let body = #"{"revision":"1-x","title":"Bread","text":null,"date":"2026-03-01T08:00:00Z"}"#
        #expect(fixture.send("PUT", "/api/notes/\(Fixture.n1)/", body, with: key).status == 404)
        fixture.create()
        #expect(fixture.send("PUT", "/api/notes/\(Fixture.n1)/", body, with: key).status == 409)
    }

    // MARK: Common header fields

    @Test func everyResponseHasTheMarker() throws {
        let fixture = try Fixture()
        for response in [
            fixture.send("GET", "/api/"), fixture.send("GET", "/x"), fixture.send("GET", "/api/", as: nil),
            fixture.send("POST", "/api/notes/", "{"),
        ] {
            #expect(response.field(NotesHTTP.markerName) == NotesHTTP.markerValue)
            #expect(response.field("Content-Type") == "application/json")
        }
        let head = fixture.send("HEAD", "/api/notes/")
        #expect(head.status == 200)
        #expect(head.body.isEmpty)
        let options = fixture.send("OPTIONS", "/api/notes/")
        #expect(options.status == 200)
        #expect(options.field("Allow") == "GET, HEAD, POST, OPTIONS")
        #expect(fixture.send("POST", "/api/notes/", "a=b", with: ["Content-Type": "text/plain"]).status == 415)
    }
}
