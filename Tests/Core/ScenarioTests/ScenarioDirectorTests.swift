import Determinism
import Impairment
import LinkModel
import Testing

// The testing library has a type of that name too.
import struct Scenario.Expectation
import struct Scenario.SourceLocation

@testable import Scenario

/// The director with a simple world in virtual time.
@Suite struct ScenarioDirectorTests {
    static func location(_ line: Int) -> SourceLocation {
        SourceLocation(file: "s.yaml", line: line, column: 3)
    }

    static let wifi = Timeline.NamedConditions("wifi", .clear)
    static let dead: Timeline.NamedConditions = {
        var direction = DirectionConditions.clear
        direction.loss = .one
        return .init("100-loss", Conditions(up: direction, down: direction))
    }()
    static func policy(_ policy: ConnectionPolicy) -> Timeline.NamedConditions {
        .init(policy.rawValue, Conditions(up: .clear, down: .clear, connectionPolicy: policy))
    }

    typealias Network = [(second: Int64, link: Timeline.NamedConditions, isSignalled: Bool)]

    static func scenario(
        _ networks: [String: Network] = ["A": [(0, wifi, true)]], limit: Nanoseconds = .seconds(600)
    ) -> Scenario {
        var scenario = Scenario(name: "run")
        scenario.limit = limit
        scenario.notes = [.init(row: "n1", title: nil, text: "one", revision: 1)]
        scenario.devices = networks.keys.sorted().map { name in
            .init(
                name: name, user: "ada", startsSynced: true,
                network: (networks[name] ?? []).map {
                    .init(at: .seconds($0.second), .hold($0.link), isSignalled: $0.isSignalled)
                })
        }
        scenario.writers = [.init(name: "W", user: "ada")]
        return scenario
    }

    static func at(
        _ second: Int64, _ actor: String, _ action: Scenario.Action, mark: String? = nil, line: Int = 1
    ) -> Scenario.Step {
        .init(trigger: .at(.seconds(second)), action: (actor, action), mark: mark, location: location(line))
    }

    static func edit(_ text: String) -> Scenario.Action { .edit(row: "n1", title: nil, text: text) }

    static func condition(_ key: StateCondition.Check.Key, _ value: String) -> StateCondition {
        StateCondition(
            row: key == .outbox ? nil : "n1", checks: [.init(key: key, value: value, isNegated: false)])
    }

    /// The time of the first entry with a description.
    private static func time(_ world: FakeWorld, _ description: String) -> Nanoseconds? {
        world.recorder.history.entries.first { $0.event.description == description }?.time
    }

    /// Returns the end of the attempt to connect that is in progress at a time, or the time if there is none.
    private static func attemptEnd(_ world: FakeWorld, at time: Nanoseconds) -> Nanoseconds {
        var open: Set<Int> = []
        for entry in world.recorder.history.entries {
            if entry.time > time && open.isEmpty { break }
            switch entry.event {
            case .connectionAttempt(let connection, device: _) where entry.time <= time: open.insert(connection)
            case .connectionEnded(let connection, device: _):
                if open.remove(connection) != nil, entry.time > time { return entry.time }
            default: break
            }
        }
        return time
    }

    private static func descriptions(_ world: FakeWorld) -> [String] {
        world.recorder.history.entries.map(\.event.description)
    }

    // MARK: Phases

