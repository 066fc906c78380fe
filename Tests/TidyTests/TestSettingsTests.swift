import TestSupport
import Testing

/// The environment variables of the tests.
@Suite struct TestSettingsTests {
    private static func lines(_ path: String) -> [Substring] {
        SourceTree.files.first { $0.path == path }?.lines ?? []
    }

    /// The variables are few enough to be learned.
    private static let variablesMax = 5

    @Test func eachVariableIsDescribed() {
        let code = Self.lines("Tests/TestSupport/TestSettings.swift").map(SourceTree.code)
        let names = Set(code.flatMap { line in line.matches(of: /variable\("([A-Z_]+)"\)/).map { String($0.1) } })
        #expect(!names.isEmpty && names.count <= Self.variablesMax)
        let (table, help) = (Self.lines("CONTRIBUTING.md"), Self.lines("scripts/test"))
        for name in names {
            #expect(table.contains { $0.hasPrefix("| `\(name)` |") }, "\(name) is not in the table of CONTRIBUTING.md")
            #expect(help.contains { $0.hasPrefix("  \(name) ") }, "'scripts/test --help' does not describe \(name)")
        }
    }

    /// Variables that are read elsewhere would be in no table.
    @Test func testsReadNoOtherVariableOfTheirOwn() {
        for file in SourceTree.files where file.path.hasPrefix("Tests/") && file.path.hasSuffix(".swift") {
            let isSettings = file.path.hasSuffix("/TestSettings.swift")
            for line in file.lines where !isSettings && line.contains("environment[\"SLOWLANE_") {
                Issue.record("\(file.path): \(line)")
            }
        }
    }

    /// The tests state their work of a soak for this factor.
    @Test func theSoakHasItsFactor() {
        let line = Self.lines("scripts/soak").first { $0.contains("export SLOWLANE_SEEDS=") }
        #expect(line?.hasSuffix("=\(TestSettings.soakFactor)") == true)
    }

    @Test func theWorkGrowsFromTheUsualOne() {
        #expect(TestSettings.work(5, soak: 50) >= 5)
        #expect(TestSettings.isSoak || TestSettings.work(5, soak: 50) == 5)
        #expect(randomSeeds(20, soak: 5000).count == TestSettings.work(20, soak: 5000))
    }
}
