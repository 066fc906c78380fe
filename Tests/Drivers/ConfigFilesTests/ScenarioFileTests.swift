import Foundation
import Scenario
import TestSupport
import Testing

@testable import ConfigFiles

/// Scenario files and the locations of their errors.
@Suite struct ScenarioFileTests {
    private static func problems(_ text: String) -> [String] {
        do {
            _ = try ScenarioFile(parsing: text, file: "s.yaml")
            return []
        } catch {
            return error.problems.map(\.description)
        }
    }

    @Test func twelveMistakesAreTwelveErrorsEachAtItsLocation() {
        let problems = Self.problems(
            """
            scenario: 1
            name: twelve-mistakes
            sede: 12
            limit: 2 minuets

            server:
              contract: compta
              notes:
                n1: { title: Milk, txt: "2 l" }

            devices:
              A: { user: ada, starts: synced }
              b: { user: ada }

            network:
              A:
                0s: 3g
                20s: 100-lost
                10s: wifi
              C: { 0s: wifi }

            faults:
              - { request: PUT n7, point: before-response, then: stall }

            steps:
              - { at: 4s, A: { edti: n1, text: "3 l" } }
              - { when: { A: { row: n1, icon: conflict } }, mark: shown }
              - { after: shwon, A: { resolve: n1, text: "4 l" } }

            expect:
              traffic:
                - { request: PUT n1, from: A, count: 1 }
              eventually:
                - { A: { row: n1, icon: none } }
            """)
        let expected = [
            "3:1: unknown key 'sede' in the scenario; did you mean 'seed'?",
            "4:8: unknown unit 'minuets'",
            "7:13: 'compta': expected compat, orig or strict",
            "9:24: unknown key 'txt' in a note; did you mean 'text'?",
            "13:3: 'b': expected a name of ASCII letters and digits that begins with a capital letter",
            "18:10: no profile is called '100-lost'; did you mean '100-loss'?",
            "19:5: expected a time later than the entry before",
            "20:3: no device is called 'C'; did you mean 'A'?",
            "23:16: no note is called 'n7'; did you mean 'n1'?",
            "26:20: unknown key 'edti' in an action; did you mean 'edit'?",
            "28:14: no mark is called 'shwon'; did you mean 'shown'?",
            "34:7: 'eventually' needs 'by', or 'after' and 'within'",
        ]
        #expect(problems.count == expected.count, "\(problems)")
        for (problem, start) in zip(problems, expected) { #expect(problem.hasPrefix("s.yaml:" + start)) }
    }

    private static let minimal = """
        scenario: 1
        name: minimal
        devices: { A: { user: ada } }
        network: { A: { 0s: wifi } }
        expect: { finally: { server: { count: 0 } } }
        """

    @Test func theMinimalScenarioHasDefaults() throws {
        let scenario = try ScenarioFile(parsing: Self.minimal, file: "s.yaml").scenario
        #expect(scenario.fullName == "minimal")
        #expect(scenario.contract == "compat")
        #expect(scenario.devices.map(\.startsSynced) == [true])
        #expect(scenario.expectations.count == 1)
    }

    /// Invalid lines, each added to the minimal scenario.
    @Test(arguments: [
        ("extends: other.yaml", "6:10: cannot read other.yaml: no such file"),
        ("invariants: strict", "6:13: 'strict': expected standard or all"),
        ("steps: { at: 1s }", "6:8: expected a list"),
        ("steps: [{ at: 1s }]", "6:9: a step needs an action of one device or writer"),
        ("steps: [{ A: { sync: now } }]", "6:9: a step needs one of 'at', 'after' and 'when'"),
        ("steps: [{ at: 1, A: { sync: now } }]", "6:15: '1' has no unit"),
        ("steps: [{ at: 1s, A: { edit: n1 } }]", "6:30: no note is called 'n1'"),
        ("steps: [{ at: 1s, A: { create: n1 } }, { at: 2s, A: { edit: n1 } }]", "6:53: 'edit' needs 'title' or 'text'"),
        ("writers: { A: { user: ada } }", ": 'A' is defined twice"),
        (
            "faults: [{ request: BREW any, point: before-response, then: reset }]",
            "6:21: 'BREW any': expected a request"
        ),
        (
            "faults: [{ request: any, point: commit, then: reset }]",
            "6:33: 'commit': expected before-request, mid-request, before-request-end, before-response,"
        ),
        (
            "faults: [{ request: any, point: before-response, then: eat }]",
            "6:56: 'eat': expected reset, close, stall, portal or kill, or a mapping with delay, kill, throttle or respond"
        ),
        (
            "faults: [{ request: any, nth: 0, point: before-response, then: reset }]",
            "6:31: '0': expected a whole number from 1"
        ),
        ("seed: -1", "6:7: '-1': expected a whole number"),
        ("server: { contract: lax }", "6:21: 'lax': expected compat, orig or strict"),
        ("server: { notes: { n1: { revision: 0 } } }", "6:36: '0': expected a whole number from 1"),
        ("variants: [a]", "6:11: 'variants': expected a mapping from names to changed keys"),
        ("variants: { a: { server: { contract: none } } }", "6:38: 'none': expected compat, orig or strict"),
    ]) func anInvalidLineIsReportedWithItsLocation(line: String, problem: String) {
        let problems = Self.problems(Self.minimal + "\n" + line)
        #expect(problems.contains { $0.contains(problem) }, "\(problems)")
    }

    @Test(arguments: [
        "", "[]", "scenario: 2", "a: [", "scenario: 1\nname: [x]\ndevices: 3\nnetwork: 4\nexpect: 5", "\u{0}", "? :",
        "scenario: 1\nscenario: 1", "steps: &a [*a]", "devices: { A: }", "network: { A: 3g }",
        "expect: { traffic: [ {} ], always: [ 1 ], finally: { server: [] } }",
    ]) func invalidScenariosAreRejected(text: String) { #expect(!Self.problems(text).isEmpty) }

    @Test func aVariantChangesTheKeysItNames() throws {
        let file = try ScenarioFile(
            parsing: Self.minimal + """

                seed: 5
                variants:
                  old: { server: { contract: orig }, expect: { finally: { server: { count: 1 } } } }
                """, file: "s.yaml")
        #expect(file.scenario.contract == "compat")
        let variant = try #require(file.variants.first)
        #expect(variant.fullName == "minimal (old)")
        #expect(variant.contract == "orig")
        #expect(variant.seed == 5)
        #expect(variant.expectations.map(\.description) == ["finally: server has 1 note"])
        #expect(file.runs(ofVariant: nil).map(\.fullName) == ["minimal", "minimal (old)"])
        #expect(file.runs(ofVariant: "none").map(\.fullName) == ["minimal"])
        #expect(file.runs(ofVariant: "old").map(\.fullName) == ["minimal (old)"])
        #expect(file.runs(ofVariant: "new").isEmpty)
    }

    @Test func theExampleInTheDocumentationIsValid() throws {
        let page = Repository.root.appending(path: "docs/reference/scenario-format.md")
        let parts = try String(contentsOf: page, encoding: .utf8).split(separator: "```")
        let example = try #require(parts.first { $0.hasPrefix("yaml\nscenario: 1") })
        let file = try ScenarioFile(parsing: String(example.dropFirst("yaml".count)), file: "example.yaml")
        #expect(file.scenario.expectations.count == 3)
        #expect(file.variants.map(\.contract) == ["orig"])
    }

    @Test func theDocumentationListsTheBuiltInScenarios() throws {
        let page = Repository.root.appending(path: "docs/reference/built-in-scenarios.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        let table = try #require(
            text.split(separator: "\n| scenario | content | tags | ").last?.split(separator: "\n\n").first)
        for name in ScenarioCatalogue.names {
            let row = table.split(separator: "\n").first { $0.hasPrefix("| `\(name)` |") }
            let tags = try ScenarioCatalogue.scenario(name).scenario.tags.joined(separator: ", ")
            #expect(row?.contains(" | \(tags) | ") == true, "\(name): \(tags)")
        }
    }

    @Test(arguments: ["scenarios", "timelines"]) func everyFileInTheFolderIsBuiltIn(_ folder: String) throws {
        let path = Repository.root.appending(path: "\(folder)").path()
        let files = try FileManager.default.contentsOfDirectory(atPath: path).sorted()
        #expect(EmbeddedFile.all(in: folder).map { $0.name + ".yaml" }.sorted() == files)
    }

    @Test func theBuiltInScenariosAreValid() throws {
        for name in ScenarioCatalogue.names {
            let file = try ScenarioCatalogue.scenario(name)
            #expect(file.scenario.name == name)
            #expect(!file.scenario.about.isEmpty)
        }
        #expect(
            try ScenarioCatalogue.scenario("create-retried-after-lost-response").variants.map(\.variant) == ["orig"])
    }

    @Test func anUnknownScenarioGetsSuggestions() {
        #expect {
            try ScenarioCatalogue.scenario("edit-conflict-after-subwya")
        } throws: {
            "\($0)".contains("did you mean edit-conflict-after-subway?")
        }
    }
}
