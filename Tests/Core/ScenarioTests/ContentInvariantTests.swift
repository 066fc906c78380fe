import Determinism
import Impairment
import LinkModel
import Testing

@testable import Scenario

/// Invariants that need what requests say: each with a run that violates it, and a near miss.
@Suite struct ContentInvariantTests {
    private static func violation(_ run: HandwrittenRun, _ invariant: Scenario.Invariant) -> String? {
        var evaluator = ExpectationEvaluator(run.scenario, run.history)
        return evaluator.violation(of: invariant)?.reason
    }

    /// A run in which A, which has shown "one", has edited n1 to "two" at 1 s.
    private static func edit() -> HandwrittenRun {
        var run = HandwrittenRun()
        run.scenario.notes = [.init(row: "n1", title: nil, text: "one", revision: 1)]
        run.step(.edit(row: "n1", title: nil, text: "two"))
        run.add(0, .phase(.script))
        run.show(0, "A", [("n1", "one", .plain)])
        run.add(1, .step(0))
        run.add(1, .action(actor: "A", .edit(row: "n1", text: "two")))
        run.show(1, "A", [("n1", "two", .upload)])
        run.add(1, .accepted(device: "A", row: "n1"))
        return run
    }

    // MARK: I1

    @Test func theWriteOfAnotherClientDoesNotExcuseALoss() {
        func violation(_ own: Int?, _ text: String) -> String? {
            var run = Self.edit()
            run.write(2, base: "1-a", "three", of: "W")
            if let own { run.write(3, base: "1-a", text, responded: own) }
            run.show(4, "A", [("n1", "three", .plain)])
            run.server(9, [("n1", 3, "three")])
            return Self.violation(run, .noLostWrite)
        }
        let reason = "A edits n1 at 1.0 s, and the change is neither on the server nor shown as pending"
        #expect(violation(nil, "") == reason)
        #expect(violation(409, "two") == reason)
        #expect(violation(200, "other") == reason)
        #expect(violation(200, "two") == nil, "it was executed, and replaced later")
    }

    // MARK: I2

