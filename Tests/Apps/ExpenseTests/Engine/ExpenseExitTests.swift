import Client
import Determinism
import Expense
import TestSupport
import Testing

/// Rejected credentials, restored servers, and the operations of the app that are no queued writes.
@Suite struct ExpenseExitTests {
    private static let key = ExpenseClient.key

    // MARK: Credentials and permissions

    @Test func rejectedCredentialsPauseTheQueueUntilTheUserSignsInOrSyncs() throws {
        var client = try ExpenseClient()
        try client.act(.update(Self.key("e1"), ["amount": "1"]))
        try client.act(.update(Self.key("c1"), ["pinned": "true"]))
        client.answer(.status(401))
        let count = client.sent.count
        client.run(for: .seconds(3600))
        #expect(client.sent.count == count && client.engine.outbox == 2)
        #expect(client.engine.view.screen.error == ExpenseText.signIn)
        #expect(client.row("e1")?.error == nil)
        try client.act(.sync)
        client.settle()
        #expect(client.engine.outbox == 0 && client.record("e1")?.text("amount") == "1")
        #expect(client.engine.view.screen.error == nil)
    }

    @Test func aForbiddenWriteFailsAndTheNextOneIsSent() throws {
        var client = try ExpenseClient()
        try client.act(.update(Self.key("e1"), ["amount": "1"]))
        try client.act(.update(Self.key("c1"), ["pinned": "true"]))
        client.answer(.status(403))
        #expect(client.row("e1")?.error == ExpenseText.generic && client.row("e1")?.fields["amount"] == "12.00")
        client.settle()
        #expect(client.record("c1")?.text("pinned") == "true" && client.engine.outbox == 0)
    }

    // MARK: A restored server

    @Test(arguments: [false, true]) func aRestoredServerIsNoticedAndReadAgain(_ restarts: Bool) throws {
        var client = try ExpenseClient()
        let restore = client.service.backup()
        try client.act(.open(.record(Self.key("r1"))))
        try client.act(.add(Self.key("e2"), ["title": "Hotel", "amount": "80"]))
        client.settle()
        restore()
        // The restored server reaches the number of the update that the client has.
        #expect(client.service.change("e1", fields: [("amount", "13.00")], owner: "ada"))
        if restarts { try client.restart() }
        try client.act(.sync)
        client.settle()
        #expect(client.row("e2") == nil && client.row("e1")?.fields["amount"] == "13.00")
        let count = client.sent.count
        try client.act(.sync)
        client.settle()
        #expect(client.sent.count == count + 1, "everything is read again once only")
    }

    @Test func aReadOfARestoredServerThatIsInterruptedBeginsAgain() throws {
        var client = try ExpenseClient()
        let restore = client.service.backup()
        try client.act(.open(.record(Self.key("r1"))))
        try client.act(.add(Self.key("e2"), ["title": "Hotel", "amount": "80"]))
        client.settle()
        restore()
        try client.act(.sync)
        client.answer()
        #expect(client.inFlight.map(\.target) == ["/expense/updates?since=0"])
        try client.restart()
        client.settle()
        #expect(client.row("e2") == nil && client.row("e1") != nil)
    }

    // MARK: The other exits of the flow chart

    @Test func aSearchIsSentOnceForEachTapAndOnlyOnline() throws {
        var client = try ExpenseClient(isOnline: false)
        let count = client.sent.count
        try client.act(.open(.form("search")))
        try client.act(.fill(["title": "Ta/i &x"]))
        try client.act(.submit)
        #expect(client.sent.count == count && client.engine.view.screen.error == ExpenseText.offline)
        client.setInterface(true)
        client.settle()
        #expect(client.sent.dropFirst(count).allSatisfy { !$0.contains("search") })
        try client.act(.fill(["title": "Taxi"]))
        try client.act(.submit)
        try client.act(.submit)
        #expect(client.inFlight.map(\.target) == ["/expense/search?title=Taxi"])
        #expect(client.engine.view.screen.dialog == ExpenseText.sending)
        client.answer()
        #expect(client.engine.view.screen.fields == ["title": "Taxi", "found": "1"])
        try client.act(.submit)
        client.answer(.lostResponse)
        #expect(client.engine.view.screen.error == ExpenseText.failed && client.inFlight.isEmpty)
    }

    @Test func anOrderIsNotRepeatedByItselfAndKeepsItsOperationId() throws {
        var client = try ExpenseClient()
        try client.act(.open(.page("statement")))
        let operation = client.operation
        client.answer(.lostResponse)
        client.run(for: .seconds(60))
        #expect(client.engine.view.screen.error == ExpenseText.failed)
        #expect(client.executed.count { $0 == "POST /expense/pages/statement" } == 1)
        try client.act(.retry)
        #expect(operation != nil && client.operation == operation)
        client.answer()
        #expect(client.engine.view.screen.fields["statement"] == "1")
        client.setInterface(false)
        client.setInterface(true)
        client.run(for: .seconds(60))
        #expect(client.executed.count { $0 == "POST /expense/pages/statement" } == 2, "the retry")
        #expect(client.engine.view.screen.error == ExpenseText.failed)
    }

    @Test func thePageAboutTheAppNeedsNoServer() throws {
        var client = try ExpenseClient(isOnline: false)
        let count = client.sent.count
        try client.act(.open(.page("about")))
        #expect(client.engine.view.screen.fields == ["version": "1"] && client.engine.view.screen.error == nil)
        client.setInterface(true)
        client.settle()
        #expect(client.sent.dropFirst(count).allSatisfy { $0.hasPrefix("GET /expense/updates") })
        #expect(client.engine.view.screen.fields == ["version": "1"])
    }

    @Test func aModelThatContradictsItsPlaceIsNoticed() {
        #expect(AppModel.expense.contradiction == nil)
        func model(
            writes: [AppModel.WritePolicy] = [], forms: [AppModel.FormPolicy] = [], pages: [AppModel.PagePolicy] = []
        ) -> String? {
            AppModel(
                basePath: "/x", markerField: "X", containers: [], addedKind: "x", writes: writes, forms: forms,
                pages: pages
            ).contradiction
        }
        #expect(
            model(writes: [.init(kind: "x", .add, ExpenseQuestions(access: .write))])
                == "add of 'x' is blocking-page, so it cannot be queued")
        #expect(
            model(forms: [.init(name: "f", path: "/f", fields: [], ExpenseQuestions(access: .read))])
                == "the form 'f' is blocking-page")
        #expect(
            model(pages: [.init(name: "p", .path("/p"), ExpenseQuestions(access: .read, acceptsStaleData: true))])
                == "the page 'p' is none, not blocking-page")
        #expect(
            model(pages: [.init(name: "p", .local([:]), ExpenseQuestions(access: .read))])
                == "the page 'p' is blocking-page, not none")
    }
}
