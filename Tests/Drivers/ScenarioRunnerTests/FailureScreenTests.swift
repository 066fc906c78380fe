import ConfigFiles
import Determinism
import MutantGallery
import Scenario
import TestSupport
import Testing

@testable import ScenarioRunner

@Suite struct FailureScreenTests {
    private static func screen(_ text: String, mutant: String? = nil, showsText: Bool = false) throws -> [String] {
        try Fixture.summary(Fixture.run(text, mutant: mutant), showsText: showsText).screen
    }

    @Test func theFirstLineHasScenarioSeedWorldTimeAndCheck() throws {
        let lines = try Self.screen(Fixture.short + "expect: { eventually: [{ A: { outbox: 4 }, by: 150ms }] }")
        #expect(lines[0] == "FAIL  short, seed 1, simulated, at 0.150 s: eventually: A outbox 4, by 0.2 s")
        #expect(lines[1] == "      at 0.2 s outbox is '0'")
        #expect(lines[2] == "      in short.yaml:8:24")
        #expect(lines.contains("  replay: slowlane run short.yaml --variant none --seed 1"))
    }

    /// Runs that detect every sixth mutant; with more seeds, every third.
    @Test func aScreenHas24LinesOf100ColumnsAtMost() throws {
        var count = 0
        let scenarios = try ScenarioCatalogue.names.flatMap { try ScenarioCatalogue.scenario($0).runs(ofVariant: nil) }
        let step = TestSettings.isSoak ? 3 : 6
        for (index, mutant) in MutantGallery.mutants.enumerated() where index.isMultiple(of: step) {
            let scenario = try #require(scenarios.first { $0.fullName == mutant.runs.first })
            for seed in randomSeeds(1) {
                let run = PlannedRun(
                    index: 0, source: scenario.name, scenario: scenario, world: .simulated, seed: seed + 1,
                    mutants: [mutant])
                let summary = try Fixture.summary(run)
                #expect(summary.screen.isEmpty == summary.hasPassed)
                #expect(summary.screen.count <= 24)
                #expect(summary.screen.allSatisfy { $0.count <= 100 }, "\(summary.screen)")
                count += summary.screen.isEmpty ? 0 : 1
            }
        }
        #expect(count >= 10)
    }

    @Test func longTextsAndPathsStayOnOneScreen() throws {
        let long = String(repeating: "abc ", count: 200)
        let expect = (0..<40).map { "{ A: { row: n1, text: \"\(long)\($0)\" }, by: 1s }" }.joined(separator: ", ")
        let run = try Fixture.run(
            Fixture.short + "expect: { eventually: [\(expect)] }",
            source: String(repeating: "folder/", count: 12) + "short.yaml")
        let screen = try Fixture.summary(run).screen
        #expect(screen.count == 24 || screen.count < 24)
        #expect(screen.filter { $0.count > 100 && !$0.contains("folder/") }.isEmpty, "\(screen)")
        #expect(screen.contains { $0.hasSuffix("and 37 more") })
    }

    @Test func textsOfSeveralLinesHaveOneLine() throws {
        let texts = #"{ A: { row: n1, text: "a\nb\e[31m" }, by: 1s }, { A: { row: n1, text: "a\r\nc" }, by: 1s }"#
        let summary = try Fixture.summary(Fixture.run(Fixture.short + "expect: { eventually: [\(texts)] }"))
        #expect(summary.screen[0].hasSuffix(": eventually: A n1 text 'a b [31m', by 1.0 s"))
        #expect(summary.screen.contains("      also fail: eventually: A n1 text 'a  c', by 1.0 s"), "\(summary.screen)")
        let all = summary.screen + summary.checkLines + TAPReport.lines(summary, number: 1)
        #expect(!all.contains { $0.utf8.contains { $0 < 0x20 } })
    }

