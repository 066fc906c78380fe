import CommandSupport
import ConfigFiles
import Foundation
import MutantGallery
import Scenario
import TestSupport
import Testing
import Worlds

@testable import ScenarioRunner

/// The gallery of mutants, and the proof that scenarios detect them. `slowlane mutation-test` runs all scenarios.
@Suite struct MutationTestTests {
    private static let catalogue: [Scenario] =
        (try? ScenarioCatalogue.names.flatMap { try ScenarioCatalogue.scenario($0).runs(ofVariant: nil) }) ?? []

    private static func run(named name: String?) -> PlannedRun? {
        catalogue.first { $0.fullName == name }.map {
            PlannedRun(index: 0, source: $0.name, scenario: $0, world: .simulated)
        }
    }

    // MARK: The gallery

    @Test func namesOfMutantsAreUnique() {
        let names = MutantGallery.mutants.map(\.name)
        #expect(names.count >= 40 && Set(names).count == names.count)
        for mutant in MutantGallery.mutants {
            #expect(MutantGallery.mutant(named: mutant.name) == mutant)
            #expect(mutant.name.utf8.allSatisfy { (97...122).contains($0) || $0 == 45 })
        }
        #expect(MutantGallery.mutant(named: "x") == nil)
    }

    @Test(arguments: MutantGallery.mutants) func aMutantIsDescribed(_ mutant: RunMutant) throws {
        #expect(mutant.defect.hasSuffix(".") && !mutant.origin.isEmpty)
        let runs = try mutant.runs.map { name in
            try #require(Self.catalogue.first { $0.fullName == name }, "no run is called '\(name)'")
        }
        #expect(Set(runs.map(\.name)).count >= MutantProof.scenariosMin, "\(mutant.runs)")
        switch mutant.detector {
        case .invariant: break
        case .expectation(let scenario, let check):
            let checks = Self.catalogue.filter { $0.name == scenario }.flatMap { $0.expectations.map(\.description) }
            #expect(checks.contains(check), "\(scenario) has no expectation '\(check)'")
        }
    }

    /// Long outages are left to the self-test.
    private static let short = MutantGallery.mutants.filter {
        let name = $0.runs.first ?? ""
        return !name.hasPrefix("outage") && !name.hasPrefix("captive-portal")
    }

    @Test(arguments: short) func theFirstRunDetectsAMutant(_ mutant: RunMutant) throws {
        let planned = try #require(Self.run(named: mutant.runs.first)?.with(mutant))
        var proof = MutantProof(mutant, needsDetector: true)
        proof.add(planned.scenario, try RunWorlds.standard.simulated(planned, nil).verdict)
        #expect(proof.mainDetection?.isExpected == true, "\(proof.detections)")
        // Those of apps are short.
        for name in mutant.app == nil ? [] : mutant.runs.dropFirst() {
            let planned = try #require(Self.run(named: name)?.with(mutant))
            let verdict = try RunWorlds.standard.simulated(planned, nil).verdict
            #expect(verdict.result == .fail, "\(name) does not detect it")
        }
    }

    @Test func theRunsOfAMutantAreMadeFirst() throws {
        let plan = Self.catalogue.enumerated().map {
            PlannedRun(index: $0.offset, source: $0.element.name, scenario: $0.element, world: .simulated)
        }
        let mutant = MutantGallery["sends-during-conflict"]
        let ordered = MutationTest.ordered(plan, for: mutant)
        #expect(ordered.prefix(mutant.runs.count).map(\.scenario.fullName) == mutant.runs)
        #expect(ordered.map(\.index).sorted() == plan.map(\.index))
    }

    // MARK: Proofs

    private static let mutant = RunMutant(
        "wrong", of: .client, "It is wrong.", origin: "a test", by: .invariant(.convergence), broken: .convergence,
        in: ["first", "second"], change: { _ in })

    private static func scenario(_ name: String) throws -> Scenario {
        try ScenarioFile(
            parsing: Fixture.short.replacing("name: short", with: "name: \(name)")
                + "expect: { finally: { server: { count: 1 } } }", file: "\(name).yaml"
        ).scenario
    }

    /// A run in which A shows another text than the server, or all is well.
    private static func verdict(_ scenario: Scenario, diverges: Bool, count: Int = 1) -> Verdict {
        func row(_ text: String) -> History.DeviceState {
            let row = History.DeviceState.Row(
                name: "n1", title: "Milk", text: text, icon: .plain, isDeleted: false, kept: [text])
            return History.DeviceState(rows: Array(repeating: row, count: count), outbox: 0)
        }
        let rows = (0..<count).map { _ in
            History.ServerRow(user: "ada", name: "n1", revision: 2, title: "Milk", text: "three")
        }
        let events: [History.Event] = [
            .mark("edited"), .device("A", row(diverges ? "two" : "three")), .server(rows),
        ]
        return Verdict(scenario, Fixture.history(events))
    }

