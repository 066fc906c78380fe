import Determinism
import LinkModel
import TestSupport
import Testing

@testable import Scenario

/// The draws of an exploration: a pure function of scenario and seed, in which every element has its own stream.
@Suite struct SwarmTests {
    private static func link(_ name: String, isDead: Bool = false) -> Timeline.NamedConditions {
        isDead ? ScenarioDirectorTests.dead : Timeline.NamedConditions(name, .clear)
    }

    private static let links = SwarmLinks(
        working: [link("wifi"), link("edge")], broken: [link("offline"), link("portal")], oneWay: [link("uplink-loss")],
        silent: link("100-loss", isDead: true))

    private static func base(devices: Int = 2) -> Scenario {
        var scenario = Scenario(name: "base")
        scenario.notes = ["n1", "n2"].map { .init(row: $0, title: nil, text: "one", revision: 1) }
        scenario.devices = (0..<devices).map {
            .init(
                name: "D\($0)", user: "ada", startsSynced: true,
                network: [.init(at: .zero, .hold(link("wifi")), isSignalled: true)])
        }
        scenario.writers = [.init(name: "W", user: "ada")]
        return scenario
    }

    private static func swarm(_ parts: [Scenario.Exploration.Part]? = nil, devices: Int = 2) -> Swarm {
        Swarm(base(devices: devices), links: links, parts: parts)
    }

    /// A scenario in words, part by part.
    private struct Words: Equatable {
        let steps: [String]
        let faults: [String]
        let networks: [[String]]
        let rest: [String]

        init(_ scenario: Scenario) {
            steps = scenario.steps.map { "\($0) \($0.isOptional)" + (Self.text($0) ?? "") }
            faults = scenario.faults.map { "\($0)" }
            networks = scenario.devices.map { device in
                device.network.map { "\($0.start) \($0.phase) \($0.signalling)" }
            }
            rest =
                scenario.devices.map { "\($0.name) \($0.isRestored) \($0.restartsAfter?.count ?? -1)" }
                + [
                    scenario.contract, "\(scenario.tokenLife?.count ?? -1)", "\(scenario.policy)",
                    "\(scenario.notes)", "\(scenario.workload)",
                ]
        }

        private static func text(_ step: Scenario.Step) -> String? {
            switch step.action?.action {
            case .create(_, _, let text)?, .edit(_, _, let text)?, .editStale(_, _, let text)?: text
            default: nil
            }
        }
    }

    @Test(arguments: randomSeeds(5)) func aSeedAlwaysDrawsTheSameScenario(seed: UInt64) {
        #expect(Words(Self.swarm().scenario(seed: seed)) == Words(Self.swarm().scenario(seed: seed)))
        #expect(Words(Self.swarm().scenario(seed: seed)) != Words(Self.swarm().scenario(seed: seed + 1)))
    }

