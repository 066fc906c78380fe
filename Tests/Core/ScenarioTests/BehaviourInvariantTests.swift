import Determinism
import LinkModel
import Testing

@testable import Scenario

/// The invariants I11 to I18: each with a run that violates it, and a near miss.
@Suite struct BehaviourInvariantTests {
    private static func violation(_ run: HandwrittenRun, _ invariant: Scenario.Invariant) -> String? {
        var evaluator = ExpectationEvaluator(run.scenario, run.history)
        return evaluator.violation(of: invariant)?.reason
    }

    /// A run whose scenario has n1, and in which A has edited it at 1 s.
    private static func edit(acceptedAt: Int64 = 1, icon: History.Icon = .upload, isSimulated: Bool = true)
        -> HandwrittenRun
    {
        var run = HandwrittenRun()
        run.scenario.notes = [.init(row: "n1", title: nil, text: "one", revision: 1)]
        run.step(.edit(row: "n1", title: nil, text: "two"))
        run.add(0, .phase(.script))
        run.add(0, .world(.init(isSimulated: isSimulated, comparesBytes: false)))
        run.show(0, "A", [("n1", "one", .plain)])
        run.add(1, .step(0))
        run.add(1, .action(actor: "A", .edit(row: "n1", text: "two")))
        run.show(acceptedAt, "A", [("n1", "two", icon)], outbox: 1)
        run.add(acceptedAt, .accepted(device: "A", row: "n1"))
        return run
    }

    // MARK: I11

