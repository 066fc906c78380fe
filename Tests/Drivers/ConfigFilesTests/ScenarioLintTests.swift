import Foundation
import Scenario
import TestSupport
import Testing

@testable import ConfigFiles

/// Errors and warnings of scenario files, with their locations and hints.
@Suite struct ScenarioLintTests {
    private static func problems(_ text: String) -> [Problem] { ScenarioFile.problems(in: text, file: "s.yaml") }

    @Test func theFileWithoutMistakesIsValid() { #expect(Self.problems(ScenarioMistakes.valid) == []) }

    @Test(arguments: ScenarioMistakes.all) func aMistakeIsReportedAtItsLocation(_ mistake: ScenarioMistakes.Mistake) {
        let (text, line, column) = mistake.applied
        #expect(text != ScenarioMistakes.valid, "the mistake is not in the file")
        let found = Self.problems(text).filter { $0.severity == .error }
        let isFound = found.contains { problem in
            problem.location.line == line && problem.location.column == column
                && problem.message.contains(mistake.message)
        }
        #expect(isFound, "expected \(line):\(column): \(mistake.message), found \(found)")
    }

    @Test func everyProblemIsReportedAtOnceAndOnce() {
        let text =
            ScenarioMistakes.valid
            .replacing("limit: 2m", with: "limit: 2")
            .replacing("point: before-response", with: "point: befor-response")
            .replacing("agree: [A, server]", with: "agree: [A, C]")
            + "\nvariants: { v: { seed: 2 }, w: { server: { contract: lax } } }"
        let found = Self.problems(text).map { "\($0.location.line ?? 0)" }
        #expect(found == ["3", "20", "39", "42"])
    }

    @Test(arguments: [
        ("profile: 1\nname: Office\ndown: { rate: 1 Mbit/s }", "this is a profile, not a scenario"),
        ("timeline: 1\nname: Way\nat: { 0s: 3g }", "this is a timeline, not a scenario"),
        ("", "the file is empty"), ("[]", "expected a scenario"), ("a: [", "invalid YAML"),
        ("scenario: 1\nscenario: 1", "duplicate key 'scenario'"),
    ]) func aFileOfAnotherKindIsNamed(text: String, message: String) {
        let found = Self.problems(text)
        #expect(found.count == 1)
        #expect(found.first?.message.hasPrefix(message) == true, "\(found)")
    }

    // MARK: Warnings

    /// Changes of the valid file that lead to one warning each, at the marked location.
    @Test(arguments: [
        ScenarioMistakes.Mistake(
            "- { at: 6s, A: { edit: n1, text: \"4 l\" } }",
            "- §{ at: 6s, A: { edit: n1, text: \"4 l\" }, mark: unused }", "mark 'unused' is never used"),
        .init(
            "  B: { 0s: wifi }", "  B: { 0s: wifi, §3m: edge }", "this entry is not before the end of the script, 120 s"
        ),
        .init("- { from: 1s, to: 10s", "- §{ from: 1s, to: 3m", "'to' is later than the end of the script"),
        .init("- { by: 35s", "- §{ by: 5m", "'by' is later than the end of the script"),
        .init(
            "- A: { row: n1, title: Milk, since: 7s, until: decided }",
            "- §A: { row: n1, title: Milk, since: 7s, until: 7s }", "'since' to 'until' is empty"),
        .init(
            "- { request: PUT n1, from: A, between: [shown, decided], count: 0 }",
            "- §{ request: PUT n1, from: A, between: [9s, 9s], count: 0 }", "'between' is empty"),
        .init("- { any: { icon: conflict } }", "- §{ fault: { point: stored } }", "no fault has the point 'stored'"),
        .init(
            "- { request: PUT n1, from: A, between: [shown, decided], count: 0 }",
            "- §{ request: PUT n1, from: W, seen: proxy, count: 0 }", "the requests of writers do not pass a proxy"),
        .init(
            "- { at: 4s, W: { edit: n1, text: \"3 l\" } }",
            "- §{ at: 4s, W: { edit: n1, text: \"3 l\", stale: true } }", "W has not read n1 before"),
        .init("within: 40s", "within: 10m", "'within' is later than the end of the script"),
        .init("limit: 2m", "limit: 2m\nmatrix: { §x: [1] }", "the parameter 'x' is never used"),
        .init("  W: { user: ada }", "  §W: { user: ada }\n  V: { user: ada }", "the writer V does nothing"),
    ]) func whatHasNoEffectIsAWarning(_ change: ScenarioMistakes.Mistake) {
        let (text, line, column) = change.applied
        let found = Self.problems(text)
        #expect(found.allSatisfy { $0.severity == .warning }, "\(found)")
        #expect(found.contains { $0.message.contains(change.message) }, "\(found)")
        if change.changed.contains("§") {
            #expect(found.contains { $0.location.line == line && $0.location.column == column }, "\(found)")
        }
    }

    @Test func aMarkThatCannotBeReachedIsAWarning() {
        let text = """
            scenario: 1
            name: alone
            server: { notes: { n1: { title: Milk } } }
            devices: { A: { user: ada } }
            network: { A: { 0s: wifi } }
            steps:
              - { at: 1s, A: { edit: n1, text: b } }
              - { when: { A: { row: n1, icon: conflict } }, mark: shown }
              - { after: shown, A: { sync: now } }
            expect: { finally: { server: { count: 1 } } }
            """
        let found = Self.problems(text)
        #expect(found.count == 1)
        #expect(
            found.first?.description.hasPrefix("s.yaml:8:5: warning: mark 'shown' cannot be reached") == true,
            "\(found)")
    }

