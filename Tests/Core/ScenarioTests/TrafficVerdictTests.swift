import Determinism
import Impairment
import LinkModel
import Testing

// The testing library has a type of that name too.
import struct Scenario.Expectation

@testable import Scenario

/// A handwritten history of the devices A and B and the writer W.
struct HandwrittenRun {
    var scenario = Scenario(name: "run")
    var history = History()
    private(set) var nextExchange = 0

    init() {
        let wifi = Timeline.NamedConditions("wifi", .clear)
        let edge = Timeline.NamedConditions("edge", .clear)
        let flap = Timeline.Phase.flap(
            [.init(edge, .seconds(4)), .init(wifi, .seconds(1))], jitter: .zero)
        scenario.devices = [
            .init(
                name: "A", user: "ada", startsSynced: true,
                network: [
                    .init(at: .zero, .hold(wifi), isSignalled: false),
                    .init(at: .seconds(10), flap, isSignalled: false),
                    .init(at: .seconds(20), .hold(wifi), isSignalled: false),
                ]),
            .init(
                name: "B", user: "ada", startsSynced: true, network: [.init(at: .zero, .hold(wifi), isSignalled: true)]),
        ]
        scenario.writers = [.init(name: "W", user: "ada")]
    }

    mutating func add(_ second: Int64, _ event: History.Event) { history.append(event, at: .seconds(second)) }

    mutating func link(_ second: Int64, _ device: String, _ link: String) {
        add(second, .network(device: device, link: link, isOnline: true))
    }

    mutating func show(_ second: Int64, _ device: String, _ icon: History.Icon, row: String = "n1", outbox: Int = 0) {
        let row = History.DeviceState.Row(
            name: row, title: nil, text: "one", icon: icon, isDeleted: false, kept: [])
        add(second, .device(device, .init(rows: [row], outbox: outbox)))
    }

    /// Appends an exchange and returns its number; `nil` leaves an event out.
    @discardableResult
    mutating func exchange(
        _ second: Int64, _ method: String = "PUT", row: String? = "n1", of actor: String = "A", key: String? = "k",
        body: UInt64 = 1, up: Int = 10, down: Int = 20, responded: Int? = 200, received: Int? = 200,
        revision: Int? = nil,
        fault: History.Event? = nil
    ) -> Int {
        let id = nextExchange
        nextExchange += 1
        add(second, .request(id, actor: actor, method: method, row: row, key: key, bodyDigest: body))
        if up > 0 { add(second, .requestSent(id, bytes: up)) }
        if let fault { add(second, fault) }
        if let responded {
            add(second, .arrived(id))
            add(second, .serverResponded(id, status: responded, bytes: down, revision: revision))
        }
        add(second, received.map { .responseReceived(id, status: $0) } ?? .failed(id))
        return id
    }

    func outcome(_ kind: Expectation.Kind) -> Verdict.Outcome {
        var evaluator = ExpectationEvaluator(scenario, history)
        return evaluator.outcome(of: Expectation(kind, location: SourceLocation(file: "s.yaml")))
    }
}

/// Verdicts about order, repetitions, bytes and parts of the run.
@Suite struct TrafficVerdictTests {
    private static let any = RequestPattern(method: nil, row: nil)

    private static func traffic(
        _ request: RequestPattern = any, from: String? = "A", seen: Expectation.Traffic.Seen = .server,
        count: Expectation.Traffic.Count? = nil, responses: [Expectation.Traffic.Response]? = nil,
        during: Expectation.Traffic.During? = nil, order: [RequestPattern]? = nil, duplicates: Int? = nil,
        down: ClosedRange<Int>? = nil, up: ClosedRange<Int>? = nil, attempts: ClosedRange<Int>? = nil
    ) -> Expectation.Traffic {
        .init(
            request: request, from: from, seen: seen, between: nil, count: count, responses: responses, same: [],
            during: during, order: order, duplicates: duplicates, bytesDown: down, bytesUp: up, attempts: attempts)
    }

