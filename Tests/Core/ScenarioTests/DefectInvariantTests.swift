import Determinism
import LinkModel
import Testing

@testable import Scenario

/// Rules of invariants that single defects of clients and servers break: each with a run that breaks it, and near misses.
@Suite struct DefectInvariantTests {
    private static func violation(_ run: HandwrittenRun, _ invariant: Scenario.Invariant) -> String? {
        var evaluator = ExpectationEvaluator(run.scenario, run.history)
        return evaluator.violation(of: invariant)?.reason
    }

    /// A run of A that begins with n1 and n2.
    private static func run() -> HandwrittenRun {
        var run = HandwrittenRun()
        run.scenario.notes = ["n1", "n2"].map { .init(row: $0, title: nil, text: "one", revision: 1) }
        run.add(0, .phase(.script))
        run.add(0, .world(.init(isSimulated: true, comparesBytes: false)))
        run.add(0, .policy(device: "A", ClientPolicy()))
        run.add(0, .started(device: "A"))
        run.link(0, "A", "wifi")
        run.show(0, "A", [("n1", "one", .plain), ("n2", "one", .plain)])
        return run
    }

    // MARK: I14

    @Test func aNoteThatWasReadDoesNotVanishWithoutAReason() {
        func violation(_ before: (inout HandwrittenRun) -> Void = { _ in }) -> String? {
            var run = Self.run()
            before(&run)
            run.show(30, "A", [("n1", "one", .plain)])
            return Self.violation(run, .noBlocking)
        }
        let reason =
            "n2 vanishes from A at 30.0 s, although its user has not deleted it and no response has been received"
        #expect(violation() == reason)
        #expect(violation { $0.add(30, .action(actor: "A", .delete(row: "n1"))) } == reason)
        #expect(violation { $0.add(30, .action(actor: "A", .delete(row: "n2"))) } == nil)
        #expect(violation { $0.exchange(30, "GET", row: nil, key: nil) } == nil)
        #expect(violation { $0.exchange(30, "GET", row: nil, key: nil, responded: nil, received: nil) } == reason)
        #expect(violation { $0.exchange(20, "GET", row: nil, key: nil) } == reason, "the response is ten seconds old")
    }

    // MARK: I1

