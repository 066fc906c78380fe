import Determinism
import Scenario
import Testing
import Wire

@testable import ScenarioRunner

@Suite struct ReportTests {
    /// A run that passes, one that fails, one that is inconclusive, and one that could not take place.
    private static func report() throws -> RunReport {
        let texts = [
            "expect: { finally: { server: { count: 1 } } }",
            "expect: { finally: { server: { n1: { text: \"<four> & | # , 100 %\" } } } }",
            "expect: { sometimes: [{ A: { row: n1, icon: conflict } }] }",
        ]
        var summaries = try texts.enumerated().map {
            try Fixture.summary(Fixture.run(Fixture.short + $1, index: $0, source: "set/file\($0).yaml"))
        }
        let broken = FinishedRun(
            run: try Fixture.run(Fixture.passing, index: 3, source: "set/file3.yaml", world: .live),
            outcome: .unavailable("cannot bind\na port"), repetition: .none, wallTime: .zero)
        summaries.append(RunSummary(broken, showsText: false, isTraced: false))
        return RunReport(
            runs: summaries,
            rejections: [
                .init(
                    name: "set/bad.yaml", description: "set/bad.yaml:2:3: wrong key",
                    location: SourceLocation(file: "set/bad.yaml", line: 2, column: 3), message: "wrong key")
            ],
            differences: [.init(name: "short", source: "set/file0.yaml", lines: ["they differ", "in a check"])])
    }

    @Test func aResultIsOneJSONObject() throws {
        let report = try Self.report()
        for summary in report.runs { #expect(!JSONLinesReport.line(summary).contains("\n")) }
        let line = try #require(JSONText.parse(JSONLinesReport.line(report.runs[1]).utf8))
        #expect(line["type"].text == "result")
        #expect(line["result"].text == "fail")
        #expect(line["source"].text == "set/file1.yaml")
        #expect(line["seed"].text == "1")
        #expect(line["variant"].json == "null")
        let check = try #require(line["checks"].array.first)
        #expect(check["outcome"].text == "fail")
        #expect(check["check"].text == "finally: server n1 text '<four> & | # , 100 %'")
        #expect(check["reason"].text == "text is 'three'")
        #expect(check["line"].number == 8)
        #expect(line["replay"].array.map(\.displayText) == report.runs[1].run.replay)
        let end = try #require(JSONText.parse(JSONLinesReport.end(report).utf8))
        #expect(["passed", "failed", "inconclusive", "errors", "rejected"].map { end[$0].number } == [1, 1, 1, 1, 1])
        #expect(end["exit_status"].number == 1)
        let start = try #require(JSONText.parse(JSONLinesReport.start(planned: 4, program: "1.0").utf8))
        #expect(start["type"].text == "run" && start["version"].number == 1)
    }

    /// A check that could not be evaluated is not a passed one, in any report.
    @Test func checksThatWereNotPossibleAreListed() throws {
        let text =
            Fixture.short.replacing("A: { user: ada }", with: "A: { user: ada, client: { run: [app] } }")
            + "expect: { traffic: [{ request: GET any, count: 0 }], finally: { A: { row: n1, strike: false } } }"
        let run = try Fixture.run(text, world: .live)
        let row = History.DeviceState.Row(
            name: "n1", title: nil, text: "<a>", icon: .plain, isDeleted: false, kept: [])
        let history = Fixture.history([.step(0), .device("A", .init(rows: [row], outbox: 0)), .mark("edited")])
        let result = Fixture.result(history, scenario: run.scenario)
        let summary = RunSummary(
            FinishedRun(run: run, outcome: .result(result), repetition: .none, wallTime: .zero), showsText: false,
            isTraced: false)
        let reason = "not possible: the program of A has published no 'strike' (short.yaml:"
        let junit = JUnitReport.document(
            RunReport(runs: [summary], rejections: [], differences: []), timestamp: "2026-01-01T00:00:00Z")
        #expect(summary.hasPassed)
        #expect(junit.contains("<property name=\"not_possible\" value=\"1\"/>"), "\(junit)")
        #expect(junit.contains("\nfinally: A n1 strike false: \(reason)"), "\(junit)")
        #expect(
            junit.contains(
                "<system-out>seed: 1\nnetwork: A: 0s wifi\ncontract: compat\nreplay: slowlane run short.yaml "),
            "\(junit)")
        let tap = TAPReport.lines(summary, number: 1)
        #expect(tap.count == 5 && tap[0].hasPrefix("ok 1 - ") && tap[1] == "  ---" && tap[4] == "  ...", "\(tap)")
        #expect(tap[2] == "  not_possible:" && tap[3].contains("    - \"finally: A n1 strike"))
        #expect(summary.line.hasSuffix(", 1 check not possible"))
    }