    // MARK: Order

    @Test func theFirstRequestsOfPatternsAreInOrder() {
        var run = HandwrittenRun()
        for (second, row) in [(1, "n1"), (2, "n2"), (3, "n1"), (4, "n3")] {
            run.exchange(Int64(second), "POST", row: row)
        }
        func order(_ rows: String...) -> Verdict.Outcome {
            run.outcome(.traffic(Self.traffic(order: rows.map { .init(method: nil, row: $0) })))
        }
        #expect(order("n1", "n2", "n3") == .pass)
        #expect(order("n2", "n1") == .fail("request of n1 at 1.0 s is not after request of n2 at 2.0 s"))
        #expect(order("n2", "n3") == .pass)
        #expect(order("n1", "n4") == .fail("there is no request of n4"))
        // A pattern that occurs again stands for its next request.
        #expect(order("n1", "n2", "n1", "n3") == .pass)
        #expect(order("n1", "n1", "n2") == .fail("request of n2 at 2.0 s is not after request of n1 at 3.0 s"))
        #expect(order("n1", "n1", "n1") == .fail("there is no request of n1"))
        let post = RequestPattern(method: "POST", row: "n2")
        #expect(run.outcome(.traffic(Self.traffic(order: [Self.any, post]))) == .pass)
    }

    // MARK: Attempts

