import Determinism
import LinkModel

@testable import Scenario

/// Runs without clients and servers, whose violation an artificial rule decides on: each step of device A reads the index,
/// and then sends the change of its note. Requests are counted as in other worlds, so that fewer steps shift the numbers
/// of the later requests by two.
struct ArtificialRuns {
    /// A request that a fault applies to.
    struct Hit: Equatable {
        let text: String
        let method: String
        let action: Scenario.Fault.Action
    }

    /// Returns whether a run violates the rule.
    let violates: (Scenario, [Hit]) -> Bool
    var isValid: (Scenario) -> Bool = { _ in true }
    var isTooLarge: (Scenario) -> Bool = { _ in false }

    static let wifi = Timeline.NamedConditions("wifi", .clear)
    static let edge = Timeline.NamedConditions("edge", Conditions(up: .clear, down: .clear))

    /// A scenario with an edit per period, of n1 to n4 in turn, with the texts t0, t1 and so on.
    static func scenario(
        steps: Int, every period: Nanoseconds = .seconds(1), _ faults: [Scenario.Fault] = []
    ) -> Scenario {
        var scenario = Scenario(name: "artificial")
        scenario.notes = (1...4).map { .init(row: "n\($0)", title: nil, text: "old", revision: 1) }
        scenario.devices = [
            .init(
                name: "A", user: "ada", startsSynced: true, network: [.init(at: .zero, .hold(wifi), isSignalled: true)])
        ]
        scenario.steps = (0..<steps).map { number in
            .init(
                trigger: .at(Nanoseconds(period.count * Int64(number + 1))),
                action: (actor: "A", action: .edit(row: "n\(number % 4 + 1)", title: nil, text: "t\(number)")),
                mark: nil,
                location: location)
        }
        scenario.faults = faults
        scenario.expectations = [Shrinker.vacuousExpectation]
        return scenario
    }

    static let location = SourceLocation(file: "artificial.yaml")

    static func fault(
        _ action: Scenario.Fault.Action, _ method: String? = nil, _ row: String? = nil, nth: Int,
        times: ClosedRange<Int> = 1...1
    ) -> Scenario.Fault {
        .init(
            request: .init(method: method, row: row), nth: nth, times: times, device: nil, action: action,
            location: location)
    }

    /// The texts of the steps.
    static func texts(_ scenario: Scenario) -> [String] {
        scenario.steps.map { step in if case .edit(_, _, let text?)? = step.action?.action { text } else { "" } }
    }

    func history(_ scenario: Scenario) -> History {
        var history = History()
        var counters = FaultCounters(scenario, seed: scenario.seed)
        var hits: [Hit] = []
        var exchange = 0
        let texts = Self.texts(scenario)
        func time(_ step: Int) -> Nanoseconds {
            if case .at(let time) = scenario.steps[step].trigger { time } else { .zero }
        }
        for step in scenario.steps.indices.sorted(by: { (time($0), $0) < (time($1), $1) }) {
            let at = time(step)
            let row = scenario.steps[step].action?.action.row
            history.append(.step(step), at: at)
            for (method, row) in [("GET", nil), ("PUT", row)] {
                exchange += 1
                history.append(
                    .request(exchange, actor: "A", method: method, row: row, key: nil, bodyDigest: 0), at: at)
                guard let applied = counters.requested(by: "A", method: method, row: row) else { continue }
                history.append(.fault(index: applied.fault, exchange: exchange, point: applied.point), at: at)
                hits.append(
                    Hit(text: texts[step], method: method, action: scenario.faults[applied.fault].action))
            }
        }
        if violates(scenario, hits) { history.append(.aborted(.other("the artificial rule is violated")), at: .zero) }
        return history
    }

    func observation(_ scenario: Scenario) -> Shrinker.Observation {
        let history = history(scenario)
        return .init(verdict: Verdict(scenario, history), history: history)
    }

    var environment: Shrinker.Environment {
        Shrinker.Environment(
            run: { scenario, isControl in
                isControl ? ArtificialRuns(violates: { _, _ in false }).observation(scenario) : observation(scenario)
            }, isValid: isValid, isTooLarge: isTooLarge, hasTime: { true }, wifi: Self.wifi, unnamedLink: "unnamed",
            profile: { ["wifi": Self.wifi, "edge": Self.edge][$0] }, hasOtherBehavior: true)
    }

    /// Returns a search at its beginning; `nil` if the scenario's run does not violate the rule.
    func shrinker(_ scenario: Scenario, runsMax: Int = Shrinker.runsMax) -> Shrinker? {
        let first = observation(scenario)
        return Violation.all(in: first.verdict, scenario, first.history).first.map {
            Shrinker(scenario, first, $0, runsMax: runsMax, in: environment)
        }
    }
}
