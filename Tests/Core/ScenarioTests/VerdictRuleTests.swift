import Determinism
import LinkModel
import Testing

// The testing library has a type of that name too.
import struct Scenario.Expectation

@testable import Scenario

/// Verdicts of runs in which something did not happen, vanished, or was late.
@Suite struct VerdictRuleTests {
    private typealias Helper = ScenarioDirectorTests

    private static func row(_ icon: History.Icon) -> History.DeviceState.Row {
        .init(name: "n1", title: nil, text: "one", icon: icon, isDeleted: false, kept: ["one"])
    }

    /// A history: milliseconds and events.
    private static func history(_ events: [(Int64, History.Event)]) -> History {
        var history = History()
        for (time, event) in events { history.append(event, at: .milliseconds(time)) }
        return history
    }

    private static func shown(_ icon: History.Icon) -> History.Event {
        .device("A", .init(rows: [row(icon)], outbox: 0))
    }

    private static let absent = History.Event.device("A", .init(rows: [], outbox: 0))

    private static func condition(
        _ key: StateCondition.Check.Key, _ value: String, since: TimeReference? = nil, until: TimeReference? = nil
    ) -> StateCondition {
        StateCondition(
            row: "n1", checks: [.init(key: key, value: value, isNegated: false)], since: since, until: until)
    }

    private static func verdict(_ scenario: Scenario, _ history: History, _ kinds: [Expectation.Kind]) -> Verdict {
        var scenario = scenario
        scenario.expectations = kinds.map { Expectation($0, location: Helper.location(1)) }
        return Verdict(scenario, history)
    }

    private static func outcome(
        _ history: History, _ kind: Expectation.Kind, _ scenario: Scenario = Helper.scenario()
    ) -> Verdict.Outcome? { verdict(scenario, history, [kind]).checks.first?.outcome }

    private static func traffic(
        _ seen: Expectation.Traffic.Seen = .server, between: (TimeReference, TimeReference)? = nil,
        count: Expectation.Traffic.Count? = nil, responses: [Expectation.Traffic.Response]? = nil
    ) -> Expectation.Kind {
        .traffic(
            .init(
                request: .init(method: nil, row: nil), from: "A", seen: seen,
                between: between.map { (from: $0.0, to: $0.1) }, count: count, responses: responses, same: []))
    }

    private static func request(_ id: Int, connection: Int? = nil) -> History.Event {
        .request(id, actor: "A", method: "GET", row: nil, key: nil, bodyDigest: 0, connection: connection)
    }

    // MARK: Steps that never happened

    @Test func aStepThatDidNotHappenIsInconclusive() {
        var scenario = Helper.scenario()
        scenario.steps = [
            .init(
                trigger: .when(device: "A", Self.condition(.icon, "conflict"), within: .seconds(5)), action: nil,
                mark: "shown", location: Helper.location(7))
        ]
        let verdict = Verdict(scenario, History())
        #expect(verdict.result == .inconclusive)
        #expect(verdict.checks.first?.outcome == .inconclusive("mark 'shown' was never set", .markNotSet))
        #expect(verdict.checks.first?.location.line == 7)
        let set = Self.history([(1000, .mark("shown"))])
        #expect(Verdict(scenario, set).result == .pass)
    }

    // MARK: Windows

    @Test func windowsBeginWhenTheActionHasTakenEffectAndEndWhenItStarts() {
        var scenario = Helper.scenario()
        scenario.steps = [Helper.at(5, "A", .sync, mark: "m")]
        // All events of one instant, as in virtual time.
        let history = Self.history([
            (1000, Self.shown(.plain)), (5000, Self.shown(.upload)), (5000, .step(0)), (5000, Self.shown(.conflict)),
            (5000, .mark("m")), (5000, Self.shown(.error)), (9000, Self.shown(.plain)),
        ])
        func always(_ icon: String, since: TimeReference? = nil, until: TimeReference? = nil) -> Verdict.Outcome? {
            Self.outcome(
                history, .always(device: "A", Self.condition(.icon, icon, since: since, until: until)), scenario)
        }
        func eventually(_ icon: String) -> Verdict.Outcome? {
            Self.outcome(
                history, .eventually(device: "A", Self.condition(.icon, icon), .after("m", within: .seconds(2))),
                scenario)
        }
        // The state that the action led to counts, those before it do not.
        #expect(eventually("conflict") == .pass)
        #expect(eventually("error") == .pass)
        #expect(eventually("upload") == .fail("at 7.0 s icon is 'error'"))
        #expect(always("conflict", since: .mark("m")) == .fail("at 5.0 s icon is 'error'"))
        #expect(always("error", since: .time(.seconds(5)), until: .time(.seconds(9))) == .pass)
        // The action's own effect is after a window that ends with it.
        #expect(always("none", until: .mark("m")) == .fail("at 5.0 s icon is 'upload'"))
        #expect(always("upload", since: .time(.seconds(5)), until: .mark("m")) != .pass)
    }