    @Test func eventsOfOtherNotesAndDevicesAreLeftOut() throws {
        let text = Fixture.short
            .replacingOccurrences("n1: { title: Milk, text: two }", "n1: { text: two }, n2: { text: two }")
            .replacingOccurrences("A: { user: ada } }", "A: { user: ada }, B: { user: ada } }")
            .replacingOccurrences("A: { 0s: wifi }", "A: { 0s: wifi }, B: { 0s: edge, 150ms: 3g }")
            .replacingOccurrences("mark: edited }", "}, { at: 100ms, A: { edit: n2, text: x } }")
        let screen = try Self.screen(text + "expect: { finally: { server: { n1: { revision: 9 } } } }")
        let events = screen.filter { $0.contains(" s  ") }
        #expect(events.contains { $0.contains("0.200 s  A  edits n1") })
        #expect(events.contains { $0.contains("A  PUT n1 -> 200 after ") })
        #expect(events.contains { $0.contains("server: n1 revision 2, text 'three'") })
        #expect(!events.contains { $0.contains("n2") || $0.contains("edits n2") }, "\(events)")
    }

    /// The edit of a writer explains the conflict of a device.
    @Test func requestsOfOtherActorsForTheNoteAreShown() throws {
        let text = Fixture.short.replacingOccurrences(
            "mark: edited }", "mark: edited }, { at: 100ms, W: { edit: n1, text: four } }")
        let screen = try Self.screen(text + "expect: { always: [{ A: { row: n1, icon: { not: conflict } } }] }")
        #expect(screen.contains { $0.contains("W  edits n1") }, "\(screen)")
        #expect(screen.contains { $0.contains("A  PUT n1 -> 409") })
    }

    @Test func theLinkAtTheFirstEventIsShown() throws {
        let edits = (0..<30).map { ", { at: \(2 + $0)s, A: { edit: n1, text: t\($0) } }" }.joined()
        let text = Fixture.short.replacingOccurrences("mark: edited }", "mark: edited }\(edits)")
            .replacingOccurrences("0s: wifi", "0s: wifi, 1s: 3g")
        let screen = try Self.screen(text + "expect: { finally: { server: { n1: { revision: 9 } } } }")
        #expect(screen.contains { $0.hasSuffix(" 1.000 s  A  network: 3g") }, "\(screen)")
        #expect(screen.contains { $0.contains("31.000 s  A  edits n1") })
        #expect(!screen.contains { $0.contains("A  edits n1") && $0.contains(" 3.000 s") })
    }

    // MARK: Inconclusive runs

    @Test(arguments: [
        ("faults: [{ request: PUT n1, nth: 2, point: before-response, then: reset }]", "times: { min: 0 }"),
        ("expect: { sometimes: [{ A: { row: n1, icon: conflict } }] }", "give the scenario more time"),
        ("expect: { traffic: [{ request: PUT n1, same: [body] }] }", "add a fault or an outage"),
        ("expect: { traffic: [{ request: any, count: { max: budget } }] }", "give the device an outage"),
        ("expect: { always: [{ A: { row: n1, text: two, since: 1s, until: 2s } }] }", ""),
    ])
    func anInconclusiveCheckSaysWhatToDo(_ part: String, advice: String) throws {
        let expect = part.hasPrefix("expect") ? part : part + "\nexpect: { finally: { server: { count: 1 } } }"
        let summary = try Fixture.summary(Fixture.run(Fixture.short + expect))
        guard !advice.isEmpty else {
            #expect(summary.result == .fail)
            return
        }
        #expect(summary.result == .inconclusive)
        #expect(summary.checks.contains { $0.advice.contains(advice) }, "\(summary.checks)")
        #expect(summary.screen[0].hasPrefix("?     short, seed 1, simulated, at "))
        #expect(summary.screen.contains { $0.contains("to do: \(advice.prefix(20))") || $0.contains("to do:") })
    }

