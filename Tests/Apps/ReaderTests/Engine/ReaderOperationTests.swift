import Client
import Determinism
import Reader
import TestSupport
import Testing
import Wire

/// Operations that the user starts, and forms.
@Suite struct ReaderOperationTests {
    // MARK: Recommendations

    @Test func fiveTapsAreOneRequestAndTheButtonIsInertUntilTheEnd() throws {
        var client = try ReaderClient()
        let count = client.sent.count
        for _ in 0..<5 { try client.call("recommend") }
        #expect(client.sent.count == count + 1 && !client.screen.controls.contains("recommend"))
        client.advance(by: ReaderEngine.indicatorDelay)
        #expect(client.screen.fields["recommended"] == "loading")
        client.answer()
        #expect(client.screen.fields["recommended"] == "Tea" && client.screen.controls.contains("recommend"))
    }

    @Test(arguments: [ReaderClient.Fate.status(500), .timeout, .body(#"{"key":"a1"}"#), .body(#"{"title":"Tea"}"#)])
    func aFailureIsAMessageThatVanishesAndNothingElse(_ fate: ReaderClient.Fate) throws {
        var client = try ReaderClient()
        try client.call("recommend")
        client.answer(fate)
        #expect(client.screen.toast != nil && client.screen.error == nil && client.screen.dialog == nil)
        #expect(client.screen.fields["recommended"] == nil && client.screen.controls.contains("recommend"))
        client.advance(by: ReaderEngine.toastTime)
        #expect(client.screen.toast == nil && client.pastDeadlines == 0)
    }

    @Test func whoHasLeftThePageHearsNothing() throws {
        var client = try ReaderClient()
        try client.call("recommend")
        try client.open("a1")
        client.answer(.status(500), "/recommendations")
        try client.open(nil)
        #expect(client.views.allSatisfy { $0.screen.toast == nil && $0.screen.dialog == nil })
        #expect(client.screen.controls.contains("recommend"))
    }

    // MARK: Likes

    @Test func aLikeIsShownBeforeItIsSentAndTakenBackIfItFails() throws {
        var client = try ReaderClient()
        try client.call("like", "a1")
        #expect(client.text("a1") == "liked" && client.inFlight.map(\.method) == ["PUT"])
        client.answer(.status(500))
        #expect(client.text("a1") == "not liked" && client.screen.toast == "cannot-save")
        #expect(client.screen.dialog == nil && client.isLikedOnServer("a1") == false)
    }

    @Test func whoHasLeftThePageSeesADialogThatNamesWhatFailed() throws {
        var client = try ReaderClient()
        try client.call("like", "a1")
        try client.open("p1")
        client.answer(.timeout, "/articles/a1/like")
        #expect(client.text("a1") == "not liked" && client.screen.dialog == "not-saved")
        #expect(client.screen.fields["dialog-message"] == "Reader is not responding. Try again later.")
        try client.call("close")
        #expect(client.screen.dialog == nil)
    }

    @Test func aFailedTapRestoresTheStateBeforeItAndNoOther() throws {
        var client = try ReaderClient()
        try client.call("like", "a1")
        try client.call("unlike", "a1")
        #expect(client.text("a1") == "not liked" && client.inFlight.count == 1)
        client.answer()
        #expect(client.text("a1") == "not liked" && client.inFlight.map(\.method) == ["DELETE"])
        client.answer(.status(500))
        #expect(client.text("a1") == "liked" && client.isLikedOnServer("a1") == true)
    }

    @Test func aFailureOfTheFirstTapDoesNotTakeBackTheSecond() throws {
        var client = try ReaderClient()
        try client.call("like", "a1")
        try client.call("unlike", "a1")
        try client.call("like", "a1")
        client.answer(.status(500))
        #expect(client.text("a1") == "liked")
        client.answerAll()
        #expect(client.text("a1") == "liked" && client.isLikedOnServer("a1") == true)
    }

    @Test func nothingIsPromisedWithoutAConnection() throws {
        var client = try ReaderClient()
        client.setInterface(false)
        try client.call("like", "a1")
        #expect(client.text("a1") == "not liked" && client.screen.toast == "no-connection")
        #expect(client.inFlight.isEmpty)
    }

    @Test func aLostResponseIsFoundOutByTheNextVisit() throws {
        var client = try ReaderClient()
        try client.call("like", "a1")
        client.answer(.lostResponse)
        #expect(client.text("a1") == "not liked" && client.isLikedOnServer("a1") == true)
        try client.open(nil)
        client.answerAll()
        #expect(client.text("a1") == "liked")
    }

    @Test func aReadThatIsOlderThanALikeDoesNotTakeItBack() throws {
        var client = try ReaderClient()
        client.advance(by: ReaderEngine.cacheLife)
        try client.open(nil)
        try client.call("like", "a1")
        let list = client.inFlight[0].number
        client.answer(.answered, "/articles/a1/like")
        client.engine.responseReceived(
            AppResponse(
                status: 200,
                body: Array(
                    #"{"articles":[{"key":"a1","title":"Tea","author":"p1","authorName":"Bo","liked":false}]}"#.utf8)),
            to: list, at: client.now)
        client.inFlight = []
        client.take()
        #expect(client.text("a1") == "liked")
    }

    @Test func aLikeInFlightSurvivesAKill() throws {
        var client = try ReaderClient()
        try client.call("like", "a1")
        try client.restart()
        #expect(client.text("a1") == "liked")
        client.answerAll()
        #expect(client.isLikedOnServer("a1") == true && client.state.values(under: "operation/").isEmpty)
    }

    // MARK: Forms in the background

    private static func feedback(_ client: inout ReaderClient) throws {
        try client.call("feedback")
        try client.call("fill", nil, ["message": "More soup", "contact": "ada"])
        try client.call("submit")
    }

    @Test func theFormIsStoredBeforeItClosesAndIsSentOnceAfterAKill() throws {
        var client = try ReaderClient()
        try Self.feedback(&client)
        #expect(client.screen.name == "list" && client.stored.contains("More soup"))
        let operation = client.inFlight.first?.fields.first { $0.name == "Idempotency-Key" }?.value
        client.answer(.lostResponse)
        #expect(client.screen.dialog == "not-sent")
        try client.restart()
        #expect(client.screen.dialog == "not-sent")
        try client.call("retry")
        #expect(client.inFlight.first?.fields.first { $0.name == "Idempotency-Key" }?.value == operation)
        client.answerAll()
        #expect(client.count(.feedback) == 1 && client.screen.dialog == nil && client.screen.toast == "sent")
        #expect(!client.stored.contains("More soup"))
    }

    @Test func aFormInFlightIsSentAgainAfterAKillUnderTheSameOperation() throws {
        var client = try ReaderClient()
        try Self.feedback(&client)
        func operation(_ client: ReaderClient) -> String? {
            client.inFlight.first?.fields.first { $0.name == "Idempotency-Key" }?.value
        }
        let first = operation(client)
        try client.restart()
        #expect(first != nil && operation(client) == first && client.screen.dialog == nil)
        client.answerAll()
        #expect(client.count(.feedback) == 1 && client.engine.view.outbox == 0)
    }

    @Test func aCancelledFormIsDiscardedAndNothingIsSent() throws {
        var client = try ReaderClient()
        try Self.feedback(&client)
        client.answer(.lostRequest)
        let count = client.sent.count
        try client.call("cancel")
        try client.settleReads()
        #expect(client.screen.dialog == nil && !client.stored.contains("More soup"))
        #expect(!client.sent.dropFirst(count).contains { $0.hasPrefix("POST") } && client.count(.feedback) == 0)
    }

    @Test func aFormForLaterIsSentWhenThereIsAConnectionAndTheUserIsTold() throws {
        var client = try ReaderClient()
        client.setInterface(false)
        try Self.feedback(&client)
        #expect(client.screen.dialog == "not-sent" && client.screen.controls.contains("later"))
        try client.call("later")
        #expect(client.screen.dialog == nil && client.screen.toast == "sent-later")
        #expect(client.screen.fields["sent-later"] == "1" && client.engine.view.outbox == 1)
        try client.restart(isOnline: false)
        client.setInterface(true)
        client.advance(by: ReaderEngine.recoverySpread)
        client.answerAll()
        #expect(client.count(.feedback) == 1 && client.screen.toast == "sent" && client.engine.view.outbox == 0)
    }

    @Test func laterAttemptsAreDelayedMoreAndMore() throws {
        var client = try ReaderClient()
        try Self.feedback(&client)
        client.answer(.timeout)
        try client.call("later")
        var times: [Instant] = []
        while times.count < 10 {
            if client.inFlight.isEmpty {
                client.advance(by: .milliseconds(100))
            } else {
                times.append(client.now)
                client.answer(.timeout)
            }
        }
        for (earlier, later) in zip(times, times.dropFirst()) {
            #expect(later - earlier >= .milliseconds(2500) && later - earlier <= .seconds(61))
        }
        #expect(times[9] - times[8] >= .seconds(29) && client.screen.dialog == nil && client.pastDeadlines == 0)
    }

    @Test func aFormForLaterThatTheServerRejectsIsShownAgain() throws {
        var client = try ReaderClient()
        try client.call("feedback")
        try client.call("submit")
        client.answer(.lostRequest)
        try client.call("later")
        client.advance(by: .seconds(10))
        client.answer()
        #expect(client.screen.dialog == "not-sent" && client.count(.feedback) == 0)
    }

    // MARK: The blocking form

    private static func signUp(_ client: inout ReaderClient, password: String = "long enough") throws {
        try client.call("sign-up")
        var inputs: RecordFields = ["name": "ada"]
        inputs["password"] = password
        try client.call("fill", nil, inputs)
        try client.call("submit")
    }

    @Test func theUserWaitsForTheResultAndTapsAreIgnored() throws {
        var client = try ReaderClient()
        try Self.signUp(&client)
        #expect(client.screen.dialog == "sending" && client.screen.controls.isEmpty)
        try client.call("submit")
        try client.open(nil)
        try client.call("fill", nil, ["name": "bo"])
        #expect(client.inFlight.count == 1 && client.screen.name == "sign-up")
        client.answer()
        #expect(client.screen.name == "welcome" && client.screen.dialog == nil && client.count(.account) == 1)
    }

    @Test(arguments: [ReaderClient.Fate.status(500), .timeout, .lostResponse, .portal])
    func aFailureUnlocksTheFormAndKeepsTheInputs(_ fate: ReaderClient.Fate) throws {
        var client = try ReaderClient()
        try Self.signUp(&client)
        client.answer(fate)
        #expect(client.screen.name == "sign-up" && client.screen.controls == ["back", "fill", "submit"])
        #expect(client.screen.toast != nil && client.screen.fields["name"] == "ada")
        #expect(client.screen.fields["password"] == "concealed")
        try client.call("submit")
        client.answer()
        #expect(client.screen.name == "welcome" && client.count(.account) == 1)
    }

    @Test func aRejectionHasMessagesByField() throws {
        var client = try ReaderClient()
        try Self.signUp(&client, password: "short")
        client.answer()
        #expect(client.screen.error == "password: has fewer than 8 bytes" && client.screen.fields["name"] == "ada")
        try client.call("fill", nil, ["password": "long enough"])
        #expect(client.screen.error == nil)
        try client.call("submit")
        client.answer()
        #expect(client.count(.account) == 1)
    }

    /// Members that look like messages by field do not make it one.
    @Test func anOperationIDOfAnotherFormIsNoMessageByField() throws {
        var client = try ReaderClient()
        try Self.signUp(&client)
        let request = try #require(client.inFlight.first)
        client.inFlight = []
        let body: JSONValue = ["type": "urn:slowlane:idempotency-key-reused", "errors": ["name": "is missing"]]
        client.engine.responseReceived(AppResponse(status: 422, json: body), to: request.number, at: client.now)
        client.take()
        #expect(client.screen.toast != nil && client.screen.error?.contains("is missing") != true)
        #expect(client.screen.controls == ["back", "fill", "submit"])
    }

    @Test func inputsSurviveAKillAndPasswordsAreNeverStored() throws {
        var client = try ReaderClient()
        try Self.signUp(&client)
        // The account was made, and the app did not learn that.
        client.answer(.lostResponse)
        #expect(!client.stored.contains("long enough") && !"\(client.views)".contains("long enough"))
        try client.restart()
        #expect(client.screen.name == "sign-up" && client.screen.fields["name"] == "ada")
        #expect(client.screen.fields["password"] == nil)
        try client.call("fill", nil, ["password": "long enough"])
        try client.call("submit")
        client.answer()
        #expect(client.screen.name == "welcome" && client.count(.account) == 1)
    }

    @Test func limitsOfInputsAndUnknownInputsAreErrors() throws {
        var client = try ReaderClient()
        #expect(throws: AppActError.self) { try client.call("submit") }
        try client.call("feedback")
        #expect(throws: AppActError.self) { try client.call("fill", nil, ["password": "x"]) }
        let long = String(repeating: "x", count: ReaderEngine.inputBytesMax + 1)
        #expect(throws: AppActError.self) { try client.call("fill", nil, ["message": long]) }
        #expect(throws: AppActError.self) { try client.call("like", "a9") }
        #expect(throws: AppActError.self) { try client.perform(.delete(ReaderClient.key("a1"))) }
    }
}
