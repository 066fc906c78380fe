import Client
import Determinism
import Field
import TestSupport
import Testing
import Wire

/// The rules of the field app in a time that the tests advance.
@Suite struct FieldEngineTests {
    private func client(
        settings: RecordFields = [:], files: [Int] = [], schedule: (length: Int, grace: Int)? = nil,
        deviceShift: Int = 0
    ) throws -> FieldClient {
        var client = try FieldClient(
            settings: settings, deviceShift: deviceShift, files: files, schedule: schedule)
        client.answerAll()
        return client
    }

    // MARK: First use

    @Test func theFirstUseNeedsTheNetwork() throws {
        var client = try FieldClient(interface: NetworkInterface(isUp: false))
        #expect(client.engine.view.screen.name == "no-wifi" && client.sent.isEmpty)
        #expect(throws: AppActError.self) { try client.perform(.create(FieldClient.key("i2"), ["title": "Roof"])) }
        client.setInterface(true)
        #expect(client.engine.view.screen.name == "loading")
        client.answer(.status(503))
        #expect(client.engine.view.screen.name == "failed" && client.engine.view.screen.controls == ["retry"])
        client.run(for: .seconds(2))
        #expect(client.engine.view.screen.name == "list" && client.row("q1") != nil)
    }

    // MARK: Stitching

    @Test func viewsCannotTellLocalRecordsFromThoseOfTheServer() throws {
        var client = try client()
        client.setInterface(false)
        try client.create("a1", in: "q1", ["text": "yes"])
        try client.create("i2", ["title": "Roof", "text": "leaks"])
        try client.create("p1", in: "i2", ["title": "roof.jpg", "text": "100000"])
        try client.call("resolve", "i2")
        let rows = client.engine.view.rows
        #expect(client.text("a1") == "yes" && client.text("i2") == "resolved" && client.text("p1") == "100000")
        let screen = client.engine.view.screen
        try client.restart()
        // The app is where it was, too.
        #expect(client.engine.view.rows == rows && client.engine.view.screen == screen)
        client.setInterface(true)
        client.answerAll()
        try client.perform(.sync)
        client.answerAll()
        #expect(client.engine.view.outbox == 0)
        #expect(client.state.values(under: "record/").isEmpty && client.state.values(under: "photo/").isEmpty)
        try client.perform(.open(FieldClient.key("i2")))
        #expect(client.engine.view.rows == rows && client.engine.view.screen == screen)
        // A device that never had the records shows the same.
        client.state = AppState()
        try client.restart()
        client.answerAll()
        #expect(client.engine.view.rows == rows)
    }

    @Test func aPushedRecordIsKeptUntilAPayloadContainsIt() throws {
        var client = try client()
        client.fates = [("payload", .status(503))]
        try client.create("a1", in: "q1", ["text": "yes"])
        client.answerAll()
        #expect(client.engine.view.outbox == 0 && client.state.values(under: "record/").count == 1)
        try client.restart()
        client.answerAll()
        #expect(client.engine.view.rows.count { $0.key.text == "a1" } == 1)
        client.fates = []
        client.run(for: .seconds(5))
        #expect(client.state.values(under: "record/").isEmpty && client.text("a1") == "yes")
        #expect(client.requests().count { $0 == "POST updates" } == 1)
    }

    @Test func aPushIsFollowedByAPull() throws {
        var client = try client()
        let before = client.sent.count
        try client.create("a1", in: "q1", ["text": "yes"])
        client.answerAll()
        #expect(client.requests(since: before) == ["POST updates", "GET payload"])
        // Nothing to push: no request.
        try client.perform(.open(nil))
        #expect(client.requests(since: before).count == 2)
    }

    @Test func anEditDuringThePushIsPushedAgain() throws {
        var client = try client()
        try client.create("a1", in: "q1", ["text": "one"])
        try client.perform(.edit(FieldClient.key("a1"), ["text": "two"]))
        client.answerAll()
        #expect(client.record("a1")?.text == "two" && client.text("a1") == "two" && client.engine.view.outbox == 0)
        try client.perform(.edit(FieldClient.key("a1"), ["text": "three"]))
        client.answerAll()
        #expect(client.record("a1")?.text == "three")
    }

    // MARK: Submission periods

