internal import Scenario

/// The comparison of the verdicts of one scenario in virtual time and in real time.
public enum WorldComparison {
    /// Returns the differences in lines: none if both verdicts have the same result.
    ///
    /// The checks whose outcomes differ follow the line of the results.
    public static func differences(_ name: String, simulated: RunSummary, live: RunSummary) -> [String] {
        guard simulated.result != live.result else { return [] }
        var lines = [
            "\(name): the verdicts differ: simulated \(simulated.result.rawValue), live \(live.result.rawValue)"
        ]
        var others: [RunSummary.Check?] = live.checks
        for check in simulated.checks {
            let index = others.firstIndex { $0?.description == check.description && $0?.location == check.location }
            let other = index.flatMap { others[$0] }
            if let index { others[index] = nil }
            if other?.outcome != check.outcome { lines.append(Self.line(check, check.outcome, other?.outcome)) }
        }
        for case let check? in others { lines.append(line(check, nil, check.outcome)) }
        return lines
    }

    private static func line(
        _ check: RunSummary.Check, _ simulated: RunSummary.Check.Outcome?, _ live: RunSummary.Check.Outcome?
    ) -> String {
        "  simulated \(simulated?.rawValue ?? "without it"), live \(live?.rawValue ?? "without it"): "
            + "\(check.description) (\(check.location))"
    }
}
