import Determinism
import Impairment
import LinkModel
import TestSupport
import Testing

// The testing library has a type of that name too.
import struct Scenario.Expectation

@testable import Scenario

/// Random plans in random worlds.
@Suite struct ScenarioDirectorPropertyTests {
    private typealias Helper = ScenarioDirectorTests

    private static func pick<Value>(_ values: [Value], _ random: inout RandomStream) -> Value {
        values[Int(random.integer(below: Int64(values.count)))]
    }

    private static func scenario(_ random: inout RandomStream) -> Scenario {
        let links = [
            Helper.wifi, Helper.dead, Helper.policy(.offline), Helper.policy(.dns), Helper.policy(.portal),
        ]
        var networks: [String: Helper.Network] = [:]
        for name in ["A", "B"] {
            var time: Int64 = 0
            var network: Helper.Network = []
            for _ in 0...random.integer(below: 4) {
                network.append((time, pick(links, &random), random.bool(probability: 0.5)))
                time += 1 + random.integer(below: 20)
            }
            networks[name] = network
        }
        var scenario = Helper.scenario(networks, limit: .seconds(30 + random.integer(below: 90)))
        scenario.seed = random.next()
        if random.bool(probability: 0.1) { scenario.restoreAt = .seconds(5 + random.integer(below: 20)) }
        let count = Int(random.integer(below: 12))
        for index in 0..<count {
            let trigger: Scenario.Step.Trigger
            switch random.integer(below: 4) {
            case 0:
                let condition = pick(
                    [
                        Helper.condition(.icon, "upload"), Helper.condition(.icon, "none"),
                        Helper.condition(.outbox, "2"),
                    ],
                    &random)
                trigger = .when(
                    device: pick(["A", "B"], &random), condition, within: .seconds(1 + random.integer(below: 200)))
            case 1:
                // Forward and backward references, cycles, and marks that no step sets.
                trigger = .after(
                    "m\(random.integer(below: Int64(count) + 1))", delay: .milliseconds(random.integer(below: 9000)))
            default: trigger = .at(.milliseconds(random.integer(below: 60_000)))
            }
            let actions: [Scenario.Action] = [
                Helper.edit("\(index)"), .create(row: "c\(index)", title: nil, text: "x"), .delete(row: "n1"), .sync,
                .kill, .start, .edit(row: "c1", title: nil, text: "y"),
            ]
            var action: (actor: String, action: Scenario.Action)?
            switch random.integer(below: 6) {
            case 0: action = nil
            case 1: action = ("W", Helper.edit("w\(index)"))
            default: action = (pick(["A", "B"], &random), pick(actions, &random))
            }
            let mark = action == nil || random.bool(probability: 0.6) ? "m\(index)" : nil
            scenario.steps.append(
                .init(trigger: trigger, action: action, mark: mark, location: Helper.location(index)))
        }
        for _ in 0..<random.integer(below: 4) {
            scenario.faults.append(
                .init(
                    request: .init(method: pick(["PUT", "GET", nil], &random), row: nil),
                    nth: 1 + Int(random.integer(below: 4)), device: pick(["A", nil], &random),
                    action: pick([.link(.reset), .link(.stall)], &random), location: Helper.location(0)))
        }
        for _ in 0..<random.integer(below: 4) {
            scenario.expectations.append(
                Expectation(
                    .eventually(
                        device: pick(["A", "B"], &random), Helper.condition(.icon, "upload"),
                        pick(
                            [.by(.seconds(random.integer(below: 100))), .after("m1", within: .seconds(9))], &random)),
                    location: Helper.location(0)))
        }
        return scenario
    }

    private static func world(_ seed: UInt64) throws -> (world: FakeWorld, scenario: Scenario) {
        var random = RandomStream(seed: seed, "plans")
        let scenario = scenario(&random)
        let world = try FakeWorld(scenario)
        world.behaviour.actTime = .milliseconds(random.integer(below: 2000))
        world.behaviour.latency = .milliseconds(1 + random.integer(below: 4000))
        world.behaviour.timeout = .seconds(1 + random.integer(below: 30))
        world.behaviour.hangsActs = random.bool(probability: 0.05)
        world.behaviour.hangsRequests = random.bool(probability: 0.05)
        world.behaviour.hangsServer = random.bool(probability: 0.05)
        world.behaviour.retriesAtOnce = random.bool(probability: 0.05)
        if random.bool(probability: 0.3) {
            world.behaviour.granularity = .milliseconds(1 + random.integer(below: 3000))
        }
        return (world, scenario)
    }

