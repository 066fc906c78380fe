import Foundation
import GRDB
import HTTPTypes
import NotesContract
import NotesService
import TestSupport
import Testing
import Wire

/// Extensions of `compat` and `strict`: cursors, expiring tombstones, tokens, sessions, pins, limits.
@Suite struct ContractExtensionTests {
    private static let index = "/api/notes-uuids/"
    private static let repaired: [APIContract] = [.compat, .strict]

    private static func entries(_ response: Fixture.Response) throws -> [IndexEntry] {
        try #require(IndexEntry.index(json: Array(response.body.utf8)))
    }

    private static func uuid(_ number: Int) -> String {
        let digits = String(number)
        return "00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits
    }

    // MARK: Histories

    @Test(arguments: repaired) func responsesToAuthenticatedRequestsIdentifyTheHistory(contract: APIContract) throws {
        let fixture = try Fixture(contract, limits: .init(), testHooks: TestHooks())
        let history = try #require(fixture.send("GET", Self.index).field("Slowlane-History"))
        #expect(
            history.utf8.count == 16 && history.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) })
        for (method, path, body) in [
            ("POST", "/api/notes/", #"{"uuid":"\#(Self.uuid(1))"}"#), ("POST", "/api/notes/", "{"),
            ("HEAD", "/api/notes/", ""), ("GET", "/api/notes/\(Self.uuid(9))/", ""), ("GET", "/api/", ""),
            ("PUT", "/api/", ""), ("OPTIONS", Self.index, ""), ("GET", Self.index + "?since=x", ""),
        ] {
            let response = fixture.send(method, path, body)
            #expect(response.field("Slowlane-History") == history, "\(method) \(path): \(response.status)")
        }
        let other = fixture.send("GET", Self.index, as: Fixture.bo).field("Slowlane-History")
        #expect(other != nil && other != history)
        for (path, credentials) in [
            (Self.index, nil), (Self.index, "Basic eDp5"), ("/health", Fixture.ada), ("/openapi.json", Fixture.ada),
            ("/notes/", Fixture.ada),
        ] {
            #expect(fixture.send("GET", path, as: credentials).field("Slowlane-History") == nil, "\(path)")
        }
    }

    @Test func theOriginalContractHasNoHistory() throws {
        let fixture = try Fixture(.orig)
        let response = fixture.send("GET", Self.index)
        #expect(response.status == 200 && response.field("Slowlane-History") == nil)
        #expect(!APIContract.orig.openAPI.contains("Slowlane-History"))
        #expect(APIContract.strict.openAPI.contains("Slowlane-History"))
    }

    @Test func aHistoryOutlivesARestartAndEndsWithARestoredSnapshotOrAnotherDatabase() throws {
        let folder = try TemporaryFolder()
        func history(_ store: NotesStore) throws -> String {
            try #require(Fixture(store: store).send("GET", Self.index).field("Slowlane-History"))
        }
        let store = try NotesStore(path: folder.path("notes.db"))
        let first = try history(store)
        #expect(try history(NotesStore(path: folder.path("notes.db"))) == first)
        let snapshot = try store.snapshot()
        var seen: Set = [first, try history(NotesStore(path: folder.path("other.db")))]
        #expect(seen.count == 2)
        for _ in 0..<2 {
            try store.restore(snapshot)
            let restored = try history(store)
            #expect(seen.insert(restored).inserted)
            #expect(try history(NotesStore(path: folder.path("notes.db"))) == restored)
        }
    }

    // MARK: Cursors

    @Test(arguments: repaired) func aCursorListsLaterChanges(contract: APIContract) throws {
        let fixture = try Fixture(contract)
        let first = fixture.create(Self.uuid(1))
        fixture.create(Self.uuid(2))
        let cursor = try #require(fixture.send("GET", Self.index).field("Slowlane-Cursor"))
        #expect(fixture.send("GET", Self.index + "?since=\(cursor)").body == "[]")
        fixture.create(Self.uuid(3))
        #expect(fixture.send("DELETE", "/api/notes/\(Self.uuid(1))/?revision=\(first)").status == 204)
        let since = fixture.send("GET", Self.index + "?since=\(cursor)")
        let changed = try Self.entries(since)
        #expect(changed.map(\.uuid) == [Self.uuid(3), Self.uuid(1)])
        #expect(changed.map(\.isDeleted) == [false, true])
        let next = try #require(since.field("Slowlane-Cursor"))
        #expect(next != cursor)
        #expect(fixture.send("GET", Self.index + "?since=\(next)").body == "[]")
        // Writes of another user do not move the cursor.
        fixture.create(Self.uuid(4), as: Fixture.bo)
        #expect(fixture.send("GET", Self.index).field("Slowlane-Cursor") == next)
    }

    /// The list has the same pages as the index, with whole notes; a page ends after 256 KiB.
    @Test(arguments: repaired) func aCursorListsWholeNotes(contract: APIContract) throws {
        let fixture = try Fixture(contract)
        let first = fixture.create(Self.uuid(1))
        let cursor = try #require(fixture.send("GET", "/api/notes/?since=").field("Slowlane-Cursor"))
        #expect(cursor == fixture.send("GET", Self.index).field("Slowlane-Cursor"))
        fixture.create(Self.uuid(2))
        #expect(fixture.send("DELETE", "/api/notes/\(Self.uuid(1))/?revision=\(first)").status == 204)
        let response = fixture.send("GET", "/api/notes/?since=\(cursor)")
        let entries = try #require(IndexEntry.readableEntries(json: Array(response.body.utf8))?.entries)
        #expect(entries.map(\.uuid) == [Self.uuid(2), Self.uuid(1)] && entries.map(\.isDeleted) == [false, true])
        #expect(
            entries[0].note == Note(json: Array(fixture.send("GET", "/api/notes/\(Self.uuid(2))/").body.utf8)))
        #expect(entries[1].note == nil && response.field("Link") == nil)
        #expect(fixture.send("GET", "/api/notes/?since=other.1.0").status == 410)
        #expect(fixture.send("GET", "/api/notes/?limit=0").status == 400)
        // Large notes: a page has at least one, and ends after the limit.
        let text = String(repeating: "x", count: 200_000)
        for number in 3...7 {
            let body = #"{"uuid":"\#(Self.uuid(number))","date":"2026-03-01T08:00:00Z","title":null,"text":"\#(text)"}"#
            #expect(fixture.send("POST", "/api/notes/", body).status == 201)
        }
        var (path, sizes, found): (String?, [Int], [String]) = ("/api/notes/?since=", [], [])
        while let current = path, sizes.count < 10 {
            let page = fixture.send("GET", current)
            sizes.append(page.body.utf8.count)
            found += try #require(IndexEntry.readableEntries(json: Array(page.body.utf8))?.entries).map(\.uuid)
            path = page.field("Link").map { String($0.dropFirst().prefix { $0 != ">" }) }
        }
        #expect(found == [2, 1, 3, 4, 5, 6, 7].map(Self.uuid) && sizes.count == 3, "\(sizes)")
        #expect(sizes.allSatisfy { $0 < (256 << 10) + 201_000 })
    }

    /// The pages together show the final state, whatever is written between them.
    @Test(arguments: 0..<40) func pagesIncludeNotesWrittenBetweenThem(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let fixture = try Fixture()
        var revisions: [String: String] = [:]
        for number in 1...Int.random(in: 1...30, using: &random) {
            revisions[Self.uuid(number)] = fixture.create(Self.uuid(number))
        }
        var known: [String: IndexEntry] = [:]
        var path: String? = Self.index + "?limit=\(Int.random(in: 1...7, using: &random))"
        var pages = 0
        while let current = path {
            let response = fixture.send("GET", current)
            #expect(response.status == 200)
            for entry in try Self.entries(response) { known[entry.uuid] = entry }
            path = response.field("Link").map { String($0.dropFirst().prefix { $0 != ">" }) }
            pages += 1
            guard path != nil, pages < 60 else { continue }
            let uuid = Self.uuid(Int.random(in: 1...40, using: &random))
            switch (revisions[uuid], Int.random(in: 0..<3, using: &random)) {
            case (nil, _): revisions[uuid] = fixture.create(uuid)
            case (let revision?, 0):
                if fixture.send("DELETE", "/api/notes/\(uuid)/?revision=\(revision)").status == 204 {
                    revisions[uuid] = ""
                }
            case (let revision?, _) where !revision.isEmpty:
                let body = #"{"revision":"\#(revision)","title":"\#(pages)"}"#
                revisions[uuid] = fixture.send("PATCH", "/api/notes/\(uuid)/", body).revision
            default: break
            }
        }
        let whole = try Self.entries(fixture.send("GET", Self.index))
        #expect(Set(known.values) == Set(whole), "seed \(seed)")
    }

    @Test(arguments: [
        ("since=x", 400), ("since=.", 400), ("since=abc.-1", 400), ("since=other.1", 400), ("since=other.1.0", 410),
        ("since=a.1.-1", 400), ("limit=0", 400),
        ("limit=1001", 400), ("limit=x", 400), ("since=&limit=1", 200),
    ]) func invalidCursorsAndLimitsAreRejected(query: String, status: Int) throws {
        let fixture = try Fixture()
        fixture.create()
        #expect(fixture.send("GET", Self.index + "?" + query).status == status)
    }

    // MARK: Tombstones

    @Test func tombstonesExpireAndTheRevisionNumberContinues() throws {
        var limits = NotesService.Limits()
        limits.retentionSeconds = 1000
        let fixture = try Fixture(limits: limits)
        let path = "/api/notes/\(Fixture.n1)/"
        #expect(fixture.send("DELETE", path + "?revision=\(fixture.create())").status == 204)
        let index = fixture.send("GET", Self.index)
        #expect(index.field("Slowlane-Tombstone-Retention") == "1000")
        let after = try #require(index.field("Slowlane-Cursor"))
        fixture.clock.advance(seconds: 999)
        fixture.create(Fixture.n2)
        #expect(fixture.send("POST", "/api/notes/", #"{"uuid":"\#(Fixture.n1)"}"#).status == 409)
        fixture.clock.advance(seconds: 100)
        fixture.create(Self.uuid(3))
        #expect(try Self.entries(fixture.send("GET", Self.index)).map(\.uuid) == [Fixture.n2, Self.uuid(3)])
        // A cursor after the tombstone stays valid. The uuid is free again, but its revision number continues.
        #expect(fixture.send("GET", Self.index + "?since=\(after)").status == 200)
        let again = fixture.send("POST", "/api/notes/", #"{"uuid":"\#(Fixture.n1)"}"#)
        #expect(again.status == 201)
        #expect(again.note?.revision.number == 3)
    }

    /// A client that was offline for longer than the retention would otherwise miss the deletion.
    @Test func aCursorFromBeforeAPrunedTombstoneIsRejected() throws {
        var limits = NotesService.Limits()
        limits.retentionSeconds = 1000
        let fixture = try Fixture(limits: limits)
        let revision = fixture.create()
        let away = try #require(fixture.send("GET", Self.index).field("Slowlane-Cursor"))
        #expect(fixture.send("DELETE", "/api/notes/\(Fixture.n1)/?revision=\(revision)").status == 204)
        #expect(fixture.send("GET", Self.index + "?since=\(away)").status == 200)
        fixture.clock.advance(seconds: 2000)
        fixture.create(Fixture.n2)
        #expect(fixture.send("GET", Self.index + "?since=\(away)").status == 410)
        #expect(fixture.send("GET", Self.index + "?since=").status == 200)
    }

    /// A client that pages from the beginning never had the pruned note.
    @Test func pagesFromTheBeginningSkipAPrunedTombstone() throws {
        var limits = NotesService.Limits()
        limits.retentionSeconds = 1000
        let fixture = try Fixture(limits: limits)
        let revisions = (1...5).map { fixture.create(Self.uuid($0)) }
        #expect(fixture.send("DELETE", "/api/notes/\(Self.uuid(5))/?revision=\(revisions[4])").status == 204)
        fixture.clock.advance(seconds: 2000)
        fixture.create(Self.uuid(6))
        var path: String? = Self.index + "?limit=2"
        var seen: [String] = []
        while let current = path {
            let response = fixture.send("GET", current)
            #expect(response.status == 200, "\(current)")
            seen += try Self.entries(response).map(\.uuid)
            path = response.field("Link").map { String($0.dropFirst().prefix { $0 != ">" }) }
        }
        #expect(seen == [1, 2, 3, 4, 6].map(Self.uuid))
        // A tombstone pruned between two pages invalidates the cursor, because an earlier page may show the note.
        let begun = try #require(fixture.send("GET", Self.index + "?limit=4").field("Slowlane-Cursor"))
        #expect(fixture.send("DELETE", "/api/notes/\(Self.uuid(1))/?revision=\(revisions[0])").status == 204)
        fixture.clock.advance(seconds: 2000)
        fixture.create(Self.uuid(7))
        #expect(fixture.send("GET", Self.index + "?since=\(begun)").status == 410)
    }

    /// The cleanup has a transaction of its own, which the rejected write does not roll back.
    @Test func aRejectedWriteStillRemovesExpiredTombstones() throws {
        var limits = NotesService.Limits()
        limits.retentionSeconds = 1000
        let fixture = try Fixture(limits: limits)
        fixture.send("DELETE", "/api/notes/\(Fixture.n1)/?revision=\(fixture.create())")
        fixture.create(Fixture.n2)
        let index = fixture.send("GET", Self.index)
        let tag = index.field("ETag") ?? ""
        fixture.clock.advance(seconds: 2000)
        #expect(fixture.send("PATCH", "/api/notes/\(Fixture.n2)/", #"{"revision":"9-x"}"#).status == 409)
        // The index has changed, and so has its entity tag.
        let later = fixture.send("GET", Self.index, with: ["If-None-Match": tag])
        #expect(later.status == 200)
        #expect(try Self.entries(later).map(\.uuid) == [Fixture.n2])
    }

    @Test func resultsOfOperationsAreKeptAsLongAsTombstones() throws {
        var limits = NotesService.Limits()
        limits.retentionSeconds = 1000
        let fixture = try Fixture(limits: limits)
        let key = ["Idempotency-Key": "a"]
        let body = #"{"title":"Milk"}"#
        let made = fixture.send("POST", "/api/notes/", body, with: key)
        fixture.clock.advance(seconds: 1000)
        #expect(fixture.send("POST", "/api/notes/", body, with: key).note == made.note)
        fixture.clock.advance(seconds: 60)
        #expect(fixture.send("POST", "/api/notes/", body, with: key).status == 201)
    }

    // MARK: Conditional requests

    @Test(arguments: repaired) func everyWriteChangesTheEntityTagOfLists(contract: APIContract) throws {
        let fixture = try Fixture(contract)
        var tags: Set<String> = []
        func tag() throws -> String { try #require(fixture.send("GET", "/api/notes/").field("ETag")) }
        tags.insert(try tag())
        let revision = fixture.create()
        tags.insert(try tag())
        fixture.send("PUT", "/api/notes/\(Fixture.n1)/pin/")
        tags.insert(try tag())
        fixture.send("DELETE", "/api/notes/\(Fixture.n1)/?revision=\(revision)")
        let last = try tag()
        tags.insert(last)
        #expect(tags.count == 4)
        for path in ["/api/notes/", Self.index] {
            let known = fixture.send("GET", path, with: ["If-None-Match": last])
            #expect(known.status == 304)
            #expect(known.body.isEmpty)
            #expect(known.field("ETag") == last)
        }
    }

    /// An HTTP date has a resolution of one second, so it is not sent within the second of the last write.
    @Test func ifModifiedSinceGets304() throws {
        let fixture = try Fixture()
        fixture.create()
        let path = "/api/notes/\(Fixture.n1)/"
        #expect(fixture.send("GET", path).field("Last-Modified") == nil)
        fixture.clock.advance(seconds: 5)
        let date = "Sun, 01 Mar 2026 08:00:00 GMT"
        #expect(fixture.send("GET", path).field("Last-Modified") == date)
        #expect(fixture.send("GET", path, with: ["If-Modified-Since": date]).status == 304)
        #expect(fixture.send("GET", path, with: ["If-Modified-Since": "Sun, 01 Mar 2026 07:59:59 GMT"]).status == 200)
        #expect(fixture.send("GET", path, with: ["If-Modified-Since": "yesterday"]).status == 200)
        // If-None-Match takes precedence (RFC 9110, 13.2.2).
        #expect(fixture.send("GET", path, with: ["If-Modified-Since": date, "If-None-Match": "\"x\""]).status == 200)
        #expect(fixture.send("GET", path).field("Cache-Control") == "private, no-cache")
        let orig = try Fixture(.orig)
        orig.create()
        orig.clock.advance(seconds: 5)
        #expect(orig.send("GET", path).field("Last-Modified") == nil)
        #expect(orig.send("GET", path).field("Cache-Control") == nil)
    }

    /// Canonically equivalent strings with different bytes are different content.
    @Test func contentIsComparedByteForByte() throws {
        let fixture = try Fixture()
        func body(_ title: String, _ revision: String?) -> String {
            let named = revision.map { #","revision":"\#($0)""# } ?? ""
            return #"{"uuid":"\#(Fixture.n1)","title":"\#(title)","text":null,"date":"2026-03-01T08:00:00Z"\#(named)}"#
        }
        let first = fixture.send("POST", "/api/notes/", body("\u{E9}", nil))
        #expect(fixture.send("POST", "/api/notes/", body("e\u{301}", nil)).status == 409)
        let put = fixture.send("PUT", "/api/notes/\(Fixture.n1)/", body("e\u{301}", first.revision))
        #expect(put.note?.revision.number == 2)
        #expect(put.body.contains("e\u{301}".unicodeScalars.map(String.init).joined()))
    }

    /// The spelling of the path does not matter; another precondition makes another request.
    @Test func anIdempotencyKeyIdentifiesTheMeaningOfARequest() throws {
        let fixture = try Fixture()
        let uuid = "abcdef00-0000-4000-8000-000000000001"
        let body = #"{"revision":"\#(fixture.create(uuid))","title":"a"}"#
        let key = ["Idempotency-Key": "a"]
        let first = fixture.send("PATCH", "/api/notes/\(uuid)/", body, with: key)
        #expect(first.status == 200)
        for path in ["/api/notes/\(uuid)", "/api/notes/\(uuid.uppercased())/"] {
            #expect(fixture.send("PATCH", path, body, with: key).body == first.body)
        }
        let other = fixture.send(
            "PATCH", "/api/notes/\(uuid)/", body, with: key.merging(["If-Match": "\"9-x\""]) { $1 })
        #expect(other.status == 422)
        #expect(fixture.send("PUT", "/api/notes/\(uuid)/pin/", body, with: key).status == 422)
    }

    // MARK: Tokens

    private static func token(_ response: Fixture.Response, _ name: String) -> String {
        JSONText.parse(Array(response.body.utf8))?.object?[name]?.text ?? "none"
    }

    @Test(arguments: repaired) func tokensExpireAndAreRefreshed(contract: APIContract) throws {
        var limits = NotesService.Limits()
        limits.accessSeconds = 60
        limits.refreshSeconds = 600
        let fixture = try Fixture(contract, limits: limits)
        fixture.create()
        let given = fixture.send("POST", "/api/tokens/")
        #expect(given.status == 201)
        #expect(given.field("Cache-Control") == "no-store")
        let access = "Bearer " + Self.token(given, "access_token")
        let refresh = #"{"refresh_token":"\#(Self.token(given, "refresh_token"))"}"#
        #expect(fixture.send("GET", "/api/notes/", as: access).body.contains("Milk"))
        // Refresh and access tokens are not interchangeable.
        #expect(fixture.send("GET", "/api/", as: "Bearer " + Self.token(given, "refresh_token")).status != 200)
        #expect(
            fixture.send(
                "POST", "/api/tokens/refresh/", #"{"refresh_token":"\#(Self.token(given, "access_token"))"}"#, as: nil
            )
            .status == 400)
        fixture.clock.advance(seconds: 60)
        let expired = fixture.send("GET", "/api/notes/", as: access)
        #expect(expired.status == (contract == .strict ? 401 : 403))
        #expect(
            expired.field("WWW-Authenticate")?.contains("invalid_token") == (contract == .strict ? true : nil))
        // The second time stands for a retry after a lost response.
        for _ in 0..<2 {
            let renewed = fixture.send("POST", "/api/tokens/refresh/", refresh, as: nil)
            #expect(renewed.status == 200)
            #expect(
                fixture.send("GET", "/api/notes/", as: "Bearer " + Self.token(renewed, "access_token")).status == 200)
        }
        fixture.clock.advance(seconds: 600)
        let late = fixture.send("POST", "/api/tokens/refresh/", refresh, as: nil)
        #expect(late.status == 400)
        #expect(late.body == #"{"error":"invalid_grant"}"#)
    }

    @Test func tokensAreRevoked() throws {
        let fixture = try Fixture()
        let given = fixture.send("POST", "/api/tokens/")
        let bos = "Bearer " + Self.token(fixture.send("POST", "/api/tokens/", as: Fixture.bo), "access_token")
        let access = "Bearer " + Self.token(given, "access_token")
        #expect(fixture.send("DELETE", "/api/tokens/", as: access).status == 204)
        #expect(fixture.send("GET", "/api/", as: access).status == 403)
        #expect(
            fixture.send("POST", "/api/tokens/refresh/", #"{"refresh_token":"\#(Self.token(given, "refresh_token"))"}"#)
                .status
                == 400)
        #expect(fixture.send("GET", "/api/", as: bos).status == 200)
        #expect(try Fixture(.orig).send("POST", "/api/tokens/").status == 404)
    }

    // MARK: Sessions

    @Test(arguments: APIContract.all) func aBrowserLogsIn(contract: APIContract) throws {
        let fixture = try Fixture(contract)
        fixture.create(title: "<b>Milk</b>")
        let login = "/accounts/login/?next=/notes/"
        #expect(fixture.send("GET", "/notes/", as: nil).field("Location") == login)
        #expect(fixture.send("GET", login, as: nil).body.contains("<form"))
        #expect(fixture.send("POST", login, "username=ada&password=wrong", as: nil).status == 403)
        let entered = fixture.send("POST", login, "username=ada&password=secret", as: nil)
        #expect(entered.status == 302)
        #expect(entered.field("Location") == "/notes/")
        let cookies = entered.head.headerFields[values: .setCookie]
        let session = try #require(cookies.first { $0.hasPrefix("sessionid=") })
        #expect(session.contains("; HttpOnly") && session.contains("; SameSite=Lax"))
        let csrf = try #require(cookies.first { $0.hasPrefix("csrftoken=") }).dropFirst(10).prefix { $0 != ";" }
        let cookie = ["Cookie": "a=b; " + session.prefix { $0 != ";" }]
        let page = fixture.send("GET", "/notes/", as: nil, with: cookie)
        #expect(page.status == 200)
        #expect(page.body.contains("&lt;b&gt;Milk&lt;/b&gt;"))
        #expect(page.field("Content-Security-Policy")?.hasPrefix("default-src 'none'") == true)
        #expect(fixture.send("GET", "/api/notes/", as: nil, with: cookie).status == 200)
        // A write with a session needs the CSRF token.
        let body = #"{"uuid":"\#(Fixture.n2)"}"#
        #expect(fixture.send("POST", "/api/notes/", body, as: nil, with: cookie).status == 403)
        let token = cookie.merging(["X-CSRFToken": String(csrf)]) { $1 }
        #expect(fixture.send("POST", "/api/notes/", body, as: nil, with: token).status == 201)
        #expect(
            fixture.send("POST", "/accounts/logout/", as: nil, with: cookie.merging(["Origin": "http://evil"]) { $1 })
                .status == 403)
        #expect(fixture.send("POST", "/accounts/logout/", as: nil, with: cookie).status == 302)
        #expect(fixture.send("GET", "/notes/", as: nil, with: cookie).status == 302)
    }

    /// A page of another origin can make the browser send forms and plain text with the user's password or cookie.
    @Test(arguments: APIContract.all) func crossOriginWritesAreRejected(contract: APIContract) throws {
        let fixture = try Fixture(contract)
        let form = ["Content-Type": "application/x-www-form-urlencoded"]
        let login = ("/accounts/login/", "username=ada&password=secret")
        for (path, body) in [login, ("/api/notes/", "title=x&uuid=\(Fixture.n1)")] {
            for foreign in [
                ["Origin": "http://evil.example"], ["Origin": "null"], ["Origin": "http://localhost:3000"],
                ["Sec-Fetch-Site": "cross-site"], ["Sec-Fetch-Site": "same-site"],
            ] {
                #expect(
                    fixture.send("POST", path, body, with: form.merging(foreign) { $1 }).status == 403, "\(foreign)")
            }
        }
        #expect(
            fixture.send("DELETE", "/api/notes/\(Fixture.n1)/", with: ["Origin": "http://evil.example"]).status == 403)
        #expect(try fixture.notes.isEmpty)
        for (index, own) in [
            ["Origin": "http://localhost:8000"], ["Origin": "https://localhost:8000"],
            ["Sec-Fetch-Site": "same-origin"], ["Sec-Fetch-Site": "none"], [:],
        ].enumerated() {
            #expect(fixture.send("POST", login.0, login.1, with: form.merging(own) { $1 }).status == 302, "\(own)")
            let body = "title=x&uuid=00000000-0000-4000-8000-00000000010\(index)"
            #expect(fixture.send("POST", "/api/notes/", body, with: form.merging(own) { $1 }).status == 201, "\(own)")
        }
        // Reads are safe, and the browser hides their result from other origins.
        #expect(fixture.send("GET", "/api/notes/", with: ["Origin": "http://evil.example"]).status == 200)
    }

    @Test(arguments: ["//evil", "http://evil", "/\\evil", "/%0d%0aX:y", ""]) func aLoginNeverRedirectsToAnotherSite(
        next: String
    )
        throws
    {
        let response = try Fixture().send(
            "POST", "/accounts/login/?next=\(next)", "username=ada&password=secret", as: nil)
        #expect(response.field("Location") == "/notes/")
    }

    // MARK: Pins

    @Test(arguments: repaired) func aPinBelongsToItsOwnerAndChangesNoRevision(contract: APIContract) throws {
        let fixture = try Fixture(contract)
        let revision = fixture.create()
        let path = "/api/notes/\(Fixture.n1)/pin/"
        let cursor = try #require(fixture.send("GET", Self.index).field("Slowlane-Cursor"))
        #expect(fixture.send("GET", path).body == #"{"pinned":false}"#)
        #expect(fixture.send("PUT", path).status == 204)
        #expect(fixture.send("PUT", path).status == 204)
        #expect(fixture.send("GET", path).body == #"{"pinned":true}"#)
        #expect(fixture.send("GET", "/api/notes/\(Fixture.n1)/").revision == revision)
        let changed = try Self.entries(fixture.send("GET", Self.index + "?since=\(cursor)"))
        #expect(changed.map(\.isPinned) == [true])
        #expect(fixture.send("PUT", path, as: Fixture.bo).status == 404)
        #expect(fixture.send("DELETE", path).status == 204)
        #expect(fixture.send("GET", path).body == #"{"pinned":false}"#)
        fixture.send("PUT", path)
        fixture.send("DELETE", "/api/notes/\(Fixture.n1)/?revision=\(revision)")
        #expect(fixture.send("PUT", path).status == (contract == .strict ? 410 : 404))
        #expect(try Self.entries(fixture.send("GET", Self.index)).map(\.isPinned) == [false])
    }

    // MARK: Limits

    @Test func requestsOverTheRateGet429() throws {
        var limits = NotesService.Limits()
        limits.requestsPerSecond = 2
        let fixture = try Fixture(limits: limits)
        #expect((0..<4).map { _ in fixture.send("GET", "/api/").status } == [200, 200, 429, 429])
        #expect(fixture.send("GET", "/api/").field("Retry-After") == "1")
        #expect(fixture.send("GET", "/api/", as: Fixture.bo).status == 200)
        fixture.clock.advance(seconds: 1)
        #expect((0..<3).map { _ in fixture.send("GET", "/api/").status } == [200, 200, 429])
        limits.requestsPerSecond = 1e-30
        let least = try Fixture(limits: limits)
        #expect((0..<2).map { _ in least.send("GET", "/api/").status } == [200, 429])
        #expect(least.send("GET", "/api/").field("Retry-After") == "86400")
        limits.requestsPerSecond = 0.1
        let slow = try Fixture(limits: limits)
        #expect(slow.send("GET", "/api/").status == 200)
        #expect(slow.send("GET", "/api/").field("Retry-After") == "10")
    }

    @Test func theStatusOfUnauthenticatedRequestsIsAnOption() throws {
        let service = NotesService(store: try NotesStore(path: nil), users: [:], unauthenticatedStatus: 401)
        let response = service.respond(
            to: HTTPRequest(method: .get, scheme: "http", authority: "h", path: "/api/"), body: [])
        #expect(response.head.status.code == 401)
        #expect(response.head.headerFields[.wwwAuthenticate]?.hasPrefix("Basic ") == true)
    }

    // MARK: Files

    /// A database file of version 1.
    @Test func aFileOfVersion1IsMigrated() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("notes.db")
        try DatabaseQueue(path: path).write {
            try $0.execute(
                sql: """
                    CREATE TABLE note (
                        owner TEXT NOT NULL, uuid TEXT NOT NULL, number INTEGER NOT NULL, suffix TEXT NOT NULL,
                        date TEXT NOT NULL, title BLOB, text BLOB, deleted INTEGER NOT NULL, sequence INTEGER NOT NULL,
                        PRIMARY KEY (owner, uuid)
                    ) STRICT;
                    CREATE TABLE operation (
                        owner TEXT NOT NULL, key TEXT NOT NULL, digest INTEGER NOT NULL, status INTEGER NOT NULL,
                        etag TEXT, body TEXT NOT NULL, made INTEGER NOT NULL,
                        PRIMARY KEY (owner, key)
                    ) STRICT;
                    INSERT INTO note VALUES
                        ('ada', '\(Fixture.n1)', 3, 'x', '2026-03-01T08:00:00.000Z', x'4d696c6b', NULL, 0, 7),
                        ('ada', '\(Fixture.n2)', 2, 'y', '2026-03-01T08:00:00.000Z', NULL, NULL, 1, 9);
                    PRAGMA user_version = 1;
                    """)
        }
        for _ in 0..<2 {
            let fixture = try Fixture(store: NotesStore(path: path))
            #expect(fixture.send("GET", "/api/notes/\(Fixture.n1)/").note?.title == "Milk")
            let entries = try Self.entries(fixture.send("GET", Self.index))
            #expect(entries.map(\.uuid) == [Fixture.n1, Fixture.n2])
            #expect(entries.map(\.isDeleted) == [false, true])
        }
        let error = #expect(throws: NotesStoreError.self) { () throws -> Void in
            _ = try NotesStore(path: path, contract: .orig)
        }
        let description = try #require(error).description
        #expect(description.contains("another contract") && description.contains("compat or strict"))
    }

    @Test func onlyTheOwnerMayReadTheFile() throws {
        let folder = try TemporaryFolder()
        _ = try NotesStore(path: folder.path("notes.db"))
        let attributes = try FileManager.default.attributesOfItem(atPath: folder.path("notes.db"))
        #expect(attributes[.posixPermissions] as? Int == 0o600)
    }

    // MARK: Long lists

    @Test(arguments: APIContract.all) func longListsAreCompleteAcrossPages(contract: APIContract) throws {
        let fixture = try Fixture(contract)
        let text = String(repeating: "x", count: 500)
        for number in 1...2500 {
            try fixture.store.seed(
                Note(
                    uuid: Self.uuid(number), revision: Revision(number: 1, suffix: "s"),
                    date: "2026-03-01T08:00:00.000Z",
                    title: "\(number)", text: text), owner: "ada")
        }
        var request = HTTPRequest(method: .get, scheme: "http", authority: "h", path: "/api/notes/")
        request.headerFields[.authorization] = Fixture.ada
        guard case .pages(let pages) = fixture.service.respond(to: request, body: []).body else {
            Issue.record("the list has one page")
            return
        }
        var whole = try pages.next() ?? ""
        #expect(whole.utf8.count < 100_000)
        // A note on a later page is deleted, and another one changed.
        #expect(fixture.send("DELETE", "/api/notes/\(Self.uuid(2000))/?revision=1-s").status == 204)
        #expect(
            fixture.send("PATCH", "/api/notes/\(Self.uuid(2001))/", #"{"revision":"1-s","title":"new"}"#).status == 200)
        while let page = try pages.next() { whole += page }
        guard case .array(let notes)? = JSONText.parse(Array(whole.utf8)) else {
            Issue.record("not JSON")
            return
        }
        let titles = notes.compactMap { $0.object?["title"]?.text }
        #expect(Set(titles).count == 2499)
        #expect(titles.count == 2499)
        #expect(notes.count == 2499)
        #expect(titles.contains("new") && !titles.contains("2001") && !titles.contains("2000"))
        #expect(try Self.entries(fixture.send("GET", Self.index)).count(where: { !$0.isDeleted }) == 2499)
    }
}