    @Test func aMutantIsProvenByItsCheckAndTwoScenarios() throws {
        let (first, second) = (try Self.scenario("first"), try Self.scenario("second"))
        var proof = MutantProof(Self.mutant, needsDetector: true)
        proof.add(first, Self.verdict(first, diverges: false))
        #expect(!proof.isProven && proof.problem == "no check failed")
        proof.add(first, Self.verdict(first, diverges: true))
        proof.add(first, Self.verdict(first, diverges: true))
        #expect(!proof.isProven && proof.problem == "one scenario only detects it: first")
        proof.add(second, Self.verdict(second, diverges: true))
        #expect(proof.isProven && proof.scenarioCount == 2 && proof.runCount == 4)
        #expect(proof.mainDetection?.check == "invariant: convergence (I4)")
    }

    @Test func anotherCheckProvesNothing() throws {
        let scenarios = [try Self.scenario("first"), try Self.scenario("second")]
        var proof = MutantProof(Self.mutant, needsDetector: true)
        var ofUser = MutantProof(Self.mutant, needsDetector: false)
        for scenario in scenarios {
            let verdict = Self.verdict(scenario, diverges: false, count: 2)
            proof.add(scenario, verdict)
            ofUser.add(scenario, verdict)
        }
        #expect(!proof.isProven && proof.scenarioCount == 2)
        #expect(proof.problem == "the check that must detect it did not fail: convergence (I4)")
        #expect(ofUser.isProven && ofUser.mainDetection?.isExpected == false)
    }

    // MARK: JSON lines

    /// Every line has the keys that its schema requires, and no others.
    @Test func theLinesMatchTheSchema() throws {
        func object(_ text: String) throws -> [String: Any] {
            try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        }
        let schema = try object(OutputSchema.json)
        let definitions = try #require(schema["$defs"] as? [String: [String: Any]])
        let scenario = try Self.scenario("first")
        var proof = MutantProof(Self.mutant, needsDetector: true)
        proof.add(scenario, Self.verdict(scenario, diverges: true))
        let planned = PlannedRun(index: 0, source: "first", scenario: scenario, world: .simulated)
        var report = MutationTestReport(runs: [planned], mutants: [Self.mutant])
        report.add(proof)
        let lines = [
            report.start(program: "1.0"), report.unmutatedJSON, MutationTestReport.json(Self.mutant),
            MutationTestReport.json(proof), report.end,
        ]
        for line in lines {
            let line = try object(line)
            let type = try #require(line["type"] as? String)
            let definition = try #require(definitions[type])
            let required = Set(try #require(definition["required"] as? [String]))
            let properties = try #require(definition["properties"] as? [String: Any])
            #expect(required.isSubset(of: line.keys), "\(line)")
            #expect(Set(line.keys).isSubset(of: properties.keys), "\(line)")
        }
        let result = try object(MutationTestReport.json(proof))
        #expect(result["detections"] is [[String: Any]])
        #expect(report.exitStatus == 1)
    }

    // MARK: The command

    private static func status(_ simulated: @escaping RunWorlds.Simulated) async throws -> Int32 {
        let folder = try TemporaryFolder()
        try Data(Fixture.passing.utf8).write(to: URL(filePath: folder.path("short.yaml")))
        var options = MutationTest.Options()
        options.scenarios = [folder.path("short.yaml")]
        options.mutants = [MutantGallery["no-backoff"], MutantGallery["no-tombstone"]]
        options.isQuiet = true
        options.isJSON = true
        let live: RunWorlds.Live = { run, _ in try simulated(run, nil) }
        return try await MutationTest(
            options, console: Console(), worlds: RunWorlds(simulated: simulated, live: live)
        ).run()
    }

    private static func result(_ run: PlannedRun, diverges: Bool) -> RunResult {
        let verdict = verdict(run.scenario, diverges: diverges)
        return RunResult(verdict: verdict, history: History(), eventCount: 1)
    }

    @Test func theStatusDependsOnEveryMutant() async throws {
        let all = try await Self.status { (run, _) throws(SetupError) in
            Self.result(run, diverges: !run.mutants.isEmpty)
        }
        #expect(all == 0)
        let one = try await Self.status { (run, _) throws(SetupError) in
            Self.result(run, diverges: run.mutants == [MutantGallery["no-backoff"]])
        }
        #expect(one == 1)
    }

    @Test func aScenarioThatFailsWithoutMutantsProvesNothing() async throws {
        let status = try await Self.status { (run, _) throws(SetupError) in Self.result(run, diverges: true) }
        #expect(status == 1)
    }

    @Test func filesAndNamesAreChecked() async throws {
        let folder = try TemporaryFolder()
        try Data("scenario: 1\n".utf8).write(to: URL(filePath: folder.path("bad.yaml")))
        var options = MutationTest.Options()
        options.isQuiet = true
        options.scenarios = [folder.path("bad.yaml")]
        #expect(try await MutationTest(options, console: Console()).run() == 65)
        options.scenarios = ["no-such-scenario"]
        #expect(try await MutationTest(options, console: Console()).run() == 64)
        options.scenarios = [folder.path("*.yml")]
        #expect(try await MutationTest(options, console: Console()).run() == 4)
    }
}
