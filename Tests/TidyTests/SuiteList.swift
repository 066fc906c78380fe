/// The suites of the tests, found in the sources.
struct SuiteList {
    /// A suite that is in no other suite.
    struct Suite {
        /// The name in the identifiers of its tests, such as `ProxyServerTests.FastPathTests`.
        let name: String
        /// The group tags of the suite and of suites in it.
        var groups: [String] = []
        /// Whether a tag is where `scripts/lib/test/groups` finds it.
        var isTagFirst = true
        /// The files with its tests.
        var files: [String] = []
        /// The lines of the suite itself, without other types of its files.
        var lines: [Substring] = []
        var isDeclared = false
    }

    var suites: [String: Suite] = [:]
    /// Tests outside of a type.
    var looseTests: [String] = []

    private static let (space, quote, slash) = (UInt8(ascii: " "), UInt8(ascii: "\""), UInt8(ascii: "/"))
    private static let (at, lowercaseA) = (UInt8(ascii: "@"), UInt8(ascii: "a"))

    /// The folder of a test target has a name that ends in `Tests`.
    private static func target(of path: String) -> String? {
        path.split(separator: "/").dropLast().last { $0.hasSuffix("Tests") }.map(String.init)
    }

    /// Reads the declarations of types with their indentation: a deeper line belongs to the type above it.
    init(_ files: [SourceTree.File], groups: Set<String>) {
        for file in files where file.path.hasPrefix("Tests/") && file.path.hasSuffix(".swift") {
            guard let target = Self.target(of: file.path) else { continue }
            var types: [(indentation: Int, name: String)] = []
            /// The text of an attribute `@Suite` whose declaration follows.
            var attribute: String?
            var isText = false
            for line in file.lines {
                let isInText = isText
                if line.utf8.contains(Self.quote), line.ranges(of: "\"\"\"").count % 2 == 1 { isText.toggle() }
                let indentation = line.utf8.prefix { $0 == Self.space }.count
                let words = line.dropFirst(indentation)
                guard !isInText, let first = words.utf8.first, first != Self.slash else { continue }
                if let outer = types.first, indentation > outer.indentation {
                    suites["\(target).\(outer.name)"]?.lines.append(line)
                }
                // A declaration begins with a lowercase letter or an attribute.
                guard first == Self.at || first >= Self.lowercaseA else { continue }
                if words.hasPrefix("@Suite") { attribute = "" }
                if let begun = attribute { attribute = begun + words }
                if let name = Self.declaredName(words) {
                    types.removeAll { $0.indentation >= indentation }
                    types.append((indentation, name))
                    if let text = attribute, let outer = types.first?.name {
                        let key = "\(target).\(outer)"
                        let found = groups.filter { text.contains(".tags(.\($0))") }
                        var suite = suites[key] ?? Suite(name: key)
                        suite.groups += found
                        suite.isTagFirst =
                            suite.isTagFirst && found.allSatisfy { text.hasPrefix("@Suite(.tags(.\($0))") }
                        // A tag that is not one of the groups, or is written in another way.
                        if text.contains(".tags(") && found.count != 1 { suite.isTagFirst = false }
                        if types.count == 1, !words.contains("extension ") { suite.isDeclared = true }
                        suites[key] = suite
                    }
                    attribute = nil
                }
                if words.hasPrefix("@Test") {
                    types.removeAll { $0.indentation >= indentation }
                    guard let outer = types.first?.name else {
                        looseTests.append(file.path)
                        continue
                    }
                    let key = "\(target).\(outer)"
                    var suite = suites[key] ?? Suite(name: key)
                    if suite.files.last != file.path { suite.files.append(file.path) }
                    suites[key] = suite
                }
            }
        }
    }

    /// Returns the name of the type that a line declares or extends.
    private static func declaredName(_ line: Substring) -> String? {
        let words = line.split(separator: " ")
        guard let index = words.firstIndex(where: { ["struct", "class", "enum", "actor", "extension"].contains($0) }),
            index + 1 < words.count, words.last == "{" || words.last == "{}",
            words[..<index].allSatisfy({ !$0.hasPrefix("//") && $0 != "let" && $0 != "case" })
        else { return nil }
        return String(words[index + 1].prefix { $0.isLetter || $0.isNumber || $0 == "_" })
    }
}
