import LinkModel
import Testing

@testable import ScenarioModel

// The testing library has a type of that name too.
private typealias Expectation = ScenarioModel.Expectation

/// What a verdict says of runs that are written down by hand.
@Suite struct VerdictTests {
    private static let place = Place(file: "s.yaml", line: 1, column: 1)

    /// A run of one device with one note.
    private struct Run {
        var scenario = Scenario(name: "run")
        var history = History()
        private var nextExchange = 0

        init() { scenario.devices = [.init(name: "A", user: "ada", startsSynced: true, network: [])] }

        mutating func show(_ second: Int64, _ icon: String, text: String = "two", kept: [String] = [], outbox: Int = 0)
        {
            let row = History.DeviceState.Row(
                name: "n1", title: "Milk", text: text, icon: icon, isDeleted: false, kept: kept)
            history.append(.device("A", .init(rows: [row], outbox: outbox)), at: .seconds(second))
        }

        /// A request with what became of it: nil for what did not happen.
        mutating func ask(
            _ second: Int64, _ method: String = "PUT", row: String? = "n1", arrives: Bool = true, served: Int? = 200,
            answered: Int? = 200, key: String? = "k", body: UInt64 = 1
        ) {
            let id = nextExchange
            nextExchange += 1
            let time = Nanoseconds.seconds(second)
            history.append(
                .request(id, actor: "A", method: method, row: row, key: key, bodyDigest: body), at: time)
            if arrives { history.append(.arrived(id), at: time) }
            if let served { history.append(.served(id, status: served), at: time) }
            if let answered {
                history.append(.answered(id, status: answered), at: time)
            } else {
                history.append(.lost(id), at: time)
            }
        }

        func outcome(_ kind: Expectation.Kind) -> Verdict.Outcome {
            var judge = Judge(scenario, history)
            return judge.outcome(of: Expectation(kind, place: place))
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
        count: Expectation.Traffic.Count? = nil, answers: [Expectation.Traffic.Answer]? = nil,
        same: [Expectation.Traffic.Sameness] = []
    ) -> Expectation.Kind {
        .traffic(
            .init(
                request: pattern, from: from, seen: seen, between: between, count: count, answers: answers, same: same))
    }

    // MARK: Devices

    @Test func alwaysLooksAtEveryMoment() {
        var run = Run()
        run.show(1, "none")
        run.show(5, "upload", text: "three")
        run.show(9, "none", text: "three")
        let isThree = Self.condition(.text, "three")
        #expect(run.outcome(.always(device: "A", isThree)) == .fail("at 1.0s text is 'two'"))
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
        #expect(window(6, 10, "upload") == .fail("at 9.0s icon is 'none'"))
        #expect(run.outcome(.always(device: "A", Self.condition(.icon, "conflict", not: true))) == .pass)
    }

