internal import Determinism
internal import Scenario

/// Results as JUnit XML: one suite per file, one case per run.
///
/// The format has no specification. `failure` is a failed expectation. `error` is everything else that is not a pass,
/// also an inconclusive verdict: readers show a skipped case as a success.
public enum JUnitReport {
    /// Returns the document.
    ///
    /// - Parameter timestamp: The start of the batch in ISO 8601.
    public static func document(_ report: RunReport, timestamp: String) -> String {
        var suites: [(source: String, runs: [RunSummary])] = []
        var positions: [[UInt8]: Int] = [:]
        for run in report.runs {
            let key = Array(run.run.source.utf8)
            if let position = positions[key] {
                suites[position].runs.append(run)
            } else {
                positions[key] = suites.count
                suites.append((run.run.source, [run]))
            }
        }
        var counts = Counts(report.runs)
        counts.tests += report.rejections.count + report.differences.count
        counts.errors += report.rejections.count
        counts.failures += report.differences.count
        var text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        text += "<testsuites name=\"slowlane\"\(counts.attributes)>\n"
        for suite in suites {
            text += "<testsuite\(attributes([("name", suite.source), ("file", suite.source)]))"
            text += Counts(suite.runs).attributes + attributes([("timestamp", timestamp)]) + ">\n"
            for run in suite.runs { text += testCase(run) }
            text += "</testsuite>\n"
        }
        let others =
            report.rejections.map { rejection in
                problem(
                    rejection.name, name: "file", "error", type: "invalid-file", rejection.location,
                    message: rejection.message, content: rejection.description)
            }
            + report.differences.map { difference in
                problem(
                    difference.source, name: "\(difference.name), both worlds", "failure", type: "worlds-differ",
                    SourceLocation(file: difference.source), message: difference.lines.first ?? "",
                    content: difference.lines.joined(separator: "\n"))
            }
        if !others.isEmpty {
            var counts = Counts([])
            counts.tests = others.count
            counts.errors = report.rejections.count
            counts.failures = report.differences.count
            text += "<testsuite name=\"files and worlds\"\(counts.attributes)>\n\(others.joined())</testsuite>\n"
        }
        return text + "</testsuites>\n"
    }

    private struct Counts {
        var tests: Int
        var failures: Int
        var errors: Int
        var time: Duration

        init(_ runs: [RunSummary]) {
            tests = runs.count
            failures = runs.count { $0.result == .fail }
            errors = runs.count { $0.result == .inconclusive || $0.result == .error }
            time = runs.reduce(.zero) { $0 + $1.wallTime }
        }

        var attributes: String {
            JUnitReport.attributes([
                ("tests", "\(tests)"), ("failures", "\(failures)"), ("errors", "\(errors)"), ("skipped", "0"),
                ("time", JUnitReport.seconds(time)),
            ])
        }
    }

    private static func testCase(_ summary: RunSummary) -> String {
        let run = summary.run
        var properties: [(key: String, value: String)] = [
            ("seed", "\(run.seed)"), ("world", run.world.rawValue), ("variant", run.variant ?? "none"),
            ("network", run.network), ("contract", run.contract ?? "none"), ("replay", run.replayText),
            ("duration_ns", "\(summary.duration.count)"), ("events", "\(summary.eventCount)"),
        ]
        if let digest = summary.digest { properties.append(("digest", digest)) }
        if let mutants = run.mutants { properties.append(("mutant", mutants)) }
        if !summary.impossible.isEmpty { properties.append(("not_possible", "\(summary.impossible.count)")) }
        var text = start(
            run.source, name: "\(run.fullName), \(run.world.rawValue)", summary.location,
            [("time", seconds(summary.wallTime)), ("assertions", "\(summary.checks.count)")])
        let content = (summary.errors + summary.screen).joined(separator: "\n")
        switch summary.result {
        case .pass: break
        case .fail: text += element("failure", type: "expectation", message: summary.cause, content)
        case .inconclusive: text += element("error", type: "inconclusive", message: summary.cause, content)
        case .error: text += element("error", type: "error", message: summary.cause, content)
        }
        text += "<properties>\n"
        for property in properties {
            text += "<property\(attributes([("name", property.key), ("value", property.value)]))/>\n"
        }
        text += "</properties>\n"
        // Many readers show the output and no properties.
        let output =
            ["seed", "network", "contract", "replay"].flatMap { name in
                properties.filter { $0.key == name }.map { "\($0.key): \($0.value)" }
            } + summary.impossibleLines
        text += "<system-out>\(escaped(output.joined(separator: "\n")))</system-out>\n"
        return text + "</testcase>\n"
    }

    private static func problem(
        _ source: String, name: String, _ kind: String, type: String, _ location: SourceLocation, message: String,
        content: String
    ) -> String {
        start(source, name: name, location, [("time", "0.000")])
            + element(kind, type: type, message: message, content) + "</testcase>\n"
    }

    private static func start(
        _ source: String, name: String, _ location: SourceLocation, _ more: [(key: String, value: String)]
    ) -> String {
        var values: [(key: String, value: String)] = [
            ("classname", className(source)), ("name", name), ("file", location.file),
        ]
        if let line = location.line { values.append(("line", "\(line)")) }
        return "<testcase\(attributes(values + more))>\n"
    }

    /// Returns the path with periods and without its extension: with the name, it identifies a case for all readers.
    static func className(_ source: String) -> String {
        var path = source[...]
        for ending in [".yaml", ".yml"] where path.hasSuffix(ending) { path = path.dropLast(ending.count) }
        let parts = path.split(separator: "/").filter { $0 != "." && $0 != ".." }
        return parts.map { part in part.map { $0 == "." ? "-" : String($0) }.joined() }.joined(separator: ".")
    }

    private static func element(_ kind: String, type: String, message: String, _ content: String) -> String {
        "<\(kind)\(attributes([("type", type), ("message", message)]))>\(escaped(content))</\(kind)>\n"
    }

    static func attributes(_ values: [(key: String, value: String)]) -> String {
        values.map { " \($0.key)=\"\(escaped($0.value))\"" }.joined()
    }

    /// Returns text for XML 1.0 without the characters that it forbids.
    static func escaped(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;".unicodeScalars
            case "<": result += "&lt;".unicodeScalars
            case ">": result += "&gt;".unicodeScalars
            case "\"": result += "&quot;".unicodeScalars
            case "\n", "\t", "\r", " "..."\u{D7FF}", "\u{E000}"..."\u{FFFD}", "\u{10000}"..."\u{10FFFF}":
                result.append(scalar)
            default: result.append("\u{FFFD}")
            }
        }
        return String(result)
    }

    static func seconds(_ duration: Duration) -> String {
        let milliseconds = Int64((duration / .milliseconds(1)).rounded())
        let decimals = String(milliseconds % 1000)
        return "\(milliseconds / 1000)." + String(repeating: "0", count: 3 - decimals.utf8.count) + decimals
    }
}
