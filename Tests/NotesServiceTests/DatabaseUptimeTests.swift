import NotesContract
import TestSupport
import Testing

@testable import NotesService

/// The wall clock jumps; nothing is forgotten for that.
@Suite struct DatabaseUptimeTests {
    private static let tenYears = 10 * 365 * 86_400

    private static func limits(rate: Double? = nil) -> NotesService.Limits {
        var limits = NotesService.Limits()
        limits.requestsPerSecond = rate
        return limits
    }

    /// A tombstone, the result of an operation, a token, and what each is answered with.
    private struct Memory {
        let fixture: Fixture
        let bearer: String

        init(_ fixture: Fixture) throws {
            self.fixture = fixture
            let revision = fixture.create()
            #expect(fixture.send("DELETE", "/api/notes/\(Fixture.n1)/?revision=\(revision)").status == 204)
            #expect(fixture.send("POST", "/api/notes/", #"{"title":"a"}"#, with: ["Idempotency-Key": "k"]).status == 201)
            let tokens = fixture.send("POST", "/api/tokens/")
            bearer = "Bearer " + String(tokens.body.split(separator: "\"")[3])
        }

        func expectEverything(_ fixture: Fixture? = nil, hasToken: Bool = true) {
            let fixture = fixture ?? self.fixture
            // A write, with which what is old is looked for.
            #expect(fixture.send("POST", "/api/notes/", #"{"uuid":"\#(UUIDs.random())"}"#).status == 201)
            let index = IndexEntry.index(json: Array(fixture.send("GET", "/api/notes-uuids/").body.utf8)) ?? []
            #expect(index.contains { $0.uuid == Fixture.n1 && $0.isDeleted })
            #expect(fixture.send("POST", "/api/notes/", #"{"title":"a"}"#, with: ["Idempotency-Key": "k"]).status == 200)
            #expect((fixture.send("GET", "/api/", as: bearer).status == 200) == hasToken)
        }
    }

    @Test func aClockThatJumpsTenYearsAheadAndBackForgetsNothing() throws {
        let memory = try Memory(Fixture())
        for step in [Self.tenYears, -Self.tenYears, -Self.tenYears, Self.tenYears] {
            memory.fixture.clock.step(seconds: step)
            memory.fixture.clock.pass(seconds: 61)
            memory.expectEverything()
        }
    }

    @Test func aJumpBetweenTwoRunsForgetsNothingButTokens() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("notes.db")
        let memory = try Memory(Fixture(store: NotesStore(path: path)))
        memory.fixture.clock.pass(seconds: 61)
        memory.expectEverything()
        for (step, hasToken) in [(0, true), (-Self.tenYears, true), (Self.tenYears, false)] {
            let later = try Fixture(store: NotesStore(path: path), startingAt: Fixture.now + 61_000 + step * 1000)
            memory.expectEverything(later, hasToken: hasToken)
        }
    }

    @Test func whatIsOldIsForgottenAllTheSame() throws {
        let memory = try Memory(Fixture())
        // The wall clock stands still, or goes back.
        memory.fixture.clock.pass(seconds: 31 * 86_400)
        memory.fixture.clock.step(seconds: -60 * 86_400)
        #expect(memory.fixture.send("POST", "/api/notes/", "{}").status == 201)
        #expect(!memory.fixture.send("GET", "/api/notes-uuids/").body.contains("deleted"))
        #expect(memory.fixture.send("POST", "/api/notes/", #"{"title":"b"}"#, with: ["Idempotency-Key": "k"]).status == 201)
        #expect(memory.fixture.send("GET", "/api/", as: memory.bearer).status == 403)
    }

    @Test func aRateIsKeptWhateverTheWallClockShows() throws {
        let fixture = try Fixture(limits: Self.limits(rate: 2))
        func ask() -> Int { fixture.send("GET", "/api/").status }
        #expect([ask(), ask(), ask()] == [200, 200, 429])
        fixture.clock.step(seconds: Self.tenYears)
        #expect(ask() == 429)
        fixture.clock.step(seconds: -2 * Self.tenYears)
        fixture.clock.pass(seconds: 1)
        #expect([ask(), ask(), ask()] == [200, 200, 429])
    }

    @Test func timeAddsUpOverRuns() {
        let first = DatabaseUptime(after: nil, wall: 1000).later(by: 50, wall: 1050)
        #expect(first == DatabaseUptime(served: 50, tokens: 50, wall: 1050))
        let second = DatabaseUptime(after: first, wall: 1350).later(by: 7, wall: 1357)
        #expect(second == DatabaseUptime(served: 57, tokens: 357, wall: 1357))
        #expect(DatabaseUptime(after: second, wall: 0) == DatabaseUptime(served: 57, tokens: 357, wall: 0))
    }
}
