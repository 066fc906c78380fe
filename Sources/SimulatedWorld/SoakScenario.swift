internal import Determinism
internal import LinkModel
public import ScenarioModel

/// Scenarios drawn from a seed, for benchmarks and tests: two devices of one user and a writer make changes for some
/// minutes while the links of the devices flap and change, responses are lost, and clients are killed.
///
/// A client that works passes each of them. Notes that several edit are never deleted, and nothing depends on whether
/// an edit of one of them becomes a conflict.
public enum SoakScenario {
    /// The number of actions.
    public static let actions = 200
    /// The time in which the actions take place, in seconds.
    public static let seconds = 600

    private static let sharedNotes = 8
    private static let kills = 5
    private static let faults = 6
    private static let location = SourceLocation(file: "soak", line: 1, column: 1)

    /// Returns the scenario of a seed, with a server of a contract.
    public static func scenario(seed: UInt64, contract: String = "compat") -> Scenario {
        var scenario = Scenario(name: "soak")
        scenario.contract = contract
        scenario.about = "Two devices and a writer on changing networks, drawn from seed \(seed)."
        scenario.seed = seed
        scenario.limit = .seconds(Int64(seconds) + 300)
        var notes = RandomStream(seed: seed, "soak/notes")
        scenario.notes = (1...sharedNotes).map { number in
            Scenario.SeedNote(
                row: "s\(number)", title: "Shared \(number)", text: text(&notes),
                revision: 1 + Int(notes.integer(below: 3)))
        }
        scenario.devices = ["A", "B"].map { name in
            var random = RandomStream(seed: seed, "soak/network/\(name)")
            return Scenario.Device(name: name, user: "ada", startsSynced: true, network: network(&random))
        }
        scenario.writers = [Scenario.Writer(name: "W", user: "ada")]
        var random = RandomStream(seed: seed, "soak/faults")
        scenario.faults = (0..<faults).map { _ in fault(&random) }
        var plan = Plan(seed: seed)
        scenario.steps = plan.steps()
        // A server without tombstones may execute a POST that a killed client has sent after the DELETE of the note.
        scenario.expectations = plan.expectations(countsNotes: contract != "orig")
        return scenario
    }

    private static func text(_ random: inout RandomStream) -> String {
        let words = [
            "milk", "bread", "two litres", "passport", "tickets", "dark", "oats", "Äpfel", "call Bo", "7 o'clock",
        ]
        return (0...random.integer(below: 20)).map { _ in words[Int(random.integer(below: Int64(words.count)))] }
            .joined(separator: " ")
    }

    // MARK: Network

    private static func link(
        _ name: String, up: Int64, down: Int64, delay: Int64, loss: Int32 = 0
    ) -> Timeline.NamedConditions {
        func direction(_ rate: Int64) -> DirectionConditions {
            DirectionConditions(
                rate: .kilobits(rate), delay: .milliseconds(delay),
                loss: Probability(partsPerMillion: loss * 10_000) ?? .zero, queue: .packets(50))
        }
        return Timeline.NamedConditions(name, Conditions(up: direction(up), down: direction(down)))
    }

    private static let working = [
        link("wifi", up: 33_000, down: 40_000, delay: 1), link("lte", up: 10_000, down: 50_000, delay: 50),
        link("3g", up: 330, down: 780, delay: 100), link("3g-lossy", up: 330, down: 780, delay: 100, loss: 2),
        link("edge", up: 200, down: 240, delay: 400),
        link("very-bad-network", up: 1000, down: 1000, delay: 500, loss: 10),
    ]

    private static func dead(_ name: String, up: Bool, down: Bool) -> Timeline.NamedConditions {
        var conditions = Conditions.clear
        if up { conditions.up.loss = .one }
        if down { conditions.down.loss = .one }
        return Timeline.NamedConditions(name, conditions)
    }

    private static func policy(_ policy: ConnectionPolicy) -> Timeline.NamedConditions {
        var conditions = Conditions.clear
        conditions.connectionPolicy = policy
        return Timeline.NamedConditions(policy.rawValue, conditions)
    }

    private static let broken = [
        dead("100-loss", up: true, down: true), dead("updead", up: true, down: false),
        dead("downdead", up: false, down: true), policy(.refuse), policy(.dns), policy(.portal),
    ]

    private static func network(_ random: inout RandomStream) -> [Scenario.NetworkEntry] {
        var entries: [Scenario.NetworkEntry] = []
        var time: Int64 = 0
        while time < Int64(seconds) {
            let works = working[Int(random.integer(below: Int64(working.count)))]
            let fails = broken[Int(random.integer(below: Int64(broken.count)))]
            let isSignalled = random.bool(probability: 0.5)
            let phase: Timeline.Phase
            switch random.integer(below: 10) {
            case 0..<5: phase = .hold(works)
            case 5..<8: phase = .hold(fails)
            default:
                phase = .flap(
                    [
                        Timeline.Interval(works, .seconds(2 + random.integer(below: 8))),
                        Timeline.Interval(fails, .seconds(1 + random.integer(below: 5))),
                    ], jitter: Probability(partsPerMillion: 500_000) ?? .zero)
            }
            entries.append(Scenario.NetworkEntry(at: .seconds(time), phase, isSignalled: isSignalled))
            time += 10 + random.integer(below: 50)
        }
        // The clients must come to an end.
        entries.append(Scenario.NetworkEntry(at: .seconds(Int64(seconds)), .hold(working[0]), isSignalled: true))
        return entries
    }

