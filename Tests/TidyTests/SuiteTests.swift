import Foundation
import TestSupport
import Testing

/// Each suite is in one group of `scripts/test`.
@Suite struct SuiteTests {
    private static let groups = Set(
        lines("Tests/TestSupport/Tag+Groups.swift").compactMap {
            $0.firstMatch(of: /@Tag public static var ([a-z]+)/).map { String($0.1) }
        })

    private static let list = SuiteList(SourceTree.files, groups: groups)

    private static func lines(_ path: String) -> [Substring] {
        SourceTree.files.first { $0.path == path }?.lines ?? []
    }

    /// What opens sockets or starts processes in tests.
    private static let resources = [
        "TestSocket", "HTTPPeer", "ChildProcess(", "Command(", "Command.run(", "runProgram(", "runPython(",
        "withProxy(",
        "Server.start(", "Proxy.start(", "LiveRun.run(", "Process()",
    ]

    /// Files whose suites use sockets or processes beside other tests, with the reason.
    private static let beside = [
        "FaultAPITests.swift": "a port that nobody listens on", "RecordedScenarioTests.swift": "one Python program",
        "ScenarioSelectionTests.swift": "Git in a temporary folder",
        "AttachmentStoreTests.swift": "one program that holds a lock",
        "SuiteTests.swift": "the test program itself", "DockerfileTests.swift": "the programs find and cp",
    ]

    @Test func noSuiteIsInTwoGroups() {
        #expect(Self.groups.count == 7)
        for suite in Self.list.suites.values {
            #expect(suite.groups.count <= 1, "\(suite.name) has the tags \(suite.groups) on itself or on suites in it")
            #expect(suite.isTagFirst, "\(suite.name): write @Suite(.tags(.GROUP), ...) on one line")
        }
    }

    @Test func eachTestIsInASuite() {
        #expect(Self.list.looseTests.isEmpty, "\(Self.list.looseTests)")
        for suite in Self.list.suites.values {
            #expect(suite.isDeclared, "\(suite.name) has tests and no attribute @Suite")
        }
    }

    /// The script finds the tags that these tests find.
    @Test func theScriptFindsTheGroupOfEachSuite() throws {
        let found = try groups([]).split(separator: "\n").map(String.init).sorted()
        let expected = Self.list.suites.values.flatMap { suite in suite.groups.map { "\($0) \(suite.name)" } }
        #expect(found == expected.sorted())
    }

    /// A group that is not in `scripts/test` would run nowhere.
    @Test func scriptsTestRunsEachGroup() {
        let run = Self.lines("scripts/test").filter { $0.hasPrefix("beside=") || $0.hasPrefix("alone=") }
        let names = run.flatMap { $0.split(separator: "\"").dropFirst().joined().split(separator: " ") }
        #expect(names.map(String.init).sorted() == Self.groups.sorted())
    }

    /// The other types of a file may be helpers of its suite; if another suite of the file has a tag, they may be that one's.
    @Test func aSuiteWithSocketsOrProcessesHasATag() {
        let tagged = Set(Self.list.suites.values.filter { !$0.groups.isEmpty }.flatMap(\.files))
        for suite in Self.list.suites.values where suite.groups.isEmpty {
            for path in suite.files where Self.beside[path.split(separator: "/").last.map(String.init) ?? ""] == nil {
                let lines = tagged.contains(path) ? suite.lines : Self.lines(path)
                let text = lines.joined(separator: "\n")
                for word in Self.resources where text.contains(word) {
                    guard lines.contains(where: { SourceTree.contains(word, in: SourceTree.code($0)) }) else {
                        continue
                    }
                    Issue.record("\(path): \(suite.name) uses \(word), and has no tag of a group")
                }
            }
        }
    }

    #if os(Linux)
    /// The list of tests is that of the compiled program, so that no suite escapes the other tests.
    @Test func theSourcesHaveEachSuiteOfTheProgram() throws {
        let list = try runProgram(CommandLine.arguments[0], ["--testing-library", "swift-testing", "--list-tests"])
        #expect(list.status == 0)
        let compiled = Set(list.output.split(separator: "\n").map { String($0.prefix { $0 != "/" }) })
        #expect(compiled.count > 200)
        let known = Set(Self.list.suites.values.filter { !$0.files.isEmpty }.map(\.name))
        #expect(compiled.subtracting(known).sorted() == [])
        // Each test is in the filter of one group, or in that of none.
        let filters = try Self.groups.sorted().map { try Regex(groups([$0]).trimmingCharacters(in: .newlines)) }
        for name in compiled {
            #expect(filters.count { "\(name)/test()".firstMatch(of: $0) != nil } <= 1, "\(name)")
        }
    }
    #endif

    /// Returns the output of the script.
    private func groups(_ names: [String]) throws -> String {
        let script = URL(filePath: #filePath).appending(path: "../../../scripts/lib/test/groups").standardized
        let result = try runProgram(script.path(), names)
        #expect(result.status == 0, "\(result.errors)")
        return result.output
    }
}
