import Determinism
import NotesContract
import Testing
import Wire

@testable import Client

/// Dates, delays and the values of the policy.
@Suite struct ResponseTests {
    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
        ("Sun Nov  6 08:49:37 1994", 784_111_777), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Tue, 29 Feb 2028 23:59:60 GMT", 1_835_481_600), ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
    ]) func anHTTPDateOfEachFormIsRead(_ text: String, _ seconds: Int64) {
        #expect(HTTPDate.seconds(text) == seconds)
    }

    @Test(arguments: [
        "", "now", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49 GMT", "Sun, 06 Abc 1994 08:49:37 GMT",
        "Sun, 99 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 0x Nov 1994 08:49:37 GMT", "Sun, 06 Nov 19940 08:49:37 GMT", "Sun, 06 Nov 1994 08:60:37 GMT",
        String(repeating: "1", count: 100),
    ]) func whatIsNoHTTPDateIsNone(_ text: String) { #expect(HTTPDate.seconds(text) == nil) }

    private func response(_ headers: [(name: String, value: String)]) -> SyncResponse {
        SyncResponse(status: 503, headers: headers, body: [])
    }

    @Test func retryAfterIsSecondsOrADateRelativeToDate() {
        let date = (name: "date", value: "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(response([(name: "retry-after", value: "7")]).retryAfter == .seconds(7))
        #expect(response([]).retryAfter == nil)
        #expect(
            response([(name: "Retry-After", value: "Sun, 06 Nov 1994 08:50:37 GMT"), date]).retryAfter == .seconds(60))
        #expect(response([(name: "Retry-After", value: "Sun, 06 Nov 1994 08:50:37 GMT")]).retryAfter == nil)
        #expect(response([(name: "Retry-After", value: "Sun, 06 Nov 1994 08:00:00 GMT"), date]).retryAfter == .zero)
        #expect(
            response([(name: "Retry-After", value: "\(Int64.max)0")]).retryAfter.map { $0 > .seconds(86_400) } == true)
    }

    @Test(arguments: [
        ("application/json", true), ("application/json; charset=utf-8", true), ("Application/JSON", true),
        ("application/json;x=y", true), ("application/jsonx", false), ("text/html", false), ("", false),
        ("application/problem+json", false),
    ]) func theMediaTypeIsComparedWithoutParameters(_ type: String, _ isJSON: Bool) {
        #expect(response([(name: "content-type", value: type)]).isJSON == isJSON)
    }

    @Test func delaysDoubleUpToTheLongestAndAreReducedByAtMostHalf() {
        let policy = SyncPolicy()
        var random = RandomStream(seed: 1, "test")
        for failures in 1...80 {
            let whole = min(60, pow2(failures - 1))
            for _ in 0..<20 {
                let delay = policy.delay(afterFailures: failures, random: &random).inSeconds
                #expect(delay >= whole / 2 && delay <= whole)
            }
        }
        let extreme = SyncPolicy(firstDelay: Nanoseconds(.max), longestDelay: Nanoseconds(.max))
        #expect(extreme.delay(afterFailures: .max, random: &random) >= Nanoseconds(.max / 2))
        let none = SyncPolicy(firstDelay: .zero, longestDelay: .zero)
        #expect(none.delay(afterFailures: 3, random: &random) <= Nanoseconds(1))
    }

    private func pow2(_ exponent: Int) -> Double { exponent > 20 ? 1e9 : Double(1 << exponent) }

    @Test func thePublishedBudgetOfAnOutageIsThatOfTheFormula() {
        #expect(SyncPolicy().attemptsMax(duringOutage: .seconds(300)) == 18)
        #expect(SyncPolicy().attemptsMax(duringOutage: .seconds(1800)) == 68)
        #expect(SyncPolicy().attemptsMax(duringOutage: Nanoseconds(-5)) == 8)
        let extreme = SyncPolicy(firstDelay: Nanoseconds(1), longestDelay: Nanoseconds(.max))
        #expect(extreme.attemptsMax(duringOutage: Nanoseconds(.max)) > 60)
    }

    @Test func aMismatchNamesWhatDiffers() {
        let ada = SyncAccount(user: "ada", server: "a:1", history: "h")
        #expect(
            AccountMismatch(stored: ada, found: SyncAccount(user: "bo", server: "a:1")).description.contains("'bo'"))
        let unknown = SyncAccount(user: "ada", server: "b:2")
        #expect(AccountMismatch(stored: unknown, found: ada).description.contains("server b:2"))
        #expect(AccountMismatch(stored: ada, found: unknown).description.contains("history"))
        #expect(
            ForeignServerError(status: nil, contentType: nil, expected: "notes server").description.contains("not HTTP")
        )
        #expect(
            ForeignServerError(status: 200, contentType: nil, expected: "x").description.contains("no content type"))
        #expect(
            ForeignServerError(status: 200, contentType: "text/html", expected: "x").description.contains("text/html"))
    }

    @Test func revisionsAndIdentifiersAreComparedByBytes() {
        #expect(RecordRevision("1-\u{FC}") != RecordRevision("1-u\u{308}"))
        #expect(RecordRevision("1-a", number: 1).precedes(RecordRevision("2-b", number: 2)))
        #expect(!RecordRevision("1-a").precedes(RecordRevision("2-b", number: 2)))
        #expect(RecordRevision("1-a").description == "1-a")
        #expect(RecordID("\u{FC}") != RecordID("u\u{308}"))
    }

    @Test func theContentOfANoteSurvivesItsEncoding() {
        for content in [
            NoteContent(title: nil, text: nil, date: ""),
            NoteContent(title: "", text: "\u{0}\"\\\n\u{1F600}", date: "d"),
        ] {
            let decoded = NoteContent(content.encoded)
            #expect(decoded.title == content.title && decoded.text == content.text && decoded.date == content.date)
            #expect(decoded.hasSameText(as: content))
        }
        #expect(
            !NoteContent(title: nil, text: "", date: "").hasSameText(as: NoteContent(title: "", text: "", date: "")))
        #expect(
            !NoteContent(title: nil, text: "\u{FC}", date: "").hasSameText(
                as: NoteContent(title: nil, text: "u\u{308}", date: "")))
        #expect(NoteContent(RecordContent([0xFF])).text == nil)
    }

    @Test func theViewIsOrderedByDateAndIdentifier() {
        func row(_ id: RecordID, _ date: String) -> NotesView.Row {
            NotesView.Row(
                RecordRow(
                    id: id, content: NoteContent(title: nil, text: "t", date: date).encoded, icon: .none,
                    isDeleted: false,
                    revision: nil, kept: [], problem: nil))
        }
        let view = NotesView(rows: [row("c", "2"), row("b", "1"), row("a", "2")], outbox: 1, connectivity: .unknown)
        #expect(view.rows.map(\.uuid) == ["b", "a", "c"])
        #expect(view.outbox == 1 && view.connectivity == .unknown)
    }
}
