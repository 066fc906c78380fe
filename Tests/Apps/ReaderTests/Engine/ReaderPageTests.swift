import Client
import Determinism
import Reader
import TestSupport
import Testing

/// Pages, errors and the cache.
@Suite struct ReaderPageTests {
    // MARK: Opening

    @Test func aPageOpensAtOnceWithWhatIsKnownAndAnIndicatorOnlyAfterItsDelay() throws {
        var client = try ReaderClient()
        try client.open("p1")
        #expect(client.screen.name == "p1" && client.screen.fields["name"] == "Bo")
        #expect(client.screen.fields["birthday"] == nil && client.screen.fields["indicator"] == nil)
        client.advance(by: ReaderEngine.indicatorDelay - Nanoseconds(1))
        #expect(client.screen.fields["indicator"] == nil)
        client.advance(by: Nanoseconds(1))
        #expect(client.screen.fields["indicator"] == "loading")
        client.answerAll()
        #expect(client.screen.fields["indicator"] == nil && client.screen.fields["birthday"] == "1990-05-01")
        #expect(client.screen.fields["picture"] == "A pan" && client.pastDeadlines == 0)
    }

    @Test func otherPagesAreReachableWhileOneIsLoading() throws {
        var client = try ReaderClient()
        try client.open("p1")
        try client.open("a1")
        #expect(client.screen.name == "a1" && client.inFlight.count == 2)
        client.answer(.answered, "/articles/a1")
        #expect(client.screen.fields["text"] == "Boil")
        // The failure of the page that was left is not shown.
        client.answer(.timeout)
        #expect(client.screen.error == nil)
    }

