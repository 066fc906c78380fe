import ConfigFiles
import Foundation
import Scenario
import TestSupport
import Testing

@testable import CommandSupport
@testable import slowlane

/// Texts about scenario files.
@Suite struct ScenarioTextTests {
    @Test func theDocumentationHasTheTablesOfTheFormat() throws {
        let page = Repository.root.appending(path: "docs/reference/scenario-format.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        let start = try #require(text.range(of: "--filter ScenarioTextTests -->\n")).upperBound
        let end = try #require(text.range(of: "<!-- end of the tables -->")).lowerBound
        let tables = "\n" + ScenarioText.markdown().joined(separator: "\n") + "\n\n"
        if TestSettings.writesDocs {
            try Data((text[..<start] + tables + text[end...]).utf8).write(to: page)
            return
        }
        #expect(text[start..<end] == tables, "run SLOWLANE_WRITE_DOCS=1 scripts/test --filter ScenarioTextTests")
    }

    @Test func theDocumentationHasTheInvariants() throws {
        let page = Repository.root.appending(path: "docs/reference/invariants.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        let start = try #require(text.range(of: "--filter ScenarioTextTests -->\n")).upperBound
        let found = "\n" + ScenarioText.invariantsMarkdown().joined(separator: "\n") + "\n"
        if TestSettings.writesDocs {
            return try Data((text[..<start] + found).utf8).write(to: page)
        }
        #expect(text[start...] == found, "run SLOWLANE_WRITE_DOCS=1 scripts/test --filter ScenarioTextTests")
    }

    @Test func everyInvariantIsExplainedOnOneScreen() throws {
        for invariant in Scenario.Invariant.allCases {
            let lines = try #require(ScenarioText.explanation(of: invariant.number))
            #expect(lines.count <= 40 && lines.allSatisfy { $0.count <= 100 }, "\(invariant)")
            #expect(lines[0].hasPrefix("\(invariant.number) \(invariant.rawValue)"))
            #expect(lines.contains { $0.hasPrefix("  cannot see: ") })
            #expect(try #require(ScenarioText.explanation(of: invariant.rawValue)).suffix(lines.count) == lines[...])
        }
        // A key of that name is explained, too.
        let both = try #require(ScenarioText.explanation(of: "order"))
        #expect(both.first?.contains("traffic.order") ?? false)
        #expect(both.contains { $0.hasPrefix("I7 order") })
    }

    @Test func everyKeyIsExplainedOnOneScreen() throws {
        #expect(ScenarioFormat.keyNames.count > 90)
        for key in ScenarioFormat.keyNames where key != "not" {
            let lines = try #require(ScenarioText.explanation(of: key), "\(key)")
            #expect(lines.count <= 60, "\(key): \(lines.count) lines")
            #expect(lines.allSatisfy { $0.count <= 240 }, "\(key)")
        }
    }

    @Test func theSkeletonIsCanonicalAndHasNoWarning() throws {
        let text = ScenarioText.skeleton(name: "demo")
        #expect(ScenarioFile.problems(in: text, file: "demo.yaml") == [])
        #expect(try ScenarioFormatter.format(text, file: "demo.yaml") == text)
    }
}
