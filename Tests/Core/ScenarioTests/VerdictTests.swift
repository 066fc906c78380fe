import Determinism
import Impairment
import LinkModel
import Testing

// The testing library has a type of that name too.
import struct Scenario.Expectation

@testable import Scenario

/// Verdicts of handwritten histories.
@Suite struct VerdictTests {
    private static let location = SourceLocation(file: "s.yaml", line: 1, column: 1)

    /// The history of one device with one note.
    private struct Run {
        var scenario = Scenario(name: "run")
        var history = History()
        private var nextExchange = 0

        init() { scenario.devices = [.init(name: "A", user: "ada", startsSynced: true, network: [])] }

        mutating func show(
            _ second: Int64, _ icon: History.Icon, text: String = "two", kept: [String] = [], outbox: Int = 0
        ) {
            let row = History.DeviceState.Row(
                name: "n1", title: "Milk", text: text, icon: icon, isDeleted: false, kept: kept)
            history.append(.device("A", .init(rows: [row], outbox: outbox)), at: .seconds(second))
        }

        /// Appends an exchange; `nil` leaves an event out.
        mutating func exchange(
            _ second: Int64, _ method: String = "PUT", row: String? = "n1", arrives: Bool = true, responded: Int? = 200,
            received: Int? = 200, key: String? = "k", body: UInt64 = 1
        ) {
            let id = nextExchange
            nextExchange += 1
            let time = Nanoseconds.seconds(second)
            history.append(
                .request(id, actor: "A", method: method, row: row, key: key, bodyDigest: body), at: time)
            if arrives { history.append(.arrived(id), at: time) }
            if let responded { history.append(.serverResponded(id, status: responded), at: time) }
            if let received {
                history.append(.responseReceived(id, status: received), at: time)
            } else {
                history.append(.failed(id), at: time)
            }
        }

        func outcome(_ kind: Expectation.Kind) -> Verdict.Outcome {
            var evaluator = ExpectationEvaluator(scenario, history)
            return evaluator.outcome(of: Expectation(kind, location: location))
        }
    }

    private static func condition(
        _ key: StateCondition.Check.Key, _ value: String, not isNegated: Bool = false, row: String? = "n1",
        since: TimeReference? = nil, until: TimeReference? = nil
    ) -> StateCondition {
        StateCondition(
            row: row, checks: [.init(key: key, value: value, isNegated: isNegated)], since: since, until: until)
    }

    private static func traffic(
        _ pattern: RequestPattern = .init(method: "PUT", row: "n1"), from: String? = "A",
        seen: Expectation.Traffic.Seen = .server, between: (from: TimeReference, to: TimeReference)? = nil,
        count: Expectation.Traffic.Count? = nil, responses: [Expectation.Traffic.Response]? = nil,
        same: [Expectation.Traffic.Sameness] = []
    ) -> Expectation.Kind {
        .traffic(
            .init(
                request: pattern, from: from, seen: seen, between: between, count: count, responses: responses,
                same: same))
    }

    // MARK: Devices

    @Test func alwaysChecksEveryState() {
        var run = Run()
        run.show(1, .plain)
        run.show(5, .upload, text: "three")
        run.show(9, .plain, text: "three")
        let isThree = Self.condition(.text, "three")
        #expect(run.outcome(.always(device: "A", isThree)) == .fail("at 1.0 s text is 'two'"))
        // The state that a window begins with counts, that at its end does not.
        func window(_ since: Int64, _ until: Int64, _ icon: String) -> Verdict.Outcome {
            run.outcome(
                .always(
                    device: "A",
                    Self.condition(
                        .icon, icon, since: .time(.seconds(since)), until: .time(.seconds(until)))))
        }
        #expect(window(5, 9, "upload") == .pass)
        #expect(window(6, 9, "upload") == .pass)
        #expect(window(6, 10, "upload") == .fail("at 9.0 s icon is 'none'"))
        #expect(run.outcome(.always(device: "A", Self.condition(.icon, "conflict", not: true))) == .pass)
    }

