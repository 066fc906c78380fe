import Determinism
import Impairment
import LinkModel
import Testing

@testable import Scenario

/// Each invariant with a run that keeps it, and one that violates it.
@Suite struct InvariantTests {
    private static func violation(_ run: HandwrittenRun, _ invariant: Scenario.Invariant) -> String? {
        var evaluator = ExpectationEvaluator(run.scenario, run.history)
        return evaluator.violation(of: invariant)?.reason
    }

    /// A run in which A has edited n1 at 1 s.
    private static func edit(_ action: Scenario.Action = .edit(row: "n1", title: nil, text: "two")) -> HandwrittenRun {
        var run = HandwrittenRun()
        run.scenario.steps = [
            .init(
                trigger: .at(.seconds(1)), action: (actor: "A", action: action), mark: nil,
                location: SourceLocation(file: "s.yaml"))
        ]
        run.add(0, .phase(.script))
        run.show(0, "A", [("n1", "one", .plain)])
        run.add(1, .step(0))
        run.add(1, .action(actor: "A", action))
        run.show(1, "A", [("n1", "two", .upload)])
        run.add(1, .accepted(device: "A", row: "n1"))
        return run
    }

    // MARK: I1

    @Test func noWriteIsLost() {
        var run = Self.edit()
        #expect(Self.violation(run, .noLostWrite) == nil, "the server was not read")
        run.show(5, "A", [("n1", "one", .plain)])
        func end(_ change: (inout HandwrittenRun) -> Void = { _ in }, text: String = "one") -> String? {
            var run = run
            change(&run)
            run.server(9, [("n1", 1, text)])
            return Self.violation(run, .noLostWrite)
        }
        #expect(end() == "A edits n1 at 1.0 s, and the change is neither on the server nor shown as pending")
        #expect(end(text: "two") == nil)
        #expect(end { $0.exchange(6, responded: nil, received: nil) } != nil)
        #expect(end { $0.exchange(6, responded: 409, received: 409) } != nil)
        #expect(end { $0.exchange(6, received: nil) } == nil, "it was executed")
        #expect(end { $0.exchange(6, of: "W") } == nil, "another client may have replaced it")
        #expect(end { $0.exchange(6, row: "n2", of: "W") } != nil)
        for icon in [History.Icon.upload, .conflict, .error] {
            #expect(end { $0.show(6, "A", [("n1", "two", icon)]) } == nil)
        }
        // A client that was killed after the commit has not shown the change.
        var killed = HandwrittenRun()
        killed.step(.edit(row: "n1", title: nil, text: "two"))
        killed.show(0, "A", [("n1", "one", .conflict)])
        killed.add(1, .step(0))
        killed.add(1, .action(actor: "A", .edit(row: "n1", text: "two")))
        killed.add(1, .accepted(device: "A", row: "n1"))
        killed.add(1, .stopped(device: "A"))
        killed.show(5, "A", [("n1", "two", .plain)])
        killed.server(9, [("n1", 2, "two")])
        #expect(Self.violation(killed, .noLostWrite) == nil)
        // The next change is what counts.
        #expect(
            end {
                $0.add(6, .action(actor: "A", .delete(row: "n1")))
                $0.add(6, .device("A", .init(rows: [], outbox: 0)))
                $0.add(6, .accepted(device: "A", row: "n1"))
            } == "A deletes n1 at 6.0 s, and the change is neither on the server nor shown as pending")
        #expect(end { $0.add(6, .aborted(.other("x"))) } == nil)
        var theirs = Self.edit(.choose(row: "n1", .theirs))
        theirs.server(9, [("n1", 1, "one")])
        theirs.show(9, "A", [("n1", "one", .plain)])
        #expect(Self.violation(theirs, .noLostWrite) == nil)
    }

    // MARK: I2

    @Test func eachWriteHasOneEffect() {
        var run = HandwrittenRun()
        run.exchange(1, received: nil, revision: 2)
        run.exchange(2, revision: 2)
        run.server(9, [("n1", 2, "two")])
        #expect(Self.violation(run, .noDuplicateEffect) == nil)
        var again = HandwrittenRun()
        again.exchange(1, received: nil, revision: 2)
        again.exchange(2, revision: 3)
        #expect(
            Self.violation(again, .noDuplicateEffect) == "the server has executed PUT n1 of A at 2.0 s once more")
        var unknown = HandwrittenRun()
        unknown.exchange(1, "POST", row: nil)
        #expect(
            Self.violation(unknown, .noDuplicateEffect)
                == "the server has executed POST of an unknown note of A at 1.0 s once more")
        var twice = HandwrittenRun()
        twice.server(9, [("n1", 2, "two"), ("n1", 1, "two")])
        #expect(Self.violation(twice, .noDuplicateEffect) == "the server has two notes n1 of ada")
    }

    /// A POST of a killed client that arrives after the DELETE of its note, at a server without tombstones.
    @Test(arguments: [("orig", true, true), ("compat", true, false), ("orig", false, false)])
    func aServerWithoutTombstonesMayCreateANoteAgain(_ contract: String, _ isKilled: Bool, _ isExcused: Bool) {
        var run = HandwrittenRun()
        run.scenario.contract = contract
        let late = run.exchange(1, "POST", responded: nil, received: nil)
        if isKilled { run.add(2, .stopped(device: "A")) }
        run.add(3, .started(device: "A"))
        run.exchange(3, "POST", responded: 201, received: 201, revision: 1)
        run.exchange(4, "DELETE", key: "d", responded: 204, received: 204)
        run.add(5, .arrived(late))
        run.add(5, .serverResponded(late, status: 201, bytes: 20, revision: 3))
        let expected = isExcused ? nil : "the server has executed POST n1 of A at 1.0 s once more"
        #expect(Self.violation(run, .noDuplicateEffect) == expected)
    }

    // MARK: I4

    @Test func devicesAndServerAgreeAtTheEnd() {
        func violation(_ a: [(String, String, History.Icon)], _ server: [(String, Int, String)]) -> String? {
            var run = HandwrittenRun()
            run.show(1, "A", a)
            run.server(9, server)
            return Self.violation(run, .convergence)
        }
        #expect(violation([("n1", "one", .plain)], [("n1", 1, "one")]) == nil)
        #expect(
            violation([("n1", "one", .plain)], [("n1", 1, "two")]) == "A shows n1 at the end, unlike the server")
        #expect(violation([("n1", "one", .plain)], []) == "A shows n1 at the end, unlike the server")
        #expect(violation([], [("n1", 1, "one")]) == "A does not show n1 at the end, and the server has it")
        #expect(violation([("n1", "one", .conflict)], [("n1", 1, "two")]) == nil)
        #expect(violation([("n1", "one", .error)], []) == nil)
    }

    // MARK: I5

    @Test func attemptsInAnOutageAreBounded() {
        var nothing = DirectionConditions.clear
        nothing.loss = .one
        let dead = Timeline.NamedConditions("dead", Conditions(up: nothing, down: nothing))
        func violation(
            attempts: Int, actions: Int = 0, returns: Int = 0, isFlap: Bool = false, reply: String? = nil
        ) -> String? {
            var run = HandwrittenRun()
            let phase: Timeline.Phase = isFlap ? .flap([.init(dead, .seconds(20))], jitter: .zero) : .hold(dead)
            run.scenario.devices = [
                .init(
                    name: "A", user: "ada", startsSynced: true,
                    network: [.init(at: .zero, phase, isSignalled: false)])
            ]
            run.link(0, "A", "dead")
            for number in 0..<attempts { run.add(1, .connectionAttempt(number, device: "A")) }
            for _ in 0..<actions { run.add(2, .action(actor: "A", .sync)) }
            for isUp in Array(repeating: [false, true], count: returns).joined() {
                run.add(2, .interface(device: "A", isUp: isUp, isMetered: false))
            }
            if let reply {
                let fields = [FaultResponse.Field(reply, "1")]
                run.scenario.faults = [
                    .init(
                        request: RequestPattern(method: nil, row: nil), device: nil,
                        action: .link(.respond(.init(status: 503, fields: fields))),
                        location: SourceLocation(file: "s.yaml"))
                ]
                run.exchange(
                    3, "GET", key: nil, responded: nil, received: 503,
                    fault: .fault(index: 0, exchange: 0, point: .at(.beforeResponse)))
            }
            run.add(20, .phase(.restore))
            run.link(20, "A", "clear")
            for number in 0..<99 { run.add(21, .connectionAttempt(attempts + number, device: "A")) }
            return Self.violation(run, .boundedRetries)
        }
        #expect(violation(attempts: 9) == nil)
        #expect(violation(attempts: 10) == "10 attempts of A in the outage at 0.0 s, 9 allowed")
        #expect(violation(attempts: 11, actions: 1) == nil)
        #expect(violation(attempts: 17, returns: 1) == nil, "the delays begin anew with the interface")
        #expect(violation(attempts: 18, returns: 1) != nil)
        #expect(violation(attempts: 18, reply: "Slowlane-Notes") == nil, "the delays begin anew")
        #expect(violation(attempts: 19, reply: "Slowlane-Notes") != nil)
        #expect(violation(attempts: 12, reply: "X-Other") != nil, "a response of another server ends no back-off")
        #expect(violation(attempts: 6, isFlap: true) == nil)
        #expect(
            violation(attempts: 7, isFlap: true) == "7 attempts of A in the down phases of flaps, 6 allowed")
    }

    /// A client that has a response does not know of the outage that began while it was on its way.
    @Test(arguments: [true, false]) func theDelaysBeginAnewWithAResponseOnItsWayAtTheStartOfAnOutage(wasSent: Bool) {
        var nothing = DirectionConditions.clear
        nothing.loss = .one
        let dead = Timeline.NamedConditions("dead", Conditions(up: nothing, down: .clear))
        let clear = Timeline.NamedConditions("clear", .clear)
        var run = HandwrittenRun()
        run.scenario.devices = [
            .init(
                name: "A", user: "ada", startsSynced: true,
                network: [
                    .init(at: .zero, .hold(clear), isSignalled: false),
                    .init(at: .seconds(5), .hold(dead), isSignalled: false),
                ])
        ]
        run.link(0, "A", "clear")
        if !wasSent { run.link(5, "A", "dead") }
        run.add(5, .request(0, actor: "A", method: "GET", row: nil, key: nil, bodyDigest: 0))
        if wasSent { run.link(5, "A", "dead") }
        run.add(6, .responseReceived(0, status: 200))
        for number in 0..<12 { run.add(6, .connectionAttempt(number, device: "A")) }
        run.add(20, .phase(.restore))
        run.link(20, "A", "clear")
        #expect((Self.violation(run, .boundedRetries) == nil) == wasSent)
    }

    // MARK: I6

    @Test func revisionsDoNotDecrease() {
        var run = HandwrittenRun()
        run.exchange(1, "GET", key: nil, revision: 3)
        run.exchange(2, "GET", row: "n2", key: nil, revision: 1)
        run.exchange(3, key: "k", revision: 4)
        // The repeated result of an earlier write names its revision.
        run.exchange(4, key: "other", revision: 5)
        run.exchange(5, key: "k", revision: 4)
        var whole = run
        whole.server(9, [("n1", 5, "one")])
        #expect(Self.violation(whole, .monotonicRevision) == nil)
        var older = run
        older.exchange(6, "GET", of: "B", key: nil, revision: 4)
        #expect(
            Self.violation(older, .monotonicRevision) == "n1 has revision 4 at 6.0 s, after revision 5")
        older.exchange(7, "DELETE", key: "d", responded: 204)
        #expect(Self.violation(older, .monotonicRevision) == nil, "the note was deleted")
        var end = HandwrittenRun()
        end.exchange(1, "GET", key: nil, revision: 3)
        end.server(9, [("n1", 2, "one")])
        #expect(Self.violation(end, .monotonicRevision) == "n1 has revision 2 at the end, after revision 3")
        var same = HandwrittenRun()
        same.exchange(1, key: "a", revision: 2)
        same.exchange(2, "GET", key: nil, revision: 2)
        #expect(Self.violation(same, .monotonicRevision) == nil)
        same.exchange(3, key: "b", revision: 2)
        #expect(Self.violation(same, .monotonicRevision) == "n1 has revision 2 at 3.0 s, after revision 2")
        // Responses to requests that were sent at the same time come in any order.
        var concurrent = HandwrittenRun()
        for id in 0...1 {
            concurrent.add(1, .request(id, actor: "A", method: "GET", row: "n1", key: nil, bodyDigest: 0))
        }
        for id in 0...1 { concurrent.add(2, .serverResponded(id, status: 200, revision: 4 - id)) }
        #expect(Self.violation(concurrent, .monotonicRevision) == nil)
    }

    // MARK: I7

    @Test func aChangeFollowsItsCreation() {
        func violation(_ methods: (String, Int?)...) -> String? {
            var run = HandwrittenRun()
            run.add(1, .action(actor: "A", .create(row: "n1")))
            run.add(1, .accepted(device: "A", row: "n1"))
            for (index, (method, responded)) in methods.enumerated() {
                run.exchange(Int64(2 + index), method, responded: responded, received: responded)
            }
            return Self.violation(run, .order)
        }
        #expect(violation(("POST", 201), ("PUT", 200)) == nil)
        #expect(violation(("POST", 400), ("GET", 200), ("PUT", 200)) == nil)
        #expect(violation() == nil)
        #expect(
            violation(("PUT", 404), ("POST", 201))
                == "A sends PUT n1 at 2.0 s, before its creation has reached the server")
        #expect(
            violation(("POST", nil), ("DELETE", 404))
                == "A sends DELETE n1 at 3.0 s, before its creation has reached the server")
    }

    // MARK: I8

    @Test func aPendingEditStaysVisible() {
        var run = Self.edit()
        run.show(2, "A", [("n1", "two", .upload), ("n2", "x", .plain)])
        run.show(3, "A", [("n1", "two", .plain)])
        run.show(4, "A", [("n1", "three", .plain)])
        #expect(Self.violation(run, .readYourWrites) == nil)
        var older = Self.edit()
        older.show(2, "A", [("n1", "one", .upload)])
        #expect(
            Self.violation(older, .readYourWrites)
                == "A shows another text of n1 at 2.0 s than the pending change")
        var next = Self.edit()
        next.add(2, .action(actor: "A", .edit(row: "n1")))
        next.show(2, "A", [("n1", "three", .upload)])
        next.add(2, .accepted(device: "A", row: "n1"))
        #expect(Self.violation(next, .readYourWrites) == nil)
    }

    // MARK: I9

    @Test func aConflictHasTwoWriters() {
        func violation(_ method: String, of actor: String, at second: Int64, row: String = "n1") -> String? {
            var run = HandwrittenRun()
            run.show(0, "A", .plain)
            if second < 5 { run.exchange(second, method, row: row, of: actor) }
            run.show(5, "A", .conflict)
            if second > 5 { run.exchange(second, method, row: row, of: actor) }
            return Self.violation(run, .noFalseConflict)
        }
        let reason = "A shows a conflict of n1 at 5.0 s, and no other client has written it"
        #expect(violation("PUT", of: "W", at: 1) == nil)
        #expect(violation("DELETE", of: "B", at: 1) == nil)
        #expect(violation("PUT", of: "A", at: 1) == reason)
        #expect(violation("GET", of: "W", at: 1) == reason)
        #expect(violation("PUT", of: "W", at: 1, row: "n2") == reason)
        #expect(violation("PUT", of: "W", at: 6) == reason)
    }

    // MARK: I10

    @Test func aDeletedNoteStaysDeleted() {
        var run = HandwrittenRun()
        run.exchange(1, "DELETE", responded: 204)
        func end(_ action: Scenario.Action?) -> String? {
            var run = run
            if let action { run.add(2, .action(actor: "B", action)) }
            run.server(9, [("n1", 3, "one")])
            return Self.violation(run, .deletesStick)
        }
        #expect(end(nil) == "n1 was deleted at 1.0 s, and is on the server at the end")
        #expect(end(.edit(row: "n1")) != nil)
        #expect(end(.choose(row: "n2", .mine)) != nil)
        #expect(end(.choose(row: "n1", .mine)) == nil)
        #expect(end(.create(row: "n1")) == nil)
        run.history.append(.server([]), at: .seconds(9))
        #expect(Self.violation(run, .deletesStick) == nil)
    }

    // MARK: The verdict

    @Test func aViolationFailsTheRunUnlessItIsDropped() {
        var run = HandwrittenRun()
        run.exchange(1, "POST", row: nil)
        let verdict = Verdict(run.scenario, run.history)
        #expect(verdict.result == .fail)
        #expect(verdict.checks.map(\.description) == ["invariant: no-duplicate-effect (I2)"])
        run.scenario.invariants = .init(adding: [], dropping: [.noDuplicateEffect])
        #expect(Verdict(run.scenario, run.history).result == .pass)
        #expect(
            run.scenario.invariants.summary(unchecked: []).last
                == "invariants dropped by the scenario: no-duplicate-effect (I2)")
        // Those outside the standard set must be added.
        var deleted = HandwrittenRun()
        deleted.exchange(1, "DELETE", row: "n2", responded: 204)
        deleted.history.append(
            .server([.init(user: "ada", name: "n2", revision: 1, title: nil, text: nil)]), at: .seconds(2))
        #expect(Verdict(deleted.scenario, deleted.history).result == .pass)
        deleted.scenario.invariants = .init(adding: [.deletesStick], dropping: [])
        #expect(Verdict(deleted.scenario, deleted.history).result == .fail)
    }

    @Test func theReportNamesWhatIsNotChecked() {
        let run = HandwrittenRun()
        let unchecked = Verdict(run.scenario, run.history).unchecked
        #expect(unchecked.map(\.invariant) == [.noLostWrite, .convergence, .transparentProxy])
        let summary = run.scenario.invariants.summary(unchecked: unchecked)
        #expect(summary[0].hasPrefix("invariants checked: no-duplicate-effect (I2), no-silent-overwrite (I3)"))
        #expect(
            summary[1...] == [
                "invariant not checked: no-lost-write (I1): the server's notes were not read",
                "invariant not checked: convergence (I4): the server's notes were not read",
                "invariant not checked: transparent-proxy (I18): the bytes of both ends of the links are not compared",
            ])
    }
}

extension HandwrittenRun {
    mutating func show(_ second: Int64, _ device: String, _ rows: [(name: String, text: String, icon: History.Icon)]) {
        let rows = rows.map { row in
            History.DeviceState.Row(
                name: row.name, title: nil, text: row.text, icon: row.icon, isDeleted: false, kept: [])
        }
        add(second, .device(device, .init(rows: rows, outbox: 0)))
    }

    mutating func server(_ second: Int64, _ rows: [(name: String, revision: Int, text: String)]) {
        add(
            second,
            .server(rows.map { .init(user: "ada", name: $0.name, revision: $0.revision, title: nil, text: $0.text) }))
    }
}
