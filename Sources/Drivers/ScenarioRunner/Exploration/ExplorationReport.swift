internal import CommandSupport
internal import Determinism
internal import Scenario
internal import Wire

/// The output of an exploration as text and as JSON lines.
struct ExplorationReport {
    /// The version of the JSON schema. Keys may be added without a new version.
    static let version = 1

    /// The scenario's name with its variant.
    let fullName: String
    let name: String
    let variant: String?
    let source: String
    /// The parts that are drawn.
    let parts: [String]
    /// The states that the scenario asks for (`sometimes`).
    let wanted: [String]
    /// The faults that can be applied to changes.
    let possibleFaults: [CoverageCell]
    /// The first seed.
    let first: UInt64
    /// The number of seeds; `nil` if a time ends the exploration.
    let count: UInt64?
    /// Whether the seeds are those of a commit.
    let isFromCommit: Bool
    let mutants: [String]

    var range: String { count.map { "seeds \(first)..<\(first &+ $0)" } ?? "seeds from \(first)" }

    // MARK: Text

    /// The line before the first result.
    var startLine: String {
        "\(fullName): \(range)\(isFromCommit ? " (commit)" : ""), drawn: "
            + parts.joined(separator: ", ")
            + (mutants.isEmpty ? "" : ", mutants: \(mutants.joined(separator: ", "))")
    }

    /// Returns the lines of a seed that could not be run, or whose repetition has differed.
    static func problemLines(_ seed: ExploredSeed) -> [String] {
        if let error = seed.error { return ["seed \(seed.seed): \(error)"] }
        guard case .different(let lines) = seed.repetition else { return [] }
        return ["seed \(seed.seed): not deterministic: \(lines.first ?? "")"] + lines.dropFirst()
    }

    /// Returns the lines at the end.
    func endLines(_ tally: ExplorationTally, duration: Duration?) -> [String] {
        var lines: [String] = []
        if !tally.classes.isEmpty {
            var rows = [["failed check", "subject", "seeds", "first seeds"]]
            for entry in tally.classes.sorted(by: { $0.count > $1.count }) {
                let seeds = entry.seeds.prefix(5).map { "\($0)" }.joined(separator: " ")
                rows.append([
                    TextTable.singleLine(entry.group.check), entry.group.subject.rawValue,
                    "\(entry.count)", seeds + (entry.count > 5 ? " ..." : ""),
                ])
            }
            lines += TextTable.lines(rows, width: Terminal.tableWidth)
        }
        for state in tally.unreached(wanted) { lines.append("never reached: \(TextTable.singleLine(state))") }
        let passed = tally.seeds - tally.failed - tally.errors
        var text = "\(TextTable.count(tally.seeds, "seed")): \(passed) pass, \(tally.failed) fail"
        if tally.errors > 0 { text += ", \(tally.errors) not run" }
        text += "; \(tally.repeated) repeated with equal digests"
        if tally.different > 0 { text += ", \(tally.different) NOT DETERMINISTIC" }
        text += "; \(tally.cells.count) states reached"
        if let duration {
            let rate = ReportPace.rate(tally.seeds, in: duration).map { ReportPace.decimal($0) } ?? "0"
            text += "; \(ReportPace.decimal(duration / .seconds(1))) s, \(rate) seeds/s"
        }
        return lines + [text]
    }

    /// Returns the table of what was reached, in lines.
    func coverageLines(_ tally: ExplorationTally) -> [String] {
        var lines: [String] = []
        for table in CoverageCell.Table.allCases {
            let cells = tally.cells.filter { $0.key.table == table }
            var rows = [[table.rawValue, "seeds"]]
            for (text, count) in cells.map({ ("\($0.key)", $0.value) }).sorted(by: { ($1.1, $0.0) < ($0.1, $1.0) }) {
                rows.append([text, "\(count)"])
            }
            lines += TextTable.lines(rows, width: Terminal.tableWidth) + [""]
        }
        let missing = missingFaults(tally)
        if !missing.isEmpty {
            lines.append("faults of changes that were not applied: \(missing.count) of \(possibleFaults.count)")
            lines += missing.map { "  \($0)" } + [""]
        }
        return lines
    }

