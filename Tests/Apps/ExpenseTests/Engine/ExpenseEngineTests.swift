import Client
import Determinism
import Expense
import TestSupport
import Testing
import Wire

@Suite struct ExpenseEngineTests {
    private static let key = ExpenseClient.key

    // MARK: Optimistic

    @Test func aPinLooksFinishedOfflineAndIsSentOnceAfterARestart() throws {
        var client = try ExpenseClient(isOnline: false)
        let count = client.sent.count
        try client.act(.update(Self.key("c1"), ["pinned": "true"]))
        #expect(client.row("c1")?.fields["pinned"] == "true")
        try client.restart(isOnline: false)
        #expect(client.row("c1").map { [$0.isGrey, $0.isPending, $0.error != nil] } == [false, false, false])
        #expect(client.sent.count == count)
        client.settle()
        #expect(client.record("c1")?.text("pinned") == "true")
        #expect(client.executed.filter { $0.hasPrefix("PATCH") } == ["PATCH /expense/records/c1"])
    }

    @Test func aPinThatTheServerRejectsShowsNoErrorAndTheServersValue() throws {
        var client = try ExpenseClient()
        try client.act(.update(Self.key("c1"), ["pinned": "maybe"]))
        client.answer()
        #expect(client.row("c1")?.fields["pinned"] == nil)
        #expect(client.row("c1")?.error == nil && client.engine.outbox == 0)
    }

    // MARK: Optimistic with pending UI

    @Test func anAddedExpenseIsGreyOfflineOnly() throws {
        var client = try ExpenseClient(isOnline: false)
        try client.act(.open(.record(Self.key("r1"))))
        try client.act(.add(Self.key("e2"), ["title": "Hotel", "amount": "80"]))
        #expect(client.row("e2")?.isGrey == true)
        client.settle()
        #expect(client.row("e2")?.isGrey == false && client.record("e2") != nil)
        client.setInterface(false)
        #expect(client.row("e2")?.isGrey == false)
    }

    @Test func anAdditionThatIsRejectedStaysGreyWithAnErrorAndARedPathUntilItIsDismissed() throws {
        var client = try ExpenseClient()
        try client.act(.open(.record(Self.key("r1"))))
        try client.act(.add(Self.key("e2"), ["title": "Hotel", "amount": "800"]))
        #expect(client.row("e2")?.isGrey == false)
        client.settle()
        #expect(client.row("e2")?.error == "amount: exceeds the limit of 500.00")
        #expect(client.row("e2")?.isGrey == true && client.row("r1")?.hasMarker == true)
        #expect(client.engine.view.screen.hasMarker && client.row("e1")?.hasMarker == false)
        try client.restart(isOnline: true)
        #expect(client.row("e2")?.error != nil)
        try client.act(.dismiss(Self.key("e2")))
        #expect(client.row("e2") == nil && client.row("r1")?.hasMarker == false)
        #expect(!client.engine.view.screen.hasMarker)
    }

    @Test func aRejectedUpdateShowsTheConfirmedValueAlsoIfUpdatesAreStacked() throws {
        var client = try ExpenseClient()
        try client.act(.update(Self.key("e1"), ["amount": "700"]))
        try client.act(.update(Self.key("e1"), ["amount": "800"]))
        #expect(client.row("e1")?.fields["amount"] == "800" && client.engine.outbox == 2)
        client.answer()
        #expect(client.row("e1")?.fields["amount"] == "800")
        client.settle()
        #expect(client.row("e1")?.fields["amount"] == "12.00" && client.row("e1")?.isGrey == false)
        #expect(client.row("e1")?.error != nil)
        try client.act(.dismiss(Self.key("e1")))
        #expect(client.row("e1")?.error == nil)
    }

    @Test func aDeletionHidesTheExpenseOnlineAndStrikesItThroughOffline() throws {
        var client = try ExpenseClient()
        try client.act(.delete(Self.key("e1")))
        #expect(client.row("e1") == nil)
        client.setInterface(false)
        #expect(client.row("e1").map { [$0.isGrey, $0.isStruck] } == [true, true])
        client.settle()
        #expect(client.row("e1") == nil && client.record("e1") == nil)
    }

