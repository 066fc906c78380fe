internal import Determinism
internal import LinkModel

/// The faults of a seed.
extension Swarm {
    private typealias Fault = Scenario.Fault

    /// The faults of each class.
    private static let perClass = 2

    /// Returns the faults: up to two of each class that is on. None must fire.
    func faults(_ configuration: SwarmConfiguration, _ draws: SwarmDraws) -> [Scenario.Fault] {
        var found: [Fault] = []
        for entry in SwarmClass.allCases where configuration.classes.contains(entry) && entry.part == .faults {
            for number in 0..<Self.perClass {
                var random = draws.stream("fault/\(entry.rawValue)/\(number)")
                // One fault, and a second one in half of the seeds.
                guard number == 0 || random.bool(probability: 0.5) else { continue }
                found.append(fault(entry, &random))
            }
        }
        return found
    }

    private func fault(_ entry: SwarmClass, _ random: inout RandomStream) -> Scenario.Fault {
        let percent = random.pick([1, 3, 10, 30])
        let times = random.pick([1, 2, 5, 20])
        let method = random.pick(["POST", "PUT", "DELETE", "GET", nil])
        let write = random.pick(["POST", "PUT", "DELETE", nil])
        let device = random.bool(probability: 0.25) ? random.pick(base.devices).name : nil
        let seconds = Nanoseconds.seconds(1 << random.integer(below: 7))
        let isAbort = random.bool(probability: 0.5)
        func make(
            _ method: String?, _ point: Fault.Point, _ action: Fault.Action
        ) -> Scenario.Fault {
            Fault(
                request: RequestPattern(method: method, row: nil),
                chance: Probability(partsPerMillion: Int32(percent) * 10_000), times: 0...times, device: device,
                point: point, action: action, location: Self.location)
        }
        switch entry {
        case .lostResponse:
            return make(write, random.pick([.committed, .committed, .answerStarted]), isAbort ? .cut : .mute)
        case .held: return make(method, random.pick([.received, .committed, .answered]), .hold(seconds))
        case .halfBody: return make(method, random.pick([.partlySent, .partlyAnswered]), isAbort ? .cut : .close)
        case .trickle: return make(method, .answerStarted, .trickle(bytesPerSecond: random.pick([1, 10, 100])))
        case .wrongType: return make(method, random.pick([.queued, .received, .committed]), .reply(Self.portal))
        case .overload:
            let pause = random.pick([1, 5, 12, 40])
            return make(method, random.pick([.queued, .received]), .reply(Self.overloaded(seconds: pause)))
        case .serverError: return make(write, random.pick([.queued, .received, .committed]), .reply(Self.failure))
        case .killAtCommit:
            return make(
                write, random.pick([.queued, .received, .committed, .answered, .stored, .stored]), .kill(device: nil))
        default: return make(method, .any, isAbort ? .cut : .close)
        }
    }

    private static let portal = Scenario.Fault.Reply(
        status: 200, headers: [Scenario.Argument(name: "Content-Type", value: "text/html")],
        body: "<html><body>Log in</body></html>")

    private static func answer(_ status: Int, _ headers: [Scenario.Argument]) -> Scenario.Fault.Reply {
        Scenario.Fault.Reply(
            status: status,
            headers: headers + [
                Scenario.Argument(name: "Content-Type", value: "application/json"),
                Scenario.Argument(name: "Slowlane-Notes", value: "1"),
            ], body: "{}")
    }

    private static func overloaded(seconds: Int) -> Scenario.Fault.Reply {
        answer(503, [Scenario.Argument(name: "Retry-After", value: "\(seconds)")])
    }

    private static let failure = answer(500, [])
}
