internal import CommandSupport
internal import Scenario
internal import Wire

/// The output of a self-test as text and as JSON lines.
struct MutationTestReport {
    private let runCount: Int
    private let scenarioCount: Int
    private let mutantCount: Int
    private let nameWidth: Int
    /// The unmutated runs that do not pass, and the time of all.
    var unmutated: (failures: [RunSummary], duration: Duration) = ([], .zero)
    var duration = Duration.zero
    private var proven = 0
    private var runsWithMutants = 0
    private var isFirst = true

    init(runs: [PlannedRun], mutants: [RunMutant]) {
        runCount = runs.count
        scenarioCount = Set(runs.map(\.scenario.name)).count
        mutantCount = mutants.count
        nameWidth = mutants.map(\.name.count).max() ?? 0
    }

    mutating func add(_ proof: MutantProof) {
        proven += proof.isProven ? 1 : 0
        runsWithMutants += proof.runCount
    }

    /// 0 if every unmutated run passes and every mutant is detected.
    var exitStatus: Int32 {
        unmutated.failures.isEmpty && proven == mutantCount ? RunStatus.passed : RunStatus.failed
    }

    // MARK: Text

    private static func seconds(_ duration: Duration) -> String {
        let tenths = Int((duration / .milliseconds(100)).rounded())
        return "\(tenths / 10).\(tenths % 10) s"
    }

    private static func side(_ mutant: RunMutant) -> String { mutant.part == .server ? "server" : "client" }

    /// A mutant of the list.
    static func lines(_ mutant: RunMutant) -> [String] {
        return [
            "\(mutant.name) (\(side(mutant)))", "    \(mutant.defect)", "    origin: \(mutant.origin)",
            "    detected by: \(TextTable.singleLine(mutant.detector.description))",
        ]
    }

    var unmutatedLines: [String] {
        let failed = unmutated.failures.count
        let result = failed == 0 ? "all pass" : "\(failed) do not pass"
        var lines = [
            "\(TextTable.count(runCount, "run")) of \(TextTable.count(scenarioCount, "scenario")) without mutants: "
                + "\(result), \(Self.seconds(unmutated.duration))"
        ]
        for summary in unmutated.failures { lines += summary.screen + summary.errors }
        return lines
    }

    private func row(_ name: String, _ count: String, _ text: String) -> String {
        let name = name + String(repeating: " ", count: max(0, nameWidth - name.count))
        let count = count + String(repeating: " ", count: max(0, 9 - count.count))
        return "\(name)  \(count)  \(text)"
    }

    /// The row of a mutant, with the head of the table before the first one.
    mutating func lines(_ proof: MutantProof) -> [String] {
        var lines = isFirst ? [row("mutant", "scenarios", "detected by")] : []
        isFirst = false
        let name = proof.mutant.name
        var text = "not detected"
        if let detection = proof.mainDetection {
            text = "\(TextTable.singleLine(detection.title)), \(detection.location)"
        }
        lines.append(row(name, "\(proof.scenarioCount)", text))
        if !proof.isProven {
            lines.append("  NOT PROVEN: \(proof.problem) (\(TextTable.count(proof.runCount, "run")))")
        }
        lines += proof.failures.prefix(3).map { "  not run: \($0)" }
        return lines
    }

    var endLines: [String] {
        let mutants = TextTable.count(mutantCount, "mutant")
        let result = proven == mutantCount ? "\(mutants) detected" : "\(proven) of \(mutants) detected"
        return ["\(result) in \(TextTable.count(runsWithMutants, "run")), \(Self.seconds(duration))"]
    }

    // MARK: JSON

    private static func milliseconds(_ duration: Duration) -> String {
        "\(Int64((duration / .milliseconds(1)).rounded()))"
    }

    func start(program: String) -> String {
        JSONText.object([
            ("type", JSONText.string("mutation_test")), ("version", "\(JSONLinesReport.version)"),
            ("slowlane", JSONText.string(program)), ("scenarios", "\(scenarioCount)"), ("runs", "\(runCount)"),
            ("mutants", "\(mutantCount)"),
        ])
    }

    var unmutatedJSON: String {
        let failures = unmutated.failures.map { JSONText.string($0.line) }
        return JSONText.object([
            ("type", JSONText.string("unmutated")), ("runs", "\(runCount)"),
            ("failures", JSONText.array(failures)), ("wall_ms", Self.milliseconds(unmutated.duration)),
        ])
    }

    private static func members(_ mutant: RunMutant) -> [(key: String, value: String)] {
        return [
            ("type", JSONText.string("mutant")), ("version", "\(JSONLinesReport.version)"),
            ("mutant", JSONText.string(mutant.name)), ("side", JSONText.string(side(mutant))),
            ("defect", JSONText.string(mutant.defect)), ("origin", JSONText.string(mutant.origin)),
            ("detector", JSONText.string(mutant.detector.description)),
        ]
    }

    static func json(_ mutant: RunMutant) -> String { JSONText.object(members(mutant)) }

    static func json(_ proof: MutantProof) -> String {
        var all = members(proof.mutant)
        all.append(("proven", proof.isProven ? "true" : "false"))
        all.append(("problem", JSONText.string(proof.isProven ? nil : proof.problem)))
        all.append(("scenarios", "\(proof.scenarioCount)"))
        all.append(("runs", "\(proof.runCount)"))
        all.append(("detections", JSONText.array(proof.detections.map(json))))
        all.append(("errors", JSONText.array(proof.failures.map { JSONText.string($0) })))
        all.append(("wall_ms", milliseconds(proof.duration)))
        return JSONText.object(all)
    }

    private static func json(_ detection: MutantProof.Detection) -> String {
        let location = detection.location
        return JSONText.object([
            ("run", JSONText.string(detection.run)), ("check", JSONText.string(detection.check)),
            ("expected", detection.isExpected ? "true" : "false"), ("file", JSONText.string(location.file)),
            ("line", location.line.map { "\($0)" } ?? "null"),
            ("column", location.column.map { "\($0)" } ?? "null"),
        ])
    }

    var end: String {
        JSONText.object([
            ("type", JSONText.string("mutation_test_end")), ("proven", "\(proven)"), ("mutants", "\(mutantCount)"),
            ("unmutated_failures", "\(unmutated.failures.count)"), ("runs", "\(runsWithMutants)"),
            ("wall_ms", Self.milliseconds(duration)), ("exit_status", "\(exitStatus)"),
        ])
    }
}