    @Test func aKillChangesNoView() {
        func violation(_ after: (String, History.Icon)?, between: [History.Event] = []) -> String? {
            var run = Self.edit()
            for event in between { run.add(2, event) }
            run.add(3, .stopped(device: "A"))
            run.add(4, .started(device: "A"))
            if let after {
                run.show(4, "A", [("n1", after.0, after.1)], outbox: 1)
            } else {
                run.add(4, .device("A", .init(rows: [], outbox: 0)))
            }
            return Self.violation(run, .crashAtomicity)
        }
        #expect(violation(("one", .plain)) == "A shows another state of n1 after the restart at 4.0 s")
        #expect(violation(nil) == "A has lost n1 after the restart at 4.0 s")
        #expect(violation(("two", .upload)) == nil)
        #expect(
            violation(("two", .plain), between: [.commit(device: "A", digest: 1)]) == nil, "a commit without a report")
        #expect(violation(("three", .upload), between: [.action(actor: "A", .edit(row: "n1"))]) == nil)
    }

    /// A run of the expense app with views at times in seconds.
    private static func app(_ views: [(at: Int64, History.ScreenState)]) -> HandwrittenRun {
        var run = HandwrittenRun()
        run.scenario.devices = run.scenario.devices.map { $0.replacing(\.client, .app(.expense)) }
        run.add(0, .phase(.script))
        run.add(0, .world(.init(isSimulated: true, comparesBytes: false)))
        for (at, screen) in views {
            run.add(at, .device("A", .init(rows: [], outbox: 0, screen: screen)))
        }
        return run
    }

    @Test func aFormKeepsItsInputsInAKill() {
        func violation(_ fields: [String], _ action: Scenario.Action? = nil) -> String? {
            func form(_ fields: [String]) -> History.ScreenState {
                .init(name: "transfer", controls: ["fill", "submit"], fields: fields)
            }
            var run = Self.app([(1, form(["amount=12", "to=Bo"]))])
            run.add(2, .stopped(device: "A"))
            run.add(3, .started(device: "A"))
            run.add(3, .device("A", .init(rows: [], outbox: 0, screen: .init(name: "list"))))
            if let action { run.add(4, .action(actor: "A", action)) }
            run.add(5, .device("A", .init(rows: [], outbox: 0, screen: form(fields))))
            return Self.violation(run, .crashAtomicity)
        }
        #expect(violation(["amount=12"]) == "A has lost the input 'to=Bo' after a restart")
        #expect(violation(["amount=12", "to=Bo"]) == nil)
        #expect(violation(["amount=12"], .call(name: "fill", arguments: [.init(name: "to", value: "")])) == nil)
    }

    @Test func runsWithAndWithoutAKillHaveOneEnd() {
        func state(_ text: String, revision: Int = 2, icon: History.Icon = .plain) -> FinalState {
            var run = HandwrittenRun()
            run.show(1, "A", [("n1", text, icon)])
            run.server(2, [("n1", revision, text)])
            return FinalState(run.history)
        }
        let plain = state("two")
        #expect(plain.differences(from: state("two")).isEmpty)
        #expect(state("two", revision: 3).differences(from: plain) == ["the server has revision 3 of n1 of ada, not 2"])
        #expect(state("two", revision: 3).differences(from: plain, comparesRevisions: false).isEmpty)
        #expect(
            state("one").differences(from: plain) == [
                "the server has another content of n1 of ada", "A shows another state of n1",
            ])
        #expect(state("two", icon: .upload).differences(from: plain) == ["A shows another state of n1"])
        var empty = HandwrittenRun()
        empty.history.append(.server([]), at: .zero)
        #expect(
            FinalState(empty.history).differences(from: plain) == ["the server has lost n1 of ada", "A has lost n1"])
        #expect(FinalState(History()).differences(from: plain)[0] == "the server's notes were read in one run only")
    }

    // MARK: I12

    @Test func anInvalidResponseChangesNothing() {
        func violation(_ received: Int?, _ change: (inout HandwrittenRun) -> Void) -> String? {
            var run = Self.edit()
            run.reply(200)
            let fault = received.map { _ in History.Event.fault(index: 0, exchange: 0) }
            run.exchange(
                2, "GET", key: nil, responded: received == nil ? 200 : nil, received: received ?? 200, fault: fault)
            change(&run)
            return Self.violation(run, .validatedAnswersOnly)
        }
        let ghost = "A shows a text of n1 at 3.0 s that no client has written"
        #expect(violation(200) { $0.show(3, "A", [("n1", "<html>", .plain)]) } == ghost)
        #expect(violation(nil) { $0.show(3, "A", [("n1", "<html>", .plain)]) } == nil, "no response was invalid")
        #expect(
            violation(200) {
                $0.write(3, base: "1-a", "<html>", of: "W")
                $0.show(4, "A", [("n1", "<html>", .conflict)])
            } == nil, "another client has written it")
        let absence = "n1 vanishes from A at 3.0 s without a deletion"
        #expect(violation(200) { $0.add(3, .device("A", .init(rows: [], outbox: 0))) } == absence)
        #expect(
            violation(200) {
                $0.write(3, "DELETE", base: "1-a", nil, of: "W", responded: 204)
                $0.add(3, .device("A", .init(rows: [], outbox: 0)))
            } == nil)
        let done =
            "A shows n1 as synchronised at 3.0 s, and has received no response of the server since the change at 1.0 s"
        #expect(violation(200) { $0.show(3, "A", [("n1", "two", .plain)]) } == done)
        #expect(
            violation(200) {
                $0.exchange(3)
                $0.show(3, "A", [("n1", "two", .plain)])
            } == nil)
    }

    // MARK: I13

    @Test func accountsAreIsolated() {
        func violation(_ accounts: (String, RequestContents.Account)...) -> String? {
            var run = HandwrittenRun()
            run.scenario.writers = [.init(name: "W", user: "bo")]
            for (actor, account) in accounts { run.write(1, base: "1-a", nil, of: actor, account: account) }
            return Self.violation(run, .isolation)
        }
        #expect(violation(("A", .user("ada")), ("W", .user("bo"))) == nil)
        #expect(violation(("A", .user("bo"))) == "A of ada sends PUT n1 at 1.0 s with the credentials of bo")
        #expect(violation(("A", .token(0)), ("W", .token(1)), ("A", .token(0))) == nil)
        #expect(
            violation(("A", .token(0)), ("W", .token(0))) == "W of bo sends PUT n1 at 1.0 s with an access token of ada"
        )
    }

    @Test func aTextIsShownToItsUserOnly() {
        func violation(_ shown: String, _ sent: String) -> String? {
            var run = Self.edit()
            run.scenario.writers = [.init(name: "W", user: "bo")]
            run.step(.edit(row: "n1", title: nil, text: "secret"), of: "W")
            run.show(3, "A", [("n1", shown, .plain)])
            run.write(4, base: "1-a", sent)
            return Self.violation(run, .isolation)
        }
        #expect(violation("one", "two") == nil)
        #expect(violation("secret", "two") == "A of ada shows a text of bo at 3.0 s")
        #expect(violation("one", "secret") == "A of ada sends a text of bo at 4.0 s")
    }

    // MARK: I14

    @Test func anEditDoesNotWaitForTheNetwork() {
        #expect(Self.violation(Self.edit(), .noBlocking) == nil)
        let reason = "A accepts that its user edits n1 only 2.0 s later, at 3.0 s"
        #expect(Self.violation(Self.edit(acceptedAt: 3), .noBlocking) == reason)
        // In real time, only an exchange meanwhile shows what the client waits for.
        func live(_ change: (inout HandwrittenRun) -> Void) -> String? {
            var run = HandwrittenRun()
            run.step(.edit(row: "n1", title: nil, text: "two"))
            run.add(1, .step(0))
            run.add(1, .action(actor: "A", .edit(row: "n1", text: "two")))
            change(&run)
            run.add(3, .accepted(device: "A", row: "n1"))
            return Self.violation(run, .noBlocking)
        }
        #expect(live { _ in } == nil)
        #expect(live { $0.add(2, .connectionAttempt(0, device: "A")) } == reason)
        #expect(
            live {
                $0.add(2, .connectionAttempt(0, device: "A"))
                $0.add(3, .hostPause(.seconds(2)))
            } == nil)
        #expect(
            live {
                $0.add(2, .stopped(device: "A"))
                $0.add(2, .connectionAttempt(0, device: "A"))
            } == nil)
    }

    @Test func aRejectedChangeBlocksNoOther() {
        func violation(
            _ status: Int, sends: Bool = false, reads: Int? = nil, since: Int64 = 1, isKilled: Bool = false
        ) -> String? {
            var run = HandwrittenRun()
            run.show(0, "A", [("n1", "one", .plain), ("n2", "one", .plain)])
            run.show(1, "A", [("n1", "one", .plain), ("n2", "two", .upload)])
            if since == 1 { run.show(1, "A", [("n1", "two", .upload), ("n2", "two", .upload)]) }
            for second in 2...5 as ClosedRange<Int64> {
                if sends && second == 4 { run.exchange(4, row: "n1") }
                if let reads, second == 4 { run.exchange(4, "GET", row: "n1", responded: reads, received: reads) }
                if isKilled && second == 4 {
                    run.add(4, .stopped(device: "A"))
                    run.add(4, .started(device: "A"))
                }
                if second == since { run.show(second, "A", [("n1", "two", .upload), ("n2", "two", .upload)]) }
                run.exchange(second, row: "n2", responded: status, received: status)
            }
            return Self.violation(run, .noBlocking)
        }
        #expect(
            violation(500)
                == "A has not sent the change of n1, pending since 1.0 s, while the server has rejected that of n2 "
                + "3 times up to 5.0 s")
        #expect(violation(422) != nil)
        #expect(violation(503) == nil, "the server rejects nothing")
        #expect(violation(500, sends: true) == nil)
        #expect(violation(500, reads: 500) == nil, "its own attempt has failed")
        #expect(violation(500, reads: 200) != nil)
        #expect(violation(500, since: 4) == nil)
        #expect(violation(500, isKilled: true) == nil, "each process has had less time")
        #expect(violation(400) != nil)
    }

    // MARK: I15

    @Test func aPendingChangeHasAMark() {
        #expect(Self.violation(Self.edit(), .visibleState) == nil)
        #expect(
            Self.violation(Self.edit(icon: .plain), .visibleState)
                == "A shows n1 without an icon at 1.0 s, although its user edits it and nothing was sent")
    }

    @Test func aMarkVanishesWithTheAcknowledgement() {
        func violation(_ text: String, shownUntil second: Int64, action: Int64? = nil) -> String? {
            var run = Self.edit()
            run.write(2, base: "1-a", text, revision: 2)
            if let action { run.add(action, .action(actor: "A", .edit(row: "n1"))) }
            run.show(second, "A", [("n1", "two", .plain)])
            run.add(9, .phase(.verify))
            return Self.violation(run, .visibleState)
        }
        #expect(violation("two", shownUntil: 4) == "A shows n1 as pending at 3.0 s, 1 s after the response to its PUT")
        #expect(violation("two", shownUntil: 3) == nil)
        #expect(violation("other", shownUntil: 4) == nil, "the text that is shown is still to be sent")
        #expect(violation("two", shownUntil: 4, action: 2) == nil)
    }

    @Test func aMarkNeedsAPendingChange() {
        var run = HandwrittenRun()
        run.show(1, "A", [("n1", "two", .upload)], outbox: 1)
        #expect(Self.violation(run, .visibleState) == nil)
        run.show(2, "A", [("n1", "three", .upload)], outbox: 0)
        #expect(Self.violation(run, .visibleState) == "A shows n1 as pending at 2.0 s, and its outbox is empty")
    }

    @Test func aRejectionIsShown() {
        func violation(_ status: Int, _ icon: History.Icon) -> String? {
            var run = Self.edit()
            run.exchange(2, responded: status, received: status)
            run.show(3, "A", [("n1", "two", icon)], outbox: 1)
            run.server(9, [("n1", 1, "one")])
            return Self.violation(run, .visibleState)
        }
        #expect(
            violation(422, .upload)
                == "A shows n1 as pending at the end, although the server has rejected it (422) at 2.0 s")
        #expect(violation(422, .error) == nil)
        #expect(violation(503, .upload) == nil)
    }

    @Test func anAppEndsWhatItShowsAsUnderWay() {
        func violation(_ views: [(at: Int64, History.ScreenState)]) -> String? {
            var run = Self.app(views)
            run.add(20, .phase(.verify))
            run.server(20, [])
            return Self.violation(run, .visibleState)
        }
        let (toast, plain) = (History.ScreenState(name: "list", toast: "sent"), History.ScreenState(name: "list"))
        #expect(violation([(1, toast), (7, plain)]) == "A still shows the message 'sent' at 7.0 s")
        #expect(violation([(1, toast), (5, plain)]) == nil)
        #expect(
            violation([(1, .init(name: "transfer", dialog: "sending"))]) == "A shows a screen that waits at the end")
        #expect(
            violation([(1, .init(name: "p1", fields: ["indicator=loading"]))])
                == "A shows indicator=loading at the end")
        #expect(
            violation([(1, .init(name: "list", hasMarker: true))])
                == "A shows a mark at the root without an error at 1.0 s")
    }

    // MARK: I16

    @Test func anUnchangedNoteIsNotFetchedAgain() {
        func violation(_ status: Int, _ revision: Int, write: Bool = false) -> String? {
            var run = HandwrittenRun()
            run.exchange(1, "GET", key: nil, revision: 2)
            if write { run.exchange(2) }
            run.exchange(3, "GET", key: nil, responded: status, received: status, revision: revision)
            return Self.violation(run, .economy)
        }
        #expect(violation(200, 2) == "A fetches revision 2 of n1 at 3.0 s again")
        #expect(violation(304, 2) == nil)
        #expect(violation(200, 3) == nil)
        #expect(violation(200, 2, write: true) == nil)
    }

    /// The user opens a screen meanwhile, so that the check looks for a dismissal between the two.
    @Test func twoReadsOfANoteAtATimeAreNoViolation() {
        var run = HandwrittenRun()
        run.add(0, .action(actor: "A", .open(row: "n1")))
        for id in 1...2 {
            run.add(1, .request(id, actor: "A", method: "GET", row: "n1", key: nil, bodyDigest: 0))
            run.add(1, .contents(id, .init()))
            run.add(1, .arrived(id))
        }
        for id in 1...2 {
            run.add(2, .serverResponded(id, status: 200, revision: 2))
            run.add(2, .responseReceived(id, status: 200))
        }
        #expect(Self.violation(run, .economy) == nil)
    }

    @Test func oneIndexIsReadAtATime() {
        func violation(_ end: Int64, app: Scenario.App? = nil) -> String? {
            var run = HandwrittenRun()
            if let app { run.scenario.devices = run.scenario.devices.map { $0.replacing(\.client, .app(app)) } }
            for second in 1...2 as ClosedRange<Int64> {
                let id = Int(second)
                if second == 2, end == 2 { run.add(2, .responseReceived(1, status: 200)) }
                run.add(second, .request(id, actor: "A", method: "GET", row: nil, key: nil, bodyDigest: 0))
                run.add(second, .contents(id, .init()))
            }
            if end > 2 { run.add(end, .responseReceived(1, status: 200)) }
            return Self.violation(run, .economy)
        }
        #expect(violation(3) == "A sends GET index at 2.0 s, while that of 1.0 s is in flight")
        #expect(violation(2) == nil)
        #expect(violation(3, app: .field) != nil && violation(3, app: .expense) == nil, "several lists")
    }

    @Test func nothingIsSentOnAForbiddenInterface() {
        func violation(isUp: Bool, isMetered: Bool, _ usesMetered: Bool = true) -> String? {
            var run = HandwrittenRun()
            run.add(0, .policy(device: "A", ClientPolicy(usesMeteredInterfaces: usesMetered)))
            run.add(1, .interface(device: "A", isUp: isUp, isMetered: isMetered))
            run.add(3, .connectionAttempt(0, device: "A"))
            return Self.violation(run, .economy)
        }
        #expect(violation(isUp: true, isMetered: true) == nil)
        #expect(
            violation(isUp: false, isMetered: false)
                == "A tries to connect at 3.0 s, although its interface is down since 1.0 s")
        #expect(
            violation(isUp: true, isMetered: true, false)
                == "A tries to connect at 3.0 s, although its interface is forbidden since 1.0 s")
    }

    // MARK: I17

    /// A run in which A is in an outage until 100 s, and makes an attempt at a time after it.
    static func outage(
        _ attempt: Int64?, isSignalled: Bool, until end: Int64 = 300, polls: Bool = true, inFlight: Int64? = nil
    ) -> HandwrittenRun {
        var nothing = DirectionConditions.clear
        nothing.loss = .one
        let dead = Timeline.NamedConditions("dead", Conditions(up: nothing, down: nothing))
        var run = HandwrittenRun()
        run.scenario.devices = [
            .init(
                name: "A", user: "ada", startsSynced: true,
                network: [.init(at: .zero, .hold(dead), isSignalled: isSignalled)])
        ]
        run.add(0, .policy(device: "A", ClientPolicy(poll: polls ? .seconds(60) : nil)))
        run.add(0, .started(device: "A"))
        run.add(0, .network(device: "A", link: "dead", isOnline: !isSignalled))
        run.show(0, "A", [("n1", "two", polls ? .plain : .upload)])
        if inFlight != nil { run.add(99, .request(7, actor: "A", method: "GET", row: nil, key: nil, bodyDigest: 0)) }
        run.add(100, .network(device: "A", link: "clear", isOnline: true))
        if let inFlight { run.add(inFlight, .failed(7)) }
        if let attempt { run.add(attempt, .connectionAttempt(0, device: "A")) }
        run.add(end, .phase(.verify))
        return run
    }

    @Test func anAttemptFollowsTheEndOfAnOutage() {
        func violation(_ run: HandwrittenRun) -> String? { Self.violation(run, .liveness) }
        let edge = "A starts no attempt in the 5 s after 100.0 s, although it can reach the server"
        #expect(violation(Self.outage(106, isSignalled: true, until: 110)) == edge)
        #expect(violation(Self.outage(105, isSignalled: true, until: 110)) == nil)
        let blind = "A starts no attempt in the 65 s after 100.0 s, although it can reach the server"
        #expect(violation(Self.outage(166, isSignalled: false, until: 170)) == blind)
        #expect(violation(Self.outage(165, isSignalled: false, until: 170)) == nil)
        #expect(violation(Self.outage(nil, isSignalled: false, until: 165)) == nil, "the run ends before")
        #expect(violation(Self.outage(180, isSignalled: false, until: 190, inFlight: 120)) == nil)
        #expect(violation(Self.outage(105, isSignalled: true, until: 171)) != nil, "it does not poll")
    }

    @Test func aClientThatDoesNotPollIsHeldToPendingChanges() {
        var run = Self.outage(nil, isSignalled: false, polls: false)
        #expect(
            Self.violation(run, .liveness)
                == "A starts no attempt in the 65 s after 100.0 s, although it can reach the server and n1 is pending")
        run = Self.outage(nil, isSignalled: false, until: 160, polls: false)
        run.show(161, "A", [("n1", "two", .plain)])
        run.add(300, .phase(.verify))
        #expect(Self.violation(run, .liveness) == nil)
    }

    @Test func readsAreNoAttemptsToSendAPendingChange() {
        func violation(write: Int64?, _ icon: History.Icon = .upload, read: Int = 200) -> String? {
            var run = Self.outage(101, isSignalled: true, until: 101, polls: false)
            for second in stride(from: 101 as Int64, through: 281, by: 60) {
                run.exchange(second, "GET", row: nil, key: nil, responded: read, received: read)
                if let write, (second..<second + 60).contains(write) {
                    run.exchange(write, "PUT", responded: 500, received: 500)
                }
                if second == 161 { run.show(162, "A", [("n1", "two", icon)], outbox: 1) }
            }
            run.add(290, .phase(.verify))
            return Self.violation(run, .liveness)
        }
        func reason(_ start: String) -> String {
            "A does not send its change of n1 in the 65 s after \(start), although it reads from the server"
        }
        #expect(violation(write: nil) == reason("101.0 s"))
        #expect(violation(write: 165) == reason("221.0 s"))
        #expect(violation(write: 165, .plain) == nil && violation(write: nil, read: 503) == nil)
    }

    @Test func aChangeMayWaitForASlowReadBesideWhichOthersAreSent() {
        func violation(until end: Int64) -> String? {
            var run = Self.outage(101, isSignalled: true, until: 101, polls: false)
            run.add(101, .request(7, actor: "A", method: "GET", row: nil, key: nil, bodyDigest: 0))
            run.exchange(110, "PUT", row: "n2", responded: 200, received: 200)
            run.exchange(112, "GET", row: "n2", key: nil, responded: 200, received: 200)
            run.add(301, .arrived(7))
            run.add(301, .serverResponded(7, status: 200, bytes: 1))
            run.add(301, .responseReceived(7, status: 200))
            for second in [302, 362] as [Int64] {
                run.exchange(second, "GET", row: nil, key: nil, responded: 200, received: 200)
            }
            run.add(end, .phase(.verify))
            return Self.violation(run, .liveness)
        }
        #expect(violation(until: 367) == nil)
        #expect(
            violation(until: 368)
                == "A does not send its change of n1 in the 65 s after 302.0 s, although it reads from the server")
    }

    @Test func aPausedClientMayWait() {
        var run = Self.outage(101, isSignalled: true, until: 101)
        run.exchange(101, "GET", row: nil, responded: 401, received: 401)
        run.add(300, .phase(.verify))
        #expect(Self.violation(run, .liveness) == nil)
    }

    // MARK: I18

    @Test func aProxyChangesNoByte() {
        var run = HandwrittenRun()
        run.add(0, .world(.init(isSimulated: true, comparesBytes: true)))
        #expect(Self.violation(run, .transparentProxy) == nil)
        #expect(Verdict(run.scenario, run.history).unchecked.allSatisfy { $0.invariant != .transparentProxy })
        run.add(1, .bytesChanged(device: "A", .down, offset: 17))
        #expect(Self.violation(run, .transparentProxy) == "A download changed after 17 B at 1.0 s")
    }
}

extension HandwrittenRun {
    mutating func show(
        _ second: Int64, _ device: String, _ rows: [(name: String, text: String, icon: History.Icon)], outbox: Int
    ) {
        let rows = rows.map { row in
            History.DeviceState.Row(
                name: row.name, title: nil, text: row.text, icon: row.icon, isDeleted: false, kept: [])
        }
        add(second, .device(device, .init(rows: rows, outbox: outbox)))
    }
}
