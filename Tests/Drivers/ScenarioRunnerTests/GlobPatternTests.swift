import Testing

@testable import ScenarioRunner

@Suite struct GlobPatternTests {
    @Test(arguments: [
        ("*.yaml", "a.yaml", true), ("*.yaml", ".yaml", false), (".*", ".yaml", true), ("*.yaml", "a.yml", false),
        ("sync-*-?.y*ml", "sync-two-1.yml", true), ("sync-*-?.y*ml", "sync-1.yml", false), ("a*b*c", "aXbXbXc", true),
        ("a*b*c", "aXcXb", false), ("[a-c]x", "bx", true), ("[a-c]x", "dx", false), ("[!a-c]x", "dx", true),
        ("[!a-c]x", "ax", false), ("[]]", "]", true), ("[]]", "a", false), ("[", "[", true), ("[a", "[a", true),
        ("[a-]", "-", true),
        ("?", "é", true), ("", "", true), ("", "a", false), ("***", "abc", true),
    ])
    func aPatternMatchesWholeNames(_ pattern: String, name: String, matches: Bool) {
        #expect(GlobPattern(pattern).matches(name) == matches)
    }

    /// Backtracking over every star would take exponential time.
    @Test func manyStarsTakePolynomialTime() {
        let pattern = GlobPattern(String(repeating: "a*", count: 40) + "b")
        #expect(!pattern.matches(String(repeating: "a", count: 2000)))
    }
}