    @Test func aStepThatIsNotPerformedSaysWhatToDo() throws {
        let text = Fixture.short.replacingOccurrences(
            "mark: edited }", "}, { when: { A: { row: n1, icon: conflict } }, within: 1s, mark: shown }")
        let summary = try Fixture.summary(
            Fixture.run(text + "expect: { traffic: [{ request: any, between: [shown, 2s], count: 0 }] }"))
        #expect(summary.result == .inconclusive)
        #expect(summary.checks.allSatisfy { $0.outcome != .inconclusive || !$0.advice.isEmpty })
        #expect(summary.checks.contains { $0.advice.contains("the step that sets the mark") })
        #expect(summary.checks.contains { $0.advice.contains("a larger 'within'") })
    }

    @Test func lateRunsAreRepeatedElsewhere() {
        let advice = Advice.text(.expectation(0), .lateness)
        #expect(advice.contains("--jobs 1") && advice.contains("without --live"))
    }

    // MARK: Texts

    /// A text that no file contains: a note of the server after a change of its own.
    @Test func textsThatAreNotInTheFileAreHidden() throws {
        var scenario = try Fixture.run(Fixture.passing).scenario
        scenario.expectations = [
            Expectation(
                .serverRow(row: "n1", revision: nil, title: nil, text: "three"),
                location: SourceLocation(file: "f", line: 1, column: 1))
        ]
        let history = Fixture.history([
            .server([.init(user: "ada", name: "n1", revision: 2, title: "Milk", text: "my 'secret' diary")])
        ])
        let run = PlannedRun(index: 0, source: "f", scenario: scenario, world: .simulated)
        let finished = FinishedRun(
            run: run, outcome: .result(Fixture.result(history, scenario: scenario)), repetition: .none, wallTime: .zero)
        let hidden = RunSummary(finished, showsText: false, isTraced: true)
        #expect(hidden.checks[0].reason.hasPrefix("text is (17 characters, digest "))
        #expect(hidden.checks[0].description == "finally: server n1 text three")
        let all = [hidden.screen, hidden.trace, hidden.checkLines, [JSONLinesReport.line(hidden)]].joined()
        #expect(!all.contains { $0.contains("secret") })
        let shown = RunSummary(finished, showsText: true, isTraced: false)
        #expect(shown.checks[0].reason == "text is 'my 'secret' diary'")
        #expect(shown.screen.contains { $0.contains("my 'secret' diary") })
    }

    @Test func textsOfTheFileAreShown() throws {
        let screen = try Self.screen(Fixture.short + "expect: { finally: { server: { n1: { text: four } } } }")
        #expect(screen.contains("      text is 'three'"))
    }

    // MARK: Replay

    @Test func theReplayCommandIsComplete() throws {
        let text = Fixture.passing + "variants: { old: { server: { contract: orig } } }"
        let run = try Fixture.run(
            text, variant: "old", source: "my files/it's.yaml", world: .live, seed: .max,
            mutant: "overwrites-on-conflict")
        #expect(
            ReplayCommand.arguments(run).map(ReplayCommand.quoted).joined(separator: " ")
                == "slowlane run 'my files/it'\\''s.yaml' --variant old --seed 18446744073709551615 "
                + "--mutant overwrites-on-conflict --live")
        let option = try Fixture.run(Fixture.passing, source: "-x.yaml")
        #expect(ReplayCommand.arguments(option)[2] == "./-x.yaml")
    }

    @Test func aLongReplayCommandContinuesOnTheNextLine() throws {
        let run = try Fixture.run(
            Fixture.passing, source: String(repeating: "x", count: 70), mutant: "overwrites-on-conflict")
        let lines = ReplayCommand.lines(run, width: 90)
        #expect(lines.count == 2)
        #expect(lines[0].hasSuffix(" \\"))
        let joined = lines.map { $0.hasSuffix("\\") ? String($0.dropLast()) : $0 }.joined()
        #expect(joined.split(separator: " ").map(String.init) == ReplayCommand.arguments(run))
    }
}

extension String {
    fileprivate func replacingOccurrences(_ part: String, _ other: String) -> String {
        precondition(contains(part))
        return split(separator: part, omittingEmptySubsequences: false).joined(separator: other)
    }
}
