internal import Scenario
internal import Wire

/// Results in TAP, version 14 (testanything.org): one test point per run, per rejected file and per scenario whose
/// worlds differ.
public enum TAPReport {
    /// Returns the first lines. The plan follows at the end.
    public static let start = ["TAP version 14"]

    /// Returns the plan.
    public static func end(points: Int) -> String { "1..\(points)" }

    /// The last line of a batch that was interrupted.
    public static let interruption = "Bail out! interrupted"

    /// Returns the test point of a run.
    public static func lines(_ summary: RunSummary, number: Int) -> [String] {
        let run = summary.run
        let title = "\(run.fullName), seed \(run.seed), \(run.world.rawValue) (\(run.source))"
        let impossible = list("not_possible", summary.impossibleLines)
        guard !summary.hasPassed else {
            return ["ok \(number) - \(escaped(title))"] + (impossible.isEmpty ? [] : diagnostics([], impossible))
        }
        var values: [(key: String, value: String)] = [
            ("severity", summary.result.rawValue), ("message", summary.cause), ("at", summary.location.description),
            ("replay", run.replayText),
        ]
        if let digest = summary.digest { values.append(("digest", digest)) }
        return ["not ok \(number) - \(escaped(title))"] + diagnostics(values, impossible)
    }

    /// Returns the test point of a rejected file.
    public static func lines(_ rejection: ScenarioSelection.Rejection, number: Int) -> [String] {
        ["not ok \(number) - \(escaped(rejection.name))"]
            + diagnostics([
                ("severity", "error"), ("message", rejection.message), ("at", rejection.location.description),
            ])
    }

    /// Returns the test point of a scenario whose verdicts differ.
    public static func lines(_ difference: RunReport.Difference, number: Int) -> [String] {
        ["not ok \(number) - \(escaped("\(difference.name), both worlds (\(difference.source))"))"]
            + diagnostics([("severity", "fail"), ("message", difference.lines.joined(separator: " "))])
    }

    /// Returns a YAML block; a JSON string is a YAML string.
    private static func diagnostics(
        _ values: [(key: String, value: String)], _ more: [String] = []
    ) -> [String] {
        ["  ---"] + values.map { "  \($0.key): \(JSONText.string($0.value))" } + more + ["  ..."]
    }

    /// Returns the lines of a list in a YAML block; none if it is empty.
    private static func list(_ key: String, _ values: [String]) -> [String] {
        values.isEmpty ? [] : ["  \(key):"] + values.map { "    - \(JSONText.string($0))" }
    }

    /// Returns a description in which `#` and `\` have no meaning of their own.
    static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\", "#": result += "\\\(scalar)"
            case "\n", "\r": result += " "
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