    @Test func aWindowThatEndsWithAMarkDoesNotContainTheStateThatSetsIt() {
        var scenario = Helper.scenario()
        let isGone = StateCondition(row: "n1", checks: [.init(key: .present, value: "false", isNegated: false)])
        scenario.steps = [
            .init(
                trigger: .when(device: "A", isGone, within: .seconds(60)), action: nil, mark: "gone",
                location: Helper.location(1)),
            .init(
                trigger: .when(device: "A", isGone, within: .seconds(60)), action: ("A", .sync), mark: "synced",
                location: Helper.location(2)),
        ]
        // In real time, a step follows the state that it waits for after some microseconds.
        func history(delay: Int64) -> History {
            Self.history([
                (1000, Self.shown(.plain)), (5000, Self.absent), (5000 + delay, .mark("gone")),
                (5000 + delay, .step(1)), (5000 + delay, .mark("synced")), (9000, Self.shown(.plain)),
            ])
        }
        func always(_ icon: String, until mark: String, _ history: History) -> Verdict.Outcome? {
            let condition = Self.condition(.icon, icon, until: .mark(mark))
            return Self.outcome(history, .always(device: "A", condition), scenario)
        }
        for delay in [0, 1] as [Int64] {
            #expect(always("none", until: "gone", history(delay: delay)) == .pass)
            #expect(always("none", until: "synced", history(delay: delay)) == .pass)
            #expect(always("upload", until: "gone", history(delay: delay)) == .fail("at 1.0 s icon is 'none'"))
        }
        // The action has waited for an earlier one, so the note was absent before it started.
        #expect(always("none", until: "synced", history(delay: 2000)) == .fail("at 5.0 s n1 is absent"))
    }

    @Test func requestsOfTheHealPhaseCountOnlyInAWindowThatEndsWithTheRun() {
        let history = Self.history([
            (2000, Self.request(0)), (5000, .phase(.restore)), (5000, Self.request(1)), (6000, .phase(.ended)),
        ])
        func count(_ count: Int, to end: TimeReference?) -> Verdict.Outcome? {
            let window = end.map { (TimeReference.time(.seconds(1)), $0) }
            return Self.outcome(history, Self.traffic(.proxy, between: window, count: .range(count...count)))
        }
        #expect(count(1, to: nil) == .pass)
        #expect(count(1, to: .time(.seconds(9))) == .pass)
        #expect(count(2, to: .end) == .pass)
        #expect(count(2, to: nil) != .pass)
        #expect(count(1, to: .end) != .pass)
    }

    @Test func requestsOfAnActionBelongToTheWindowThatBeginsWithIt() {
        var scenario = Helper.scenario()
        scenario.steps = [Helper.at(5, "A", .sync, mark: "m")]
        let history = Self.history([
            (4000, Self.request(0)), (5000, .step(0)), (5000, Self.request(1)), (5000, .mark("m")),
            (6000, Self.request(2)),
        ])
        func count(_ from: TimeReference, _ to: TimeReference, _ count: Int) -> Verdict.Outcome? {
            Self.outcome(history, Self.traffic(.proxy, between: (from, to), count: .range(count...count)), scenario)
        }
        #expect(count(.mark("m"), .time(.seconds(9)), 2) == .pass)
        #expect(count(.time(.zero), .mark("m"), 1) == .pass)
    }