    @Test func inconclusiveIsAnErrorInJUnit() throws {
        let text = JUnitReport.document(try Self.report(), timestamp: "2026-01-01T00:00:00Z")
        #expect(
            text.contains(
                "<testsuites name=\"slowlane\" tests=\"6\" failures=\"2\" errors=\"3\" skipped=\"0\" time=\"0.036\">"))
        #expect(text.contains("<error type=\"inconclusive\" message=\"sometimes: A n1 icon conflict: "))
        #expect(text.contains("<error type=\"invalid-file\" message=\"wrong key\">"))
        #expect(text.contains("classname=\"set.file1\" name=\"short, simulated\" file=\"set/file1.yaml\" line=\"8\""))
        #expect(text.contains("&lt;four&gt; &amp; |"))
    }

    @Test func charactersThatXMLForbidsAreReplaced() {
        #expect(JUnitReport.escaped("a\u{0}\u{1B}[1m\u{FFFE}\t\"") == "a\u{FFFD}\u{FFFD}[1m\u{FFFD}\t&quot;")
    }

    @Test(arguments: [
        ("scenarios/set.1/a.yaml", "scenarios.set-1.a"), ("./a.yml", "a"), ("built-in", "built-in"), ("/x/../a", "x.a"),
    ])
    func theClassNameOfAFileIsItsPath(_ path: String, name: String) {
        #expect(JUnitReport.className(path) == name)
    }

    @Test func aTestPointOfTAPHasItsReason() throws {
        let report = try Self.report()
        #expect(TAPReport.lines(report.runs[0], number: 1) == ["ok 1 - short, seed 1, simulated (set/file0.yaml)"])
        let lines = TAPReport.lines(report.runs[1], number: 2)
        #expect(lines[0] == "not ok 2 - short, seed 1, simulated (set/file1.yaml)")
        #expect(lines[1] == "  ---" && lines.last == "  ...")
        #expect(lines.contains("  at: \"set/file1.yaml:8:32\""), "\(lines)")
        #expect(TAPReport.escaped("a # SKIP \\ b\nc") == "a \\# SKIP \\\\ b c")
    }

    @Test func anAnnotationNamesItsLine() throws {
        let lines = GitHubReport.annotations(try Self.report())
        #expect(lines.count == 5)
        #expect(lines[0] == "::error file=set/bad.yaml,line=2,col=3,title=invalid scenario file::wrong key")
        #expect(lines[1].hasPrefix("::error file=set/file1.yaml,line=8,col=32,title=short%3A fail::finally: server n1"))
        #expect(lines[1].contains("100 %25'") && lines[1].contains("%0Areplay: slowlane run set/file1.yaml"))
        #expect(lines.last?.hasPrefix("::warning file=set/file2.yaml,") == true)
    }

    @Test func thereAreTenAnnotationsAtMost() throws {
        let failed = try Self.report().runs[1]
        for count in [9, 10, 11, 500] {
            let lines = GitHubReport.annotations(RunReport(runs: Array(repeating: failed, count: count)))
            #expect(lines.count == min(count, 10))
            #expect(lines.last?.contains("and \(count - 9) more") == (count > 10))
        }
        #expect(GitHubReport.summary(RunReport(runs: Array(repeating: failed, count: 5000))).utf8.count < 1 << 20)
    }

    @Test func theSummaryIsATable() throws {
        let text = GitHubReport.summary(try Self.report())
        #expect(text.contains("1 of 4 runs passed, 5 problems"))
        #expect(text.contains("\\<four> & \\| # , 100 %"))
        let rows = text.split(separator: "\n").filter { $0.hasPrefix("|") }
        #expect(rows.count == 7)
    }

    @Test func theVerdictsOfBothWorldsAreCompared() throws {
        let passed = try Fixture.summary(Fixture.run(Fixture.passing))
        let failed = try Fixture.summary(Fixture.run(Fixture.short + "expect: { finally: { server: { count: 2 } } }"))
        #expect(WorldComparison.differences("short", simulated: passed, live: passed).isEmpty)
        let lines = WorldComparison.differences("short", simulated: passed, live: failed)
        #expect(lines[0] == "short: the verdicts differ: simulated pass, live fail")
        #expect(lines[1].hasPrefix("  simulated pass, live without it: finally: server has 1 note (short.yaml:8:"))
        #expect(lines[2].hasPrefix("  simulated without it, live fail: finally: server has 2 notes (short.yaml:8:"))
    }
}
