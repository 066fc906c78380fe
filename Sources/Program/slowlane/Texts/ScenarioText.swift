internal import CommandSupport
internal import ConfigFiles
internal import Foundation
internal import Scenario
internal import Wire

/// The texts of the commands for scenario files.
enum ScenarioText {
    // MARK: Problems

    /// Returns a problem with its source line and a caret below its column.
    ///
    /// - Parameter source: The lines of the file.
    static func lines(_ problem: Problem, source: [Substring]) -> [String] {
        let location = problem.location
        var lines = ["\(location): \(problem.severity.rawValue): \(TextTable.singleLine(problem.message))"]
        guard let line = location.line, let column = location.column, (1...max(1, source.count)).contains(line),
            !source.isEmpty
        else { return lines }
        let widthMax = 160
        let text = source[line - 1].prefix(widthMax)
        if text.allSatisfy(\.isWhitespace) || column > widthMax { return lines }
        lines.append("    " + TextTable.singleLine(String(text)))
        lines.append("    " + String(repeating: " ", count: max(0, column - 1)) + "^")
        return lines
    }

    /// Returns the number of errors and warnings, such as `3 files: 1 error, 2 warnings`.
    static func summary(files: Int, errors: Int, warnings: Int) -> String {
        let found = [
            errors > 0 ? TextTable.count(errors, "error") : nil,
            warnings > 0 ? TextTable.count(warnings, "warning") : nil,
        ].compactMap { $0 }
        return "\(TextTable.count(files, "file")): \(found.isEmpty ? "ok" : found.joined(separator: ", "))"
    }

    // MARK: Lists

    /// Returns a table of scenarios.
    static func lines(_ scenarios: [ScenarioFile], sources: [String], width: Int? = nil) -> [String] {
        let rows = zip(scenarios, sources).map { file, source in
            [
                source, TextTable.count(file.allRuns.count, "run"),
                file.scenario.tags.isEmpty ? "-" : file.scenario.tags.joined(separator: ","), sentence(file),
            ]
        }
        return TextTable.lines([["SCENARIO", "RUNS", "TAGS", "ABOUT"]] + rows, width: width)
    }

    /// Returns the first sentence of a description, shortened.
    private static func sentence(_ file: ScenarioFile) -> String {
        let text = TextTable.singleLine(
            file.scenario.about.split(whereSeparator: \.isWhitespace).joined(separator: " "))
        let end = text.range(of: ". ")?.lowerBound ?? text.endIndex
        let sentence = text[..<end]
        let lengthMax = 80
        return sentence.count > lengthMax ? sentence.prefix(lengthMax) + "…" : String(sentence)
    }

    /// Returns a scenario as a JSON object.
    static func json(_ file: ScenarioFile, source: String) -> String {
        let scenario = file.scenario
        let variants = file.variants.compactMap(\.variant).map { JSONText.string($0) }
        return JSONText.object([
            ("scenario", JSONText.string(source)), ("name", JSONText.string(scenario.name)),
            ("about", JSONText.string(scenario.about.split(whereSeparator: \.isWhitespace).joined(separator: " "))),
            ("tags", "[\(scenario.tags.map { JSONText.string($0) }.joined(separator: ","))]"),
            ("variants", "[\(variants.joined(separator: ","))]"), ("runs", "\(file.allRuns.count)"),
        ])
    }

    // MARK: Explanations

    /// Returns the explanation of a key or of an invariant; `nil` if none has that name.
    static func explanation(of name: String, width: Int? = nil) -> [String]? {
        let invariant = Scenario.Invariant(named: name)
        let lines = keyExplanation(of: name, width: width)
        guard let invariant else { return lines }
        return (lines.map { $0 + [""] } ?? []) + invariantLines(invariant)
    }

    /// Returns the explanation of an invariant.
    private static func invariantLines(_ invariant: Scenario.Invariant) -> [String] {
        let isStandard = Scenario.Invariants.standardMembers.contains(invariant)
        var lines = [
            "\(invariant.number) \(invariant.rawValue)\(isStandard ? "" : " (not standard: 'invariants: { add }')")"
        ]
        let rule = invariant.rule
        lines += indented(TextTable.wrapped(rule.rule, width: 76)) + ["", "  violated if:"]
        for violation in violations(rule) {
            let wrapped = TextTable.wrapped(violation, width: 72).split(separator: "\n")
            lines += wrapped.enumerated().map { ($0 == 0 ? "  - " : "    ") + $1 }
        }
        for part in ["runs: " + rule.worlds, "cannot see: " + rule.blindSpots, "source: " + rule.source] {
            lines += [""] + indented(TextTable.wrapped(part, width: 76))
        }
        return lines
    }

    /// Returns the alternatives of a rule's violations.
    private static func violations(_ rule: InvariantRule) -> [String] {
        rule.violations.components(separatedBy: "; or ")
    }