    @Test func anEditOfAnExpenseThatCouldNotBeAddedAddsIt() throws {
        var client = try ExpenseClient()
        try client.act(.open(.record(Self.key("r1"))))
        try client.act(.add(Self.key("e2"), ["title": "Hotel", "amount": "800"]))
        client.settle()
        try client.act(.update(Self.key("e2"), ["amount": "300"]))
        client.settle()
        #expect(client.record("e2")?.text("amount") == "300" && client.row("e2")?.error == nil)
    }

    // MARK: The queue

    @Test func writesAreSentOneAfterTheOtherAndReadsAfterThem() throws {
        var client = try ExpenseClient(isOnline: false)
        try client.act(.update(Self.key("e1"), ["amount": "1"]))
        try client.act(.update(Self.key("c1"), ["pinned": "true"]))
        let count = client.sent.count
        client.setInterface(true)
        client.advance(by: ExpenseEngine.recoverySpread)
        #expect(client.inFlight.count == 1)
        client.settle()
        #expect(
            Array(client.sent.dropFirst(count)) == [
                "PATCH /expense/records/e1", "PATCH /expense/records/c1", "GET /expense/updates?since=5",
            ])
    }

    @Test func aWriteIsMarkedAsTriedInTheStoreBeforeItIsSent() throws {
        var client = try ExpenseClient()
        try client.act(.update(Self.key("e1"), ["amount": "1"]))
        #expect(try client.inFlight.count == 1 && client.stored.writes.map(\.wasTried) == [true])
    }

    @Test func aWriteWhoseResponseIsLostIsRepeatedWithTheSameOperation() throws {
        var client = try ExpenseClient()
        try client.act(.update(Self.key("e1"), ["amount": "1"]))
        let operation = client.operation
        client.answer(.lostResponse)
        #expect(client.inFlight.isEmpty)
        client.advance(by: .seconds(1))
        #expect(client.operation == operation)
        client.settle()
        #expect(client.record("e1")?.revision == 2)
    }

    @Test func serverErrorsParkAWriteAfterFiveAttemptsWithAnError() throws {
        var client = try ExpenseClient()
        try client.act(.update(Self.key("e1"), ["amount": "1"]))
        for _ in 0..<5 {
            client.answer(.status(500))
            client.advance(by: .seconds(60))
        }
        client.answerAll()
        #expect(client.engine.outbox == 0 && client.row("e1")?.error == ExpenseText.generic)
        #expect(client.row("e1")?.fields["amount"] == "12.00")
    }

    @Test func overloadIsNeverTheEndOfAWrite() throws {
        var client = try ExpenseClient()
        try client.act(.update(Self.key("e1"), ["amount": "1"]))
        for _ in 0..<50 {
            client.answer(.status(503))
            client.advance(by: .seconds(60))
        }
        #expect(client.engine.outbox == 1)
        client.settle()
        #expect(client.record("e1")?.text("amount") == "1")
    }

    @Test func updatesOfOthersBetweenAreRead() throws {
        var client = try ExpenseClient()
        client.service.seed(
            ExpenseRecord(key: "e9", kind: .expense, parent: "r1", fields: [("title", "Bus"), ("amount", "2")]),
            owner: "ada")
        try client.act(.update(Self.key("e1"), ["amount": "1"]))
        client.settle()
        #expect(client.row("e9") != nil && client.executed.last == "GET /expense/updates?since=3")
    }

    @Test func aServerThatRepeatsItselfIsNotAskedAgainAtOnce() throws {
        var client = try ExpenseClient()
        try client.act(.sync)
        for _ in 0..<3 {
            let number = try #require(client.inFlight.first?.number)
            client.inFlight = []
            client.engine.responseReceived(
                ExpenseEngineResponse(status: 200, body: ["last": 3, "more": true, "updates": []]), to: number,
                at: client.now
            )
            client.take()
            #expect(client.inFlight.isEmpty)
            client.advance(by: .seconds(60))
        }
    }

    // MARK: Blocking form

    @Test func aFormIsInertOfflineAndKeepsItsInputs() throws {
        var client = try ExpenseClient(isOnline: false)
        let count = client.sent.count
        try client.act(.open(.form("transfer")))
        try client.act(.fill(["to": "Bo", "amount": "20"]))
        for _ in 0..<3 { try client.act(.submit) }
        #expect(client.engine.view.screen.error == ExpenseText.offline)
        #expect(!client.engine.view.screen.controls.contains("submit"))
        try client.restart(isOnline: false)
        try client.act(.open(.form("transfer")))
        #expect(client.engine.view.screen.fields["to"] == "Bo")
        client.settle()
        #expect(client.sent.dropFirst(count).allSatisfy { $0.hasPrefix("GET") })
        try client.act(.submit)
        client.settle()
        #expect(client.executed.filter { $0.hasPrefix("POST") }.count == 1)
        #expect(try client.engine.view.screen.name == "list" && client.stored.drafts.isEmpty)
    }

    @Test func aFormWhoseResponseIsLostAsksForTheResultAndIsNotSentAgain() throws {
        var client = try ExpenseClient()
        try client.act(.open(.form("transfer")))
        try client.act(.fill(["to": "Bo", "amount": "20"]))
        try client.act(.submit)
        client.answer(.lostResponse)
        #expect(client.engine.view.screen.dialog == ExpenseText.unknownResult)
        // The question for the result is repeated with growing delays.
        while let request = client.inFlight.first, request.target.hasPrefix("/expense/operations/"),
            client.sent.count < 20
        {
            client.answer(.status(503))
            client.advance(by: .seconds(60))
        }
        // A Retry-After is longer than the delay.
        client.answer(.status(503, retryAfter: 600))
        client.advance(by: .seconds(300))
        #expect(client.inFlight.isEmpty && client.pastDeadlines == 0)
        client.settle()
        #expect(client.executed.filter { $0.hasPrefix("POST") }.count == 1)
        #expect(client.engine.view.screen.dialog == nil && client.engine.view.screen.name == "list")
    }

    @Test func aFormOfWhichNothingArrivedCanBeSubmittedAgainUnderTheSameOperation() throws {
        var client = try ExpenseClient()
        try client.act(.open(.form("transfer")))
        try client.act(.fill(["to": "Bo", "amount": "20"]))
        try client.act(.submit)
        let operation = client.operation
        client.answer(.lostRequest)
        #expect(client.engine.view.screen.error == ExpenseText.notSent)
        client.settle()
        try client.act(.submit)
        #expect(client.operation == operation)
    }

    @Test func theResultOfASecondSubmissionIsAskedForAgain() throws {
        var client = try ExpenseClient()
        try client.act(.open(.form("transfer")))
        try client.act(.fill(["to": "Bo", "amount": "20"]))
        for _ in 0..<2 {
            try client.act(.submit)
            // The request is lost on its way, which the client cannot know.
            let request = try #require(client.inFlight.first)
            client.inFlight = []
            client.engine.requestFailed(request.number, wasSent: true, at: client.now)
            client.take()
            #expect(client.engine.view.screen.dialog == ExpenseText.unknownResult)
            // The first question for the result fails, the second one says that nothing has arrived.
            client.answer(.status(503))
            client.settle()
            #expect(client.engine.view.screen.error == ExpenseText.notSent)
        }
        try client.act(.submit)
        client.settle()
        #expect(client.executed.filter { $0.hasPrefix("POST") }.count == 1)
    }

    /// A submission waits for at most a second after an interface has come up. If the interface goes down meanwhile, nothing
    /// was sent, and nothing is sent later by itself.
    @Test(arguments: [1, 2, 3] as [UInt64]) func aFormThatWasNotSentIsNotSentAfterTheOutage(_ seed: UInt64) throws {
        var client = try ExpenseClient(seed: seed, isOnline: false)
        try client.act(.open(.form("transfer")))
        try client.act(.fill(["to": "Bo", "amount": "20"]))
        client.setInterface(true)
        try client.act(.submit)
        try #require(client.inFlight.isEmpty, "the submission waits")
        client.setInterface(false)
        client.settle()
        #expect(client.executed.allSatisfy { !$0.hasPrefix("POST") })
        #expect(client.engine.view.screen.error == ExpenseText.notSent)
        try client.act(.submit)
        client.settle()
        #expect(client.executed.filter { $0.hasPrefix("POST") }.count == 1)
    }

    @Test func aFormShowsTheServersMessagesByField() throws {
        var client = try ExpenseClient()
        try client.act(.open(.form("transfer")))
        try client.act(.fill(["amount": "900"]))
        try client.act(.submit)
        client.settle()
        #expect(
            client.engine.view.screen.error == "amount: exceeds the balance of 100.00; to: is missing")
        #expect(client.engine.view.screen.fields["amount"] == "900")
    }

    /// Members that look like messages by field do not make it one.
    @Test func anOperationIDOfAnotherFormIsNoMessageByField() throws {
        var client = try ExpenseClient()
        try client.act(.open(.form("transfer")))
        try client.act(.fill(["to": "Bo", "amount": "20"]))
        try client.act(.submit)
        let request = try #require(client.inFlight.first)
        client.inFlight = []
        let body: JSONValue = ["type": "urn:slowlane:idempotency-key-reused", "errors": ["to": "is missing"]]
        client.engine.responseReceived(
            ExpenseEngineResponse(status: 422, body: body), to: request.number, at: client.now)
        client.take()
        #expect(client.engine.view.screen.dialog == ExpenseText.unknownResult)
        #expect(client.engine.view.screen.error?.contains("is missing") != true)
    }

    // MARK: Blocking page

    @Test func aPageHasNoStaleContentOfflineAndLoadsByItselfAfterwards() throws {
        var client = try ExpenseClient()
        try client.act(.open(.page("balance")))
        client.settle()
        #expect(client.engine.view.screen.fields["balance"] == "100.00")
        client.setInterface(false)
        #expect(client.engine.view.screen.fields.isEmpty && client.engine.view.screen.error == ExpenseText.offline)
        client.setInterface(true)
        client.advance(by: ExpenseEngine.recoverySpread)
        while let request = client.inFlight.first {
            client.answer(request.target == "/expense/pages/balance" ? .status(500) : .answered)
        }
        #expect(client.engine.view.screen.controls.contains("retry"))
        #expect(client.engine.view.screen.error == ExpenseText.failed)
        try client.act(.retry)
        client.settle()
        #expect(client.engine.view.screen.fields["balance"] == "100.00")
    }

    // MARK: Properties

    @Test(arguments: randomSeeds(25, soak: 1200)) func everyWriteTakesEffectOnceInEveryHistory(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var client = try ExpenseClient(seed: seed)
        try client.act(.open(.record(Self.key("r1"))))
        var isUp = true
        var expected: [String: String] = ["e1": "12.00"]
        var number = 10
        for _ in 0..<60 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0:
                number += 1
                if client.engine.view.screen.record == nil { try client.act(.open(.record(Self.key("r1")))) }
                try client.act(.add(Self.key("e\(number)"), ["title": "T", "amount": "5"]))
                expected["e\(number)"] = "5"
            case 1, 2:
                guard let name = expected.keys.sorted().randomElement(using: &random) else { continue }
                let amount = "\(Int.random(in: 1..<400, using: &random))"
                try client.act(.update(Self.key(name), ["amount": amount]))
                expected[name] = amount
            case 3:
                guard let name = expected.keys.sorted().randomElement(using: &random) else { continue }
                try client.act(.delete(Self.key(name)))
                expected[name] = nil
            case 4:
                isUp.toggle()
                client.setInterface(isUp)
            case 5: try client.restart(isOnline: isUp)
            case 6: client.answer(.lostResponse)
            case 7: client.answer(.status(503, retryAfter: [nil, 1, 30].randomElement(using: &random)!))
            case 8: client.answer()
            default: _ = client.advanceToDeadline()
            }
            // The user sees the own changes, whatever has been sent.
            let shown = client.engine.view.rows.filter { $0.key.text.hasPrefix("e") && !$0.isDeleted }
            #expect(
                Dictionary(uniqueKeysWithValues: shown.map { ($0.key.text, $0.fields["amount"]!) }) == expected,
                "seed \(seed)")
        }
        client.settle()
        let found = client.service.records(of: "ada").filter { $0.kind == .expense }
        #expect(
            Dictionary(uniqueKeysWithValues: found.map { ($0.key, $0.text("amount")!) }) == expected, "seed \(seed)")
        #expect(client.engine.isSettled && client.pastDeadlines == 0, "seed \(seed)")
    }
}
