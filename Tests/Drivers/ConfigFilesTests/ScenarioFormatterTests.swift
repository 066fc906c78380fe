import Foundation
import Scenario
import TestSupport
import Testing

// The testing library has a type of that name too.
import struct Scenario.SourceLocation

@testable import ConfigFiles

/// The canonical form of scenario files.
@Suite struct ScenarioFormatterTests {
    private static func formatted(_ text: String) throws(FileError) -> String {
        try ScenarioFormatter.format(text, file: "s.yaml")
    }

    /// The values of a file, without their locations.
    private static func values(_ text: String) throws -> [String] {
        try ScenarioFile(parsing: text, file: "s.yaml").allRuns.map { describe($0) }
    }

    private static func describe(_ value: Any) -> String {
        if value is SourceLocation { return "" }
        let children = Mirror(reflecting: value).children
        if children.isEmpty { return "\(value)" }
        let parts = children.filter { $0.label != "locations" }.map { "\($0.label ?? ""): \(describe($0.value))" }
        return "(\(parts.joined(separator: ", ")))"
    }

    @Test func differentValuesHaveDifferentDescriptions() throws {
        let text = ScenarioMistakes.valid
        for (original, changed) in [
            ("2m", "3m"), ("text: two", "text: one"), ("PUT n1, nth: 1", "PUT n1, nth: 2"), ("4 l", "4 m"),
        ] {
            #expect(try Self.values(text) != Self.values(text.replacing(original, with: changed)))
        }
    }

    private static let texts: [String] = {
        let examples = ScenarioExamples.names.compactMap { try? ScenarioExamples.text($0) }
        let folder = Repository.root.appending(path: "scenarios")
        let files = (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)) ?? []
        let builtIn = files.filter { $0.pathExtension == "yaml" }.compactMap {
            try? String(contentsOf: $0, encoding: .utf8)
        }
        return examples + builtIn + [ScenarioMistakes.valid]
    }()

    @Test func thereAreTexts() { #expect(Self.texts.count >= 8) }

    @Test(arguments: someTexts) func theValuesAreKeptAndTheFormIsStable(_ text: String) throws {
        let once = try Self.formatted(text)
        #expect(try Self.formatted(once) == once)
        #expect(try Self.values(once) == Self.values(text))
        #expect(once.split(separator: "\n").allSatisfy { $0.last != " " })
    }

    /// Each third text, or with more seeds all.
    private static let someTexts = texts.enumerated().filter { $0.offset % 3 == 0 || TestSettings.isSoak }.map(
        \.element)

    /// Texts with random comments and empty lines.
    @Test(arguments: someTexts, randomSeeds(1))
    func randomCommentsAreKept(_ text: String, _ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var lines: [String] = []
        var isInBlockScalar = false
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            // An indented comment after a block scalar would be a part of it.
            let isAfterBlockScalar = isInBlockScalar && !line.hasPrefix(" ")
            if isAfterBlockScalar { isInBlockScalar = false }
            if line.hasSuffix(">") { isInBlockScalar = true }
            if !isInBlockScalar {
                if Int.random(in: 0..<4, using: &random) == 0 { lines.append("") }
                if Int.random(in: 0..<4, using: &random) == 0 {
                    lines.append("\(isAfterBlockScalar ? "" : "   ")# comment \(lines.count)")
                }
                let isBare = !line.isEmpty && !line.contains("#")
                if isBare && Int.random(in: 0..<4, using: &random) == 0 {
                    lines.append(line + " # trailing \(lines.count)")
                    continue
                }
            }
            lines.append(String(line))
        }
        let changed = lines.joined(separator: "\n")
        let once = try Self.formatted(changed)
        #expect(try Self.formatted(once) == once)
        #expect(try Self.values(once) == Self.values(text))
        for index in lines.indices where lines[index].contains("# comment") {
            #expect(once.contains(lines[index].drop { $0 == " " }))
        }
    }

    @Test func keysGetTheirOrderAndCommentsStayWithTheirValues() throws {
        let text = """
            # The head of the file.

            name:    demo   # its name
            scenario: 1
            # who takes part
            devices:
                A:   {starts: synced,user: 'ada'}


            network: {A: {0s: wifi, 5s: {signalled: false, link: 100-loss}}}
            expect:
              finally: { agree: [A,   server] }   # at the end
            steps:
            - A: { sync: now }   # first
              at: 1s
            - { mark: m,
                at: 2s,   # within braces
                A: { create: n1, text: "a # b" } }
            # the end
            """
        #expect(
            try Self.formatted(text) == """
                # The head of the file.

                scenario: 1
                name: demo  # its name
                # who takes part
                devices:
                  A: { user: "ada", starts: synced }

                network: { A: { 0s: wifi, 5s: { link: 100-loss, signalled: false } } }
                steps:
                  - at: 1s  # first
                    A: { sync: now }
                  - at: 2s  # within braces
                    A: { create: n1, text: "a # b" }
                    mark: m
                expect:
                  finally: { agree: [A, server] }  # at the end

                # the end

                """)
    }

    @Test func longLinesWithBracesAreWrittenAsBlocks() throws {
        let text =
            "scenario: 1\nsteps:\n  - { at: 1s, A: { create: n1, text: \(String(repeating: "long ", count: 30))} }\n"
        #expect(
            try Self.formatted(text) == """
                scenario: 1
                steps:
                  - at: 1s
                    A:
                      create: n1
                      text: \(String(repeating: "long ", count: 30).dropLast())

                """)
    }

    @Test func foldedTextsAreWrapped() throws {
        let text = "scenario: 1\nabout: >\n" + (0..<40).map { "  word\($0)\n" }.joined() + "\n  next\n"
        let result = try Self.formatted(text)
        #expect(result.split(separator: "\n").allSatisfy { $0.count <= 120 })
        #expect(result.split(separator: "\n").count == 6)
        #expect(result.hasSuffix("\n\n  next\n"))
    }

    @Test(arguments: [
        ("a: &x 1\nb: *x", "s.yaml:1:1: anchors"), ("a: 1\nb: !!str 2", "s.yaml:2:1: anchors"),
        ("a: [", "invalid YAML"), ("", "the file is empty"),
    ]) func whatCannotBeKeptIsRefused(text: String, message: String) {
        #expect {
            try Self.formatted(text)
        } throws: {
            "\($0)".contains(message)
        }
    }
}
