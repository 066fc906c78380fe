import CommandSupport
import ConfigFiles
import Foundation
import ScenarioModel
import ScenarioWorld
import SyncEngine
import TestSupport
import Testing

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
        faults: [{ request: PUT n1, point: committed, then: mute }]
        steps:
          - { at: 1s, B: { edit: n2, text: changed } }
          - { at: 2s, A: { edit: n1, text: changed too } }
        expect: { finally: { agree: [A, B, server] } }
        """

    /// Shrinks the run with a mutant.
    private static func shrink(
        _ folder: TemporaryFolder, _ mutants: [RunMutant] = [.client(.dropsOnLostResponse)], isJSON: Bool = false
    ) async throws -> ShrinkSession.Outcome {
        var options = ShrinkSession.Options(scenarios: [])
        options.folder = folder.path("failures")
        options.timeMax = .seconds(600)
        options.isJSON = isJSON
        let scenario = try ScenarioFile(parsing: failing, file: "mine.yaml").scenario
        let run = PlannedRun(index: 0, source: "mine.yaml", scenario: scenario, world: .simulated, mutants: mutants)
        return try await ShrinkSession(options, console: Console()).outcome(of: run)
    }

    private static func files(_ folder: TemporaryFolder) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path("failures")).sorted()
    }

    @Test func aFailingRunIsShrunkToAFileThatFailsInTheSameWay() async throws {
        let folder = try TemporaryFolder()
        let outcome = try await Self.shrink(folder)
        #expect(outcome.status == 0 && outcome.error == nil)
        #expect(try Self.files(folder) == ["no-lost-write-n1.yaml"])
        let screen = outcome.lines
        #expect(screen.count <= FailureScreen.rowsMax && screen.allSatisfy { $0.count <= FailureScreen.columnsMax })
        #expect(screen.first?.hasPrefix("FAIL  no-lost-write-n1, seed 0, simulated, at ") ?? false, "\(screen)")
        #expect(screen.contains { $0.contains("shrunk from 2 steps, 1 fault, 3 network entries") })
        #expect(screen.contains { $0.contains("origin: slowlane run mine.yaml --variant none --seed 5 --mutant drops-on") })
        #expect(screen.contains { $0.contains("replay: slowlane run ") })
        let path = try #require(outcome.path)
        #expect(try String(contentsOfFile: path, encoding: .utf8).hasPrefix("# Origin: slowlane run mine.yaml "))
        let scenario = try ScenarioCatalogue.scenario(path).scenario
        #expect(scenario.steps.count == 1 && scenario.faults.count == 1 && scenario.devices.count == 1)
        for (mutants, result) in [([RunMutant.client(.dropsOnLostResponse)], Verdict.Result.fail), ([], .pass)] {
            let run = PlannedRun(index: 0, source: path, scenario: scenario, world: .simulated, mutants: mutants)
            #expect(try RunWorlds.standard.simulated(run, nil).verdict.result == result)
        }
    }

    @Test func aFileWithAnotherFailureIsNotReplaced() async throws {
        let folder = try TemporaryFolder()
        let first = try await Self.shrink(folder)
        // The same failure has the same file.
        #expect(try await Self.shrink(folder).path == first.path)
        let path = try #require(first.path)
        try "scenario: 1\nname: mine\n".write(toFile: path, atomically: true, encoding: .utf8)
        #expect(try await Self.shrink(folder).path == folder.path("failures/no-lost-write-n1-2.yaml"))
        #expect(try String(contentsOfFile: path, encoding: .utf8).hasPrefix("scenario: 1\n"))
    }

    @Test func aRunThatPassesHasNothingToShrink() async throws {
        let folder = try TemporaryFolder()
        let outcome = try await Self.shrink(folder, [])
        #expect(outcome.status == 1 && outcome.error?.contains("nothing to shrink") == true)
        #expect(!FileManager.default.fileExists(atPath: folder.path("failures")))
    }

    @Test func jsonHasTheSizes() async throws {
        let line = try #require(try await Self.shrink(TemporaryFolder(), isJSON: true).lines.first)
        #expect(line.contains(#""original":{"steps":2,"faults":1,"network_entries":3}"#), "\(line)")
        #expect(line.contains(#""shrunk":{"steps":1,"faults":1,"network_entries":1}"#), "\(line)")
        #expect(line.contains(#""reproducible":true"#))
    }
}
