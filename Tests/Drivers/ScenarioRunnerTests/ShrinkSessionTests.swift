import CommandSupport
import ConfigFiles
import Foundation
import MutantGallery
import Scenario
import TestSupport
import Testing
import Worlds

@testable import ScenarioRunner

/// Files of shrunk failures, and what is printed of them.
@Suite struct ShrinkSessionTests {
    private static let failing = """
        scenario: 1
        name: lost-response
        seed: 5
        server: { notes: { n1: { title: Milk, text: one }, n2: { text: two } } }
        devices: { A: { user: ada }, B: { user: ada } }
        network: { A: { 0s: 3g, 20s: edge }, B: { 0s: wifi } }
        faults: [{ request: PUT n1, point: before-response, then: stall }]
        steps:
          - { at: 1s, B: { edit: n2, text: changed } }
          - { at: 2s, A: { edit: n1, text: changed too } }
        expect: { finally: { agree: [A, B, server] } }
        """

    /// Shrinks the run with a mutant.
    private static func shrink(
        _ folder: TemporaryFolder, _ mutants: [RunMutant] = [MutantGallery["drops-on-lost-response"]]
    ) async throws -> ShrinkSession.Outcome {
        var options = ShrinkSession.Options(scenarios: [])
        options.folder = folder.path("failures")
        options.timeMax = .seconds(600)
        let scenario = try ScenarioFile(parsing: failing, file: "mine.yaml").scenario
        let run = PlannedRun(index: 0, source: "mine.yaml", scenario: scenario, world: .simulated, mutants: mutants)
        return try await ShrinkSession(options, console: Console()).outcome(of: run)
    }

    @Test func aFailingRunIsShrunkToAFileThatFailsInTheSameWay() async throws {
        let folder = try TemporaryFolder()
        let outcome = try await Self.shrink(folder)
        #expect(outcome.status == 0 && outcome.error == nil)
        let path = try #require(outcome.path)
        #expect(path == folder.path("failures/validated-answers-only-n1.yaml"))
        let screen = outcome.lines
        #expect(screen.count <= FailureScreen.rowsMax)
        // A path is not broken.
        #expect(screen.allSatisfy { $0.count <= FailureScreen.columnsMax || $0.contains(folder.path("failures")) })
        let title = "FAIL  validated-answers-only-n1, seed 0, simulated, at "
        #expect(screen.first?.hasPrefix(title) ?? false, "\(screen)")
        let text = screen.joined(separator: " ").split(separator: " ").joined(separator: " ")
        #expect(text.contains("shrunk from 2 steps, 1 fault, 3 network entries to 1 step, 1 fault, 1 network entry ("))
        #expect(text.contains("origin: slowlane run mine.yaml --variant none --seed 5 --mutant drops-on-lost-response"))
        #expect(text.contains("replay: slowlane run "))
        let content = try String(contentsOfFile: path, encoding: .utf8)
        #expect(content.hasPrefix("# Origin: slowlane run mine.yaml --variant none --seed 5 "))
        let scenario = try ScenarioCatalogue.scenario(path).scenario
        for (mutants, result) in [([MutantGallery["drops-on-lost-response"]], Verdict.Result.fail), ([], .pass)] {
            let run = PlannedRun(index: 0, source: path, scenario: scenario, world: .simulated, mutants: mutants)
            #expect(try RunWorlds.standard.simulated(run, nil).verdict.result == result)
        }
    }

    @Test func aFileWithAnotherFailureIsNotReplaced() throws {
        let folder = try TemporaryFolder()
        let scenario = try ScenarioFile(parsing: Self.failing, file: "mine.yaml").scenario
        var shrinker = RunShrinker()
        shrinker.runsMax = 1
        let run = PlannedRun(
            index: 0, source: "mine.yaml", scenario: scenario, world: .simulated,
            mutants: [MutantGallery["drops-on-lost-response"]])
        let file = try FailureFile(#require(shrinker.shrink(run)))
        #expect(try file.write(to: folder.path("f")) == folder.path("f/\(file.name).yaml"))
        // The same failure has the same file.
        #expect(try file.write(to: folder.path("f")) == folder.path("f/\(file.name).yaml"))
        let mine = "scenario: 1\nname: mine\n"
        try mine.write(toFile: folder.path("f/\(file.name).yaml"), atomically: true, encoding: .utf8)
        #expect(try file.write(to: folder.path("f")) == folder.path("f/\(file.name)-2.yaml"))
        #expect(try String(contentsOfFile: folder.path("f/\(file.name).yaml"), encoding: .utf8) == mine)
    }

    @Test func aRunThatPassesHasNothingToShrink() async throws {
        let folder = try TemporaryFolder()
        let outcome = try await Self.shrink(folder, [])
        #expect(outcome.status == 1 && outcome.error?.contains("nothing to shrink") == true)
        #expect(!FileManager.default.fileExists(atPath: folder.path("failures")))
    }
}
