import Determinism
import Foundation
import Impairment
import LinkModel
import Scenario
import TestSupport
import Testing

@testable import ConfigFiles

/// The whole format: what is read, and what is refused only when the scenario is run.
@Suite struct ScenarioFormatTests {
    private static func file(_ name: String) throws -> ScenarioFile {
        try ScenarioFile(parsing: ScenarioExamples.text(name), file: "\(name).yaml")
    }

    @Test(arguments: ScenarioExamples.names) func anExampleIsReadWithoutAnError(_ name: String) throws {
        let file = try Self.file(name)
        #expect(file.scenario.name == name)
        // The variants with another server keep the notes and expectations of the built-in one.
        let others = [
            "do not apply to a server", "the notes of a server other than", "the program of C has no adapter",
        ]
        #expect(file.warnings.filter { warning in !others.contains { warning.message.contains($0) } } == [])
    }

    @Test func theCommutersScenarioIsReadWhole() throws {
        let scenario = try Self.file("commuter-30-minutes").scenario
        #expect(scenario.tags == ["soak", "flapping", "edge"])
        #expect(scenario.fill == Scenario.Fill(notes: 40, bytes: 1024))
        #expect(scenario.devices[0].network.map(\.signalling) == [.sometimes, .always])
        let fault = try #require(scenario.faults.first)
        #expect(fault.probability == Probability(partsPerMillion: 20_000))
        #expect(fault.times == 1...15)
        #expect(fault.point == .any)
        #expect(scenario.workload.count == 3)
        #expect(scenario.exploration == Scenario.Exploration(seeds: 500, vary: [.workload, .network, .faults]))
        #expect(
            scenario.expectations.map(\.description).filter { $0.hasPrefix("thresholds") } == [
                "thresholds: save-to-screen p95 50 ms", "thresholds: save-to-synced p50 30.0 s, p95 180.0 s",
                "thresholds: attempts-per-write max 4",
            ])
    }

    @Test func everyKeyIsRead() throws {
        let file = try Self.file("every-key")
        let scenario = file.scenario
        #expect(scenario.seedOrigin == .commit)
        #expect(
            scenario.devices.map(\.client) == [
                .reference, .legacy, .run(.init(["./app", "--port", "8080"]), adapter: .none),
                .run(.init(["./app"]), adapter: .lines),
            ])
        #expect(
            scenario.faults.map(\.action) == [
                .link(.reset), .link(.close), .link(.stall), .link(.delay(.seconds(5))), .kill(device: "A"),
                .link(.throttle(bytesPerSecond: 1)),
                .link(
                    .respond(
                        FaultResponse(
                            status: 503,
                            fields: [.init("Retry-After", "30"), .init("Content-Type", "text/plain")],
                            body: Array("later".utf8)))),
                .link(.respond(.portal)),
                .kill(device: "B"),
            ])
        #expect(scenario.faults.map(\.times) == [3...3, 0...15, 1...1, 1...1, 0...1, 1...1, 1...1, 1...1, 1...4])
        #expect(scenario.faults[2].bytes == 1000 && scenario.faults[2].side == .server)
        #expect(scenario.invariants.members.contains(.liveness))
        #expect(!scenario.invariants.members.contains(.noFalseConflict))
        #expect(scenario.steps.contains { $0.action?.action == .clock(shift: .seconds(6 * 3600)) })
        #expect(
            scenario.steps.contains {
                $0.action?.action == .call(name: "pull", arguments: [.init(name: "depth", value: "3")])
            })
        #expect(
            file.allRuns.map(\.fullName) == [
                "every-key (point=before-request-end)", "every-key (point=before-response)",
                "every-key (remote, point=before-request-end)",
                "every-key (remote, point=before-response)", "every-key (program, point=before-request-end)",
                "every-key (program, point=before-response)",
            ])
        #expect(
            file.allRuns.map { $0.faults.last?.point } == [
                .at(.beforeRequestEnd), .at(.beforeResponse), .at(.beforeResponse), .at(.beforeResponse),
                .at(.beforeRequestEnd), .at(.beforeResponse),
            ])
        #expect(
            file.variants.map(\.server) == [
                .url("http://localhost:8000"), .run(.init(["./server", "--quiet"]), ready: "/health"),
            ])
    }

    // MARK: Files that extend others

    private static func extending(_ texts: [String: String], _ name: String) throws -> (TemporaryFolder, ScenarioFile) {
        let folder = try TemporaryFolder()
        for (name, text) in texts { try Data(text.utf8).write(to: URL(filePath: folder.path(name))) }
        return (folder, try ScenarioCatalogue.scenario(folder.path(name)))
    }

    private static let base = """
        scenario: 1
        name: base
        seed: 5
        server: { notes: { n1: { title: Milk } } }
        devices: { A: { user: ada } }
        network: { A: { 0s: wifi } }
        expect: { finally: { server: { count: 1 } } }
        variants: { v: { seed: 9 } }
        """

    @Test func aFileExtendsAnotherWithItsOwnKeys() throws {
        let (folder, file) = try Self.extending(
            [
                "base.yaml": Self.base,
                "child.yaml": "scenario: 1\nname: child\nextends: base.yaml\nserver: { contract: orig }",
            ], "child.yaml")
        withExtendedLifetime(folder) {
            #expect(file.scenario.name == "child")
            #expect(file.scenario.seed == 5)
            #expect(file.scenario.contract == "orig")
            #expect(file.scenario.notes.map(\.row) == ["n1"])
            #expect(file.variants.isEmpty)
        }
    }

    @Test func anErrorInTheOtherFileHasItsLocation() throws {
        let broken = Self.base.replacing("0s: wifi", with: "0s: wfii")
        do {
            _ = try Self.extending(
                ["base.yaml": broken, "child.yaml": "scenario: 1\nname: child\nextends: base.yaml\nlimit: 5"],
                "child.yaml")
            Issue.record("accepted")
        } catch let error as ScenarioCatalogue.LookupError {
            let lines = "\(error)".split(separator: "\n")
            #expect(lines.count == 2)
            #expect(lines[0].contains("child.yaml:4:8: '5' has no unit"), "\(error)")
            #expect(lines[1].contains("base.yaml:6:21: no profile is called 'wfii'"), "\(error)")
        }
    }

    @Test func aCycleOfFilesIsRefused() throws {
        do {
            _ = try Self.extending(
                [
                    "a.yaml": "scenario: 1\nname: a\nextends: b.yaml",
                    "b.yaml": "scenario: 1\nname: b\nextends: a.yaml",
                ], "a.yaml")
            Issue.record("accepted")
        } catch {
            #expect("\(error)".contains("more than 4 files extend one another"), "\(error)")
        }
    }

    // MARK: Matrix

    @Test func eachCombinationOfTheMatrixIsARun() throws {
        let file = try ScenarioFile(
            parsing: """
                scenario: 1
                name: m
                matrix: { size: [1, 2, 3], link: [wifi, edge] }
                server: { fill: { notes: $size } }
                devices: { A: { user: ada } }
                network: { A: { 0s: $link } }
                expect: { finally: { server: { count: $size } } }
                """, file: "s.yaml")
        #expect(
            file.allRuns.map(\.fullName) == [
                "m (size=1, link=wifi)", "m (size=1, link=edge)", "m (size=2, link=wifi)", "m (size=2, link=edge)",
                "m (size=3, link=wifi)", "m (size=3, link=edge)",
            ])
        #expect(file.allRuns.map { $0.fill?.notes } == [1, 1, 2, 2, 3, 3])
    }
}
