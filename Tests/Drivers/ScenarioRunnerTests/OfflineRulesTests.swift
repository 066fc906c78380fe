import ConfigFiles
import Foundation
import MutantGallery
import TestSupport
import Testing

/// The table of rules of docs/internals/offline-rules.md.
@Suite struct OfflineRulesTests {
    struct Rule {
        let rule: String
        let symbol: String
        let scenario: String
        let mutant: String
        let remark: String
    }

    private static func rules() throws -> [Rule] {
        let page = Repository.root.appending(path: "docs/internals/offline-rules.md")
        let rows = try String(contentsOf: page, encoding: .utf8).split(separator: "\n").filter {
            $0.wholeMatch(of: /\| [ENKF] \|.*\|/) != nil
        }
        return rows.map { row in
            let cells = row.dropFirst().dropLast().split(separator: "|", omittingEmptySubsequences: false).map {
                $0.trimmingCharacters(in: CharacterSet(charactersIn: " `"))
            }
            guard cells.count == 6 else {
                return Rule(rule: String(row), symbol: "", scenario: "", mutant: "", remark: "")
            }
            return Rule(rule: cells[1], symbol: cells[2], scenario: cells[3], mutant: cells[4], remark: cells[5])
        }
    }

    /// The identifiers of all sources.
    private static func identifiers() throws -> Set<Substring> {
        let root = Repository.root.appending(path: "Sources")
        let files = try #require(FileManager.default.enumerator(at: root, includingPropertiesForKeys: nil))
        var found: Set<Substring> = []
        for case let file as URL in files where file.pathExtension == "swift" {
            let text = try String(contentsOf: file, encoding: .utf8)
            found.formUnion(text.split { !($0.isLetter || $0.isNumber || $0 == "_") })
        }
        return found
    }

    @Test func eachRuleHasASymbolAScenarioAndAMutantOrAReason() throws {
        let rules = try Self.rules()
        let identifiers = try Self.identifiers()
        let scenarios = Set(ScenarioCatalogue.names)
        #expect(rules.count >= 85 && Set(rules.map(\.rule)).count == rules.count)
        for rule in rules {
            #expect(identifiers.contains(Substring(rule.symbol)), "\(rule.rule): \(rule.symbol)")
            #expect(rule.scenario == "-" || scenarios.contains(rule.scenario), "\(rule.rule): \(rule.scenario)")
            #expect(
                rule.mutant == "-" || MutantGallery.mutant(named: rule.mutant) != nil, "\(rule.rule): \(rule.mutant)")
            if rule.scenario == "-" || rule.mutant == "-" { #expect(!rule.remark.isEmpty, "\(rule.rule)") }
        }
    }
}
