import NotesContract
import TestSupport
import Testing

@testable import NotesService

/// The wall clock jumps; nothing is forgotten for that.
@Suite struct ServedTimeTests {
    private static let tenYears = 10 * 365 * 86_400

    private static func limits(rate: Double? = nil) -> NotesService.Limits {
        var limits = NotesService.Limits()
        limits.requestsPerSecond = rate
        return limits
    }

    /// A tombstone, the result of an operation, a token, and what each is answered with.
    private struct Memory {
        let desk: Desk
        let bearer: String

        init(_ desk: Desk) throws {
            self.desk = desk
            let revision = desk.create()
            #expect(desk.ask("DELETE", "/api/notes/\(Desk.n1)/?revision=\(revision)").status == 204)
            #expect(desk.ask("POST", "/api/notes/", #"{"title":"a"}"#, with: ["Idempotency-Key": "k"]).status == 201)
            let tokens = desk.ask("POST", "/api/tokens/")
            bearer = "Bearer " + String(tokens.body.split(separator: "\"")[3])
        }

        func expectEverything(_ desk: Desk? = nil, hasToken: Bool = true) {
            let desk = desk ?? self.desk
            // A write, with which what is old is looked for.
            #expect(desk.ask("POST", "/api/notes/", #"{"uuid":"\#(UUIDs.random())"}"#).status == 201)
            let index = IndexEntry.index(json: Array(desk.ask("GET", "/api/notes-uuids/").body.utf8)) ?? []
            #expect(index.contains { $0.uuid == Desk.n1 && $0.isDeleted })
            #expect(desk.ask("POST", "/api/notes/", #"{"title":"a"}"#, with: ["Idempotency-Key": "k"]).status == 200)
            #expect((desk.ask("GET", "/api/", as: bearer).status == 200) == hasToken)
        }
    }

    @Test func aClockThatJumpsTenYearsAheadAndBackForgetsNothing() throws {
        let memory = try Memory(Desk())
        for step in [Self.tenYears, -Self.tenYears, -Self.tenYears, Self.tenYears] {
            memory.desk.clock.step(seconds: step)
            memory.desk.clock.pass(seconds: 61)
            memory.expectEverything()
        }
    }

    @Test func aJumpBetweenTwoRunsForgetsNothingButTokens() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("notes.db")
        let memory = try Memory(Desk(store: NotesStore(path: path)))
        memory.desk.clock.pass(seconds: 61)
        memory.expectEverything()
        for (step, hasToken) in [(0, true), (-Self.tenYears, true), (Self.tenYears, false)] {
            let later = try Desk(store: NotesStore(path: path), startingAt: Desk.now + 61_000 + step * 1000)
            memory.expectEverything(later, hasToken: hasToken)
        }
    }

    @Test func whatIsOldIsForgottenAllTheSame() throws {
        let memory = try Memory(Desk())
        // The wall clock stands still, or goes back.
        memory.desk.clock.pass(seconds: 31 * 86_400)
        memory.desk.clock.step(seconds: -60 * 86_400)
        #expect(memory.desk.ask("POST", "/api/notes/", "{}").status == 201)
        #expect(!memory.desk.ask("GET", "/api/notes-uuids/").body.contains("deleted"))
        #expect(memory.desk.ask("POST", "/api/notes/", #"{"title":"b"}"#, with: ["Idempotency-Key": "k"]).status == 201)
        #expect(memory.desk.ask("GET", "/api/", as: memory.bearer).status == 403)
    }

    @Test func aRateIsKeptWhateverTheWallClockShows() throws {
        let desk = try Desk(limits: Self.limits(rate: 2))
        func ask() -> Int { desk.ask("GET", "/api/").status }
        #expect([ask(), ask(), ask()] == [200, 200, 429])
        desk.clock.step(seconds: Self.tenYears)
        #expect(ask() == 429)
        desk.clock.step(seconds: -2 * Self.tenYears)
        desk.clock.pass(seconds: 1)
        #expect([ask(), ask(), ask()] == [200, 200, 429])
    }

    @Test func timeAddsUpOverRuns() {
        let first = ServedTime(after: nil, wall: 1000).later(by: 50, wall: 1050)
        #expect(first == ServedTime(served: 50, tokens: 50, wall: 1050))
        let second = ServedTime(after: first, wall: 1350).later(by: 7, wall: 1357)
        #expect(second == ServedTime(served: 57, tokens: 357, wall: 1357))
        #expect(ServedTime(after: second, wall: 0) == ServedTime(served: 57, tokens: 357, wall: 0))
    }
}