    @Test func thePhasesFollowOneAnother() throws {
        let world = try FakeWorld(Self.scenario())
        #expect(world.run().result == .pass)
        #expect(
            Self.descriptions(world).filter { $0.hasPrefix("phase") }
                == ["phase script", "phase restore", "phase quiesce", "phase verify", "phase check", "phase ended"])
        #expect(world.hasEnded && world.director.nextDeadline == nil)
        #expect(Self.time(world, "phase script") == .zero)
    }

    @Test func theSetupIsNotPartOfTheScenario() throws {
        var scenario = Self.scenario()
        scenario.faults = [
            .init(
                request: .init(method: "GET", row: nil), nth: 1, device: nil, action: .link(.reset),
                location: Self.location(1))
        ]
        let world = try FakeWorld(scenario)
        #expect(world.run().result == .pass)
        guard case .prepare("A")? = world.orders.first?.action else {
            Issue.record("the device was not prepared first")
            return
        }
        // The request of the setup is not counted, so the fault applies to the first one of the script.
        #expect(Self.time(world, "fault 0 on request 0 at before-response") == .milliseconds(55))
        #expect(!Self.descriptions(world).contains { $0.contains("request -1") })
        #expect(world.recorder.start == Instant(.seconds(7) + .milliseconds(300)))
    }

    @Test func aDeviceThatStartsEmptyHasFetchedNothing() throws {
        var scenario = Self.scenario()
        let device = scenario.devices[0]
        scenario.devices = [.init(name: "A", user: "ada", startsSynced: false, network: device.network)]
        let world = try FakeWorld(scenario)
        world.run()
        #expect(!world.orders.contains { if case .prepare = $0.action { true } else { false } })
        #expect(world.recorder.start == Instant(.seconds(7)))
        #expect(Self.time(world, "A view outbox 0") == .milliseconds(5))
        #expect(Self.time(world, "A view outbox 0 n1=none") == .milliseconds(55))
    }

    @Test func aDeviceStartsInTheStateOfItsNetwork() throws {
        let world = try FakeWorld(Self.scenario(["A": [(0, Self.dead, true), (30, Self.wifi, true)]]))
        world.run()
        let first = world.orders.prefix(7).compactMap { order -> String? in
            switch order.action {
            case .setConditions(_, let conditions, _): conditions.isOutage ? "outage" : "other"
            case .setInterface(_, let isUp, _): isUp ? "up" : "down"
            case .startClient: "start"
            default: nil
            }
        }
        #expect(first == ["outage", "down", "start"])
        #expect(Self.time(world, "A connects, connection 0") == .seconds(30), "nothing is sent while it is down")
    }

    @Test func aSetupThatDoesNotEndIsReported() throws {
        let world = try FakeWorld(Self.scenario())
        world.behaviour.hangsSetup = true
        world.run()
        #expect(world.setupFailure == "A did not complete the first sync within 30 s")
        #expect(world.recorder.history.entries.isEmpty)
    }

    // MARK: Steps and marks

    @Test func aMarkIsSetWhenItsActionHasTakenEffect() throws {
        var scenario = Self.scenario()
        scenario.steps = [
            Self.at(2, "W", Self.edit("two"), mark: "written", line: 1),
            .init(
                trigger: .after("written", delay: .seconds(3)), action: ("A", .sync), mark: nil,
                location: Self.location(2)),
        ]
        let world = try FakeWorld(scenario)
        #expect(world.run().result == .pass)
        #expect(Self.time(world, "step 0 starts") == .seconds(2))
        #expect(Self.time(world, "mark written") == .milliseconds(2050))
        #expect(Self.time(world, "step 1 starts") == .milliseconds(5050))
    }

    @Test func actionsOfOneActorFollowOneAnother() throws {
        var scenario = Self.scenario()
        scenario.steps = [Self.at(2, "A", Self.edit("two")), Self.at(2, "A", Self.edit("three"))]
        let world = try FakeWorld(scenario)
        world.behaviour.actTime = .milliseconds(400)
        #expect(world.run().result == .pass)
        #expect(Self.time(world, "step 0 starts") == .seconds(2))
        #expect(Self.time(world, "step 1 starts") == .milliseconds(2400))
    }

    @Test func aKillWaitsForNothingAndAStartForTheKill() throws {
        var scenario = Self.scenario()
        scenario.steps = [
            Self.at(2, "A", Self.edit("two"), mark: "edited", line: 1), Self.at(2, "A", .kill, line: 2),
            Self.at(3, "A", .start, line: 3), Self.at(3, "A", Self.edit("three"), line: 4),
        ]
        let world = try FakeWorld(scenario)
        let verdict = world.run()
        #expect(
            verdict.checks.map(\.outcome) == [.inconclusive("A was killed before the action had taken effect")],
            "\(verdict.checks)")
        #expect(Self.time(world, "A stopped") == .seconds(2))
        #expect(Self.time(world, "step 3 starts") == .milliseconds(3005), "after the client has started")
        #expect(Self.descriptions(world).last { $0.hasPrefix("server") } == "server n1=2")
    }

    @Test func anActionOnAKilledDeviceIsAnErrorWithItsLocation() throws {
        var scenario = Self.scenario()
        scenario.steps = [
            Self.at(2, "A", .kill, line: 1), Self.at(3, "A", Self.edit("two"), line: 2),
            Self.at(4, "A", .start, line: 3), Self.at(5, "A", .start, line: 4),
        ]
        let verdict = try FakeWorld(scenario).run()
        #expect(
            verdict.checks.map(\.outcome)
                == [.fail("s.yaml:2:3: A is not running"), .fail("s.yaml:4:3: A is running already")])
        #expect(verdict.result == .fail)
    }

    @Test func anActionThatFailsIsAnErrorAndItsMarkIsNeverSet() throws {
        var scenario = Self.scenario()
        scenario.steps = [
            Self.at(2, "A", .edit(row: "n2", title: nil, text: "x"), mark: "edited", line: 1),
            .init(
                trigger: .after("edited", delay: .zero), action: ("A", .sync), mark: nil, location: Self.location(2)),
        ]
        let verdict = try FakeWorld(scenario).run()
        #expect(
            verdict.checks.map(\.outcome)
                == [.fail("s.yaml:1:3: no such note"), .inconclusive("mark 'edited' was never set", .markNotSet)])
    }

    @Test func aStateThatIsNeverReachedIsInconclusive() throws {
        func run(_ link: Timeline.NamedConditions, within: Nanoseconds) throws -> FakeWorld {
            var scenario = Self.scenario(["A": [(0, link, false)]], limit: .seconds(60))
            scenario.steps = [
                .init(
                    trigger: .when(device: "A", Self.condition(.icon, "conflict"), within: within), action: nil,
                    mark: "shown", location: Self.location(1)),
                .init(
                    trigger: .after("shown", delay: .seconds(1)), action: ("A", .sync), mark: nil,
                    location: Self.location(2)),
            ]
            let world = try FakeWorld(scenario)
            let verdict = world.run()
            #expect(verdict.result == .inconclusive, "\(verdict.checks)")
            #expect(verdict.checks.map(\.location.line) == [1, 2])
            return world
        }
        // No event is scheduled, so nothing can change.
        #expect(Self.time(try run(Self.wifi, within: .seconds(20)), "phase restore") == .milliseconds(55))
        // The client retries; an attempt in progress ends on the network of the file.
        let retrying = try run(Self.dead, within: .seconds(20))
        #expect(
            Self.time(retrying, "phase restore")
                == Self.attemptEnd(retrying, at: .seconds(20) + Nanoseconds(1)) + ScenarioDirector.quietMin)
        #expect(Self.time(try run(Self.dead, within: .seconds(3600)), "phase restore") == .seconds(60))
    }

    @Test func aStepDueWhenADeviceReachesAState() throws {
        var scenario = Self.scenario()
        scenario.steps = [
            Self.at(2, "A", Self.edit("two"), line: 1),
            .init(
                trigger: .when(device: "A", Self.condition(.icon, "upload"), within: .seconds(9)), action: nil,
                mark: "pending", location: Self.location(2)),
        ]
        let world = try FakeWorld(scenario)
        #expect(world.run().result == .pass)
        #expect(Self.time(world, "mark pending") == .milliseconds(2005))
    }

    // MARK: The end of the script

    /// A client in real time can be about to send, or wait for its store, between two exchanges.
    @Test func healWaitsForABusyClient() throws {
        var director = try ScenarioDirector(Self.scenario(), seed: 1)
        director.begin(at: .start)
        director.prepared("A", at: .start)
        func run(to time: Instant) {
            director.advance(to: time)
            while let order = director.takeAction() {
                if case .startClient(let act, _) = order { director.actFinished(act, at: time) }
            }
        }
        run(to: .start)
        director.busy("A", true, at: .start + .milliseconds(1))
        run(to: .start + .seconds(5))
        #expect(director.phase == .script)
        director.busy("A", false, at: .start + .seconds(5))
        run(to: .start + .seconds(5) + ScenarioDirector.quietMin)
        #expect(director.phase != .script)
    }

    @Test func healWaitsForExchangesInFlight() throws {
        var scenario = Self.scenario()
        scenario.steps = [Self.at(2, "A", Self.edit("two"))]
        let world = try FakeWorld(scenario)
        world.behaviour.latency = .seconds(8)
        #expect(world.run().result == .pass)
        // The fetch of the start ends at 8 s, the change is sent then.
        #expect(Self.time(world, "phase restore") == .milliseconds(16_005))
    }

    @Test func healWaitsForOpenExpectations() throws {
        func restoreTime(_ kind: Expectation.Kind) throws -> Nanoseconds? {
            var scenario = Self.scenario()
            scenario.expectations = [Expectation(kind, location: Self.location(1))]
            let world = try FakeWorld(scenario)
            world.run()
            return Self.time(world, "phase restore")
        }
        func traffic(_ end: Int64) -> Expectation.Kind {
            .traffic(
                .init(
                    request: .init(method: nil, row: nil), from: "A", seen: .server,
                    between: (.time(.zero), .time(.seconds(end))), count: .range(1...1), responses: nil, same: []))
        }
        // A settled device sends nothing, so the end of the window does not matter.
        #expect(try restoreTime(traffic(500)) == .milliseconds(55))
        #expect(
            try restoreTime(.eventually(device: "A", Self.condition(.icon, "none"), .by(.seconds(30))))
                == .milliseconds(55))
        // No event is scheduled that could change the state.
        #expect(
            try restoreTime(.eventually(device: "A", Self.condition(.icon, "upload"), .by(.seconds(30))))
                == .milliseconds(55))
    }

    @Test func anOpenExpectationKeepsTheNetworkOfTheFile() throws {
        // Unsignalled: the client retries for ever, so something can always change.
        var scenario = Self.scenario(["A": [(0, Self.dead, false)]])
        scenario.expectations = [
            Expectation(
                .eventually(device: "A", Self.condition(.icon, "none"), .by(.seconds(30))), location: Self.location(1))
        ]
        scenario.steps = [Self.at(2, "A", Self.edit("two"))]
        let world = try FakeWorld(scenario)
        #expect(world.run().result == .pass, "the note was synced at 0 s")
        scenario.expectations = [
            Expectation(
                .eventually(device: "A", Self.condition(.text, "three"), .by(.seconds(30))), location: Self.location(1))
        ]
        let waiting = try FakeWorld(scenario)
        #expect(waiting.run().result == .fail)
        let end = Self.attemptEnd(waiting, at: .seconds(30) + Nanoseconds(1)) + ScenarioDirector.quietMin
        #expect(end > .seconds(31))
        #expect(Self.time(waiting, "phase restore") == end)
        #expect(Self.time(waiting, "A network clear") == end)
    }

    @Test func healBeginsAtTheTimeThatTheFileGives() throws {
        var scenario = Self.scenario()
        scenario.restoreAt = .seconds(5)
        scenario.steps = [Self.at(2, "A", Self.edit("two"))]
        let world = try FakeWorld(scenario)
        world.behaviour.latency = .seconds(8)
        world.run()
        #expect(Self.time(world, "phase restore") == .seconds(5))
    }

    @Test func theLimitEndsTheScript() throws {
        var scenario = Self.scenario(["A": [(0, Self.dead, false)]], limit: .seconds(20))
        scenario.expectations = [
            Expectation(
                .eventually(device: "A", Self.condition(.text, "three"), .by(.seconds(30))), location: Self.location(1))
        ]
        scenario.steps = [Self.at(25, "A", .sync, line: 2)]
        let world = try FakeWorld(scenario)
        let verdict = world.run()
        #expect(verdict.checks.contains { $0.outcome == .fail("exceeded the 20 s limit") })
        #expect(verdict.checks.contains { $0.outcome == .inconclusive("the script ended at an earlier time") })
        #expect(Self.time(world, "phase restore") == .seconds(20))
        #expect(world.hasEnded)
    }

    @Test func aRunFailsAtOnceIfNothingIsScheduledAndDevicesDiffer() throws {
        let world = try FakeWorld(Self.scenario(limit: .seconds(20)))
        world.behaviour.hangsRequests = true
        let verdict = world.run()
        #expect(
            verdict.checks.contains {
                $0.outcome == .fail("A has not converged, and nothing is scheduled that could change that")
            }, "\(verdict.checks)")
        #expect(Self.time(world, "phase verify").map { $0 < .seconds(21) } ?? false, "not the end of the phase's limit")
    }

    @Test func killedDevicesAreStartedToHeal() throws {
        var scenario = Self.scenario(["A": [(0, Self.wifi, true)], "B": [(0, Self.dead, true)]])
        scenario.steps = [Self.at(2, "A", Self.edit("two")), Self.at(2, "A", .kill)]
        scenario.steps[0] = Self.at(1, "A", Self.edit("two"))
        scenario.expectations = [Expectation(.agree(["A", "B", "server"]), location: Self.location(1))]
        let world = try FakeWorld(scenario)
        #expect(world.run().result == .pass)
        #expect(Self.descriptions(world).filter { $0 == "A started" }.count == 2)
    }

    // MARK: Faults

    @Test func matchesOfAFaultAreCountedPerScenario() throws {
        var scenario = Self.scenario(["A": [(0, Self.wifi, true)], "B": [(0, Self.wifi, true)]])
        scenario.steps = [Self.at(2, "A", Self.edit("two")), Self.at(4, "B", Self.edit("three"))]
        func fault(nth: Int, device: String? = nil) -> Scenario.Fault {
            .init(
                request: .init(method: "PUT", row: "n1"), nth: nth, device: device, action: .link(.reset),
                location: Self.location(1))
        }
        func faults() throws -> [String] {
            let world = try FakeWorld(scenario)
            world.run()
            return world.recorder.history.entries.compactMap {
                if case .fault = $0.event { "\($0.event) at \($0.time.inMilliseconds)" } else { nil }
            }
        }
        scenario.faults = [fault(nth: 1)]
        #expect(try faults() == ["fault 0 on request 2 at before-response at 2055.0"], "once, not once per device")
        scenario.faults = [fault(nth: 2)]
        #expect(try faults() == ["fault 0 on request 3 at before-response at 4055.0"], "the second match is that of B")
        scenario.faults = [fault(nth: 1, device: "B")]
        #expect(try faults() == ["fault 0 on request 3 at before-response at 4055.0"])
    }

    @Test func noFaultAppliesAfterTheScript() throws {
        var scenario = Self.scenario(["A": [(0, Self.dead, true)]])
        scenario.steps = [Self.at(2, "A", Self.edit("two"))]
        scenario.faults = [
            .init(
                request: .init(method: "PUT", row: "n1"), nth: 1, device: nil, action: .link(.stall),
                location: Self.location(1))
        ]
        let world = try FakeWorld(scenario)
        #expect(world.run().checks.map(\.outcome) == [.inconclusive("the fault never fired", .faultNotFired)])
        #expect(Self.descriptions(world).contains { $0.hasSuffix("PUT n1, connection 0") })
    }

    // MARK: Lateness

    @Test func lateOrdersAreRecorded() throws {
        var scenario = Self.scenario([
            "A": [(0, Self.wifi, true), (3, Self.policy(.offline), false), (9, Self.wifi, true)]
        ])
        scenario.steps = [Self.at(2, "A", Self.edit("two"))]
        let world = try FakeWorld(scenario, startingAt: .start)
        world.behaviour.granularity = .milliseconds(700)
        world.run()
        let late = world.recorder.history.entries.compactMap {
            if case .late(let span) = $0.event { span } else { nil }
        }
        // 0 s is at 300 ms of the world's clock: 2.3 s becomes 2.8 s, 3.3 s becomes 3.5 s, and 9.3 s becomes 9.8 s.
        #expect(late == [.milliseconds(500), .milliseconds(200), .milliseconds(500)])
        let exact = try FakeWorld(scenario)
        exact.run()
        #expect(!Self.descriptions(exact).contains { $0.hasPrefix("late") })
    }

    // MARK: Budgets

    /// Attempts of a client in ten minutes of each kind of outage, and in flapping.
    @Test(arguments: ["offline", "dns", "portal", "silent", "uplink-loss", "downlink-loss", "flap"])
    func aBudgetCountsConnectionAttempts(kind: String) throws {
        var oneWay = DirectionConditions.clear
        oneWay.loss = .one
        let link: Timeline.NamedConditions =
            switch kind {
            case "silent": Self.dead
            case "uplink-loss": .init(kind, Conditions(up: oneWay, down: .clear))
            case "downlink-loss": .init(kind, Conditions(up: .clear, down: oneWay))
            default: Self.policy(ConnectionPolicy(rawValue: kind) ?? .offline)
            }
        var scenario = Self.scenario(
            ["A": [(0, Self.wifi, true), (3, link, false), (603, Self.wifi, true)]], limit: .seconds(1200))
        if kind == "flap" {
            let flap = Timeline.Phase.flap(
                [.init(Self.wifi, .seconds(2)), .init(link, .seconds(2))], jitter: .zero)
            let device = scenario.devices[0]
            scenario.devices = [
                .init(
                    name: "A", user: "ada", startsSynced: true,
                    network: [device.network[0], .init(at: .seconds(3), flap, isSignalled: false), device.network[2]])
            ]
        }
        scenario.steps = (0..<20).map { Self.at(4 + 30 * $0, "A", Self.edit("\($0)"), line: Int($0)) }
        func expect(_ count: Expectation.Traffic.Count) {
            scenario.expectations = [
                Expectation(
                    .traffic(
                        .init(
                            request: .init(method: nil, row: nil), from: "A", seen: .proxy,
                            between: (.time(.seconds(3)), .time(.seconds(603))), count: count, responses: nil, same: [])
                    ),
                    location: Self.location(1))
            ]
        }
        func run(retriesAtOnce: Bool) throws -> Verdict {
            let world = try FakeWorld(scenario)
            world.behaviour.retriesAtOnce = retriesAtOnce
            // The time-outs of a silent link bound the rate by themselves.
            world.behaviour.timeout = .seconds(1)
            return world.run()
        }
        expect(.budget())
        let patient = try run(retriesAtOnce: false)
        #expect(patient.result == .pass, "\(patient.checks)")
        let hasty = try run(retriesAtOnce: true)
        #expect(hasty.result == .fail, "\(hasty.checks)")
        expect(.budget(min: 5))
        #expect(try run(retriesAtOnce: false).result == .pass)
        expect(.budget(min: 5000))
        #expect(try run(retriesAtOnce: false).result == .fail)
    }

    // MARK: Invalid plans

    @Test func invalidPlansAreRejected() {
        var scenario = Self.scenario()
        scenario.steps = [Self.at(1, "A", .sync, mark: "m", line: 1), Self.at(2, "A", .sync, mark: "m", line: 2)]
        #expect(throws: ScenarioDirector.PlanError(description: "s.yaml:2:3: mark 'm' is set twice")) {
            try ScenarioDirector(scenario)
        }
        scenario.steps = [Self.at(1, "C", .sync)]
        #expect(throws: ScenarioDirector.PlanError(description: "s.yaml:1:3: no device or writer is called 'C'")) {
            try ScenarioDirector(scenario)
        }
        #expect(throws: ScenarioDirector.PlanError(description: "run: A: the timeline has no entries")) {
            try ScenarioDirector(Self.scenario(["A": []]))
        }
    }
}
