import CommandSupport
import Foundation
import Scenario
import TestSupport
import Testing
import Worlds

@testable import ScenarioRunner

/// Batches with worlds that the tests control; results are read from the JUnit file.
@Suite struct RunSessionTests {
    /// Runs a scenario in both worlds and returns the exit status and the report.
    private static func run(_ worlds: RunWorlds, _ chosen: [RunWorld]) async throws -> (status: Int32, report: String) {
        let folder = try TemporaryFolder()
        try Data(Fixture.passing.utf8).write(to: URL(filePath: folder.path("short.yaml")))
        var options = RunSession.Options(scenarios: [folder.path("short.yaml")])
        options.worlds = chosen
        options.isQuiet = true
        options.output = .trace
        options.checksDeterminism = true
        options.junitPath = folder.path("results.xml")
        let status = try await RunSession(options, console: Console(), worlds: worlds).run()
        return (status, try String(contentsOfFile: folder.path("results.xml"), encoding: .utf8))
    }

    private static func result(_ run: PlannedRun, _ history: History) -> RunResult {
        RunResult(verdict: Verdict(run.scenario, history), history: history, eventCount: 1)
    }

    private static let good = Fixture.history([
        .mark("edited"), .server([.init(user: "ada", name: "n1", revision: 1, title: nil, text: nil)]),
    ])
    private static let empty = Fixture.history([.mark("edited"), .server([])])

    @Test func differentVerdictsOfTheWorldsAreAFailure() async throws {
        let worlds = RunWorlds(
            simulated: { (run, _) throws(SetupError) -> RunResult in Self.result(run, Self.good) },
            live: { run, _ in Self.result(run, Self.empty) })
        let (status, report) = try await Self.run(worlds, [.simulated, .live])
        #expect(status == 1)
        #expect(
            report.contains(
                "<failure type=\"worlds-differ\" message=\"short: the verdicts differ: simulated pass, live fail\">"))
        #expect(report.contains("simulated pass, live fail: finally: server has 1 note ("))
        #expect(report.contains("in simulation (without --live) the same seed gives 'pass'"))
    }

    @Test func anInvalidFileDoesNotHideTheOthers() async throws {
        let folder = try TemporaryFolder()
        try Data("scenario: 1\nname: a\n".utf8).write(to: URL(filePath: folder.path("a.yaml")))
        try Data(Fixture.passing.utf8).write(to: URL(filePath: folder.path("b.yaml")))
        var options = RunSession.Options(scenarios: [folder.path("a.yaml"), folder.path("b.yaml")])
        options.isQuiet = true
        options.output = .trace
        options.junitPath = folder.path("results.xml")
        let worlds = RunWorlds(
            simulated: { (run, _) throws(SetupError) -> RunResult in Self.result(run, Self.good) },
            live: { run, _ in Self.result(run, Self.good) })
        #expect(try await RunSession(options, console: Console(), worlds: worlds).run() == 65)
        let report = try String(contentsOfFile: folder.path("results.xml"), encoding: .utf8)
        #expect(report.contains("tests=\"2\" failures=\"0\" errors=\"1\""), "\(report)")
        #expect(report.contains("'devices' is missing"))
    }

    @Test func afterATimeOutTheReportHasTheResultsSoFar() async throws {
        let folder = try TemporaryFolder()
        for name in ["a", "b"] {
            try Data(Fixture.passing.utf8).write(to: URL(filePath: folder.path("\(name).yaml")))
        }
        var options = RunSession.Options(scenarios: [folder.path("a.yaml"), folder.path("b.yaml")])
        options.isQuiet = true
        options.output = .trace
        options.worlds = [.live]
        options.junitPath = folder.path("results.xml")
        options.hasTimedOut = { true }
        // The second run lasts until its task is cancelled.
        let (calls, (started, continuation)) = (CallCounter(), AsyncStream.makeStream(of: Void.self))
        let worlds = RunWorlds(
            simulated: { (run, _) throws(SetupError) -> RunResult in Self.result(run, Self.good) },
            live: { run, _ in
                if calls.next() == 1 {
                    continuation.yield()
                    try await Task.sleep(for: .seconds(3600))
                }
                return Self.result(run, Self.good)
            })
        let running = Task { [options] in try await RunSession(options, console: Console(), worlds: worlds).run() }
        for await _ in started { break }
        running.cancel()
        #expect(try await running.value == 124)
        let report = try String(contentsOfFile: folder.path("results.xml"), encoding: .utf8)
        #expect(report.contains("tests=\"1\" failures=\"0\" errors=\"0\""), "\(report)")
    }

    @Test func equalVerdictsOfTheWorldsPass() async throws {
        let worlds = RunWorlds(
            simulated: { (run, _) throws(SetupError) -> RunResult in Self.result(run, Self.good) },
            live: { run, _ in Self.result(run, Self.good) })
        let (status, report) = try await Self.run(worlds, [.simulated, .live])
        #expect(status == 0)
        #expect(report.contains("tests=\"2\" failures=\"0\" errors=\"0\""))
    }

    @Test func equalRunsThatDifferHaveStatus70() async throws {
        let calls = CallCounter()
        let worlds = RunWorlds(
            simulated: { (run, _) throws(SetupError) -> RunResult in
                Self.result(run, calls.next() == 0 ? Self.good : Self.empty)
            }, live: { run, _ in Self.result(run, Self.good) })
        let (status, report) = try await Self.run(worlds, [.simulated])
        #expect(status == 70)
        #expect(report.contains("not deterministic"))
        #expect(report.contains("run 1: 0.001000000 server note=ada:n1:1:-:-"))
        #expect(report.contains("run 2: 0.001000000 server</error>"))
    }

    @Test func anErrorOfAWorldIsUnavailable() async throws {
        struct PortError: Error, CustomStringConvertible { let description = "cannot bind 127.0.0.1:1" }
        let worlds = RunWorlds(
            simulated: { (run, _) throws(SetupError) -> RunResult in Self.result(run, Self.good) },
            live: { _, _ in throw PortError() })
        let (status, report) = try await Self.run(worlds, [.live])
        #expect(status == 69)
        #expect(report.contains("<error type=\"error\" message=\"short: cannot bind 127.0.0.1:1\">"))
    }
}