    @Test func aDeviceWritesNoMoreOftenThanItsUser() {
        func violation(_ actions: Int) -> String? {
            var run = Self.edit()
            for _ in 1..<actions { run.add(1, .action(actor: "A", .edit(row: "n1"))) }
            run.write(2, base: "1-a", "two", key: "k1", revision: 2)
            run.write(3, base: "2-a", "two", key: "k2", revision: 3)
            return Self.violation(run, .noDuplicateEffect)
        }
        #expect(
            violation(1)
                == "the server has executed 2 writes of n1 by A up to PUT at 3.0 s, and its user has changed n1 once")
        #expect(violation(2) == nil)
    }

    // MARK: I3

    @Test func writesFormOneChain() {
        func violation(_ second: String?, _ responded: Int = 200, key: String = "k2") -> String? {
            var run = HandwrittenRun()
            run.write(1, base: "1-a", "two", key: "k1", revision: 2)
            run.write(2, base: second, "three", of: "W", key: key, responded: responded, revision: 3)
            return Self.violation(run, .noSilentOverwrite)
        }
        #expect(violation("2-b") == nil)
        #expect(violation("1-a") == "PUT of A at 1.0 s and PUT of W at 2.0 s have both replaced revision 1 of n1")
        #expect(violation("1-a", 409) == nil, "it was rejected")
        #expect(violation("1-c") == nil, "another revision with that number")
        #expect(violation(nil) == "the server has executed PUT n1 of W at 2.0 s, which names no revision")
    }

    /// A server that keeps deletions accepts the deletion of a deleted note; a change of it would be another thing.
    @Test func theDeletionOfADeletedNoteReplacesNothing() {
        func violation(_ method: String) -> String? {
            var run = HandwrittenRun()
            run.write(1, base: "1-a", "two", of: "W", key: "k1", revision: 2)
            run.write(2, method, base: "2-b", "three", of: "W", key: "k2", revision: 3)
            run.write(3, "DELETE", base: "1-a", nil, key: "k3", responded: 204, revision: 3)
            return Self.violation(run, .noSilentOverwrite)
        }
        #expect(violation("DELETE") == nil)
        #expect(violation("PUT") == "PUT of W at 1.0 s and DELETE of A at 3.0 s have both replaced revision 1 of n1")
    }

    @Test func aReplacedTextWasShownBefore() {
        func violation(shown: String, kept: [String] = [], written: String = "mine", of actor: String = "A") -> String?
        {
            var run = HandwrittenRun()
            run.write(1, base: "1-a", "theirs", of: "W", key: "w", revision: 2)
            run.show(2, "A", [("n1", shown, kept.isEmpty ? .plain : .conflict)], kept: kept)
            if !kept.isEmpty { run.add(2, .action(actor: "A", .choose(row: "n1", .mine))) }
            run.write(3, base: "2-b", written, of: actor, key: "a", revision: 3)
            return Self.violation(run, .noSilentOverwrite)
        }
        #expect(
            violation(shown: "mine") == "A replaces the text of n1 by W with PUT at 3.0 s, and has never shown it")
        #expect(violation(shown: "theirs") == nil)
        #expect(violation(shown: "mine", kept: ["mine", "theirs"]) == nil)
        #expect(violation(shown: "mine", written: "theirs") == nil, "nothing is dropped")
        #expect(violation(shown: "mine", of: "W") == nil, "its own text")
    }

    // MARK: I4

    @Test func nothingIsPendingAfterTheQuiescePhase() {
        func violation(
            _ icon: History.Icon, server: String = "two", isOver: Bool = true, requests: [(String, hasFault: Bool)] = []
        ) -> String? {
            var run = HandwrittenRun()
            for (method, hasFault) in requests {
                let fault = History.Event.fault(index: 0, exchange: run.nextExchange, point: .at(.beforeResponse))
                run.exchange(1, method, received: hasFault ? 500 : 409, fault: hasFault ? fault : nil)
            }
            run.show(1, "A", [("n1", "two", icon)])
            if isOver { run.add(8, .phase(.verify)) }
            run.server(9, [("n1", 1, server)])
            return Self.violation(run, .convergence)
        }
        #expect(violation(.upload) == "A shows n1 as pending at the end")
        #expect(violation(.upload, isOver: false) == nil)
        for icon in [History.Icon.error, .conflict] {
            #expect(
                violation(icon) == "A shows n1 with the icon '\(icon)' at the end, although it equals the server's")
            // A fault has rejected the write, or the read after it.
            #expect(violation(icon, requests: [("PUT", true)]) == nil)
            #expect(violation(icon, requests: [("PUT", false), ("GET", true)]) == nil)
            #expect(violation(icon, requests: [("PUT", true), ("PUT", false), ("GET", true), ("GET", false)]) != nil)
            #expect(violation(icon, server: "one") == nil)
        }
    }

    // MARK: I5

    @Test func aRetryAfterIsRespected() {
        func violation(_ second: Int64, status: Int = 503, restarts: Bool = false, isSlow: Bool = false) -> String? {
            var run = Self.edit()
            if isSlow { run.add(1, .action(actor: "A", .disk(.slow(.milliseconds(640))))) }
            run.reply(503, [.init("Retry-After", "30")])
            let fault = History.Event.fault(index: 0, exchange: 0)
            run.exchange(2, responded: nil, received: status, fault: fault)
            if restarts {
                run.add(3, .stopped(device: "A"))
                run.add(3, .started(device: "A"))
            }
            run.exchange(second)
            return Self.violation(run, .boundedRetries)
        }
        #expect(violation(31) == "A sends PUT n1 at 31.0 s, before the end of the Retry-After of 2.0 s")
        #expect(violation(32) == nil)
        #expect(violation(31, status: 500) == nil)
        #expect(violation(31, restarts: true) == nil)
        #expect(violation(4, isSlow: true) == nil, "the commit before the request began before the response")
        #expect(violation(5, isSlow: true) != nil)
    }

    @Test func aFailedRequestIsNotRepeatedAtOnce() {
        func violation(_ count: Int, status: Int = 503, acts: Bool = false) -> String? {
            var run = Self.edit()
            for number in 0..<count {
                if acts && number == 2 { run.add(2, .action(actor: "A", .sync)) }
                run.exchange(2, responded: status, received: status)
            }
            return Self.violation(run, .boundedRetries)
        }
        #expect(
            violation(4) == "A sends PUT n1 4 times in a row up to 2.0 s, each time less than 500 ms after a failure")
        #expect(violation(3) == nil)
        #expect(violation(9, status: 200) == nil)
        #expect(violation(4, acts: true) == nil)
        func violation(bodies: [UInt64]) -> String? {
            var run = HandwrittenRun()
            for body in bodies {
                run.exchange(2, "POST", row: nil, key: nil, body: body, responded: 500, received: 500)
            }
            return Self.violation(run, .boundedRetries)
        }
        #expect(violation(bodies: [1, 1, 1, 1]) != nil)
        #expect(violation(bodies: [1, 2, 3, 4]) == nil, "they are for other records")
    }

    @Test func theBudgetIsThatOfThePublishedPolicy() {
        var nothing = DirectionConditions.clear
        nothing.loss = .one
        let dead = Timeline.NamedConditions("dead", Conditions(up: nothing, down: nothing))
        func violation(_ policy: ClientPolicy?) -> String? {
            var run = HandwrittenRun()
            run.scenario.devices = [
                .init(
                    name: "A", user: "ada", startsSynced: true,
                    network: [.init(at: .zero, .hold(dead), isSignalled: false)])
            ]
            if let policy { run.add(0, .policy(device: "A", policy)) }
            run.link(0, "A", "dead")
            for number in 0..<9 { run.add(Int64(number), .connectionAttempt(number, device: "A")) }
            run.link(20, "A", "clear")
            return Self.violation(run, .boundedRetries)
        }
        #expect(violation(nil) == nil)
        let slow = ClientPolicy(firstDelay: .seconds(10), longestDelay: .seconds(40))
        #expect(violation(slow) == "9 attempts of A in the outage at 0.0 s, 5 allowed")
    }

    // MARK: I6

    @Test func aViewDoesNotGoBack() {
        func violation(_ last: String, _ icon: History.Icon = .plain, revision: Int? = nil) -> String? {
            var run = Self.edit()
            run.write(2, base: "1-a", "two", revision: revision)
            run.show(3, "A", [("n1", "two", .plain)])
            run.show(4, "A", [("n1", last, icon)])
            return Self.violation(run, .monotonicRevision)
        }
        let reason = "A shows the text of revision 1 of n1 at 4.0 s, after that of revision 2"
        #expect(violation("one", revision: 2) == reason)
        #expect(violation("one") == reason, "without entity tags, a write adds one to its base")
        #expect(violation("one", .conflict) == nil)
        #expect(violation("three") == nil)
    }

    // MARK: I7

    @Test func writesOfANoteDoNotOverlap() {
        func violation(_ end: Int64, restored row: String? = nil) -> String? {
            var run = HandwrittenRun()
            if let row {
                run.add(0, .action(actor: "W", .choose(row: "\(row)", .mine)))
                run.exchange(0, "POST", row: row, of: "W", responded: 201, received: 201)
            }
            run.add(1, .request(900, actor: "A", method: "PUT", row: "n1", key: "a", bodyDigest: 0))
            if end <= 2 { run.add(end, .failed(900)) }
            run.add(2, .request(901, actor: "A", method: "PUT", row: "n1", key: "b", bodyDigest: 0))
            if end > 2 { run.add(end, .failed(900)) }
            return Self.violation(run, .order)
        }
        #expect(violation(3) == "A sends PUT n1 at 2.0 s, while its PUT of 1.0 s is in flight")
        #expect(violation(2) == nil)
        #expect(violation(3, restored: "n2") != nil)
        #expect(violation(3, restored: "n1") == nil, "the name stands for the deleted and the restored note")
    }

    @Test func anOlderTextIsNotSentAfterANewerOne() {
        func violation(_ first: String, _ second: String) -> String? {
            var run = Self.edit()
            run.step(.edit(row: "n1", title: nil, text: "three"))
            run.add(2, .step(1))
            run.add(2, .action(actor: "A", .edit(row: "n1", text: "three")))
            run.show(2, "A", [("n1", "three", .upload)])
            run.add(2, .accepted(device: "A", row: "n1"))
            run.write(3, base: "1-a", first, key: "a", revision: 2)
            run.write(4, base: "2-a", second, key: "b", revision: 3)
            return Self.violation(run, .order)
        }
        #expect(
            violation("three", "two")
                == "the server has executed PUT n1 of A at 4.0 s with an older text than a write before it")
        #expect(violation("two", "three") == nil)
    }

    // MARK: I8

    @Test func theResponseToAnOlderWriteDoesNotReplaceTheText() {
        func violation(_ icon: History.Icon, writes: Bool = false) -> String? {
            var run = Self.edit()
            if writes { run.write(2, base: "2-a", "one", of: "W", revision: 3) }
            run.show(3, "A", [("n1", "one", icon)])
            return Self.violation(run, .readYourWrites)
        }
        #expect(
            violation(.plain) == "A shows an older text of n1 at 3.0 s than the change at 1.0 s")
        #expect(violation(.error) == nil, "the rollback is announced")
        #expect(violation(.plain, writes: true) == nil, "another client has written it")
    }

    // MARK: I9

    @Test func aWriteCausesOneConflict() {
        func violation(_ change: (inout HandwrittenRun) -> Void) -> String? {
            var run = Self.edit()
            run.write(2, base: "1-a", "theirs", of: "W", key: "w", revision: 2)
            change(&run)
            run.show(9, "A", [("n1", "mine", .conflict)])
            return Self.violation(run, .noFalseConflict)
        }
        let reason = "A shows a conflict of n1 at 9.0 s, and no other client has written it since"
        #expect(violation { _ in } == nil)
        #expect(violation { $0.show(3, "A", [("n1", "theirs", .plain)]) } == reason)
        #expect(violation { $0.write(3, base: "2-b", "mine", revision: 3) } == reason)
        #expect(violation { $0.write(3, base: "1-a", "mine", responded: 409) } == nil)
        var rejected = Self.edit()
        rejected.write(2, base: "0-a", "theirs", of: "W", responded: 409)
        rejected.show(9, "A", [("n1", "two", .conflict)])
        #expect(
            Self.violation(rejected, .noFalseConflict)
                == "A shows a conflict of n1 at 9.0 s, and no other client has written it")
    }

    // MARK: I10

    @Test func aDeletedNoteDoesNotReappear() {
        func violation(_ icon: History.Icon, action: Scenario.Action? = nil, writer: String? = nil) -> String? {
            var run = HandwrittenRun()
            run.show(0, "A", [("n1", "one", .plain)])
            run.add(1, .action(actor: "A", .delete(row: "n1")))
            run.add(1, .device("A", .init(rows: [], outbox: 1)))
            run.add(1, .accepted(device: "A", row: "n1"))
            if let writer { run.write(2, base: "1-a", "two", of: writer, revision: 2) }
            if let action { run.add(2, .action(actor: "A", action)) }
            run.show(3, "A", [("n1", "one", icon)])
            return Self.violation(run, .deletesStick)
        }
        #expect(violation(.plain) == "A shows n1 again at 3.0 s, after its deletion at 1.0 s")
        #expect(violation(.conflict) == nil)
        #expect(violation(.plain, action: .keep(row: "n1")) == nil)
        #expect(violation(.plain, writer: "W") == nil)
    }
}

