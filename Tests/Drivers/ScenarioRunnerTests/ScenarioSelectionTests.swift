import Foundation
import Scenario
import TestSupport
import Testing
import Worlds

@testable import ScenarioRunner

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

@Suite struct ScenarioSelectionTests {
    /// A folder with two scenarios, a profile, a hidden file, a named pipe, a link to a scenario and a loop of folders.
    private static func tree() throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        let manager = FileManager.default
        try manager.createDirectory(atPath: folder.path("set/inner"), withIntermediateDirectories: true)
        for (name, text) in [
            ("set/b.yml", Fixture.passing), ("set/inner/a.yaml", "# comment\nscenario : 1\n" + rest),
            ("set/profile.yaml", "profile: 1\nname: x\nabout: a scenario: no\n"), ("set/.hidden.yaml", Fixture.passing),
            ("set/notes.txt", Fixture.passing),
        ] {
            try Data(text.utf8).write(to: URL(filePath: folder.path(name)))
        }
        // Opening a named pipe waits for a writer.
        #expect(mkfifo(folder.path("set/pipe.yaml"), 0o600) == 0)
        try manager.createSymbolicLink(atPath: folder.path("set/c.yaml"), withDestinationPath: folder.path("set/b.yml"))
        try manager.createSymbolicLink(atPath: folder.path("set/inner/loop"), withDestinationPath: folder.path("set"))
        return folder
    }

    private static var rest: String { Fixture.passing.split(separator: "\n").dropFirst().joined(separator: "\n") }

    @Test func aFolderIsSearchedForFilesWithTheKeyScenario() throws {
        let folder = try Self.tree()
        let selection = try ScenarioSelection([folder.path("set")])
        #expect(selection.sources.map(\.name) == ["set/b.yml", "set/inner/a.yaml"].map(folder.path))
        #expect(selection.rejections.isEmpty)
        #expect(Set(selection.folders) == Set(["set", "set/inner"].map(folder.path)))
    }

    @Test func patternsAreExpanded() throws {
        let folder = try Self.tree()
        func names(_ pattern: String) throws -> [String] {
            try ScenarioSelection([folder.path(pattern)]).sources.map(\.name)
        }
        #expect(try names("set/*.yml") == [folder.path("set/b.yml")])
        #expect(try names("**/[ab].*ml") == ["set/b.yml", "set/inner/a.yaml"].map(folder.path))
        #expect(try names("s?t") == ["set/b.yml", "set/inner/a.yaml"].map(folder.path))
        #expect(try names("set/inner/*.yaml") == [folder.path("set/inner/a.yaml")])
        #expect(try names("set/*.json") == [])
    }

    @Test func aFileIsSelectedOnceInTheOrderOfTheArguments() throws {
        let folder = try Self.tree()
        let (b, c) = (folder.path("set/b.yml"), folder.path("set/c.yaml"))
        let arguments = [
            "edit-conflict-after-subway", c, b, folder.path("set/../set/b.yml"), "edit-conflict-after-subway",
        ]
        #expect(try ScenarioSelection(arguments).sources.map(\.name) == ["edit-conflict-after-subway", c])
    }

    @Test func rejectedFilesDoNotHideTheOthers() throws {
        let folder = try Self.tree()
        let broken = folder.path("set/broken.yaml")
        try Data("scenario: 1\nname: x\n".utf8).write(to: URL(filePath: broken))
        var selection = try ScenarioSelection([folder.path("set"), folder.path("missing.yaml")])
        #expect(selection.sources.count == 2)
        #expect(selection.rejections.map(\.name) == [broken, folder.path("missing.yaml")])
        #expect(selection.rejections[0].location.description == "\(broken):1:1")
        #expect(selection.rejections[1].description == "cannot read \(folder.path("missing.yaml")): no such file")
        let plan = selection.plan(worlds: [.simulated, .live], seed: 7)
        #expect(plan.map(\.index) == [0, 1, 2, 3])
        #expect(plan.map(\.world) == [.simulated, .live, .simulated, .live])
        #expect(plan.allSatisfy { $0.seed == 7 })
    }

    @Test func tagsSelectRuns() throws {
        let folder = try TemporaryFolder()
        try Data((Fixture.passing + "tags: [outage, slow]\n").utf8).write(to: URL(filePath: folder.path("a.yaml")))
        let variants = "variants: { tagged: { tags: [conflict] } }\n"
        try Data((Fixture.passing + variants).utf8).write(to: URL(filePath: folder.path("b.yaml")))
        func plan(_ tags: [String]) throws -> [String] {
            var selection = try ScenarioSelection([folder.path(".")])
            return selection.plan(tags: tags, worlds: [.simulated]).map {
                $0.source.suffix(6) + ($0.scenario.variant.map { ":\($0)" } ?? "")
            }
        }
        #expect(try plan([]) == ["a.yaml", "b.yaml", "b.yaml:tagged"])
        #expect(try plan(["slow"]) == ["a.yaml"])
        #expect(try plan(["conflict", "outage"]) == ["a.yaml", "b.yaml:tagged"])
        #expect(try plan(["slo"]).isEmpty)
    }

    /// Another client than that of the file may make a fault impossible.
    @Test func aFaultThatTheGivenClientMakesImpossibleIsRejectedWithItsLocation() throws {
        let folder = try TemporaryFolder()
        let fault = "faults: [{ request: PUT any, point: stored, then: reset, times: { min: 0 } }]\n"
        try Data((Fixture.passing + fault).utf8).write(to: URL(filePath: folder.path("fault.yaml")))
        try Data(Fixture.passing.utf8).write(to: URL(filePath: folder.path("short.yaml")))
        var selection = try ScenarioSelection([folder.path(".")])
        #expect(selection.plan(worlds: [.simulated]).count == 2 && selection.rejections.isEmpty)
        let plan = selection.plan(worlds: nil, clients: ["A": Scenario.Program(["app"])])
        #expect(plan.map(\.scenario.name) == ["short"] && plan.map(\.world) == [.live])
        #expect(selection.rejections.map(\.location.line) == [9])
        #expect(selection.rejections.first?.message.hasSuffix("no fault is possible at 'stored'") == true)
    }

    @Test func aDryRunListsWhatAProgramCannotShow() throws {
        let text =
            Fixture.short + "faults: [{ request: PUT any, point: any, then: reset }]\n"
            + "expect: { always: [{ A: { screen: list, dialog: none } }, { any: { outbox: 0 } }] }"
        let scenario = try Fixture.run(text).scenario.replacingClients(["A": Scenario.Program(["app"])])
        let lines = WorldLimits.lines(PlannedRun(index: 0, source: "s", scenario: scenario, world: .live))
        #expect(lines.contains("A: checks of 'screen', 'dialog' are possible only if the program publishes them"))
        #expect(lines.contains("A: no fault at 'stored' applies, because the program does not report what it stores"))
    }

    @Test func theSeedOfACommitIsTheBeginningOfItsName() throws {
        let folder = try TemporaryFolder()
        try Data((Fixture.passing + "seed: commit\n").utf8).write(to: URL(filePath: folder.path("commit.yaml")))
        func git(_ arguments: String...) throws -> String {
            let process = Process()
            process.executableURL = URL(filePath: "/usr/bin/env")
            let user = ["-c", "user.name=Ada", "-c", "user.email=ada@localhost", "-c", "commit.gpgsign=false"]
            process.arguments = ["git", "-C", folder.path(".")] + user + arguments
            let output = Pipe()
            process.standardOutput = output
            process.standardError = FileHandle.nullDevice
            try process.run()
            process.waitUntilExit()
            return String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        }
        func plan(seed: UInt64? = nil) throws -> ([PlannedRun], ScenarioSelection) {
            var selection = try ScenarioSelection([folder.path("commit.yaml")])
            return (selection.plan(worlds: [.simulated], seed: seed), selection)
        }
        let (none, selection) = try plan()
        #expect(none.isEmpty)
        let rejection = try #require(selection.rejections.first)
        #expect(rejection.location.description.hasSuffix("commit.yaml:9:7"))
        #expect(rejection.message.hasPrefix("'seed: commit' needs the commit of a git repository: "))
        #expect(rejection.message.hasSuffix("; choose a seed with --seed"))
        #expect(try plan(seed: 5).0.first?.seed == 5, "a given seed needs no commit")
        _ = try git("init", "-q")
        #expect(try plan().0.isEmpty, "a repository without commits")
        _ = try git("commit", "-q", "--allow-empty", "-m", "Start")
        let name = try git("rev-parse", "HEAD")
        let run = try #require(try plan().0.first)
        #expect(run.seed == UInt64(name.prefix(12), radix: 16))
        #expect(run.title.contains("seed \(run.seed) (commit)"))
    }

    @Test func theStepsOfAWorkloadArePlanned() throws {
        let workload = """
            workload:
              - { from: 1s, to: 5s, every: 1s, by: [A], mix: { edit: 1 } }

            """
        let run = try Fixture.run(Fixture.passing + workload)
        #expect(run.scenario.steps.count == 5)
        let summary = try Fixture.summary(run)
        #expect(summary.checks.allSatisfy { $0.outcome == .pass }, "\(summary.checks)")
        let steps = try Fixture.finished(run).result?.history.entries.compactMap { entry in
            if case .step(let step) = entry.event { step } else { nil }
        }
        #expect(steps?.count == 5 && steps?.max() == run.scenario.steps.indices.last)
    }

    @Test func anUnknownNameIsAnError() {
        let error = #expect(throws: ScenarioSelection.UnknownNameError.self) {
            try ScenarioSelection(["edit-conflict-after-subwy"])
        }
        #expect(error?.description.contains("did you mean edit-conflict-after-subway?") == true)
    }
}