    // MARK: Faults

    private static func fault(_ random: inout RandomStream) -> Scenario.Fault {
        let methods = ["POST", "PUT", "DELETE", nil]
        let method = methods[Int(random.integer(below: 4))]
        let nth = 1 + Int(random.integer(below: 20))
        let action: Scenario.Fault.Action = random.bool(probability: 0.5) ? .cut : .mute
        // F1 to F7, as far as the action has a meaning there.
        let points = Scenario.Fault.Point.allCases.filter { $0 != .any && action.isPossible(at: $0) }
        return Scenario.Fault(
            request: RequestPattern(method: method, row: nil), nth: nth, times: 0...1, device: nil,
            point: points[Int(random.integer(below: Int64(points.count)))], action: action, location: location)
    }

    // MARK: Steps

    /// The actions, and what they lead to.
    private struct Plan {
        private var random: RandomStream
        private var time: Int64 = 0
        /// The notes that each device has created and not deleted.
        private var own: [(name: String, rows: [String])] = [("A", []), ("B", [])]
        /// The times at which each device is killed, and starts again after ``restart``.
        private var killed: [(name: String, at: Int64)] = []
        private var created = 0
        private var texts: [(row: String, text: String)] = []

        private static let restart: Int64 = 4_000

        init(seed: UInt64) { random = RandomStream(seed: seed, "soak/steps") }

        mutating func steps() -> [Scenario.Step] {
            var steps: [Scenario.Step] = []
            let length = Int64(seconds) * 1000
            for number in 0..<Int64(kills) {
                // Far enough from one another that a device runs between two kills.
                let at = length / Int64(kills) * number + 20_000 + random.integer(below: length / Int64(kills) - 30_000)
                let name = own[Int(random.integer(below: 2))].name
                killed.append((name, at))
                steps.append(step(name, .kill, at: at))
                steps.append(step(name, .start, at: at + Self.restart))
            }
            let count = actions - 2 * kills
            for number in 0..<count {
                time = length * Int64(number) / Int64(count) + random.integer(below: length / Int64(count))
                let (name, action) = act()
                steps.append(step(name, action, at: time))
            }
            return steps
        }

        private func step(_ name: String, _ action: Scenario.Action, at milliseconds: Int64) -> Scenario.Step {
            Scenario.Step(
                trigger: .at(.milliseconds(milliseconds)), action: (name, action), mark: nil, location: location)
        }

        private mutating func act() -> (String, Scenario.Action) {
            let shared = "s\(1 + random.integer(below: Int64(sharedNotes)))"
            let text = SoakScenario.text(&random)
            let device = Int(random.integer(below: 2))
            let name = own[device].name
            let isDown = killed.contains { $0.name == name && time >= $0.at && time <= $0.at + Self.restart }
            if isDown || random.integer(below: 8) == 0 { return ("W", .edit(row: shared, title: nil, text: text)) }
            let rows = own[device].rows
            switch random.integer(below: 10) {
            case 0..<2:
                created += 1
                own[device].rows.append("n\(created)")
                texts.append(("n\(created)", text))
                return (name, .create(row: "n\(created)", title: "Note \(created)", text: text))
            case 2..<5 where !rows.isEmpty:
                let row = rows[Int(random.integer(below: Int64(rows.count)))]
                texts.removeAll { $0.row == row }
                texts.append((row, text))
                return (name, .edit(row: row, title: nil, text: text))
            case 5 where !rows.isEmpty:
                let row = own[device].rows.remove(at: Int(random.integer(below: Int64(rows.count))))
                texts.removeAll { $0.row == row }
                return (name, .delete(row: row))
            case 6: return (name, .sync)
            default: return (name, .edit(row: shared, title: nil, text: text))
            }
        }

        /// Returns what must hold whatever became of the shared notes: each device's own notes are on the server once,
        /// with the last text. A retry budget is not among it, because a user who requests a sync ends a delay.
        func expectations(countsNotes: Bool) -> [Expectation] {
            var kinds: [Expectation.Kind] = countsNotes ? [.serverCount(sharedNotes + texts.count)] : []
            for (row, text) in texts { kinds.append(.serverRow(row: row, revision: nil, title: nil, text: text)) }
            for (name, rows) in own {
                for row in rows {
                    kinds.append(.finally(device: name, condition(row, .icon, "none")))
                    kinds.append(.always(device: name, condition(row, .icon, "conflict", isNegated: true)))
                }
            }
            return kinds.map { Expectation($0, location: location) }
        }

        private func condition(
            _ row: String, _ key: StateCondition.Check.Key, _ value: String, isNegated: Bool = false
        ) -> StateCondition {
            StateCondition(row: row, checks: [.init(key: key, value: value, isNegated: isNegated)])
        }
    }
}
