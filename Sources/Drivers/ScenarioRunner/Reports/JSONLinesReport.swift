internal import Determinism
internal import Scenario
internal import Wire

/// Results as JSON lines; docs/reference/reports.md describes the lines, ``OutputSchema`` is their schema.
public enum JSONLinesReport {
    /// The version of the schema. Keys may be added without a new version.
    public static let version = 1

    /// Returns the first line.
    ///
    /// - Parameter part: The part of the batch that is run; `nil` for all.
    public static func start(planned: Int, program: String, part: BatchPart? = nil) -> String {
        let shard = part.map { part in
            JSONText.object([
                ("index", "\(part.shard.index)"), ("count", "\(part.shard.count)"),
                ("batch", JSONText.string(part.batchText)), ("runs", "\(part.runCount)"),
                (
                    "seeds",
                    JSONText.array([part.seeds.lowerBound, part.seeds.upperBound].map { JSONText.string("\($0)") })
                ),
                (
                    "files",
                    JSONText.array(
                        part.files.map { file in
                            JSONText.object([
                                ("source", JSONText.string(file.source)), ("digest", JSONText.string(file.digestText)),
                            ])
                        })
                ),
            ])
        }
        return JSONText.object([
            ("type", JSONText.string("run")), ("version", "\(version)"), ("slowlane", JSONText.string(program)),
            ("planned", "\(planned)"), ("shard", shard ?? "null"),
        ])
    }

    /// The last line of a batch that was interrupted.
    public static let interruption = JSONText.object([("type", JSONText.string("interrupted"))])

    /// Returns the line of a rejected file.
    public static func line(_ rejection: ScenarioSelection.Rejection) -> String {
        JSONText.object(
            [("type", JSONText.string("rejected"))] + members(rejection.location)
                + [
                    ("message", JSONText.string(rejection.message)),
                    ("description", JSONText.string(rejection.description)),
                ])
    }

    /// Returns the line of a run.
    public static func line(_ summary: RunSummary) -> String {
        let run = summary.run
        return JSONText.object([
            ("type", JSONText.string("result")), ("scenario", JSONText.string(run.scenario)),
            ("variant", JSONText.string(run.variant)), ("name", JSONText.string(run.fullName)),
            ("source", JSONText.string(run.source)),
            ("world", JSONText.string(run.world.rawValue)), ("seed", JSONText.string("\(run.seed)")),
            ("mutant", JSONText.string(run.mutants)), ("network", JSONText.string(run.network)),
            ("contract", JSONText.string(run.contract)), ("result", JSONText.string(summary.result.rawValue)),
            ("digest", JSONText.string(summary.digest)), ("events", "\(summary.eventCount)"),
            ("duration_ns", "\(summary.duration.count)"),
            ("wall_ms", "\(Int64((summary.wallTime / .milliseconds(1)).rounded()))"),
            ("reproducible", summary.isReproducible.map { $0 ? "true" : "false" } ?? "null"),
            ("checks", JSONText.array(summary.checks.map(check))),
            ("not_possible", JSONText.array(summary.impossible.map(impossible))),
            ("errors", JSONText.array(summary.errors.map { JSONText.string($0) })),
            ("screen", JSONText.array(summary.screen.map { JSONText.string($0) })),
            ("replay", JSONText.array(run.replay.map { JSONText.string($0) })),
            ("canary", run.isCanary ? "true" : "false"), ("exit_status", "\(summary.exitStatus)"),
        ])
    }

    /// Returns the line of a scenario whose verdicts differ between the worlds.
    public static func line(_ difference: RunReport.Difference) -> String {
        JSONText.object([
            ("type", JSONText.string("difference")), ("scenario", JSONText.string(difference.name)),
            ("source", JSONText.string(difference.source)),
            ("lines", JSONText.array(difference.lines.map { JSONText.string($0) })),
        ])
    }

    /// Returns the last line.
    public static func end(_ report: RunReport) -> String {
        JSONText.object([
            ("type", JSONText.string("end")), ("passed", "\(report.count(.pass))"),
            ("failed", "\(report.count(.fail))"), ("inconclusive", "\(report.count(.inconclusive))"),
            ("errors", "\(report.count(.error))"), ("rejected", "\(report.rejections.count)"),
            ("differences", "\(report.differences.count)"), ("exit_status", "\(report.exitStatus)"),
        ])
    }

    private static func impossible(_ check: ImpossibleCheck) -> String {
        JSONText.object(
            [
                ("check", JSONText.string(check.description)), ("reason", JSONText.string(check.reason)),
            ] + members(check.location))
    }

    private static func check(_ check: RunSummary.Check) -> String {
        JSONText.object(
            [
                ("check", JSONText.string(check.description)), ("outcome", JSONText.string(check.outcome.rawValue)),
                ("reason", JSONText.string(check.reason.isEmpty ? nil : check.reason)),
                ("advice", JSONText.string(check.advice.isEmpty ? nil : check.advice)),
                ("time_ns", check.time.map { "\($0.count)" } ?? "null"),
            ] + members(check.location))
    }

    private static func members(_ location: SourceLocation) -> [(key: String, value: String)] {
        [
            ("file", JSONText.string(location.file)), ("line", location.line.map { "\($0)" } ?? "null"),
            ("column", location.column.map { "\($0)" } ?? "null"),
        ]
    }
}
