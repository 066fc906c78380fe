internal import ConfigFiles
internal import Scenario

/// Results for GitHub Actions: annotations (workflow commands) and the summary of a step.
public enum GitHubReport {
    /// GitHub drops further annotations of a step without a message.
    public static let annotationsMax = 10
    /// The maximum number of rows of the summary; GitHub rejects more than 1 MiB.
    private static let rowsMax = 200

    private struct Problem {
        let isWarning: Bool
        let location: SourceLocation
        let title: String
        let message: String
    }

    private static func problems(_ report: RunReport) -> [Problem] {
        let runs = report.runs.filter { !$0.hasPassed }.map { summary in
            Problem(
                isWarning: summary.result == .inconclusive, location: summary.location,
                title: "\(summary.run.fullName): \(summary.result.rawValue)",
                message: "\(summary.cause)\nreplay: \(summary.run.replayText)")
        }
        let files = report.rejections.map {
            Problem(isWarning: false, location: $0.location, title: "invalid scenario file", message: $0.message)
        }
        let differences = report.differences.map {
            Problem(
                isWarning: false, location: SourceLocation(file: $0.source), title: "\($0.name): verdicts differ",
                message: $0.lines.joined(separator: "\n"))
        }
        // Failures first: warnings may be among those that are left out.
        let all = files + runs + differences
        return all.filter { !$0.isWarning } + all.filter(\.isWarning)
    }

    /// Returns the annotations: at most ten, of which the last one counts the others.
    public static func annotations(_ report: RunReport) -> [String] {
        let problems = problems(report)
        let shown = problems.count <= annotationsMax ? problems[...] : problems.prefix(annotationsMax - 1)
        var lines = shown.map { problem in
            var properties: [(key: String, value: String)] = []
            if !ScenarioCatalogue.names.contains(problem.location.file) {
                properties.append(("file", problem.location.file))
                if let line = problem.location.line { properties.append(("line", "\(line)")) }
                if let column = problem.location.column { properties.append(("col", "\(column)")) }
            }
            properties.append(("title", problem.title))
            return command(problem.isWarning ? "warning" : "error", properties, problem.message)
        }
        if shown.count < problems.count {
            lines.append(
                command("error", [("title", "slowlane run")], "and \(problems.count - shown.count) more; see the log"))
        }
        return lines
    }

    /// Returns the summary in Markdown.
    public static func summary(_ report: RunReport) -> String {
        var text = "### slowlane run\n\n"
        text += "\(report.count(.pass)) of \(report.runs.count) runs passed"
        let problems = problems(report)
        guard !problems.isEmpty else { return text + "\n" }
        text += ", \(problems.count) \(problems.count == 1 ? "problem" : "problems")\n\n"
        text += "| result | location | reason |\n|---|---|---|\n"
        for problem in problems.prefix(rowsMax) {
            text += "| \(cell(problem.title)) | \(cell(problem.location.description)) | \(cell(problem.message)) |\n"
        }
        if problems.count > rowsMax { text += "\nand \(problems.count - rowsMax) more\n" }
        return text
    }

    private static func command(_ name: String, _ properties: [(key: String, value: String)], _ message: String)
        -> String
    {
        let list = properties.map { "\($0.key)=\(escaped($0.value, isProperty: true))" }.joined(separator: ",")
        return "::\(name) \(list)::\(escaped(message, isProperty: false))"
    }

    static func escaped(_ text: String, isProperty: Bool) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "%": result += "%25"
            case "\r": result += "%0D"
            case "\n": result += "%0A"
            case ":" where isProperty: result += "%3A"
            case "," where isProperty: result += "%2C"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// The maximum number of characters of a cell.
    private static let cellMax = 500

    private static func cell(_ text: String) -> String {
        var result = ""
        for scalar in text.prefix(cellMax).unicodeScalars {
            switch scalar {
            case "|", "\\", "<", "`", "*", "_", "[": result += "\\\(scalar)"
            case "\n", "\r": result += " "
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