    @Test func aConflictKeepsTheTextOfTheUser() {
        func violation(_ shown: String, kept: [String]) -> String? {
            var run = Self.run()
            run.edit(1, "n1", "two", rest: ("n2", "one"))
            run.show(2, "A", [("n1", shown, .conflict)], kept: kept)
            run.server(9, [("n1", 2, "three"), ("n2", 1, "one")])
            return Self.violation(run, .noLostWrite)
        }
        #expect(violation("two", kept: ["two", "three"]) == nil)
        #expect(violation("three", kept: ["two", "three"]) == nil)
        #expect(
            violation("three", kept: ["three"])
                == "A edits n1 at 1.0 s, and the change is neither on the server nor shown as pending")
    }

    // MARK: I2

    @Test func anOperationHasOneResult() {
        func violation(
            _ status: Int, body: UInt64 = 1, key: String = "k", first: Int = 200, contract: String = "compat"
        ) -> String? {
            var run = Self.run()
            run.scenario.contract = contract
            run.add(1, .action(actor: "W", .edit(row: "n1")))
            run.exchange(1, of: "W", responded: first, revision: 2)
            run.exchange(2, of: "W", key: key, body: body, responded: status, revision: 2)
            return Self.violation(run, .noDuplicateEffect)
        }
        #expect(violation(200) == nil, "a repeated result")
        #expect(
            violation(409) == "the server responds 409 to PUT n1 of W at 2.0 s, although it has executed it")
        #expect(
            violation(200, body: 2)
                == "the server responds 200 to PUT n1 of W at 2.0 s, although another request had its operation id")
        #expect(violation(422, body: 2) == nil)
        #expect(violation(409, key: "other") == nil)
        #expect(violation(409, first: 409) == nil, "it was not executed")
        #expect(violation(401) == nil && violation(400) == nil)
        #expect(violation(409, contract: "orig") == nil, "this server knows no operation ids")
    }

    @Test func anOperationIDNamesOneRequest() {
        func violation(_ method: String = "PUT", body: UInt64 = 1, key: String = "k", bytes: Int = 50) -> String? {
            var run = Self.run()
            for (number, (second, method, body, key, bytes)) in [
                (Int64(1), "PUT", UInt64(1), "k", 50), (2, method, body, key, bytes),
            ].enumerated() {
                run.add(second, .request(7 + number, actor: "A", method: method, row: "n1", key: key, bodyDigest: body))
                run.add(second, .requestSent(7 + number, bytes: bytes))
                run.add(second, .failed(7 + number))
            }
            return Self.violation(run, .noDuplicateEffect)
        }
        let reason = "n1 at 2.0 s with the operation id of another request"
        #expect(violation() == nil, "a repetition")
        #expect(violation(body: 2) == "A sends PUT \(reason)")
        #expect(violation("POST") == "A sends POST \(reason)")
        #expect(violation(body: 2, key: "other") == nil)
        #expect(violation(body: 2, bytes: 0) == nil, "it was interrupted")
    }

    /// A POST that a proxy has held, and that the client has repeated on another connection, arrives after the DELETE.
    @Test func aPOSTOfAClosedConnectionMayCreateADeletedNoteAgain() {
        /// - Parameter sent: The time at which the POST enters the link.
        func violation(sentAt sent: Int64, closedAt closed: Int64, contract: String = "orig") -> String? {
            var run = Self.run()
            run.scenario.contract = contract
            run.add(1, .action(actor: "A", .create(row: "n1")))
            run.add(1, .connectionAttempt(7, device: "A"))
            let late = History.Event.request(
                950, actor: "A", method: "POST", row: "n1", key: "k", bodyDigest: 1, connection: 7)
            if sent < 2 { run.add(sent, late) }
            run.exchange(2, "POST", responded: 201, received: 201, revision: 1)
            run.add(3, .action(actor: "A", .delete(row: "n1")))
            run.exchange(3, "DELETE", key: "d", responded: 204, received: 204)
            if closed < 9 { run.add(closed, .connectionEnded(7, device: "A")) }
            if sent > 2 { run.add(sent, late) }
            run.add(9, .arrived(950))
            run.add(9, .serverResponded(950, status: 201, bytes: 20, revision: 3))
            run.add(9, .failed(950))
            if closed > 9 { run.add(closed, .connectionEnded(7, device: "A")) }
            return Self.violation(run, .noDuplicateEffect)
        }
        for sent: Int64 in [1, 9] {
            let expected = "the server has executed POST n1 of A at \(sent).0 s once more"
            #expect(violation(sentAt: sent, closedAt: 4) == nil)
            #expect(violation(sentAt: sent, closedAt: 10) == expected, "the client has not given it up")
            #expect(violation(sentAt: sent, closedAt: 4, contract: "compat") == expected)
        }
    }

    // MARK: I3

    @Test func aNoteInConflictIsNotSent() {
        func violation(_ action: Scenario.Action?, icon: History.Icon = .conflict) -> String? {
            var run = Self.run()
            run.show(1, "A", [("n1", "two", icon), ("n2", "one", .plain)])
            if let action { run.add(2, .action(actor: "A", action)) }
            run.write(3, "PUT", "n1", "two", base: "1-a")
            return Self.violation(run, .noSilentOverwrite)
        }
        #expect(
            violation(.edit(row: "n1"))
                == "A sends PUT n1 at 3.0 s, and its user has not decided about the conflict that it shows")
        #expect(violation(nil) != nil)
        #expect(violation(.choose(row: "n1", .mine)) == nil)
        #expect(violation(.choose(row: "n2", .mine)) != nil)
        #expect(violation(nil, icon: .upload) == nil)
    }

    // MARK: I5

    @Test func aRejectedWriteIsNotRepeated() {
        func violation(_ status: Int, _ between: [History.Event] = [], method: String = "PUT") -> String? {
            var run = Self.run()
            run.exchange(1, method, responded: status, received: status)
            for event in between { run.add(2, event) }
            run.exchange(60, method, responded: status, received: status)
            return Self.violation(run, .boundedRetries)
        }
        let expected = "A sends PUT n1 again at 60.0 s, although the server has rejected it at 1.0 s"
        #expect(violation(422) == expected)
        #expect(violation(404) == expected && violation(400) == expected)
        #expect(violation(400, method: "POST") == nil, "the original server responds so to a repeated creation")
        for status in [401, 403, 408, 409, 412, 425, 429, 500, 503] { #expect(violation(status) == nil, "\(status)") }
        #expect(violation(422, [.action(actor: "A", .edit(row: "n1"))]) == nil)
        #expect(violation(422, [.action(actor: "A", .edit(row: "n2"))]) == expected)
        #expect(violation(422, [.stopped(device: "A"), .started(device: "A")]) == nil)
    }

    @Test func delaysAreRandom() {
        func violation(_ times: [Int64], link: String? = nil, action: Int64? = nil) -> String? {
            var run = Self.run()
            let dead = ScenarioDirectorTests.dead
            run.scenario.devices = [
                .init(
                    name: "A", user: "ada", startsSynced: true,
                    network: [.init(at: .zero, .hold(dead), isSignalled: false)])
            ]
            run.link(1, "A", link ?? dead.name)
            for (number, time) in times.enumerated() {
                if action == time { run.add(time, .action(actor: "A", .sync)) }
                run.add(time, .connectionAttempt(number, device: "A"))
            }
            run.add(2_000, .phase(.restore))
            return Self.violation(run, .boundedRetries)
        }
        let equal: [Int64] = [10, 70, 130, 190, 250, 310]
        #expect(
            violation(equal)
                == "A tries to connect 5 times in a row after 60.0 s, up to 310.0 s, without any random part of "
                + "the delays")
        #expect(violation(Array(equal.dropLast())) == nil)
        #expect(violation([10, 70, 130, 185, 245, 305]) == nil)
        #expect(violation(equal, action: 190) == nil)
        #expect(violation(equal, link: "wifi") == nil)
        #expect(violation([10, 10, 10, 10, 10, 10, 10]) == nil, "connections side by side are no delays")
        #expect(violation(equal.flatMap { [$0, $0] }) != nil)
    }

    // MARK: I7 and I16

    /// A run in which A has changed n2 and then n1, or n2 twice, while a write of n1 was in flight.
    private static func busy(_ rows: [String], blocker: (status: Int, isLate: Bool) = (200, false)) -> HandwrittenRun {
        var run = Self.run()
        run.edit(1, "n3", "x", rest: ("n1", "one"), kind: "creates")
        run.add(2, .request(900, actor: "A", method: "POST", row: "n3", key: "b", bodyDigest: 9))
        run.add(2, .requestSent(900, bytes: 50))
        run.add(2, .arrived(900))
        run.add(2, .serverResponded(900, status: blocker.status, bytes: 9, revision: 1))
        if blocker.isLate { run.add(2, .responseReceived(900, status: blocker.status)) }
        for (number, row) in rows.enumerated() {
            run.edit(Int64(3 + number), row, "\(row) \(number)", rest: nil)
        }
        if !blocker.isLate { run.add(6, .responseReceived(900, status: blocker.status)) }
        return run
    }

    @Test func changesOfNotesAreSentInTheirOrder() {
        func violation(
            _ first: String, _ second: String, status: Int = 200, isLate: Bool = false, fails: Bool = false
        ) -> String? {
            var run = Self.busy(["n2", "n1"], blocker: (status, isLate))
            if fails { run.add(6, .belief(device: "A", .suspected)) }
            run.write(7, "PUT", first, "\(first) \(first == "n2" ? 0 : 1)", base: "1-a")
            run.write(8, "PUT", second, "\(second) \(second == "n2" ? 0 : 1)", base: "1-a")
            return Self.violation(run, .order)
        }
        #expect(violation("n2", "n1") == nil)
        #expect(
            violation("n1", "n2")
                == "A sends PUT n1, changed at 4.0 s, at 7.0 s, before its change of n2 at 3.0 s")
        #expect(violation("n1", "n2", status: 500) == nil, "the write in flight has failed")
        #expect(violation("n1", "n2", isLate: true) == nil, "nothing was in flight")
        #expect(violation("n1", "n2", fails: true) == nil, "an attempt may have failed before it was recorded")
    }

    @Test func aQueueIsSentInItsOrderAfterAStart() {
        func violation(_ first: String, startsAt start: Int64? = 3) -> String? {
            var run = Self.run()
            func restart(_ second: Int64) {
                run.add(second, .stopped(device: "A"))
                run.add(second, .started(device: "A"))
            }
            run.edit(1, "n2", "n2 new", rest: nil)
            if start == 2 { restart(2) }
            run.edit(2, "n1", "n1 new", rest: nil)
            if start == 3 { restart(3) }
            for (second, row) in [(Int64(7), first), (8, first == "n1" ? "n2" : "n1")] {
                run.write(second, "PUT", row, "\(row) new", base: "1-a")
            }
            return Self.violation(run, .order)
        }
        #expect(violation("n2") == nil)
        #expect(
            violation("n1") == "A sends PUT n1, changed at 2.0 s, at 7.0 s, before its change of n2 at 1.0 s")
        #expect(violation("n1", startsAt: nil) == nil, "no start, and nothing was in flight")
        #expect(violation("n1", startsAt: 2) == nil, "the second change is made after the start")
    }

    @Test func aTextThatWasReplacedIsNotSent() {
        func violation(_ text: String, isLate: Bool = false) -> String? {
            var run = Self.busy(["n2", "n2"], blocker: (200, isLate))
            run.write(7, "PUT", "n2", text, base: "1-a")
            return Self.violation(run, .economy)
        }
        #expect(violation("n2 1") == nil)
        #expect(
            violation("n2 0") == "A sends PUT n2 at 7.0 s with a text that its user had replaced at 4.0 s")
        #expect(violation("n2 0", isLate: true) == nil, "it may have been prepared before")
    }

    // MARK: I10

    @Test func noRequestBringsADeletedNoteBack() {
        func violation(_ action: Scenario.Action, contract: String = "compat") -> String? {
            var run = Self.run()
            run.scenario.contract = contract
            run.exchange(1, "DELETE", of: "W", responded: 204)
            run.add(2, .action(actor: "W", action))
            run.exchange(2, "POST", of: "W", key: "again", responded: 201, revision: 1)
            run.server(9, [("n1", 1, "one"), ("n2", 1, "one")])
            return Self.violation(run, .deletesStick)
        }
        #expect(
            violation(.send(.init(method: "POST", path: "/api/notes/")))
                == "n1 was deleted at 1.0 s, and is on the server at the end")
        #expect(violation(.send(.init(method: "POST", path: "/api/notes/")), contract: "orig") == nil)
        #expect(violation(.create(row: "n1")) == nil)
    }

    /// The user of one client decides while the deletion of another, which was sent before, is on its way.
    @Test func aDeletionThatArrivesLaterHasDeletedNothing() {
        func violation(_ action: Scenario.Action, at second: Int64) -> String? {
            var run = Self.run()
            run.exchange(1, "DELETE", responded: nil, received: nil)
            run.exchange(2, "DELETE", of: "W", responded: 204)
            run.add(second, .action(actor: "A", action))
            run.add(4, .arrived(0))
            run.add(4, .serverResponded(0, status: 204))
            run.exchange(5, "POST", of: "W", key: "mine", responded: 201, revision: 1)
            run.server(9, [("n1", 1, "one"), ("n2", 1, "one")])
            return Self.violation(run, .deletesStick)
        }
        #expect(violation(.choose(row: "n1", .mine), at: 3) == nil)
        #expect(violation(.edit(row: "n1"), at: 3) == "n1 was deleted at 2.0 s, and is on the server at the end")
    }

    /// The response to the first POST was lost, so that its client repeats it after another client has deleted the note.
    @Test func aRepeatedPOSTMayCreateADeletedNoteAgain() {
        func violation(arrives: Bool = true, received: Int? = nil, contract: String = "orig") -> String? {
            var run = Self.run()
            run.scenario.contract = contract
            run.exchange(1, "POST", responded: received, received: received)
            if arrives, received == nil { run.add(1, .arrived(0)) }
            run.exchange(2, "DELETE", of: "W", responded: 204)
            run.exchange(3, "POST", responded: 201, received: 201, revision: 1)
            run.server(9, [("n1", 1, "one"), ("n2", 1, "one")])
            return Self.violation(run, .deletesStick)
        }
        let expected = "n1 was deleted at 2.0 s, and is on the server at the end"
        #expect(violation() == nil)
        #expect(violation(arrives: false) == expected)
        #expect(violation(received: 201) == expected)
        #expect(violation(contract: "compat") == expected)
    }

    @Test func anEditOfADeletedNoteDoesNotBecomeAnotherNote() {
        func violation(
            _ text: String = "two", status: Int = 204, action: Scenario.Action? = nil, createsNote: Bool = false
        ) -> String? {
            var run = Self.run()
            run.edit(1, "n1", "two", rest: ("n2", "one"))
            run.exchange(2, "DELETE", of: "W", responded: status)
            if createsNote { run.edit(3, "n3", "two", rest: nil, kind: "creates") }
            if let action { run.add(3, .action(actor: "A", action)) }
            run.write(4, "POST", "n9", text, base: nil)
            return Self.violation(run, .deletesStick)
        }
        #expect(
            violation()
                == "A creates a note at 4.0 s with the text of its user's edit of n1, which was deleted on the server")
        #expect(violation("other") == nil)
        #expect(violation(status: 409) == nil, "nothing was deleted")
        #expect(violation(action: .choose(row: "n1", .mine)) == nil, "the user was asked")
        #expect(violation(action: .choose(row: "n2", .mine)) != nil)
        #expect(violation(createsNote: true) == nil, "the user has created a note with this text")
    }

    /// A server without tombstones executes the POST of a killed client after the DELETE of the note.
    @Test func aLatePOSTMayShowADeletedNoteAgain() {
        func violation(_ contract: String) -> String? {
            var run = Self.run()
            run.scenario.contract = contract
            run.exchange(1, "POST", responded: nil, received: nil)
            run.add(1, .stopped(device: "A"))
            run.add(2, .started(device: "A"))
            run.exchange(2, "POST", responded: 201, received: 201, revision: 1)
            run.add(3, .action(actor: "A", .delete(row: "n1")))
            run.show(3, "A", [("n2", "one", .plain)])
            run.add(3, .accepted(device: "A", row: "n1"))
            run.exchange(4, "DELETE", key: "d", responded: 204, received: 204)
            run.add(5, .arrived(0))
            run.add(5, .serverResponded(0, status: 201, bytes: 20, revision: 3))
            run.show(6, "A", [("n1", "one", .plain), ("n2", "one", .plain)])
            return Self.violation(run, .deletesStick)
        }
        #expect(violation("orig") == nil)
        #expect(violation("compat") == "A shows n1 again at 6.0 s, after its deletion at 3.0 s")
    }

    // MARK: I15

    @Test func anErrorHasAReason() {
        func violation(_ statuses: [Int]) -> String? {
            var run = Self.run()
            run.edit(1, "n1", "two", rest: ("n2", "one"))
            for (number, status) in statuses.enumerated() {
                run.exchange(Int64(2 + number), responded: status, received: status)
            }
            run.show(9, "A", [("n1", "two", .error), ("n2", "one", .plain)])
            return Self.violation(run, .visibleState)
        }
        let expected = "A shows an error of n1 at 9.0 s, and the server has not rejected its change"
        #expect(violation([500]) == expected && violation([]) == expected && violation([429, 503]) == expected)
        #expect(violation([500, 500]) == nil)
        #expect(violation([422]) == nil)
    }

    // MARK: I17

    /// Without its commits, a client sends nothing.
    @Test(arguments: [Scenario.Disk.full, .slow(.seconds(5))]) func aClientMayWaitForItsDisk(_ disk: Scenario.Disk) {
        func violation(from begin: Int64, to end: Int64) -> String? {
            var run = BehaviourInvariantTests.outage(nil, isSignalled: true, until: 90)
            run.add(begin, .action(actor: "A", .disk(disk)))
            run.add(end, .action(actor: "A", .disk(.normal)))
            run.add(end, .commit(device: "A", digest: 1))
            run.add(300, .phase(.verify))
            return Self.violation(run, .liveness)
        }
        #expect(violation(from: 101, to: 290) == nil)
        #expect(violation(from: 101, to: 103) != nil, "the disk has been normal again for a long time")
        #expect(violation(from: 40, to: 60) != nil)
    }

    @Test func aChangeIsSentAtOnce() {
        func violation(after seconds: Int64, status: Int = 200, attempt: Int64? = nil) -> String? {
            var run = Self.run()
            run.exchange(1, "GET", row: nil, key: nil, responded: status, received: status)
            run.edit(2, "n1", "two", rest: ("n2", "one"), outbox: 1)
            if let attempt { run.add(attempt, .connectionAttempt(1, device: "A")) }
            run.exchange(seconds, responded: 200, received: 200)
            run.show(seconds, "A", [("n1", "two", .plain), ("n2", "one", .plain)])
            return Self.violation(run, .liveness)
        }
        #expect(
            violation(after: 10)
                == "A sends nothing in the 5 s after its user edits n1 at 2.0 s, although its last exchange has succeeded"
        )
        #expect(violation(after: 6) == nil)
        #expect(violation(after: 10, attempt: 4) == nil)
        #expect(violation(after: 10, status: 500) == nil, "it may wait after a failure")
    }
}