    @Test func whatWasNeverThereIsNotJudged() {
        var run = Run()
        run.show(1, "none")
        #expect(
            run.outcome(.always(device: "A", Self.condition(.icon, "none", row: "n2")))
                == .inconclusive("n2 was never there"))
        #expect(
            run.outcome(.always(device: "A", Self.condition(.icon, "none", since: .mark("shown"))))
                == .inconclusive("the mark was never set"))
    }

    @Test func sometimesIsReachedOrTheVerdictIsOpen() {
        var run = Run()
        run.show(1, "none")
        let conflict = Expectation.Kind.sometimes(device: "A", Self.condition(.icon, "conflict"))
        #expect(run.outcome(conflict) == .inconclusive("it never came to that"))
        run.show(2, "conflict")
        #expect(run.outcome(conflict) == .pass)
    }

    @Test func eventuallyHasAnEnd() {
        var run = Run()
        run.show(1, "upload")
        run.show(30, "none")
        let isNone = Self.condition(.icon, "none")
        #expect(run.outcome(.eventually(device: "A", isNone, .by(.seconds(30)))) == .pass)
        #expect(run.outcome(.eventually(device: "A", isNone, .by(.seconds(29)))) == .fail("at 29.0s icon is 'upload'"))
        #expect(
            run.outcome(.eventually(device: "A", isNone, .after("shown", within: .seconds(5))))
                == .fail("'shown' never came"))
        run.history.append(.mark("shown"), at: .seconds(31))
        // What was so before the mark and still is counts.
        #expect(run.outcome(.eventually(device: "A", isNone, .after("shown", within: .seconds(5)))) == .pass)
        let isUpload = Self.condition(.icon, "upload")
        #expect(
            run.outcome(.eventually(device: "A", isUpload, .after("shown", within: .seconds(5))))
                == .fail("at 36.0s icon is 'none'"))
    }

    @Test func finallyLooksAtTheLastState() {
        var run = Run()
        #expect(
            run.outcome(.finally(device: "A", Self.condition(.outbox, "0", row: nil)))
                == .fail("A never showed anything"))
        run.show(1, "none", outbox: 1)
        #expect(
            run.outcome(.finally(device: "A", Self.condition(.outbox, "0", row: nil)))
                == .fail("at the end outbox is '1'"))
        run.show(2, "none", kept: ["a", "b"])
        #expect(run.outcome(.finally(device: "A", Self.condition(.outbox, "0", row: nil))) == .pass)
        #expect(run.outcome(.finally(device: "A", Self.condition(.keeps, "b"))) == .pass)
        #expect(
            run.outcome(.finally(device: "A", Self.condition(.keeps, "c"))) == .fail("at the end keeps is 'a', 'b'"))
        #expect(run.outcome(.finally(device: "A", Self.condition(.pending, "false"))) == .pass)
    }

    // MARK: The server

    @Test func theServerIsAskedAtTheEnd() {
        var run = Run()
        run.show(1, "none")
        #expect(run.outcome(.serverCount(1)) == .inconclusive("the server was not asked"))
        run.history.append(
            .server([.init(user: "ada", name: "n1", revision: 2, title: "Milk", text: "two")]), at: .seconds(2))
        #expect(run.outcome(.serverCount(1)) == .pass)
        #expect(run.outcome(.serverCount(2)) == .fail("the server has 1"))
        #expect(run.outcome(.serverRow(row: "n1", revision: 2, title: "Milk", text: "two")) == .pass)
        #expect(run.outcome(.serverRow(row: "n1", revision: 3, title: nil, text: nil)) == .fail("revision is 2"))
        #expect(run.outcome(.serverRow(row: "n1", revision: nil, title: nil, text: "x")) == .fail("text is 'two'"))
        #expect(
            run.outcome(.serverRow(row: "n2", revision: nil, title: nil, text: nil)) == .fail("the server has no n2"))
        #expect(run.outcome(.agree(["A", "server"])) == .pass)
        run.show(3, "none", text: "three")
        #expect(run.outcome(.agree(["A", "server"])) == .fail("A and server differ in n1"))
    }

    // MARK: Traffic

    @Test func requestsAreCountedWhereTheyAreSeen() {
        var run = Run()
        run.ask(1)
        run.ask(2, arrives: false, served: nil, answered: nil)
        run.ask(3, "GET")
        #expect(run.outcome(Self.traffic(count: .range(1...1))) == .pass)
        #expect(run.outcome(Self.traffic(seen: .proxy, count: .range(2...2))) == .pass)
        #expect(run.outcome(Self.traffic(.init(method: nil, row: nil), count: .range(2...2))) == .pass)
        #expect(run.outcome(Self.traffic(from: nil, count: .range(0...0))) == .fail("1 requests: PUT at 1.0s"))
        #expect(run.outcome(Self.traffic(from: "B", count: .range(0...0))) == .pass)
        #expect(
            run.outcome(
                Self.traffic(
                    .init(method: nil, row: nil), between: (.time(.seconds(1)), .time(.seconds(3))),
                    count: .range(1...1)))
                == .pass)
        #expect(
            run.outcome(Self.traffic(between: (.mark("x"), .time(.seconds(3))), count: .range(0...0)))
                == .inconclusive("a mark was never set"))
    }

    @Test func answersAreWhatTheClientGot() {
        var run = Run()
        run.ask(1, served: 409, answered: 409)
        run.ask(2, served: 200, answered: nil)
        run.ask(3, arrives: false, served: nil, answered: nil)
        run.ask(4)
        let answers: [Expectation.Traffic.Answer] = [.status(409), .lost, Expectation.Traffic.Answer.none, .hundred(2)]
        #expect(run.outcome(Self.traffic(answers: answers)) == .pass)
        #expect(run.outcome(Self.traffic(answers: [.status(409)])) == .fail("answers are 409 lost none 200"))
        #expect(
            run.outcome(Self.traffic(.init(method: "POST", row: nil), answers: [.hundred(2)]))
                == .fail("answers are none at all"))
    }

    @Test func retriesAreTheSame() {
        var run = Run()
        run.ask(1)
        #expect(run.outcome(Self.traffic(same: [.body])) == .inconclusive("there is nothing to compare"))
        run.ask(2)
        #expect(run.outcome(Self.traffic(same: [.body, .key])) == .pass)
        run.ask(3, key: "other")
        #expect(run.outcome(Self.traffic(same: [.body])) == .pass)
        #expect(run.outcome(Self.traffic(same: [.key])) == .fail("the idempotency-key differs"))
        run.ask(4, body: 2)
        #expect(run.outcome(Self.traffic(same: [.body])) == .fail("the body differs"))
        var keyless = Run()
        keyless.ask(1, key: nil)
        keyless.ask(2, key: nil)
        #expect(keyless.outcome(Self.traffic(same: [.key])) == .fail("the idempotency-key differs"))
    }

    @Test func anOutageHasABudgetOfAttempts() {
        // 2 + log2(60) + D / 30.
        #expect(Judge.budget(ofOutage: .seconds(15)) == 9)
        #expect(Judge.budget(ofOutage: .seconds(200)) == 15)
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
        for second in 4...12 { run.ask(Int64(second)) }
        let within = Self.traffic(between: (.time(.seconds(3)), .time(.seconds(18))), count: .budget)
        #expect(run.outcome(within) == .pass)
        run.ask(13)
        #expect(run.outcome(within) == .fail("10 requests, 9 allowed"))
    }

    // MARK: Altogether

    @Test func theWholeIsAsGoodAsItsWorst() {
        var run = Run()
        run.show(1, "none")
        let good = Expectation(.finally(device: "A", Self.condition(.icon, "none")), place: Self.place)
        let open = Expectation(.sometimes(device: "A", Self.condition(.icon, "upload")), place: Self.place)
        let bad = Expectation(.finally(device: "A", Self.condition(.icon, "upload")), place: Self.place)
        func verdict(_ expectations: Expectation...) -> Verdict {
            run.scenario.expectations = expectations
            return Verdict(run.scenario, run.history)
        }
        #expect(verdict(good).exitStatus == 0)
        #expect(verdict(good, open).exitStatus == 3)
        #expect(verdict(good, bad, open).exitStatus == 1)
        #expect(verdict(bad, good).results.map(\.outcome) == [.fail("at the end icon is 'none'"), .pass])
    }

    @Test func aFaultThatNeverFiredLeavesTheVerdictOpen() {
        var run = Run()
        run.show(1, "none")
        run.scenario.expectations = [
            Expectation(.finally(device: "A", Self.condition(.icon, "none")), place: Self.place)
        ]
        func fault(mustFire: Bool) -> Scenario.Fault {
            .init(
                request: .init(method: "PUT", row: "n1"), nth: 1, device: nil, isCut: true, mustFire: mustFire,
                place: Self.place)
        }
        run.scenario.faults = [fault(mustFire: true)]
        #expect(Verdict(run.scenario, run.history).word == .inconclusive)
        run.scenario.faults = [fault(mustFire: false)]
        #expect(Verdict(run.scenario, run.history).word == .pass)
        run.scenario.faults = [fault(mustFire: true)]
        run.history.append(.fault(index: 0, exchange: 0), at: .seconds(2))
        #expect(Verdict(run.scenario, run.history).word == .pass)
    }

    @Test func aRunThatWasGivenUpFails() {
        var run = Run()
        run.show(1, "none")
        run.history.append(.gaveUp("120s are over"), at: .seconds(120))
        #expect(Verdict(run.scenario, run.history).exitStatus == 1)
    }

    /// What came too late on a machine that stood still is nobody's fault; what is lost is lost at any speed.
    @Test func aMachineThatStoodStillLeavesTheVerdictOpen() {
        func verdict(_ kinds: [Expectation.Kind], stalls: [Int64], gaveUp: Bool = false) -> Verdict {
            var run = Run()
            run.show(1, "upload")
            for (index, stall) in stalls.enumerated() {
                run.history.append(.stall(.milliseconds(stall)), at: .seconds(2 + Int64(index)))
            }
            if gaveUp { run.history.append(.gaveUp("120s are over"), at: .seconds(120)) }
            run.scenario.expectations = kinds.map { Expectation($0, place: Self.place) }
            return Verdict(run.scenario, run.history)
        }
        let late = Expectation.Kind.eventually(device: "A", Self.condition(.icon, "none"), .by(.seconds(10)))
        #expect(verdict([late], stalls: []).word == .fail)
        #expect(verdict([late], stalls: [999, 999]).word == .fail)
        #expect(verdict([late], stalls: [300, 1000, 300]).word == .inconclusive)
        #expect(
            verdict([late], stalls: [1700]).results.first?.outcome
                == .inconclusive("at 10.0s icon is 'upload'; but this machine stood still for 1.7s"))
        #expect(verdict([Self.traffic(count: .range(1...1))], stalls: [1700]).word == .inconclusive)
        let held = Self.condition(.keeps, "mine")
        #expect(verdict([.always(device: "A", held)], stalls: [1700]).word == .fail)
        let heldUntil = Self.condition(.keeps, "mine", until: .time(.seconds(5)))
        #expect(verdict([.always(device: "A", heldUntil)], stalls: [1700]).word == .inconclusive)
        let lost = Expectation.Kind.finally(device: "A", Self.condition(.icon, "none"))
        #expect(verdict([lost], stalls: [1700]).word == .fail)
        #expect(verdict([lost, late], stalls: [1700]).word == .fail)
        // Nobody knows how it would have ended.
        #expect(verdict([lost], stalls: [1700], gaveUp: true).word == .inconclusive)
        let there = Expectation.Kind.finally(device: "A", Self.condition(.icon, "upload"))
        #expect(verdict([there], stalls: [1700]).word == .pass)
    }
}