    private static func keyExplanation(of name: String, width: Int?) -> [String]? {
        let entries = ScenarioFormat.entries(named: name)
        if entries.isEmpty { return nil }
        var lines: [String] = []
        // Keys of several mappings with one meaning are explained together.
        var groups: [(paths: [String], key: ScenarioFormat.Key)] = []
        for entry in entries {
            if let index = groups.firstIndex(where: { $0.key.about == entry.key.about }) {
                groups[index].paths.append(entry.path)
            } else {
                groups.append(([entry.path], entry.key))
            }
        }
        for (paths, key) in groups {
            if !lines.isEmpty { lines.append("") }
            lines.append(paths.joined(separator: ", "))
            lines += indented(TextTable.wrapped(plain(key.about), width: 76))
            lines.append("")
            lines += indented(TextTable.wrapped("value: \(ScenarioFormat.text(of: key.shape))", width: 76))
            lines.append("  \(key.isRequired ? "required" : "default: \(plain(key.defaultText ?? "none"))")")
            guard let object = ScenarioFormat.object(in: key.shape) else { continue }
            lines.append("")
            lines += keys(of: object, width: width.map { $0 - 2 }).map { "  " + $0 }
        }
        return lines
    }

    /// Returns the keys of the whole file.
    static func overview(width: Int? = nil) -> [String] {
        keys(of: ScenarioFormat.object("scenario"), width: width)
            + [
                "",
                "'slowlane explain KEY' explains a key, such as 'faults', 'point' or",
                "'traffic.count', or an invariant, such as I9.",
            ]
    }

    private static func keys(of object: ScenarioFormat.Object, width: Int?) -> [String] {
        let rows = object.keys.map { key in [key.name, key.isRequired ? "required" : "", firstSentence(key.about)] }
        return TextTable.lines(rows, width: width, wrapsLastColumn: true)
    }

    private static func firstSentence(_ text: String) -> String {
        let text = plain(text)
        let end = text.range(of: ". ")?.lowerBound ?? text.endIndex
        return String(text[..<end])
    }

    private static func indented(_ text: String) -> [String] {
        text.split(separator: "\n", omittingEmptySubsequences: false).map { "  \($0)" }
    }

    /// Returns a text of the table without the marks of code and the targets of links.
    private static func plain(_ text: String) -> String {
        text.replacing("`", with: "'").replacing(/\[([^\]]+)\]\([^)]+\)/) { $0.1 }
    }

    // MARK: Documentation

    /// Returns the tables of the documentation in Markdown: a table for each mapping of the format.
    static func markdown() -> [String] {
        var lines: [String] = []
        for object in ScenarioFormat.objects where object.name != "variant" && !object.name.hasPrefix("not-") {
            let path = ScenarioFormat.path(of: object)
            lines += ["", "### \(path.isEmpty ? "The file" : "`\(path)`")", ""]
            lines += ["| key | value | default | meaning |", "|---|---|---|---|"]
            for key in object.keys {
                let fallback = key.isRequired ? "required" : key.defaultText ?? "-"
                let cells = [
                    "`\(key.name)`", ScenarioFormat.text(of: key.shape), fallback, key.about,
                ].map { $0.replacing("|", with: "\\|") }
                lines.append("| \(cells.joined(separator: " | ")) |")
            }
        }
        return Array(lines.dropFirst())
    }

    /// Returns the documentation of the invariants in Markdown.
    static func invariantsMarkdown() -> [String] {
        var lines = ["| invariant | standard | rule |", "|---|---|---|"]
        for invariant in Scenario.Invariant.allCases {
            let isStandard = Scenario.Invariants.standardMembers.contains(invariant)
            lines.append(
                "| [\(invariant.number)](#\(invariant.number.lowercased())-\(invariant.rawValue)) `\(invariant.rawValue)` | "
                    + "\(isStandard ? "yes" : "no") | \(invariant.rule.rule) |")
        }
        for invariant in Scenario.Invariant.allCases {
            let rule = invariant.rule
            lines += [
                "", "### \(invariant.number) \(invariant.rawValue)", "", rule.rule, "",
                "Violated if:", "",
            ]
            lines += violations(rule).map { "- \($0)" }
            lines += [
                "", "Runs: \(rule.worlds)", "", "Cannot see: \(rule.blindSpots)", "", "Source: \(rule.source)",
            ]
        }
        return lines
    }

    // MARK: Skeleton

    /// Returns a new scenario file with comments.
    static func skeleton(name: String) -> String {
        """
        # A scenario for 'slowlane run'. 'slowlane explain' lists all keys, 'slowlane lint' checks the file.
        scenario: 1
        name: \(name)
        about: >
          Ada edits a note during an outage. The edit is visible at once, is sent once after the outage, and ends on the server.
        tags: [example]
        seed: 1  # the same seed gives the same run
        limit: 2m  # simulated time; a longer run fails

        server:
          notes:  # notes on the server at the start
            n1: { title: Milk, text: "2 l" }

        devices:  # clients, each behind its own link
          A: { user: ada }
        # writers:                   # clients without a link, such as a browser
        #   W: { user: ada }
        network:  # 'slowlane profiles' lists all links
          A:
            0s: wifi
            3s: { link: 100-loss, signalled: false }  # an outage that the phone does not notice
            20s: 3g

        # faults:                    # effects on single exchanges, such as a lost response
        #   - { request: PUT n1, point: before-response, then: reset }
        steps:
          - { at: 5s, A: { edit: n1, text: "3 l" }, mark: edited }

        expect:
          traffic:
            - { request: any, from: A, seen: proxy, between: [3s, 20s], count: { max: budget } }
          always:
            - A: { row: n1, text: "3 l", since: edited }
          sometimes:
            - A: { row: n1, icon: upload }
          eventually:
            - { after: edited, within: 55s, A: { row: n1, icon: none, outbox: 0 } }
          finally:
            server: { n1: { revision: 2, text: "3 l" } }
            agree: [A, server]

        """
    }
}