    @Test func recordsArePushedInGroupsByPeriod() throws {
        var client = try client(schedule: (length: 3_600_000, grace: 86_400_000))
        client.setInterface(false)
        client.advance(by: .seconds(50 * 60))
        try client.create("a1", in: "q1", ["text": "one"])
        #expect(client.engine.view.screen.fields["input"] == "one")
        client.advance(by: .seconds(15 * 60))
        // The input is empty in the new period, and the answer stays.
        #expect(client.engine.view.screen.fields["input"] == "" && client.text("a1") == "one")
        try client.perform(.create(FieldClient.key("a2"), ["text": "two"]))
        client.setInterface(true)
        client.answerAll()
        let body = try #require(client.bodies.last { !$0.isEmpty }.flatMap { JSONText.parse($0) })
        let groups = body["groups"].array
        #expect(groups.map { $0["answers"].array.compactMap { $0["key"].text } } == [["a1"], ["a2"]])
        #expect(groups[0]["end"] == groups[1]["start"])
        #expect(client.record("a1")?.title != client.record("a2")?.title)
    }

    @Test func theInputBecomesEmptyAtTheEndOfThePeriodByItself() throws {
        var client = try client(schedule: (length: 60_000, grace: 0))
        try client.create("a1", in: "q1", ["text": "one"])
        client.answerAll()
        client.run(for: .milliseconds(59_999))
        #expect(client.engine.view.screen.fields["input"] == "one")
        client.run(for: .milliseconds(1))
        #expect(client.engine.view.screen.fields["input"] == "" && client.pastDeadlines == 0)
    }

    @Test(arguments: [0, 3 * FieldClient.day, -3 * FieldClient.day + 5_400_000])
    func theServersClockDecidesAboutPeriods(_ shift: Int) throws {
        var client = try client(schedule: (length: 3_600_000, grace: 0), deviceShift: shift)
        client.setInterface(false)
        client.advance(by: .seconds(50 * 60))
        client.shiftClock(by: 7_200_000)
        try client.create("a1", in: "q1", ["text": "one"])
        client.setInterface(true)
        client.answerAll()
        #expect(client.record("a1")?.text == "one" && client.row("a1")?.error == nil)
    }