    @Test func windowsWithAnEndAreOverWhenTheLinksAreRestored() {
        let history = Self.history([
            (1000, Self.shown(.upload)), (2000, Self.request(0)), (5000, .phase(.restore)), (5000, Self.request(1)),
            (6000, Self.shown(.plain)),
        ])
        #expect(
            Self.outcome(history, .eventually(device: "A", Self.condition(.icon, "none"), .by(.seconds(9))))
                == .fail("at 9.0 s icon is 'upload'"))
        let isUpload = Self.condition(.icon, "upload", until: .time(.seconds(9)))
        #expect(Self.outcome(history, .always(device: "A", isUpload)) == .pass)
        #expect(
            Self.outcome(history, .always(device: "A", Self.condition(.icon, "upload")))
                == .fail("at 6.0 s icon is 'none'"))
        let window = (TimeReference.time(.zero), TimeReference.time(.seconds(9)))
        #expect(Self.outcome(history, Self.traffic(.proxy, between: window, count: .range(1...1))) == .pass)
        #expect(Self.outcome(history, Self.traffic(.proxy, count: .range(1...1))) == .pass)
    }

    @Test func theEndOfAWindowDoesNotProlongARun() {
        var scenario = Helper.scenario(["A": [(0, Helper.wifi, true), (12, Helper.dead, true)]])
        let window = (TimeReference.time(.zero), TimeReference.time(.seconds(600)))
        scenario.expectations = [
            Expectation(Self.traffic(between: window, count: .range(0...0)), location: Helper.location(1))
        ]
        #expect(scenario.plannedEnd == .seconds(12))
    }

    // MARK: Presence

    @Test func aNoteThatVanishesFails() {
        let history = Self.history([(1000, Self.shown(.plain)), (2000, Self.absent)])
        let isNone = Expectation.Kind.always(device: "A", Self.condition(.icon, "none"))
        #expect(Self.outcome(history, isNone) == .fail("at 2.0 s n1 is absent"))
        let keeps = Expectation.Kind.always(
            device: "A", Self.condition(.keeps, "one", since: .time(.seconds(5))))
        #expect(Self.outcome(history, keeps) == .fail("at 5.0 s n1 is absent"), "it vanished before the window")
        let until = Expectation.Kind.always(
            device: "A", Self.condition(.icon, "none", until: .time(.seconds(2))))
        #expect(Self.outcome(history, until) == .pass)
        // A note that appears later is not yet absent.
        let created = Self.history([(1000, Self.absent), (2000, Self.shown(.plain))])
        #expect(Self.outcome(created, isNone) == .pass)
    }

    @Test func presenceIsAStateOfItsOwn() {
        let history = Self.history([(1000, Self.absent), (2000, Self.shown(.plain)), (3000, Self.absent)])
        func always(_ value: String, _ since: Int64, _ until: Int64) -> Verdict.Outcome? {
            Self.outcome(
                history,
                .always(
                    device: "A",
                    Self.condition(.present, value, since: .time(.seconds(since)), until: .time(.seconds(until)))))
        }
        #expect(always("true", 2, 3) == .pass)
        #expect(always("true", 1, 3) == .fail("at 1.0 s n1 is absent"))
        #expect(always("true", 2, 4) == .fail("at 3.0 s n1 is absent"))
        #expect(always("false", 1, 2) == .pass)
        #expect(always("false", 1, 3) == .fail("at 2.0 s n1 is present"))
        #expect(always("false", 3, 9) == .pass)
        #expect(Self.outcome(history, .finally(device: "A", Self.condition(.present, "false"))) == .pass)
        #expect(
            Self.outcome(history, .finally(device: "A", Self.condition(.present, "true")))
                == .fail("at the end n1 is absent"))
        #expect(
            Self.outcome(history, .eventually(device: "A", Self.condition(.present, "true"), .by(.seconds(9)))) == .pass
        )
    }

    // MARK: Attempts and portals

    @Test func attemptsAreConnectionsAndRequestsOnOpenConnections() {
        let refuse = Helper.policy(.offline)
        let scenario = Helper.scenario(["A": [(0, Helper.wifi, true), (3, refuse, false), (18, Helper.wifi, true)]])
        func outcome(attempts: Int, requests: Int) -> Verdict.Outcome? {
            var events: [(Int64, History.Event)] = [(3000, .network(device: "A", link: "offline", isOnline: true))]
            for number in 0..<attempts { events.append((4000, .connectionAttempt(number, device: "A"))) }
            // The first request of a connection belongs to its attempt.
            for number in 0..<requests { events.append((4000, Self.request(number, connection: 0))) }
            events.append((18_000, .network(device: "A", link: "wifi", isOnline: true)))
            return Self.outcome(
                Self.history(events),
                Self.traffic(.proxy, between: (.time(.seconds(3)), .time(.seconds(18))), count: .budget()), scenario)
        }
        #expect(outcome(attempts: 9, requests: 1) == .pass)
        #expect(outcome(attempts: 10, requests: 0) == .fail("10 attempts of A in the outage at 3.0 s, 9 allowed"))
        #expect(outcome(attempts: 9, requests: 2) == .fail("10 attempts of A in the outage at 3.0 s, 9 allowed"))
    }

    @Test func aDownPhaseOfAFlapHasASmallerBudget() {
        let seconds: [Int64] = [1, 2, 4, 12, 60, 600]
        #expect(seconds.map { ClientPolicy().attemptsMax(inDownPhase: .seconds($0)) } == [2, 2, 3, 5, 9, 28])
        #expect(ClientPolicy().attemptsMax(inDownPhase: Nanoseconds(.max)) > 0)
    }

    @Test func theResponseOfAPortalIsNotThatOfTheServer() {
        let scenario = Helper.scenario(["A": [(0, Helper.policy(.portal), false), (5, Helper.wifi, true)]])
        let history = Self.history([
            (0, .network(device: "A", link: "portal", isOnline: true)), (1000, Self.request(0)), (1100, .arrived(0)),
            (1100, .serverResponded(0, status: 200)), (1200, .responseReceived(0, status: 200)),
            (5000, .network(device: "A", link: "wifi", isOnline: true)), (6000, Self.request(1)), (6100, .arrived(1)),
            (6100, .serverResponded(1, status: 200)), (6200, .responseReceived(1, status: 200)),
        ])
        #expect(Self.outcome(history, Self.traffic(count: .range(1...1)), scenario) == .pass)
        #expect(Self.outcome(history, Self.traffic(.proxy, count: .range(2...2)), scenario) == .pass)
        #expect(Self.outcome(history, Self.traffic(responses: [.status(200)]), scenario) == .pass)
        #expect(
            Self.outcome(history, Self.traffic(.proxy, responses: [.status(200), .status(200)]), scenario) == .pass)
    }

    // MARK: Lateness

    private static func eventually(_ second: Int64) -> Expectation.Kind {
        .eventually(device: "A", condition(.icon, "none"), .by(.seconds(second)))
    }

    @Test func latenessMovesTheEndOfAWindowNoFurtherThanItsLength() {
        func outcome(reached: Int64, _ late: [(Int64, History.Event)]) -> Verdict.Outcome? {
            let events = [(1000, Self.shown(.upload))] + late + [(reached, Self.shown(.plain))]
            return Self.outcome(Self.history(events.sorted { $0.0 < $1.0 }), Self.eventually(10))
        }
        let short = (Int64(3000), History.Event.hostPause(.milliseconds(600)))
        let long = (Int64(3000), History.Event.hostPause(.milliseconds(1100)))
        #expect(outcome(reached: 10_400, []) == .fail("at 10.0 s icon is 'upload'"))
        #expect(outcome(reached: 10_400, [short]) == .pass)
        #expect(outcome(reached: 10_700, [short]) == .fail("at 10.0 s icon is 'upload'"))
        #expect(
            outcome(reached: 11_000, [long])
                == .inconclusive("at 10.0 s icon is 'upload'; but the run was late by 1.1 s", .lateness))
        #expect(outcome(reached: 130_000, [long]) == .fail("at 10.0 s icon is 'upload'"), "120 s are not 1.1 s")
        // Pauses add up; a pause that two monitors report is one pause.
        let later = (Int64(8000), History.Event.hostPause(.milliseconds(600)))
        #expect(
            outcome(reached: 11_100, [short, later])
                == .inconclusive(
                    "at 10.0 s icon is 'upload'; but the run was late by 1.2 s", .lateness))
        #expect(outcome(reached: 11_100, [later, later]) == .fail("at 10.0 s icon is 'upload'"))
        // A pause after the window cannot have delayed anything in it.
        #expect(
            outcome(reached: 10_400, [(10_300, .hostPause(.milliseconds(200)))]) == .fail("at 10.0 s icon is 'upload'"))
        #expect(outcome(reached: 10_400, [(4000, .late(.milliseconds(500)))]) == .pass)
        #expect(outcome(reached: 10_400, [(4000, .late(.milliseconds(300)))]) == .fail("at 10.0 s icon is 'upload'"))
    }

    @Test func latenessMovesTheStartOfAPeriodThatAlwaysHolds() {
        func outcome(_ late: Int64, since: TimeReference?, until: TimeReference? = nil) -> Verdict.Outcome? {
            // A step at 6 s, performed late, has its effect at once.
            Self.outcome(
                Self.history([
                    (1000, Self.shown(.plain)), (6000 + late, .late(.milliseconds(late))),
                    (6000 + late, Self.shown(.upload)),
                ]), .always(device: "A", Self.condition(.icon, "upload", since: since, until: until)))
        }
        let since = TimeReference.time(.milliseconds(6500))
        #expect(outcome(400, since: since) == .pass)
        #expect(outcome(800, since: since) == .pass)
        #expect(
            outcome(1200, since: since)
                == .inconclusive("at 6.5 s icon is 'none'; but the run was late by 1.2 s", .lateness))
        #expect(outcome(1200, since: nil) == .fail("at 1.0 s icon is 'none'"), "it failed before anything was late")
        let late = Verdict.Outcome.inconclusive("at 6.5 s icon is 'none'; but the run was late by 0.8 s", .lateness)
        #expect(outcome(800, since: since, until: .time(.milliseconds(7200))) == late, "nothing is left of the period")
    }

    @Test func latenessExplainsRequestsNearTheBoundsOnly() {
        func outcome(at time: Int64, count: Int) -> Verdict.Outcome? {
            let events = [(3000, History.Event.late(.milliseconds(800))), (time, Self.request(0))]
            return Self.outcome(
                Self.history(events.sorted { $0.0 < $1.0 }),
                Self.traffic(
                    .proxy, between: (.time(.seconds(3)), .time(.seconds(9))), count: .range(count...count)))
        }
        #expect(outcome(at: 3500, count: 0) == .pass, "it may have been due before 3 s")
        #expect(outcome(at: 3900, count: 0) == .fail("1 request: GET at 3.9 s"))
        #expect(outcome(at: 9500, count: 1) == .pass, "it may have been due before 9 s")
        #expect(outcome(at: 9900, count: 1) == .fail("0 requests"))
    }

    @Test func anAbortedRunIsExcusedByPausesOfAConsiderablePartOfItsLimitOnly() {
        func result(paused: Int64) -> Verdict.Result {
            let history = Self.history([
                (1000, Self.shown(.upload)), (20_000, .hostPause(.milliseconds(paused))),
                (60_000, .aborted(.other("exceeded the 60 s limit"))),
            ])
            var scenario = Helper.scenario(limit: .seconds(60))
            scenario.expectations = []
            return Self.verdict(
                scenario, history, [.finally(device: "A", Self.condition(.icon, "none"))]
            ).result
        }
        #expect(result(paused: 0) == .fail)
        #expect(result(paused: 1700) == .fail)
        #expect(result(paused: 6000) == .inconclusive)
        // The final state of a run that ended does not depend on its lateness.
        let history = Self.history([(1000, Self.shown(.upload)), (20_000, .hostPause(.seconds(9)))])
        #expect(
            Self.outcome(history, .finally(device: "A", Self.condition(.icon, "none")))
                == .fail("at the end icon is 'upload'"))
    }
}