    @Test(arguments: [
        (ReaderClient.Fate.lostRequest, "no-connection"), (.portal, "no-connection"), (.lostResponse, "no-connection"),
        (.timeout, "not-responding"), (.status(500), "cannot-load"), (.status(502), "cannot-load"),
        (.status(418), "cannot-load"), (.status(404), "not-found"), (.body("{}"), "received-data"),
        (.body("<html>"), "received-data"), (.body(#"{"key":"p1","name":7}"#), "received-data"),
        (.body(#"{"key":"p2","name":"Bo"}"#), "received-data"),
    ])
    func aFailedPageHasAPermanentErrorOfItsKindWithoutNumbers(_ fate: ReaderClient.Fate, _ kind: String) throws {
        var client = try ReaderClient()
        try client.open("p1")
        client.answer(fate)
        #expect(client.screen.error == kind && client.screen.toast == nil)
        #expect(client.screen.fields["message"]?.contains(where: \.isNumber) == false)
        client.advance(by: .seconds(600))
        #expect(client.screen.error == kind)
        #expect(client.screen.controls.contains("retry") == (kind != "not-found"))
    }

    @Test func aRetryIsOneRequest() throws {
        var client = try ReaderClient()
        try client.open("p1")
        client.answer(.timeout)
        let count = client.sent.count
        try client.call("retry")
        try client.call("retry")
        #expect(client.sent.count == count + 1 && client.screen.error == nil)
        client.answerAll()
        #expect(client.screen.fields["birthday"] == "1990-05-01")
    }

    @Test func withoutAnInterfaceThereIsNoRequestAndTheUserTriesAgain() throws {
        var client = try ReaderClient(interface: NetworkInterface(isUp: false))
        #expect(client.sent.isEmpty && client.screen.error == "no-connection")
        client.setInterface(true)
        client.advance(by: .seconds(60))
        #expect(client.sent.isEmpty && client.screen.error == "no-connection")
        try client.call("retry")
        client.answerAll()
        #expect(client.sent == ["GET /reader/articles"] && client.engine.view.rows.count == 2)
        #expect(client.screen.error == nil)
    }

    @Test func requestsInFlightFailWithTheInterface() throws {
        var client = try ReaderClient()
        try client.open("p1")
        client.setInterface(false)
        #expect(client.inFlight.isEmpty && client.screen.error == "no-connection")
    }

    // MARK: Received data

    @Test(arguments: [
        (#"{"key":"p1","name":"Bo","birthday":"1990-02-30"}"#, "birthday"),
        (#"{"key":"p1","name":"Bo","birthday":19900501}"#, "birthday"),
        (#"{"key":"p1","name":"Bo","about":["x"]}"#, "about"),
        (#"{"key":"p1","name":"Bo","picture":"http://elsewhere/p1"}"#, "picture"),
        (#"{"key":"p1","name":"Bo","picture":"/expense/"}"#, "picture"),
    ])
    func anInvalidAdditionalPartIsAnErrorAtItsPlace(_ body: String, _ name: String) throws {
        var client = try ReaderClient()
        try client.open("p1")
        client.answer(.body(body))
        #expect(client.screen.error == nil && client.screen.fields["name"] == "Bo")
        if name != "picture" { #expect(client.screen.fields[name] == "could not get the \(name)") }
        #expect(client.inFlight.isEmpty)
    }

    @Test func aPictureThatCannotBeLoadedIsAnErrorAtItsPlace() throws {
        var client = try ReaderClient()
        try client.open("p1")
        client.answer()
        client.answer(.status(500))
        #expect(client.screen.error == nil && client.screen.fields["picture"] == "could not get the picture")
        #expect(client.screen.fields["birthday"] == "1990-05-01")
    }

    @Test func theDataSaverLoadsNoPicturesOnMeteredInterfaces() throws {
        var client = try ReaderClient(
            interface: NetworkInterface(isUp: true, isMetered: true), settings: ["data-saver": "on"])
        try client.open("p1")
        client.answerAll()
        #expect(!client.sent.contains("GET /reader/pictures/p1"))
        #expect(client.screen.fields["picture"] == "not loaded to save data")
        client.setInterface(true, isMetered: false)
        client.answerAll()
        #expect(client.screen.fields["picture"] == "A pan")
        #expect(client.sent.count { $0 == "GET /reader/profiles/p1" } == 1)
    }

    // MARK: The cache

    @Test func aCachedPageIsShownWithoutARequestDuringItsLifeAndRevalidatedAfterIt() throws {
        var client = try ReaderClient()
        try client.open("p1")
        client.answerAll()
        let count = client.sent.count
        try client.open(nil)
        client.advance(by: .seconds(299))
        try client.open("p1")
        #expect(client.sent.count == count && client.screen.fields["birthday"] == "1990-05-01")
        client.advance(by: .seconds(1))
        try client.open("p1")
        // The cached content is shown while the page is read again.
        #expect(client.sent.count == count + 1 && client.screen.fields["birthday"] == "1990-05-01")
        #expect(client.inFlight.first?.fields.contains { $0.name == "If-None-Match" } == true)
        client.answer()
        #expect(client.screen.fields["birthday"] == "1990-05-01" && client.inFlight.isEmpty)
        try client.open("p1")
        #expect(client.sent.count == count + 1)
    }

    @Test func cachedContentStaysVisibleIfItCannotBeReadAgain() throws {
        var client = try ReaderClient()
        try client.open("p1")
        client.answerAll()
        client.advance(by: .seconds(301))
        try client.open("p1")
        client.answer(.timeout)
        #expect(client.screen.error == "not-responding" && client.screen.fields["birthday"] == "1990-05-01")
    }

    @Test func aSecondProfileEvictsTheFirst() throws {
        var client = try ReaderClient()
        for key in ["p1", "p2", "p1"] {
            try client.open(key)
            client.answerAll()
        }
        #expect(client.sent.count { $0 == "GET /reader/profiles/p1" } == 2)
        #expect(client.state.values(under: "page/profile-").map(\.key) == ["p1"])
    }

    @Test func theCacheSurvivesAKillAndDoesNotTrustAClockThatWasSetBack() throws {
        var client = try ReaderClient()
        try client.open("p1")
        client.answerAll()
        let count = client.sent.count
        try client.restart()
        try client.open("p1")
        #expect(client.sent.count == count && client.screen.fields["picture"] == "A pan")
        client.engine.wallClockChanged(WallClock(startMilliseconds: -1_000), at: client.now)
        try client.open("p1")
        #expect(client.sent.count == count + 1)
    }

    @Test func aStoredValueThatCannotBeReadIsAnError() {
        var change = AppChange()
        change.set("page/articles", Array("nonsense".utf8))
        var state = AppState()
        state.apply(change)
        #expect(throws: AppActError.self) { try ReaderEngine(AppConfiguration(seed: 1), restoring: state) }
    }
}