    @Test func aSecondAnswerInAPeriodIsAnEdit() throws {
        var client = try client()
        try client.create("a1", in: "q1", ["text": "one"])
        #expect(throws: AppActError.self) { try client.perform(.create(FieldClient.key("a2"), ["text": "two"])) }
        #expect(
            client.engine.view.screen.controls == ["edit", "back"].sorted()
                || client.engine.view.screen.controls == ["edit", "back"])
    }

    // MARK: Rejections

    @Test func aPoisonRecordBlocksNoOther() throws {
        var client = try client()
        client.setInterface(false)
        try client.create("a1", in: "q2", ["text": "ajar"])
        try client.create("a2", in: "q1", ["text": "yes"])
        client.setInterface(true)
        client.answerAll()
        #expect(client.record("a2")?.text == "yes" && client.record("a1") == nil)
        #expect(client.row("a1")?.error == "expected open or shut" && client.engine.view.outbox == 0)
        let count = client.sent.count
        client.run(for: .seconds(3600))
        #expect(!client.requests(since: count).contains("POST updates"))
        try client.perform(.edit(FieldClient.key("a1"), ["text": "shut"]))
        client.answerAll()
        #expect(client.record("a1")?.text == "shut" && client.row("a1")?.error == nil)
    }

    @Test(arguments: [400, 422, 500]) func aBatchThatIsRejectedIsSentOneByOne(_ status: Int) throws {
        var client = try client()
        client.setInterface(false)
        try client.create("a1", in: "q1", ["text": "one"])
        try client.create("a2", in: "q2", ["text": "open"])
        client.setInterface(true)
        client.answer(.status(status))
        client.answer(.status(status))
        client.answerAll()
        #expect(client.record("a1") == nil && client.record("a2")?.text == "open")
        #expect((client.row("a1")?.error != nil) == (status != 500))
    }

    @Test func aLostResponseToAPushLeadsToNoSecondNote() throws {
        var client = try client()
        client.fates = [("updates", .lostResponse)]
        try client.call("note", "i1", ["text": "again"])
        client.answerAll()
        client.fates = []
        client.run(for: .seconds(5))
        #expect(client.record("i1")?.revision == 2)
    }

    @Test func aFailingPushDoesNotKeepThePayloadAway() throws {
        var client = try FieldClient()
        client.fates = [("updates", .status(503))]
        client.answerAll()
        try client.create("a1", in: "q1", ["text": "one"])
        client.answerAll()
        try client.restart()
        #expect(client.text("a1") == "one")
        client.run(for: .seconds(20))
        #expect(client.engine.view.screen.name == "q1" && client.engine.view.outbox == 1)
    }

    @Test func retryAfterIsRespected() throws {
        var client = try client()
        try client.create("a1", in: "q1", ["text": "one"])
        let request = try #require(client.inFlight.first)
        client.inFlight = []
        client.engine.responseReceived(
            AppResponse(status: 503, fields: [("Retry-After", "60")]), to: request.number, at: client.now)
        client.take()
        let count = client.sent.count
        client.run(for: .seconds(59))
        try client.perform(.sync)
        #expect(client.sent.count == count)
        client.run(for: .seconds(2))
        #expect(client.record("a1") != nil)
    }

    // MARK: The daily pull

    @Test func thePayloadIsPulledOnceACalendarDay() throws {
        var client = try client(deviceShift: 23 * 3_600_000 + 58 * 60_000)
        func pulls() -> Int { client.requests().count { $0 == "GET payload" } }
        #expect(pulls() == 1)
        try client.perform(.open(nil))
        client.answerAll()
        #expect(pulls() == 1)
        client.run(for: .seconds(180))
        try client.perform(.open(nil))
        client.answerAll()
        #expect(pulls() == 2)
        // 23:58 of the same day.
        client.shiftClock(by: 23 * 3_600_000 + 57 * 60_000)
        try client.perform(.open(nil))
        client.answerAll()
        #expect(pulls() == 2)
        // The next day, and a server that fails.
        client.shiftClock(by: 3_600_000)
        client.fates = [("payload", .status(500))]
        try client.perform(.open(nil))
        client.answerAll()
        #expect(pulls() == 3 && client.engine.view.screen.error == "stale" && client.row("q1") != nil)
    }

    // MARK: Interfaces

    @Test func aMeteredInterfaceIsUsedOnlyIfThePolicyAllowsIt() throws {
        for (policy, isUsed) in [("unmetered", false), ("any", true)] {
            let client = try FieldClient(
                settings: ["network": policy], interface: NetworkInterface(isUp: true, isMetered: true))
            #expect(client.sent.isEmpty != isUsed)
        }
    }

    @Test func anInterfaceThatIsAllowedStartsPushPullPhotosAndFilesInThisOrder() throws {
        var client = try client(files: [200_000])
        #expect(client.text("f1") == "available")
        client.service.seed(.file(key: "f2", title: "New", bytes: 100_000), owner: "ada")
        client.setInterface(true, isMetered: true)
        try client.create("p1", in: "i1", ["title": "lamp", "text": "100000"])
        client.run(for: .seconds(7200))
        let count = client.sent.count
        client.setInterface(true)
        client.answerAll()
        #expect(
            client.requests(since: count) == [
                "POST updates", "GET payload", "HEAD photos/p1", "PATCH photos/p1", "PATCH photos/p1", "GET files/f2",
                "GET files/f2",
            ])
        #expect(client.engine.isSettled)
    }

    @Test func aTransferEndsWithItsInterfaceAndContinuesWhereItWas() throws {
        var client = try FieldClient(files: [60_000])
        client.answer()
        #expect(client.requests() == ["PUT session", "GET payload", "GET files/f1"])
        // A part has arrived when the interface goes down.
        let request = client.inFlight[0]
        client.answer(.cutAfter(20_000))
        _ = request
        client.setInterface(false)
        #expect(client.text("f1") == "missing")
        client.setInterface(true)
        client.answerAll()
        #expect(client.text("f1") == "available" && client.streamedBytes == 60_000)
    }

    // MARK: Events

    @Test func eventsLeadToAPull() throws {
        var client = try client(settings: ["events": "on"])
        client.run(for: .seconds(31))
        #expect(client.requests().last == "GET events")
        client.service.seed(.question(key: "q3", title: "Gas?", choices: []), owner: "ada")
        client.run(for: .seconds(31))
        #expect(client.row("q3") != nil && client.requests().suffix(2) == ["GET events", "GET payload"])
    }

    @Test func eventsRespectRetryAfter() throws {
        var client = try client(settings: ["events": "on"])
        client.run(for: .seconds(20))
        while client.inFlight.isEmpty, client.advanceToDeadline() {}
        let request = try #require(client.inFlight.first)
        client.inFlight = []
        client.engine.responseReceived(
            AppResponse(status: 503, fields: [("Retry-After", "60")]), to: request.number, at: client.now)
        client.take()
        let count = client.sent.count
        client.run(for: .seconds(59))
        #expect(client.sent.count == count)
        client.run(for: .seconds(2))
        #expect(client.requests(since: count).first == "GET events")
    }
}
