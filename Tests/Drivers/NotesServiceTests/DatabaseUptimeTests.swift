import NotesContract
import TestSupport
import Testing

@testable import NotesService

/// Expiry does not depend on jumps of the wall clock.
@Suite struct DatabaseUptimeTests {
    private static let tenYears = 10 * 365 * 86_400

    private static func limits(rate: Double? = nil) -> NotesService.Limits {
        var limits = NotesService.Limits()
        limits.requestsPerSecond = rate
        return limits
    }

    /// A tombstone, the result of an operation and a token, which may expire.
    private struct ExpiringState {
        let fixture: Fixture
        let bearer: String

        init(_ fixture: Fixture) throws {
            self.fixture = fixture
            let revision = fixture.create()
            #expect(fixture.send("DELETE", "/api/notes/\(Fixture.n1)/?revision=\(revision)").status == 204)
            #expect(
                fixture.send("POST", "/api/notes/", #"{"title":"a"}"#, with: ["Idempotency-Key": "k"]).status == 201)
            let tokens = fixture.send("POST", "/api/tokens/")
            bearer = "Bearer " + String(tokens.body.split(separator: "\"")[3])
        }

        func expectAllPresent(_ fixture: Fixture? = nil, hasToken: Bool = true) {
            let fixture = fixture ?? self.fixture
            // A write runs the cleanup.
            #expect(fixture.send("POST", "/api/notes/", #"{"uuid":"\#(UUIDs.random())"}"#).status == 201)
            let index = IndexEntry.index(json: Array(fixture.send("GET", "/api/notes-uuids/").body.utf8)) ?? []
            #expect(index.contains { $0.uuid == Fixture.n1 && $0.isDeleted })
            #expect(
                fixture.send("POST", "/api/notes/", #"{"title":"a"}"#, with: ["Idempotency-Key": "k"]).status == 200)
            #expect((fixture.send("GET", "/api/", as: bearer).status == 200) == hasToken)
        }
    }

    @Test func nothingExpiresWhenTheClockJumpsByTenYears() throws {
        let state = try ExpiringState(Fixture())
        for step in [Self.tenYears, -Self.tenYears, -Self.tenYears, Self.tenYears] {
            state.fixture.clock.step(seconds: step)
            state.fixture.clock.advance(seconds: 61)
            state.expectAllPresent()
        }
    }

    @Test func onlyTokensExpireByAJumpBetweenTwoRuns() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("notes.db")
        let state = try ExpiringState(Fixture(store: NotesStore(path: path)))
        state.fixture.clock.advance(seconds: 61)
        state.expectAllPresent()
        for (step, hasToken) in [(0, true), (-Self.tenYears, true), (Self.tenYears, false)] {
            let later = try Fixture(store: NotesStore(path: path), startingAt: Fixture.now + 61_000 + step * 1000)
            state.expectAllPresent(later, hasToken: hasToken)
        }
    }

    @Test func expiryDependsOnUptimeAndNotOnTheWallClock() throws {
        let state = try ExpiringState(Fixture())
        // The wall clock goes back meanwhile.
        state.fixture.clock.advance(seconds: 31 * 86_400)
        state.fixture.clock.step(seconds: -60 * 86_400)
        #expect(state.fixture.send("POST", "/api/notes/", "{}").status == 201)
        #expect(!state.fixture.send("GET", "/api/notes-uuids/").body.contains("deleted"))
        #expect(
            state.fixture.send("POST", "/api/notes/", #"{"title":"b"}"#, with: ["Idempotency-Key": "k"]).status == 201)
        #expect(state.fixture.send("GET", "/api/", as: state.bearer).status == 403)
    }

    @Test func theRateLimitIgnoresTheWallClock() throws {
        let fixture = try Fixture(limits: Self.limits(rate: 2))
        func ask() -> Int { fixture.send("GET", "/api/").status }
        #expect([ask(), ask(), ask()] == [200, 200, 429])
        fixture.clock.step(seconds: Self.tenYears)
        #expect(ask() == 429)
        fixture.clock.step(seconds: -2 * Self.tenYears)
        fixture.clock.advance(seconds: 1)
        #expect([ask(), ask(), ask()] == [200, 200, 429])
    }

    @Test func uptimeAccumulatesOverRuns() {
        let first = DatabaseUptime(after: nil, wallTime: 1000).advanced(by: 50, wallTime: 1050)
        #expect(first == DatabaseUptime(uptime: 50, tokenTime: 50, wallTime: 1050))
        let second = DatabaseUptime(after: first, wallTime: 1350).advanced(by: 7, wallTime: 1357)
        #expect(second == DatabaseUptime(uptime: 57, tokenTime: 357, wallTime: 1357))
        #expect(DatabaseUptime(after: second, wallTime: 0) == DatabaseUptime(uptime: 57, tokenTime: 357, wallTime: 0))
    }
}
