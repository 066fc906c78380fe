import Determinism
import LinkModel
import Testing

@testable import Scenario

/// Clients that start again by themselves, devices that do not come back, optional steps, and acts without a step.
@Suite struct DirectorRestartTests {
    private typealias Tests = ScenarioDirectorTests

    private static func scenario(
        restartsAfter: Nanoseconds? = nil, restored: Bool = true, _ network: Tests.Network = [(0, Tests.wifi, true)]
    ) -> Scenario {
        var scenario = Tests.scenario(["A": network, "B": [(0, Tests.wifi, true)]])
        let device = scenario.devices[0]
        scenario.devices[0] = .init(
            name: device.name, user: device.user, startsSynced: true, network: device.network,
            restartsAfter: restartsAfter, isRestored: restored)
        return scenario
    }

    private static func optional(_ second: Int64, _ actor: String, _ action: Scenario.Action) -> Scenario.Step {
        .init(
            trigger: .at(.seconds(second)), action: (actor, action), mark: nil, isOptional: true,
            location: Tests.location(1))
    }

    private static func times(_ world: FakeWorld, _ event: (History.Event) -> Bool) -> [Nanoseconds] {
        world.recorder.history.entries.filter { event($0.event) }.map(\.time)
    }

    private static func starts(_ world: FakeWorld) -> [Nanoseconds] {
        times(world) { if case .started("A") = $0 { true } else { false } }
    }

    @Test func aKilledClientStartsAgain() throws {
        var scenario = Self.scenario(restartsAfter: .seconds(4))
        scenario.steps = [Tests.at(10, "A", .kill), Tests.at(40, "A", Tests.edit("two"))]
        let world = try FakeWorld(scenario)
        #expect(world.run().result == .pass)
        #expect(Self.starts(world).contains(.milliseconds(14_005)))
    }

    /// An act of a user that no step has is performed after the device's current act, and reaches the server.
    @Test func actsWithoutAStepArePerformed() throws {
        var scenario = Self.scenario()
        scenario.steps = [Tests.at(10, "A", Tests.edit("two")), Tests.at(20, "A", .sync)]
        let world = try FakeWorld(scenario)
        world.act("A", Tests.edit("three"), at: .seconds(15))
        // One that is not possible has no consequences; nor has one of an unknown device, or after the end of the script.
        world.act("A", .edit(row: "n9", title: nil, text: "x"), at: .seconds(16))
        world.act("Z", Tests.edit("four"), at: .seconds(17))
        world.act("A", Tests.edit("late"), at: .seconds(900))
        #expect(world.run().result == .pass)
        #expect(world.acceptedActs.prefix(3) == [true, true, false])
        let texts = Self.times(world) { if case .accepted("A", "n1") = $0 { true } else { false } }
        #expect(texts.count == 2)
        let servers = world.recorder.history.entries.compactMap { entry -> String? in
            if case .server(let rows) = entry.event { rows.first { $0.name == "n1" }?.text } else { nil }
        }
        #expect(servers == ["three"])
    }

    /// An action while the client is dead is performed once it runs.
    @Test func actionsWaitForTheRestart() throws {
        var scenario = Self.scenario(restartsAfter: .seconds(4))
        scenario.steps = [Tests.at(10, "A", .kill), Tests.at(11, "A", Tests.edit("two"))]
        let world = try FakeWorld(scenario)
        #expect(world.run().result == .pass)
        let accepted = Self.times(world) { if case .accepted("A", "n1") = $0 { true } else { false } }
        #expect(accepted.count == 1)
        #expect(try #require(accepted.first) > .seconds(14))
    }

    /// Without the restart, the same action is an error.
    @Test func actionsOfADeadClientFail() throws {
        var scenario = Self.scenario()
        scenario.steps = [Tests.at(10, "A", .kill), Tests.at(11, "A", Tests.edit("two"))]
        #expect(try FakeWorld(scenario).run().result == .fail)
    }

    @Test func aStepCanStartTheClientEarlier() throws {
        var scenario = Self.scenario(restartsAfter: .seconds(30))
        scenario.steps = [Tests.at(10, "A", .kill), Tests.at(12, "A", .start), Tests.at(60, "A", Tests.edit("two"))]
        let world = try FakeWorld(scenario)
        #expect(world.run().result == .pass)
        #expect(Self.starts(world) == [.milliseconds(5), .milliseconds(12_005)])
    }

    /// The run does not end before the client runs again.
    @Test func theRunWaitsForTheRestart() throws {
        var scenario = Self.scenario(restartsAfter: .seconds(100))
        scenario.steps = [Tests.at(10, "A", .kill)]
        let world = try FakeWorld(scenario)
        #expect(world.run().result == .pass)
        #expect(Self.starts(world).contains(.milliseconds(110_005)))
    }

    @Test func aStepThatCannotBePerformedIsLeftOutIfItIsOptional() throws {
        let edit = Scenario.Action.edit(row: "n9", title: nil, text: "two")
        var scenario = Self.scenario()
        scenario.steps = [Tests.at(10, "A", edit)]
        #expect(try FakeWorld(scenario).run().result == .fail)
        scenario.steps = [Self.optional(10, "A", edit), Self.optional(11, "A", .start)]
        let world = try FakeWorld(scenario)
        #expect(world.run().result == .pass)
        let reasons = world.recorder.history.entries.filter {
            if case .notice("A", .skipped) = $0.event { true } else { false }
        }
        #expect(reasons.count == 2)
    }

    /// A device whose link stays dead does not stop the other one from converging.
    @Test func theOthersConvergeWithoutADeviceThatDoesNotComeBack() throws {
        for isRestored in [true, false] {
            var scenario = Self.scenario(restored: isRestored, [(0, Tests.wifi, true), (20, Tests.dead, false)])
            scenario.restoreAt = .seconds(60)
            scenario.steps = [Tests.at(30, "A", Tests.edit("two")), Tests.at(31, "B", Tests.edit("three"))]
            let world = try FakeWorld(scenario)
            #expect(world.run().result == .pass)
            let clear = Self.times(world) { if case .network("A", "clear", _) = $0 { true } else { false } }
            #expect(clear.isEmpty == !isRestored)
            let text = world.recorder.history.entries.compactMap { entry -> String? in
                if case .server(let rows) = entry.event { rows.first?.text } else { nil }
            }
            #expect(text == [isRestored ? "two" : "three"])
        }
    }
}