    /// Returns the faults that the exploration can apply to changes, and has not.
    private func missingFaults(_ tally: ExplorationTally) -> [String] {
        possibleFaults.filter { tally.cells[$0] == nil }.map(\.description).sorted()
    }

    // MARK: JSON

    var startJSON: String {
        JSONText.object([
            ("type", JSONText.string("exploration")), ("version", "\(Self.version)"),
            ("slowlane", JSONText.string(SlowlaneVersion.current)), ("source", JSONText.string(source)),
            ("scenario", JSONText.string(name)), ("variant", JSONText.string(variant)),
            ("first", JSONText.string("\(first)")), ("count", count.map { "\($0)" } ?? "null"),
            ("commit", isFromCommit ? "true" : "false"), ("mutants", Self.strings(mutants)),
        ])
    }

    static func strings(_ texts: [String]) -> String { JSONText.array(texts.map { JSONText.string($0) }) }

    /// Returns the line of a failed check of a seed.
    static func json(_ failure: SeedFailure, _ seed: ExploredSeed) -> String {
        JSONText.object([
            ("type", JSONText.string("failure")), ("seed", JSONText.string("\(seed.seed)")),
            ("check", JSONText.string(failure.group.check)),
            ("subject", JSONText.string(failure.group.subject.rawValue)), ("actors", strings(failure.actors)),
            ("notes", strings(failure.rows)), ("reason", JSONText.string(failure.reason)),
            ("configuration", strings(seed.configuration)),
            ("replay", strings(ReplayCommand.arguments(failure.run))),
        ])
    }

    /// Returns the line of a seed that could not be run, or whose repetition has differed.
    static func problemJSON(_ seed: ExploredSeed) -> String {
        JSONText.object([
            ("type", JSONText.string("seed_error")), ("seed", JSONText.string("\(seed.seed)")),
            ("lines", strings(problemLines(seed))),
        ])
    }

    /// Returns the line of the cells that were reached.
    func coverageJSON(_ tally: ExplorationTally) -> String {
        let cells = tally.cells.map { (table: $0.key.table.rawValue, text: "\($0.key)", seeds: $0.value) }
        return JSONText.object([
            ("type", JSONText.string("coverage")),
            (
                "cells",
                JSONText.array(
                    cells.sorted { ($0.table, $0.text) < ($1.table, $1.text) }.map { cell in
                        JSONText.object([
                            ("table", JSONText.string(cell.table)), ("cell", JSONText.string(cell.text)),
                            ("seeds", "\(cell.seeds)"),
                        ])
                    })
            ), ("faults_not_applied", Self.strings(missingFaults(tally))),
        ])
    }

    /// Returns the last line.
    func endJSON(_ tally: ExplorationTally, duration: Duration?, status: Int32) -> String {
        let classes = tally.classes.map { entry in
            JSONText.object([
                ("check", JSONText.string(entry.group.check)),
                ("subject", JSONText.string(entry.group.subject.rawValue)), ("count", "\(entry.count)"),
                ("seeds", Self.strings(entry.seeds.map { "\($0)" })),
            ])
        }
        return JSONText.object([
            ("type", JSONText.string("exploration_end")), ("seeds", "\(tally.seeds)"), ("failed", "\(tally.failed)"),
            ("not_run", "\(tally.errors)"), ("repeated", "\(tally.repeated)"),
            ("not_deterministic", "\(tally.different)"), ("states", "\(tally.cells.count)"),
            ("events", "\(tally.events)"),
            ("wall_ms", duration.map { "\(Int64(($0 / .milliseconds(1)).rounded()))" } ?? "null"),
            ("classes", JSONText.array(classes)), ("never_reached", Self.strings(tally.unreached(wanted))),
            ("exit_status", "\(status)"),
        ])
    }
}