    /// Without a class, the elements of the others are the same.
    @Test(arguments: randomSeeds(3)) func aClassThatIsOffTakesOnlyItsOwnElementsAway(seed: UInt64) {
        let swarm = Self.swarm()
        var whole = swarm.configuration(seed: seed)
        whole.classes = Set(SwarmClass.allCases)
        whole.departed = "D1"
        whole.killCount = 3
        let all = Words(swarm.scenario(whole))
        for entry in SwarmClass.allCases {
            var less = whole
            less.classes.remove(entry)
            if entry == .departure { less.departed = nil }
            if entry == .kills { less.killCount = 0 }
            let found = Words(swarm.scenario(less))
            switch entry.part {
            case .faults:
                #expect(
                    found.faults.allSatisfy(all.faults.contains) && found.faults.count < all.faults.count, "\(entry)")
                #expect(found.steps == all.steps && found.networks == all.networks, "\(entry)")
            case .network: #expect(found.steps == all.steps && found.faults == all.faults, "\(entry)")
            case .workload: #expect(found.faults == all.faults && found.networks == all.networks, "\(entry)")
            case .config: #expect(found.faults == all.faults && found.steps == all.steps, "\(entry)")
            }
        }
    }

    /// The other actions and their times do not depend on kills.
    @Test(arguments: randomSeeds(20)) func killsDoNotChangeTheActions(seed: UInt64) {
        let swarm = Self.swarm()
        var few = swarm.configuration(seed: seed)
        few.killCount = 0
        var many = few
        many.killCount = 8
        let (steps, all) = (Words(swarm.scenario(few)).steps, Words(swarm.scenario(many)).steps)
        let kept = all.filter { !$0.contains("is killed") }
        #expect(all.count == kept.count + 8)
        // The changes that users make when a client has started again are additional steps.
        let difference = kept.difference(from: steps)
        #expect(difference.removals.isEmpty && difference.insertions.count <= 8)
    }

    /// An operation id is used twice, and the identifier of a note after its deletion.
    @Test func writersReuseIdentifiers() throws {
        let swarm = Self.swarm()
        var configuration = swarm.configuration(seed: 1)
        configuration.classes.insert(.reusedIDs)
        configuration.contract = "compat"
        let steps = swarm.scenario(configuration).steps.filter { $0.action?.actor == "W" }.compactMap(\.action?.action)
        let requests = steps.compactMap { if case .send(let request) = $0 { request } else { nil } }
        let keys = requests.flatMap { $0.headers.filter { $0.name == "Idempotency-Key" }.map(\.value) }
        #expect(keys.count { $0 == "reused-1" } == 2)
        let puts = requests.filter { $0.method == "PUT" }
        #expect(Set(puts.map(\.body)).count == puts.count, "the requests with one id differ")
        let post = try #require(requests.first { $0.method == "POST" })
        let name = try #require(post.bodyRows.first)
        #expect(steps.contains(.delete(row: name)))
        #expect(post.body(identifier: { "id of \($0)" }).contains("\"uuid\": \"id of \(name)\""))
    }

    /// A chain changes one note on one device.
    @Test func actionsFollowOneAnother() {
        let swarm = Self.swarm([.workload])
        var configuration = swarm.configuration(seed: 2)
        (configuration.killCount, configuration.burst) = (0, 1)
        func changesInARow(_ share: Int) -> Int {
            configuration.chainShare = share
            let steps = swarm.scenario(configuration).steps.compactMap(\.action)
            return zip(steps, steps.dropFirst()).count {
                $0.actor == $1.actor && $0.action.row != nil && $0.action.row == $1.action.row
            }
        }
        #expect(changesInARow(16) > 2 * changesInARow(0))
    }

    @Test(arguments: randomSeeds(20)) func anotherDeviceDoesNotChangeTheNetworkOfTheOthers(seed: UInt64) {
        let two = Words(Self.swarm([.network]).scenario(seed: seed)).networks
        var configuration = Self.swarm([.network], devices: 3).configuration(seed: seed)
        configuration.classes.subtract([.swizzle, .departure])
        configuration.departed = nil
        var other = Self.swarm([.network]).configuration(seed: seed)
        other.classes = configuration.classes
        other.departed = nil
        let three = Words(Self.swarm([.network], devices: 3).scenario(configuration)).networks
        #expect(Array(three.prefix(2)) == Words(Self.swarm([.network]).scenario(other)).networks)
        #expect(two.count == 2)
    }

    @Test func eachClassIsOnInAboutHalfOfTheSeeds() {
        let configurations = (0..<400 as Range<UInt64>).map { Self.swarm().configuration(seed: $0) }
        for entry in SwarmClass.allCases {
            let needsContract = entry == .tokenExpiry || entry == .reusedIDs
            let possible = needsContract ? configurations.filter { $0.contract != "orig" } : configurations
            let share = Double(possible.count { $0.classes.contains(entry) }) / Double(possible.count)
            #expect((0.4...0.6).contains(share), "\(entry): \(share)")
        }
        #expect(Set(configurations.map(\.contract)) == ["orig", "compat", "strict"])
    }

    @Test(arguments: randomSeeds(20)) func partsThatAreNotDrawnAreThoseOfTheScenario(seed: UInt64) {
        let base = Words(Self.base())
        let networks = Words(Self.swarm([.network]).scenario(seed: seed))
        #expect(networks.steps == base.steps && networks.faults == base.faults && networks.networks != base.networks)
        let faults = Words(Self.swarm([.faults]).scenario(seed: seed))
        #expect(faults.steps == base.steps && faults.networks == base.networks && faults.rest == base.rest)
        let workload = Words(Self.swarm([.workload]).scenario(seed: seed))
        #expect(workload.networks == base.networks && workload.faults == base.faults)
        #expect(workload.steps.count >= Swarm.actions)
    }

    /// The links of a drawn network are in the order of time, and the first one applies from 0 s.
    @Test(arguments: randomSeeds(50)) func networksAreTimelines(seed: UInt64) throws {
        for device in Self.swarm(devices: 3).scenario(seed: seed).devices {
            _ = try Timeline(device.network.map { Timeline.Entry(at: $0.start, $0.phase) })
        }
    }

    @Test(arguments: randomSeeds(50)) func oneDeviceAtMostDoesNotComeBack(seed: UInt64) {
        let scenario = Self.swarm(devices: 3).scenario(seed: seed)
        #expect(scenario.devices.count { !$0.isRestored } <= 1)
        let single = Self.swarm(devices: 1).scenario(seed: seed)
        #expect(single.devices.allSatisfy { $0.isRestored })
        if let gone = scenario.devices.first(where: { !$0.isRestored }) {
            let last = gone.network.filter { $0.start < Swarm.length }.last
            guard case .hold(let link)? = last?.phase else { return #expect(Bool(false), "the last link alternates") }
            #expect(["100-loss", "uplink-loss"].contains(link.name))
        }
    }
}
