import Determinism
import Foundation
import Scenario
import TestSupport
import Testing

@testable import ConfigFiles

/// Null in a variant, or in a file that extends another one, takes an inherited key back.
@Suite struct ScenarioNullTests {
    private static let base = """
        scenario: 1
        name: base
        about: A scenario with a key of each kind.
        seed: 7
        limit: 3m
        server: { contract: orig, notes: { n1: { title: Milk, text: one }, n2: { title: Bread, text: dark } } }
        devices: { A: { user: ada }, B: { user: ada, starts: empty } }
        writers: { W: { user: ada } }
        network: { A: { 0s: wifi, 5s: edge, 9s: wifi }, B: { 0s: wifi } }
        faults: [{ request: PUT n1, point: before-response, then: reset }]
        steps: [{ at: 1s, A: { edit: n1, text: two }, mark: edited }]
        expect:
          traffic: [{ request: PUT n1, from: A, count: { min: 1 } }]
          always: [{ A: { row: n1, present: true } }]
          finally: { server: { count: 2, n1: { text: two } }, agree: [A, server] }
        invariants: { add: [liveness] }

        """

    private static func file(_ variant: String) throws -> ScenarioFile {
        try ScenarioFile(parsing: base + "variants: { v: \(variant) }\n", file: "s.yaml")
    }

    private static func variant(_ text: String) throws -> Scenario { try #require(try file(text).variants.first) }

    private static func problems(_ variant: String) -> [String] {
        ScenarioFile.problems(in: base + "variants: { v: \(variant) }\n", file: "s.yaml")
            .filter { $0.severity == .error }.map(\.description)
    }

    // MARK: Levels

    @Test func aTopLevelKeyGetsItsDefaultBack() throws {
        let scenario = try Self.variant("{ seed: null, limit: ~, faults: null, invariants: null, writers: null }")
        #expect(scenario.seed == 1 && scenario.limit == .seconds(600))
        #expect(scenario.faults.isEmpty && scenario.writers.isEmpty)
        #expect(scenario.invariants == .standard)
        #expect(scenario.about == "A scenario with a key of each kind.")
    }

    @Test func anEntryOfAMapVanishes() throws {
        let scenario = try Self.variant("{ network: { A: { 5s: null } } }")
        #expect(scenario.devices.first?.network.map(\.start) == [.zero, .seconds(9)])
        let single = try Self.variant("{ devices: { B: null }, network: { B: null } }")
        #expect(single.devices.map(\.name) == ["A"])
        let notes = try Self.variant(
            "{ server: { contract: null, notes: { n2: null } }, expect: { finally: { server: { count: 1 } } } }")
        #expect(notes.contract == "compat" && notes.notes.map(\.row) == ["n1"])
    }

    @Test func anExpectationIsTakenBack() throws {
        func kinds(_ variant: String) throws -> [String] { try Self.variant(variant).expectations.map(\.description) }
        let all = try kinds("{ seed: 8 }")
        #expect(all.count == 5)
        #expect(try kinds("{ expect: { finally: null } }") == Array(all.prefix(2)))
        #expect(try kinds("{ expect: { always: null } }") == all.filter { !$0.hasPrefix("always") })
        #expect(try kinds("{ expect: { finally: { agree: null } } }") == all.filter { !$0.hasSuffix("agree") })
        #expect(
            try kinds("{ expect: { finally: { server: { n1: null } } } }")
                == all.filter { !$0.hasPrefix("finally: server n1") })
    }

    @Test(arguments: ["null", "~", "Null", "NULL", ""])
    func eachSpellingOfNullTakesBack(_ null: String) throws {
        #expect(try Self.variant("{ seed: \(null) }").seed == 1)
        let block = Self.base + "variants:\n  v:\n    seed: \(null)\n    limit: 2m\n"
        #expect(try ScenarioFile(parsing: block, file: "s.yaml").variants.first?.seed == 1)
    }

    @Test func aFileTakesBackWhatItExtends() throws {
        let folder = try TemporaryFolder()
        try Data(Self.base.utf8).write(to: URL(filePath: folder.path("base.yaml")))
        let child = """
            scenario: 1
            name: child
            extends: base.yaml
            seed: null
            network: { A: { 5s: null } }
            expect: { finally: { agree: null } }
            """
        let scenario = try ScenarioFile(parsing: child, file: folder.path("child.yaml")).scenario
        #expect(scenario.seed == 1 && scenario.devices.first?.network.count == 2)
        #expect(scenario.expectations.count == 4)
        try Data(child.utf8).write(to: URL(filePath: folder.path("child.yaml")))
        let grandchild = "scenario: 1\nname: g\nextends: child.yaml\nvariants: { v: { faults: null } }\n"
        let file = try ScenarioFile(parsing: grandchild, file: folder.path("g.yaml"))
        #expect(file.scenario.seed == 1 && file.scenario.faults.count == 1)
        #expect(file.variants.first?.faults.isEmpty == true)
    }

    // MARK: Errors

    @Test(arguments: ["devices", "network", "expect"])
    func aKeyThatEveryScenarioNeedsIsNotTakenBack(_ key: String) {
        let found = Self.problems("{ \(key): null }")
        #expect(found.contains { $0.hasSuffix("'\(key)' cannot be taken back: every scenario needs it") }, "\(found)")
    }

    @Test func aKeyThatADeviceNeedsIsMissing() {
        let found = Self.problems("{ devices: { A: { user: null } } }")
        #expect(found.contains { $0.contains("needs 'user'") }, "\(found)")
    }

    @Test func nullWithoutAnInheritedKeyIsAnError() {
        for variant in [
            "{ restore: null }", "{ network: { A: { 6s: null } } }", "{ devices: { C: { user: null } } }",
            "{ expect: { finally: { A: null } } }", "{ seed: { x: null } }",
        ] {
            let found = Self.problems(variant)
            #expect(
                found.contains { $0.contains("is null, which takes an inherited key back, and no key") },
                "\(variant): \(found)")
        }
    }

    @Test func nullElsewhereIsNoValue() {
        #expect(!Self.problems("{ faults: [null] }").isEmpty)
        #expect(!Self.problems("{ faults: [{ request: null, point: before-response, then: reset }] }").isEmpty)
        #expect(!Self.problems("null").isEmpty)
        let quoted = Self.problems("{ seed: 'null' }")
        #expect(quoted.contains { $0.contains("'null': expected a whole number") }, "\(quoted)")
        for text in ["seed: null\n", "limit:\n"] {
            let key = text.prefix { $0 != ":" }
            let plain = Self.base.split(separator: "\n").filter { !$0.hasPrefix("\(key):") }.joined(separator: "\n")
            #expect(throws: FileError.self) { try ScenarioFile(parsing: plain + "\n" + text, file: "s.yaml") }
        }
    }

    // MARK: fmt

    @Test func theCanonicalFormKeepsNull() throws {
        let text = Self.base + "variants:\n  v:\n    seed:\n    limit: ~\n    network: { A: { 5s: null } }\n"
        let formatted = try ScenarioFormatter.format(text, file: "s.yaml")
        let before = try ScenarioFile(parsing: text, file: "s.yaml").variants[0]
        let after = try ScenarioFile(parsing: formatted, file: "s.yaml").variants[0]
        for scenario in [before, after] {
            #expect(scenario.seed == 1 && scenario.limit == .seconds(600) && scenario.devices[0].network.count == 2)
        }
        #expect(try ScenarioFormatter.format(formatted, file: "s.yaml") == formatted)
        #expect(!formatted.split(separator: "\n").contains { $0.hasSuffix(" ") }, "\(formatted)")
    }
}