extension HandwrittenRun {
    /// Appends an executed write with its contents.
    mutating func write(
        _ second: Int64, _ method: String = "PUT", base: String?, _ text: String?, of actor: String = "A",
        row: String = "n1", key: String? = nil, responded: Int? = 200, received: Int? = 200, revision: Int? = nil,
        account: RequestContents.Account? = nil
    ) {
        let key = key ?? "\(actor) \(second)"
        let id = exchange(
            second, method, row: row, of: actor, key: key, responded: responded, received: responded ?? received,
            revision: revision)
        let body = text.map { RequestContents.Body.note(title: nil, text: RequestContents.digest($0)) } ?? .none
        add(second, .contents(id, .init(account: account, base: base.map { .init($0) }, body: body)))
    }

    mutating func show(
        _ second: Int64, _ device: String, _ rows: [(name: String, text: String, icon: History.Icon)], kept: [String]
    ) {
        let rows = rows.map { row in
            History.DeviceState.Row(
                name: row.name, title: nil, text: row.text, icon: row.icon, isDeleted: false, kept: kept)
        }
        add(second, .device(device, .init(rows: rows, outbox: 0)))
    }

    /// Adds a step of A.
    mutating func step(_ action: Scenario.Action, of actor: String = "A") {
        scenario.steps.append(
            .init(
                trigger: .at(.seconds(1)), action: (actor: actor, action: action), mark: nil,
                location: SourceLocation(file: "s.yaml")))
    }

    /// Adds a fault that responds in place of the server.
    mutating func reply(_ status: Int, _ fields: [FaultResponse.Field] = []) {
        scenario.faults.append(
            .init(
                request: RequestPattern(method: nil, row: nil), device: nil,
                action: .link(.respond(.init(status: status, fields: fields))),
                location: SourceLocation(file: "s.yaml")))
    }
}