    @Test(arguments: randomSeeds(2, soak: 100)) func everyRunKeepsTheRules(block: UInt64) throws {
        for seed in block * 40..<(block + 1) * 40 {
            let (world, scenario) = try Self.world(seed)
            world.run()
            let entries = world.recorder.history.entries
            try checkEnd(world, scenario, seed)
            var states: [String: [(time: Nanoseconds, state: History.DeviceState)]] = [:]
            var marks: [String: Nanoseconds] = [:]
            var started: [Int: Nanoseconds] = [:]
            var ended: Set<Int> = []
            for entry in entries {
                switch entry.event {
                case .device(let name, let state): states[name, default: []].append((entry.time, state))
                case .mark(let mark):
                    #expect(marks[mark] == nil, "seed \(seed): mark \(mark) twice")
                    marks[mark] = entry.time
                    let step = try #require(scenario.steps.firstIndex { $0.mark == mark })
                    if scenario.steps[step].action == nil {
                        check(step, at: entry.time, scenario, states, marks, seed)
                    } else {
                        #expect(started[step] != nil, "seed \(seed): mark \(mark) before its action")
                    }
                case .step(let step):
                    #expect(started[step] == nil, "seed \(seed): step \(step) twice")
                    started[step] = entry.time
                    check(step, at: entry.time, scenario, states, marks, seed)
                case .missed(let step, _), .stepFailed(let step, _, at: _):
                    #expect(ended.insert(step).inserted, "seed \(seed): step \(step) ended twice")
                default: break
                }
            }
            for (index, step) in scenario.steps.enumerated() {
                let isDone = step.action == nil ? marks[step.mark ?? ""] != nil : started[index] != nil
                #expect(isDone || ended.contains(index), "seed \(seed): step \(index) was forgotten")
                if let mark = step.mark {
                    #expect((marks[mark] == nil) == ended.contains(index), "seed \(seed): \(mark) and step \(index)")
                }
            }
        }
    }

    /// The phases come in order, the last order is the end, and the run is not longer than its limits.
    private func checkEnd(_ world: FakeWorld, _ scenario: Scenario, _ seed: UInt64) throws {
        let phases = world.recorder.history.entries.compactMap { entry -> ScenarioDirector.Phase? in
            if case .phase(let phase) = entry.event { phase } else { nil }
        }
        #expect(world.hasEnded && world.setupFailure == nil, "seed \(seed)")
        let all = ScenarioDirector.Phase.allCases.filter { $0 != .setup }
        #expect(phases == all || phases == all.filter { $0 != .quiesce }, "seed \(seed): \(phases)")
        guard case .end? = world.orders.last?.action else {
            Issue.record("seed \(seed): the last order is not the end")
            return
        }
        #expect(world.orders.count { if case .end = $0.action { true } else { false } } == 1)
        #expect(world.director.nextDeadline == nil)
        // Each of the last phases may be late once.
        let limits =
            scenario.limit + ScenarioDirector.quiesceMax + ScenarioDirector.verifyMax + .seconds(4 * 3)
        #expect(try #require(world.recorder.history.entries.last).time <= limits, "seed \(seed)")
    }

    /// A step starts neither before its trigger nor after the script.
    private func check(
        _ step: Int, at time: Nanoseconds, _ scenario: Scenario,
        _ states: [String: [(time: Nanoseconds, state: History.DeviceState)]], _ marks: [String: Nanoseconds],
        _ seed: UInt64
    ) {
        #expect(time < scenario.limit + .seconds(3), "seed \(seed): step \(step)")
        switch scenario.steps[step].trigger {
        case .at(let planned): #expect(time >= planned, "seed \(seed): step \(step)")
        case .after(let mark, let delay):
            #expect(marks[mark].map { time >= $0 + delay } ?? false, "seed \(seed): step \(step)")
        case .when(let device, let condition, let within):
            #expect(
                states[device, default: []].contains {
                    $0.state.satisfies(condition) && $0.time <= within + .seconds(3)
                },
                "seed \(seed): step \(step)")
        }
    }

    @Test func equalSeedsGiveEqualDigests() throws {
        var digests: Set<UInt64> = []
        for seed in 0..<20 as Range<UInt64> {
            let (first, _) = try Self.world(seed)
            let (second, _) = try Self.world(seed)
            first.run()
            second.run()
            #expect(first.recorder.history.digest == second.recorder.history.digest)
            #expect(first.recorder.history.firstDifference(from: second.recorder.history) == nil)
            digests.insert(first.recorder.history.digest)
        }
        #expect(digests.count == 20)
        let (other, _) = try Self.world(0)
        let (changed, _) = try Self.world(0)
        changed.behaviour.actTime = .milliseconds(1999)
        other.run()
        changed.run()
        let difference = try #require(other.recorder.history.firstDifference(from: changed.recorder.history))
        #expect(difference > 0 && other.recorder.history.digest != changed.recorder.history.digest)
    }

    /// The same in every process, with and without `SWIFT_DETERMINISTIC_HASHING`.
    @Test func theDigestOfARunIsFixed() throws {
        var digest = FNV1a()
        for seed in 0..<50 as Range<UInt64> {
            let (world, _) = try Self.world(seed)
            world.run()
            withUnsafeBytes(of: world.recorder.history.digest.littleEndian) { for byte in $0 { digest.add(byte) } }
        }
        #expect(digest.value == 0xFE2F_B1E4_9967_B224)
    }
}