extension HandwrittenRun {
    /// Adds a change of A's user, with the view that shows it.
    fileprivate mutating func edit(
        _ second: Int64, _ row: String, _ text: String, rest: (String, String)?, kind: String = "edits", outbox: Int = 1
    ) {
        let action: Scenario.Action =
            kind == "creates"
            ? .create(row: row, title: nil, text: text) : .edit(row: row, title: nil, text: text)
        step(action)
        add(second, .step(scenario.steps.count - 1))
        add(second, .action(actor: "A", action))
        var rows: [(name: String, text: String, icon: History.Icon)] = [(row, text, .upload)]
        if let rest { rows.append((rest.0, rest.1, .plain)) }
        // Notes that are pending stay so.
        for name in ["n1", "n2", "n3"] where !rows.contains(where: { $0.name == name }) {
            if let old = shown[name] { rows.append(old) }
        }
        show(second, "A", rows, outbox: outbox)
        add(second, .accepted(device: "A", row: row))
    }

    /// The notes of A's last view.
    private var shown: [String: (name: String, text: String, icon: History.Icon)] {
        for entry in history.entries.reversed() {
            guard case .device("A", let state) = entry.event else { continue }
            return Dictionary(state.rows.map { ($0.name, ($0.name, $0.text ?? "", $0.icon)) }) { first, _ in first }
        }
        return [:]
    }

    /// Adds a write of A with contents, which the server executes.
    fileprivate mutating func write(_ second: Int64, _ method: String, _ row: String, _ text: String, base: String?) {
        let id = 1_000 + history.entries.count
        add(second, .request(id, actor: "A", method: method, row: row, key: "w\(id)", bodyDigest: UInt64(id)))
        add(
            second,
            .contents(
                id,
                RequestContents(
                    base: base.map { RequestContents.Revision($0) },
                    body: .note(title: nil, text: RequestContents.digest(text)))))
        add(second, .requestSent(id, bytes: 50))
        add(second, .arrived(id))
        add(second, .serverResponded(id, status: 200, bytes: 9, revision: 2))
        add(second, .responseReceived(id, status: 200))
    }
}