    @Test func anAttemptIsAConnectionOrARequestOnAnOpenOne() {
        var run = HandwrittenRun()
        run.add(1, .connectionAttempt(0, device: "A"))
        run.add(1, .request(90, actor: "A", method: "PUT", row: "n1", key: nil, bodyDigest: 1, connection: 0))
        run.add(2, .request(91, actor: "A", method: "PUT", row: "n1", key: nil, bodyDigest: 1, connection: 0))
        run.add(3, .connectionAttempt(1, device: "A"))
        run.add(3, .connectionAttempt(2, device: "B"))
        func attempts(_ range: ClosedRange<Int>, from: String? = "A") -> Verdict.Outcome {
            run.outcome(.traffic(Self.traffic(from: from, attempts: range)))
        }
        #expect(attempts(3...3) == .pass)
        #expect(attempts(0...2) == .fail("3 attempts at 1.0 s, 2.0 s, 3.0 s"))
        #expect(attempts(1...1, from: "B") == .pass)
        #expect(attempts(4...4, from: nil) == .pass)
        #expect(
            run.outcome(.sometimesTraffic(Self.traffic(from: "B", attempts: 2...2)))
                == .inconclusive("1 attempt at 3.0 s"))
    }

    // MARK: Repetitions

    private static let noDuplicates = Expectation.Kind.traffic(traffic(duplicates: 0))

    @Test func aRepeatedResultIsNoDuplicate() {
        var run = HandwrittenRun()
        run.exchange(1, received: nil, revision: 2)
        run.exchange(2, revision: 2)
        run.exchange(3, "DELETE", key: "d", up: 0, responded: 204, received: nil)
        run.exchange(4, "DELETE", key: "d", up: 0, responded: 204)
        run.exchange(5, "POST", row: "n2", key: nil, responded: 201, received: nil)
        run.exchange(6, "POST", row: "n2", key: nil, responded: 400, received: 400)
        run.exchange(7, "PUT", key: "other", revision: 3)
        #expect(run.outcome(Self.noDuplicates) == .pass)
    }

    @Test func aWriteThatTheServerExecutesAgainIsADuplicate() {
        var run = HandwrittenRun()
        run.exchange(1, received: nil, revision: 2)
        run.exchange(2, revision: 3)
        run.exchange(3, "POST", row: "n2", key: nil, body: 7)
        run.exchange(4, "POST", row: "n2", key: nil, body: 7)
        #expect(run.outcome(Self.noDuplicates) == .fail("2 requests executed again: PUT at 2.0 s, POST at 4.0 s"))
        #expect(run.outcome(.traffic(Self.traffic(duplicates: 2))) == .pass)
        #expect(run.outcome(.traffic(Self.traffic(.init(method: "POST", row: nil), duplicates: 1))) == .pass)
        #expect(run.outcome(.traffic(Self.traffic(from: "B", duplicates: 0))) == .pass)
    }

    @Test func aNoteThatNoActionHasCreatedIsADuplicate() {
        var run = HandwrittenRun()
        run.exchange(1, "POST", row: "n2", received: nil)
        run.exchange(2, "POST", row: nil, key: "new", body: 2)
        #expect(run.outcome(Self.noDuplicates) == .fail("1 request executed again: POST at 2.0 s"))
        // A request that the scenario sends itself may create one.
        run.scenario.steps = [
            .init(
                trigger: .at(.zero), action: (actor: "A", action: .send(.init(method: "POST", path: "/"))), mark: nil,
                location: SourceLocation(file: "s.yaml"))
        ]
        #expect(run.outcome(Self.noDuplicates) == .pass)
        var writer = HandwrittenRun()
        writer.exchange(1, "POST", row: nil, of: "W")
        #expect(writer.outcome(.traffic(Self.traffic(from: nil, duplicates: 0))) == .pass)
    }

    // MARK: Bytes

    @Test func bytesAreThoseOfTheBodies() {
        var run = HandwrittenRun()
        run.exchange(1, up: 100, down: 7)
        run.exchange(2, up: 1, down: 30, received: nil)
        run.exchange(3, up: 1000, responded: nil, received: nil)
        run.exchange(4, of: "B")
        func bytes(_ seen: Expectation.Traffic.Seen, down: Int, up: Int) -> Verdict.Outcome {
            run.outcome(.traffic(Self.traffic(seen: seen, down: down...down, up: up...up)))
        }
        #expect(bytes(.server, down: 37, up: 101) == .pass)
        #expect(bytes(.proxy, down: 37, up: 1101) == .pass)
        #expect(bytes(.server, down: 38, up: 101) == .fail("37 bytes down"))
        #expect(bytes(.server, down: 37, up: 0) == .fail("101 bytes up"))
        #expect(run.outcome(.traffic(Self.traffic(down: 0...36))) == .fail("37 bytes down"))
        #expect(run.outcome(.traffic(Self.traffic(down: 0...37, up: 5...Int.max))) == .pass)
    }

    @Test func theBytesOfAResponseInPlaceOfTheServersAreItsOwn() {
        var run = HandwrittenRun()
        run.scenario.faults = [
            .init(
                request: Self.any, device: nil, action: .link(.respond(.init(status: 503, body: Array("later".utf8)))),
                location: SourceLocation(file: "s.yaml"))
        ]
        run.exchange(1, fault: .fault(index: 0, exchange: 0))
        #expect(run.outcome(.traffic(Self.traffic(down: 5...5))) == .pass)
    }

    // MARK: Parts of the run

    private static func flapping() -> HandwrittenRun {
        var run = HandwrittenRun()
        run.link(0, "A", "wifi")
        run.link(0, "B", "wifi")
        run.exchange(1)
        run.link(10, "A", "edge")
        run.exchange(11)
        run.exchange(12, of: "B")
        run.link(14, "A", "wifi")
        run.exchange(14, "GET")
        run.link(15, "A", "edge")
        run.exchange(16, responded: nil, received: nil)
        run.link(20, "A", "wifi")
        run.exchange(21, of: "W")
        run.add(30, .phase(.restore))
        run.link(30, "A", "clear")
        run.exchange(31)
        return run
    }

    @Test func requestsAreCountedDuringAFlapOrALink() {
        let run = Self.flapping()
        func count(
            _ during: Expectation.Traffic.During, _ count: Int, _ from: String? = "A",
            _ seen: Expectation.Traffic.Seen = .server
        ) -> Verdict.Outcome {
            run.outcome(.traffic(Self.traffic(from: from, seen: seen, count: .range(count...count), during: during)))
        }
        #expect(count(.flap, 2) == .pass)
        #expect(count(.flap, 3, "A", .proxy) == .pass)
        #expect(count(.link("edge"), 1) == .pass)
        // Also while the link is a part of a flap, and not after the links were restored.
        #expect(count(.link("wifi"), 2) == .pass)
        #expect(count(.link("wifi"), 3, nil) == .pass, "a writer has no link")
        #expect(count(.flap, 1) == .fail("2 requests: PUT at 11.0 s, GET at 14.0 s"))
        #expect(count(.flap, 0, "B") == .inconclusive("flap was never in effect"))
        #expect(count(.link("3g"), 0) == .inconclusive("3g was never in effect"))
    }

    @Test func aBudgetConcernsTheOutagesOfItsPart() {
        var run = HandwrittenRun()
        var nothing = DirectionConditions.clear
        nothing.loss = .one
        let dead = Timeline.NamedConditions("dead", Conditions(up: nothing, down: nothing))
        run.scenario.devices = [
            .init(
                name: "A", user: "ada", startsSynced: true,
                network: [
                    .init(
                        at: .zero, .flap([.init(dead, .seconds(2))], jitter: .zero), isSignalled: false),
                    .init(at: .seconds(10), .hold(dead), isSignalled: false),
                ])
        ]
        run.link(0, "A", "dead")
        for _ in 0..<20 { run.exchange(1, responded: nil, received: nil) }
        run.link(10, "A", "dead")
        run.exchange(11, responded: nil, received: nil)
        func budget(_ during: Expectation.Traffic.During?) -> Verdict.Outcome {
            run.outcome(.traffic(Self.traffic(seen: .proxy, count: .budget(), during: during)))
        }
        #expect(budget(.flap) == .fail("20 attempts of A in the down phases from 0.0 s, 5 allowed"))
        #expect(budget(nil) == budget(.flap))
        #expect(budget(.link("dead")) == budget(.flap))
    }

    // MARK: Once

    @Test func requestsAreSeenOnceOrInconclusive() {
        let run = Self.flapping()
        func sometimes(_ traffic: Expectation.Traffic) -> Verdict.Outcome { run.outcome(.sometimesTraffic(traffic)) }
        #expect(sometimes(Self.traffic(from: nil, responses: [.statusClass(2)], during: .flap)) == .pass)
        #expect(
            sometimes(Self.traffic(seen: .proxy, responses: [.status(409)], during: .flap))
                == .inconclusive("responses are 200 200 none"))
        // Others may lie between.
        let none = Expectation.Traffic.Response.none
        #expect(sometimes(Self.traffic(seen: .proxy, responses: [.status(200), none])) == .pass)
        // The last 200 is in the restore phase.
        #expect(sometimes(Self.traffic(seen: .proxy, responses: [none, .status(200)])) != .pass)
        #expect(
            sometimes(Self.traffic(seen: .proxy, responses: [none, none]))
                == .inconclusive("responses are 200 200 200 none"))
        #expect(
            sometimes(Self.traffic(.init(method: "PATCH", row: nil))) == .inconclusive("there is no matching request"))
        #expect(sometimes(Self.traffic(count: .range(2...Int.max))) == .pass)
        #expect(
            sometimes(Self.traffic(count: .range(9...Int.max)))
                == .inconclusive("3 requests: PUT at 1.0 s, PUT at 11.0 s, GET at 14.0 s"))
        #expect(sometimes(Self.traffic(.init(method: "GET", row: nil), down: 20...20)) == .pass)
    }

    @Test func aFaultIsAppliedOnceOrInconclusive() {
        var run = HandwrittenRun()
        run.scenario.faults = [
            .init(
                request: Self.any, device: nil, point: .any, action: .link(.reset),
                location: SourceLocation(file: "s.yaml")),
            .init(
                request: Self.any, device: nil, point: .at(.beforeRequestEnd), action: .link(.reset),
                location: SourceLocation(file: "s.yaml")
            ),
        ]
        run.exchange(1, fault: .fault(index: 0, exchange: 0, point: .at(.beforeResponse)))
        run.exchange(2, row: "n2", fault: .fault(index: 1, exchange: 1))
        func sometimes(_ point: Scenario.Fault.Point?, _ request: RequestPattern? = nil) -> Verdict.Outcome {
            run.outcome(.sometimesFault(.init(point: point, request: request)))
        }
        let missing = Verdict.Outcome.inconclusive("no such fault was applied")
        #expect(sometimes(nil) == .pass)
        // The drawn point counts.
        #expect(sometimes(.at(.beforeResponse)) == .pass)
        #expect(sometimes(.at(.beforeRequestEnd)) == .pass)
        #expect(sometimes(.any) == missing)
        #expect(sometimes(.at(.beforeResponse), .init(method: nil, row: "n1")) == .pass)
        #expect(sometimes(.at(.beforeResponse), .init(method: nil, row: "n2")) == missing)
        #expect(sometimes(nil, .init(method: "GET", row: nil)) == missing)
    }

    // MARK: Any device

    private static func state(
        _ key: StateCondition.Check.Key, _ value: String, not isNegated: Bool = false, row: String? = nil
    ) -> StateCondition {
        StateCondition(row: row, checks: [.init(key: key, value: value, isNegated: isNegated)])
    }

    @Test func anyDeviceMayReachAState() {
        var run = HandwrittenRun()
        run.show(1, "A", .plain)
        run.show(1, "B", .plain, row: "n2")
        let conflict = Self.state(.icon, "conflict")
        func eventually(_ second: Int64) -> Verdict.Outcome {
            run.outcome(.eventually(device: "any", conflict, .by(.seconds(second))))
        }
        #expect(
            run.outcome(.sometimes(device: "any", conflict))
                == .inconclusive("the state was never reached", .stateNotReached))
        #expect(eventually(9) == .fail("no device reached the state in time"))
        run.show(5, "B", .conflict, row: "n2", outbox: 1)
        #expect(run.outcome(.sometimes(device: "any", conflict)) == .pass)
        #expect(run.outcome(.sometimes(device: "any", Self.state(.icon, "conflict", row: "n1"))) != .pass)
        #expect(eventually(9) == .pass)
        #expect(eventually(4) == .fail("no device reached the state in time"))
    }

    @Test func everyDeviceIsAlwaysInAState() {
        var run = HandwrittenRun()
        run.show(1, "A", .plain)
        run.show(1, "B", .plain, row: "n2")
        let noConflict = Expectation.Kind.always(device: "any", Self.state(.icon, "conflict", not: true))
        #expect(run.outcome(noConflict) == .pass)
        #expect(run.outcome(.always(device: "any", Self.state(.icon, "none", row: "n1"))) == .pass)
        #expect(
            run.outcome(.always(device: "any", Self.state(.icon, "none", row: "n3")))
                == .inconclusive("n3 was never present", .noteNotPresent))
        run.show(5, "B", .conflict, row: "n2")
        run.show(7, "A", .conflict)
        #expect(run.outcome(noConflict) == .fail("at 5.0 s B icon is 'conflict'"))
    }

    @Test func aStepWaitsForAnyDevice() {
        var scenario = HandwrittenRun().scenario
        scenario.steps = [
            .init(
                trigger: .when(device: "any", Self.state(.icon, "conflict"), within: .seconds(9)), action: nil,
                mark: "m", location: SourceLocation(file: "s.yaml"))
        ]
        var plan = StepPlan(scenario)
        func state(_ icon: History.Icon) -> History.DeviceState {
            .init(
                rows: [.init(name: "n", title: nil, text: nil, icon: icon, isDeleted: false, kept: [])], outbox: 0)
        }
        plan.stateChanged("A", state(.plain), at: .seconds(1))
        #expect(!plan.isDue)
        plan.stateChanged("B", state(.conflict), at: .seconds(2))
        #expect(plan.takeDue() == StepPlan.Due(step: 0, planned: .seconds(2)))
    }
}