    @Test func aMissingNoteOrMarkIsInconclusive() {
        var run = Run()
        run.show(1, .plain)
        #expect(
            run.outcome(.always(device: "A", Self.condition(.icon, "none", row: "n2")))
                == .inconclusive("n2 was never present", .noteNotPresent))
        #expect(
            run.outcome(.always(device: "A", Self.condition(.icon, "none", since: .mark("shown"))))
                == .inconclusive("a mark was never set", .markNotSet))
    }

    @Test func sometimesIsReachedOrInconclusive() {
        var run = Run()
        run.show(1, .plain)
        let conflict = Expectation.Kind.sometimes(device: "A", Self.condition(.icon, "conflict"))
        #expect(run.outcome(conflict) == .inconclusive("the state was never reached", .stateNotReached))
        run.show(2, .conflict)
        #expect(run.outcome(conflict) == .pass)
    }

    @Test func eventuallyEndsWithItsWindow() {
        var run = Run()
        run.show(1, .upload)
        run.show(30, .plain)
        let isNone = Self.condition(.icon, "none")
        #expect(run.outcome(.eventually(device: "A", isNone, .by(.seconds(30)))) == .pass)
        #expect(run.outcome(.eventually(device: "A", isNone, .by(.seconds(29)))) == .fail("at 29.0 s icon is 'upload'"))
        #expect(
            run.outcome(.eventually(device: "A", isNone, .after("shown", within: .seconds(5))))
                == .inconclusive("mark 'shown' was never set", .markNotSet))
        run.history.append(.mark("shown"), at: .seconds(31))
        // A state that began before the mark and still holds counts.
        #expect(run.outcome(.eventually(device: "A", isNone, .after("shown", within: .seconds(5)))) == .pass)
        let isUpload = Self.condition(.icon, "upload")
        #expect(
            run.outcome(.eventually(device: "A", isUpload, .after("shown", within: .seconds(5))))
                == .fail("at 36.0 s icon is 'none'"))
    }

    @Test func finallyChecksTheLastState() {
        var run = Run()
        #expect(
            run.outcome(.finally(device: "A", Self.condition(.outbox, "0", row: nil)))
                == .fail("A has no recorded state"))
        run.show(1, .plain, outbox: 1)
        #expect(
            run.outcome(.finally(device: "A", Self.condition(.outbox, "0", row: nil)))
                == .fail("at the end outbox is '1'"))
        run.show(2, .plain, kept: ["a", "b"])
        #expect(run.outcome(.finally(device: "A", Self.condition(.outbox, "0", row: nil))) == .pass)
        #expect(run.outcome(.finally(device: "A", Self.condition(.keeps, "b"))) == .pass)
        #expect(
            run.outcome(.finally(device: "A", Self.condition(.keeps, "c"))) == .fail("at the end keeps is 'a', 'b'"))
        #expect(run.outcome(.finally(device: "A", Self.condition(.pending, "false"))) == .pass)
    }

    // MARK: The server

    /// The format does not have such names; a scenario that is not read from a file may.
    @Test func aNoteOfTheServerThatTwoUsersHaveMustBeRightForBoth() {
        var run = Run()
        let rows: [History.ServerRow] = [("ada", "two"), ("bo", "three")].map {
            .init(user: $0, name: "n1", revision: 2, title: nil, text: $1)
        }
        run.history.append(.server(rows), at: .seconds(2))
        func outcome(_ text: String?) -> Verdict.Outcome {
            run.outcome(.serverRow(row: "n1", revision: 2, title: nil, text: text))
        }
        #expect(outcome(nil) == .pass)
        #expect(outcome("two") == .fail("text is 'three'"))
        #expect(outcome("three") == .fail("text is 'two'"))
    }

    @Test func serverExpectationsCheckTheFinalNotes() {
        var run = Run()
        run.show(1, .plain)
        #expect(run.outcome(.serverCount(1)) == .inconclusive("the server's notes were not read", .serverNotRead))
        run.history.append(
            .server([.init(user: "ada", name: "n1", revision: 2, title: "Milk", text: "two")]), at: .seconds(2))
        #expect(run.outcome(.serverCount(1)) == .pass)
        #expect(run.outcome(.serverCount(2)) == .fail("the server has 1 note"))
        #expect(run.outcome(.serverRow(row: "n1", revision: 2, title: "Milk", text: "two")) == .pass)
        #expect(run.outcome(.serverRow(row: "n1", revision: 3, title: nil, text: nil)) == .fail("revision is 2"))
        #expect(run.outcome(.serverRow(row: "n1", revision: nil, title: nil, text: "x")) == .fail("text is 'two'"))
        #expect(
            run.outcome(.serverRow(row: "n2", revision: nil, title: nil, text: nil)) == .fail("the server has no n2"))
        #expect(run.outcome(.agree(["A", "server"])) == .pass)
        run.show(3, .plain, text: "three")
        #expect(run.outcome(.agree(["A", "server"])) == .fail("A and server differ in n1"))
    }

    // MARK: Traffic

    @Test func requestsAreCountedAtTheServerOrTheProxy() {
        var run = Run()
        run.exchange(1)
        run.exchange(2, arrives: false, responded: nil, received: nil)
        run.exchange(3, "GET")
        #expect(run.outcome(Self.traffic(count: .range(1...1))) == .pass)
        #expect(run.outcome(Self.traffic(seen: .proxy, count: .range(2...2))) == .pass)
        #expect(run.outcome(Self.traffic(.init(method: nil, row: nil), count: .range(2...2))) == .pass)
        #expect(run.outcome(Self.traffic(from: nil, count: .range(0...0))) == .fail("1 request: PUT at 1.0 s"))
        #expect(run.outcome(Self.traffic(from: "B", count: .range(0...0))) == .pass)
        #expect(
            run.outcome(
                Self.traffic(
                    .init(method: nil, row: nil), between: (.time(.seconds(1)), .time(.seconds(3))),
                    count: .range(1...1)))
                == .pass)
        #expect(
            run.outcome(Self.traffic(between: (.mark("x"), .time(.seconds(3))), count: .range(0...0)))
                == .inconclusive("a mark was never set", .markNotSet))
    }

    @Test func responsesAreThoseThatTheClientReceived() {
        var run = Run()
        run.exchange(1, responded: 409, received: 409)
        run.exchange(2, responded: 200, received: nil)
        run.exchange(3, arrives: false, responded: nil, received: nil)
        run.exchange(4)
        let responses: [Expectation.Traffic.Response] = [
            .status(409), .lost, Expectation.Traffic.Response.none, .statusClass(2),
        ]
        #expect(run.outcome(Self.traffic(seen: .proxy, responses: responses)) == .pass)
        #expect(
            run.outcome(Self.traffic(seen: .proxy, responses: [.status(409)]))
                == .fail("responses are 409 lost none 200"))
        #expect(
            run.outcome(Self.traffic(.init(method: "POST", row: nil), responses: [.statusClass(2)]))
                == .fail("there is no matching request"))
    }

    @Test func theServerSeesWhatReachesItWhateverIsExpected() {
        var run = Run()
        // A fault has responded in place of the server.
        run.exchange(1, arrives: false, responded: nil, received: 503)
        run.exchange(2)
        let served: [Expectation.Traffic.Response] = [.status(200)]
        #expect(run.outcome(Self.traffic(count: .range(1...1), responses: served)) == .pass)
        #expect(run.outcome(Self.traffic(responses: [.status(503), .status(200)])) == .fail("responses are 200"))
        #expect(
            run.outcome(
                Self.traffic(seen: .proxy, count: .range(2...2), responses: [.status(503), .status(200)])) == .pass)
    }

    @Test func sameComparesBodiesAndKeys() {
        var run = Run()
        run.exchange(1)
        #expect(
            run.outcome(Self.traffic(same: [.body])) == .inconclusive("fewer than 2 matching requests", .tooFewRequests)
        )
        run.exchange(2)
        #expect(run.outcome(Self.traffic(same: [.body, .key])) == .pass)
        run.exchange(3, key: "other")
        #expect(run.outcome(Self.traffic(same: [.body])) == .pass)
        #expect(run.outcome(Self.traffic(same: [.key])) == .fail("the idempotency-key differs"))
        run.exchange(4, body: 2)
        #expect(run.outcome(Self.traffic(same: [.body])) == .fail("the body differs"))
        var keyless = Run()
        keyless.exchange(1, key: nil)
        keyless.exchange(2, key: nil)
        #expect(keyless.outcome(Self.traffic(same: [.key])) == .fail("neither request has an idempotency-key"))
        keyless.exchange(3, key: nil)
        #expect(keyless.outcome(Self.traffic(same: [.key])) == .fail("none of the 3 requests has an idempotency-key"))
        keyless.exchange(4)
        #expect(keyless.outcome(Self.traffic(same: [.key])) == .fail("3 of 4 requests have no idempotency-key"))
    }

    @Test func anOutageHasARetryBudget() {
        // 2 + log2(60) + D / 30.
        #expect(ClientPolicy().attemptsMax(inOutage: .seconds(15)) == 9)
        #expect(ClientPolicy().attemptsMax(inOutage: .seconds(200)) == 15)
        // The longest possible outage.
        #expect(ClientPolicy().attemptsMax(inOutage: Nanoseconds(.max)) == 8 + 307_445_735)
        var run = Run()
        var nothing = DirectionConditions.clear
        nothing.loss = .one
        let dead = Timeline.NamedConditions("dead", Conditions(up: nothing, down: nothing))
        let clear = Timeline.NamedConditions("clear", .clear)
        run.scenario.devices = [
            .init(
                name: "A", user: "ada", startsSynced: true,
                network: [
                    .init(at: .seconds(3), .hold(dead), isSignalled: false),
                    .init(at: .seconds(18), .hold(clear), isSignalled: true),
                ])
        ]
        run.history.append(.network(device: "A", link: "dead", isOnline: true), at: .seconds(3))
        for second in 4...12 { run.exchange(Int64(second)) }
        func within(min least: Int = 0) -> Expectation.Kind {
            Self.traffic(between: (.time(.seconds(3)), .time(.seconds(18))), count: .budget(min: least))
        }
        #expect(run.outcome(within()) == .pass)
        #expect(run.outcome(within(min: 9)) == .pass)
        #expect(run.outcome(within(min: 10)) == .fail("9 attempts, at least 10 expected"))
        run.exchange(13)
        #expect(run.outcome(within()) == .fail("10 attempts of A in the outage at 3.0 s, 9 allowed"))
        run.history = History()
        run.history.append(.network(device: "A", link: "clear", isOnline: true), at: .zero)
        #expect(run.outcome(within()) == .inconclusive("there was no outage", .noOutage))
    }

    // MARK: The result

    @Test func theResultIsTheWorstOutcome() {
        var run = Run()
        run.show(1, .plain)
        let good = Expectation(.finally(device: "A", Self.condition(.icon, "none")), location: Self.location)
        let open = Expectation(.sometimes(device: "A", Self.condition(.icon, "upload")), location: Self.location)
        let bad = Expectation(.finally(device: "A", Self.condition(.icon, "upload")), location: Self.location)
        func verdict(_ expectations: Expectation...) -> Verdict {
            run.scenario.expectations = expectations
            return Verdict(run.scenario, run.history)
        }
        #expect(verdict(good).result == .pass)
        #expect(verdict(good, open).result == .inconclusive)
        #expect(verdict(good, bad, open).result == .fail)
        #expect(Verdict.Result.worst(of: []) == .pass)
        #expect(Verdict.Result.worst(of: [.pass, .inconclusive, .pass]) == .inconclusive)
        for results in [[.inconclusive, .fail], [.fail, .inconclusive], [.pass, .fail, .pass]] as [[Verdict.Result]] {
            #expect(Verdict.Result.worst(of: results) == .fail)
        }
        #expect(verdict(bad, good).checks.map(\.outcome) == [.fail("at the end icon is 'none'"), .pass])
    }

    @Test func aFaultThatNeverFiredIsInconclusive() {
        var run = Run()
        run.show(1, .plain)
        run.scenario.expectations = [
            Expectation(.finally(device: "A", Self.condition(.icon, "none")), location: Self.location)
        ]
        func fault(mustFire: Bool) -> Scenario.Fault {
            .init(
                request: .init(method: "PUT", row: "n1"), times: (mustFire ? 1 : 0)...1, device: nil,
                action: .link(.reset),
                location: Self.location)
        }
        run.scenario.faults = [fault(mustFire: true)]
        #expect(Verdict(run.scenario, run.history).result == .inconclusive)
        run.scenario.faults = [fault(mustFire: false)]
        #expect(Verdict(run.scenario, run.history).result == .pass)
        run.scenario.faults = [fault(mustFire: true)]
        run.history.append(.fault(index: 0, exchange: 0, point: .at(.beforeResponse)), at: .seconds(2))
        #expect(Verdict(run.scenario, run.history).result == .pass)
    }

    @Test func anAbortedRunFails() {
        var run = Run()
        run.show(1, .plain)
        run.history.append(.aborted(.other("exceeded the 120 s limit")), at: .seconds(120))
        #expect(Verdict(run.scenario, run.history).result == .fail)
    }
}
