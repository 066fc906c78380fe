public import ScenarioModel

/// The text of verdicts.
public enum VerdictText {
    /// Returns the lines of the checks, and of the result.
    ///
    /// - Parameters:
    ///   - name: The scenario's name with its variant.
    ///   - showsPasses: Whether checks that passed have a line.
    public static func lines(_ verdict: Verdict, of name: String, showsPasses: Bool) -> [String] {
        var lines: [String] = []
        for check in verdict.checks {
            let (mark, reason): (String, String) =
                switch check.outcome {
                case .pass: ("ok  ", "")
                case .fail(let reason): ("FAIL", reason)
                case .inconclusive(let reason): ("?   ", reason)
                }
            if !showsPasses && reason.isEmpty { continue }
            lines.append("  \(mark)  \(check.description)")
            if !reason.isEmpty { lines.append("        \(reason) (\(check.location))") }
        }
        return lines + ["\(name): \(verdict.result.rawValue)"]
    }
}