    // MARK: Windows

    private static func withSteps(_ expectation: String) -> String {
        """
        scenario: 1
        name: windows
        server: { notes: { n1: { title: Milk } } }
        devices: { A: { user: ada } }
        network: { A: { 0s: wifi } }
        steps:
          - { at: 5s, mark: early }
          - { at: 10s, A: { edit: n1, text: b }, mark: late }
          - { after: late, delay: 2s, mark: later }
          - { when: { A: { row: n1, icon: none } }, mark: sent }
          - { after: sent, mark: last }
        expect:
          \(expectation)
        """
    }

    @Test(arguments: [
        ("9s, 8s", "'%' ends at 8 s, but begins at 9 s"), ("9s, early", "'%' ends at 'early' (5 s), but begins at 9 s"),
        ("late, 8s", "'%' ends at 8 s, but begins at 'late' (10 s or later)"),
        ("later, 11s", "'%' ends at 11 s, but begins at 'later' (12 s or later)"),
        ("late, early", "'%' ends at 'early' (5 s), but begins at 'late' (10 s or later)"),
        ("last, sent", "'%' ends at 'sent', but begins at 'last', which is set after it"),
    ]) func aWindowThatEndsBeforeItBeginsIsAnError(_ window: String, _ message: String) {
        let ends = window.split(separator: ", ")
        let state = "A: { row: n1, text: b, since: \(ends[0]), until: \(ends[1]) }"
        for (expectation, name, column) in [
            ("traffic: [{ request: PUT n1, between: [\(window)], count: 0 }]", "between", 13),
            ("sometimes: [{ request: PUT n1, between: [\(window)], count: { min: 1 } }]", "between", 15),
            ("always: [{ \(state) }]", "since' to 'until", 12), ("sometimes: [{ \(state) }]", "since' to 'until", 15),
        ] {
            let errors = Self.problems(Self.withSteps(expectation)).filter { $0.severity == .error }
            #expect(
                errors.map(\.description) == [
                    "s.yaml:13:\(column): \(message.replacing("%", with: name)); exchange the two"
                ])
        }
    }

    @Test(arguments: ["8s, 9s", "early, 9s", "early, late", "late, 11s", "late, sent", "sent, 1s", "sent, last"])
    func aWindowThatMayHaveALengthIsValid(_ window: String) {
        let text = Self.withSteps("traffic: [{ request: PUT n1, between: [\(window)], count: 0 }]")
        #expect(Self.problems(text).filter { $0.severity == .error } == [])
    }

    // MARK: Names of notes

    private static func withTwoUsers(_ rest: String) -> String {
        """
        scenario: 1
        name: names
        server: { notes: { n1: { title: Milk } } }
        devices: { A: { user: ada }, B: { user: bo } }
        network: { A: { 0s: wifi }, B: { 0s: wifi } }
        \(rest)
        """
    }

    @Test func aNameOfNotesOfTwoUsersIsAnError() {
        let created = Self.withTwoUsers(
            """
            steps:
              - { at: 1s, A: { create: n2, text: a } }
              - { at: 2s, B: { create: n2, text: b } }
            expect: { finally: { server: { n2: { text: a } } } }
            """)
        #expect(
            Self.problems(created).map(\.description) == [
                "s.yaml:8:5: 'n2' is already a note of ada, and a name belongs to one user; "
                    + "choose another name for the note of bo"
            ])
        let seeded = Self.withTwoUsers("expect: { finally: { server: { n1: { title: Milk } } } }")
        #expect(
            Self.problems(seeded).map(\.description) == [
                "s.yaml:6:32: the server has a note 'n1' of each user (ada, bo); name the user by a device: "
                    + "'finally: { A: { row: n1, .. }, agree: [A, server] }'"
            ])
    }

    @Test func namesOfOneUserAreValid() {
        let text = Self.withTwoUsers(
            """
            steps:
              - { at: 1s, A: { create: n2, text: a } }
              - { at: 2s, B: { create: n3, text: b } }
            expect: { finally: { server: { n2: { text: a }, n3: { text: b } }, A: { row: n1, title: Milk }, agree: [A, server] } }
            """)
        #expect(Self.problems(text) == [])
        let one = text.replacing("user: bo", with: "user: ada").replacing(
            "n2: { text: a }", with: "n1: { title: Milk }")
        #expect(Self.problems(one) == [])
    }

    // MARK: Limits

    private static func cpuTime() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    private static func isRejectedSoon(_ text: String, _ message: String) {
        let start = cpuTime()
        let found = problems(text)
        let duration = cpuTime() - start
        #expect(found.contains { $0.message.contains(message) }, "\(found.prefix(3))")
        // CPU time of this thread, because other programs delay a test. A second in a release build; a debug build is several
        // times slower.
        #expect(duration < .seconds(5), "\(duration)")
        #expect(found.count <= 101)
    }

    @Test func tenThousandDevicesAreRejected() {
        let devices = (0..<9000).map { "A\($0): {user: a}" }.joined(separator: ", ")
        Self.isRejectedSoon(
            "scenario: 1\nname: a\ndevices: {\(devices)}\nnetwork: {}\nexpect: {finally: {server: {count: 0}}}",
            "9000 devices; at most 100 are allowed")
    }

    @Test func aBombOfAliasesIsRejected() {
        var text = "scenario: 1\nname: a\nabout: &a [x, x, x, x, x, x, x, x, x]\n"
        for (index, name) in "bcdefg".enumerated() {
            let previous = Array("abcdef")[index]
            text += "\(name)0: &\(name) [\(Array(repeating: "*\(previous)", count: 5).joined(separator: ", "))]\n"
        }
        Self.isRejectedSoon(text, "values with aliases written out")
        Self.isRejectedSoon("a: &a [x]\nb: [\(Array(repeating: "*a", count: 40).joined(separator: ", "))]", "aliases")
    }

    @Test func aFileOfTenMegabytesIsRejected() {
        Self.isRejectedSoon(String(repeating: "# comment\n", count: 1_000_000), "larger than 256 KiB")
    }

    @Test func thousandsOfMistakesAreRejected() {
        let keys = (0..<12_000).map { "k\($0): 1" }.joined(separator: "\n")
        Self.isRejectedSoon("scenario: 1\nname: a\n" + keys, "more than 100 errors")
        let notes = (0..<9000).map { "n\($0): {}" }.joined(separator: ", ")
        let steps = (0..<2000).map { "{at: 1s, A: {edit: m\($0), text: a}}" }.joined(separator: ", ")
        Self.isRejectedSoon(
            """
            scenario: 1
            name: a
            server: {notes: {\(notes)}}
            devices: {A: {user: a}}
            network: {A: {0s: wifi}}
            steps: [\(steps)]
            expect: {finally: {server: {count: 0}}}
            """, "more than 100 errors")
    }

    @Test func aMatrixWithTooManyRunsIsRejected() {
        let values = (0..<20).map(String.init).joined(separator: ", ")
        Self.isRejectedSoon(
            ScenarioMistakes.valid + "\nmatrix: { a: [\(values)], b: [\(values)] }", "more than 256 combinations")
    }
}
