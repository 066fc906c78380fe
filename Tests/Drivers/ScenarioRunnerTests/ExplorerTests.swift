import CommandSupport
import Determinism
import Foundation
import MutantGallery
import Scenario
import Synchronization
import TestSupport
import Testing
import Worlds

@testable import ScenarioRunner

/// Explorations with worlds that the tests control.
@Suite(.timeLimit(.minutes(20))) struct ExplorerTests {
    private static let sometimes = "expect: { sometimes: [{ A: { outbox: 1 } }] }\n"

    /// Explores a scenario and returns the exit status.
    private static func explore(
        _ worlds: RunWorlds, _ text: String = Fixture.passing, _ change: (inout Explorer.Options) -> Void = { _ in }
    ) async throws -> Int32 {
        let folder = try TemporaryFolder()
        try Data(text.utf8).write(to: URL(filePath: folder.path("short.yaml")))
        // The folder is removed with its last use.
        defer { withExtendedLifetime(folder) {} }
        var options = Explorer.Options(scenario: folder.path("short.yaml"))
        options.seeds = SeedRange("0..<40")
        options.jobs = 3
        options.isQuiet = true
        options.isJSON = true
        change(&options)
        return try await Explorer(options, console: Console(), worlds: worlds).run()
    }

    private static func worlds(
        _ history: @escaping @Sendable (PlannedRun) throws(SetupError) -> History
    ) -> RunWorlds {
        RunWorlds(
            simulated: { (run, _) throws(SetupError) -> RunResult in
                let history = try history(run)
                return RunResult(
                    verdict: Verdict(run.scenario, history), history: history, eventCount: 1)
            },
            live: { _, _ in throw SetupError("no exploration runs in real time") })
    }

    private static let aborted = Fixture.history([.aborted(.other("too late"))])

    @Test func allSeedsOfTheRangeAreRun() async throws {
        let seeds = Mutex<[UInt64]>([])
        let worlds = Self.worlds { (run) throws(SetupError) in
            seeds.withLock { $0.append(run.seed) }
            return History()
        }
        #expect(try await Self.explore(worlds) { $0.seeds = SeedRange("100+40") } == 0)
        // One in twenty is repeated.
        #expect(seeds.withLock { $0.sorted() } == ([100, 120] + Array(100..<140)).sorted())
    }

    @Test func aFailingSeedIsRepeatedAndReported() async throws {
        let runs = Mutex(0)
        let found = Mutex<[SeedFailure]>([])
        let worlds = Self.worlds { (run) throws(SetupError) in
            guard run.seed == 17 || run.seed == 23 else { return History() }
            runs.withLock { $0 += 1 }
            return Self.aborted
        }
        let status = try await Self.explore(worlds) { options in
            options.onFailure = { failure in
                found.withLock { $0.append(failure) }
                return FailureAddition(lines: [])
            }
        }
        #expect(status == 1)
        #expect(runs.withLock { $0 } == 4)
        // Both seeds are of one class; the first one is explained.
        let failures = found.withLock { $0 }
        #expect(failures.map(\.run.seed) == [17])
        #expect(failures.first?.group.description == "the run ends, run")
        let replay = try #require(failures.first.map { ReplayCommand.arguments($0.run) })
        #expect(replay.prefix(2) == ["slowlane", "explore"] && replay.suffix(2) == ["--seed", "17"])
        #expect(failures.first?.screen.contains { $0.hasPrefix("  replay: slowlane explore ") } == true)
    }

    /// The users of apps act as in the file, as far as that is possible, or as their words allow.
    @Test(arguments: ["pattern-c-form", "reader-blocking-form", "field-interface-policy", "expense-queue"])
    func appsKeepTheirStepsOrHaveDrawnOnes(_ scenario: String) async throws {
        var options = Explorer.Options(scenario: scenario)
        options.seeds = SeedRange("25+\(TestSettings.work(2, soak: 100))")
        options.isQuiet = true
        #expect(try await Explorer(options, console: Console(), worlds: .standard).run() == 0)
        options.parts = Scenario.Exploration.Part.allCases
        #expect(try await Explorer(options, console: Console(), worlds: .standard).run() == 0)
    }

    /// A failing seed becomes a file that fails in the same way.
    @Test func aFailingSeedIsShrunkToAFile() async throws {
        let folder = try TemporaryFolder()
        let text = """
            scenario: 1
            name: short
            server: { notes: { n1: { title: Milk, text: two } } }
            devices: { A: { user: ada } }
            network: { A: { 0s: wifi } }
            steps:
              - { at: 200ms, A: { edit: n1, text: three } }
              - { at: 5s, A: { edit: n1, text: four } }
              - { at: 9s, A: { delete: n1 } }
            expect: { finally: { agree: [A, server] } }

            """
        let found = Mutex<[FailureAddition]>([])
        let path = folder.path("failures")
        let status = try await Self.explore(.standard, text) { options in
            options.seeds = SeedRange("30+10")
            options.parts = [.faults]
            options.mutants = [MutantGallery["drops-on-lost-response"]]
            options.onFailure = { failure in
                let addition = FailureAddition.shrinking(failure, to: path)
                found.withLock { $0.append(addition) }
                return addition
            }
        }
        #expect(status == 1)
        let first = try #require(found.withLock { $0.first })
        #expect(first.lines.count == 2, "\(first.lines)")
        #expect(first.lines.first?.hasPrefix("  shrunk to ") == true, "\(first.lines)")
        #expect(first.lines.last?.contains("slowlane run \(path)/") == true)
        #expect(first.json?.contains("\"reproducible\":true") == true)
    }

    /// Blocks of seeds lean towards the classes of faults that are missing, equally in each exploration.
    @Test func blocksLeanTowardsMissingFaults() async throws {
        func runs() async throws -> [UInt64: Scenario] {
            let runs = Mutex<[UInt64: Scenario]>([:])
            let worlds = Self.worlds { (run) throws(SetupError) in
                runs.withLock { $0[run.seed] = run.scenario }
                return History()
            }
            _ = try await Self.explore(worlds) { options in
                options.seeds = SeedRange("100")
                options.bias = .automatic
            }
            return runs.withLock { $0 }
        }
        func faults(_ runs: [UInt64: Scenario], _ seeds: Range<UInt64>) -> Int {
            seeds.reduce(0) { $0 + (runs[$1]?.faults.count ?? 0) }
        }
        let first = try await runs()
        #expect(first.count == 100)
        // No run applies a fault, so that all classes of faults are missing after the first block.
        #expect(faults(first, 50..<100) > faults(first, 0..<50) * 5 / 4)
        let second = try await runs()
        #expect(first.mapValues(\.faults.count) == second.mapValues(\.faults.count))
    }

    /// The repetition of a failing seed has another event.
    @Test func aRunThatIsNotDeterministicIsAnError() async throws {
        let calls = Mutex(0)
        let worlds = Self.worlds { (run) throws(SetupError) in
            let number = calls.withLock {
                $0 += 1
                return $0
            }
            return Fixture.history([.mark("\(number)")])
        }
        #expect(try await Self.explore(worlds) { $0.seeds = SeedRange("20+1") } == 70)
    }

    /// Runs of the real simulation in which every call has another seed: the comparison stops at the first step.
    @Test func theFirstStepThatDiffersIsShown() throws {
        let calls = Mutex<UInt64>(0)
        let stopped = Mutex(0)
        @Sendable func next() -> UInt64 {
            calls.withLock {
                $0 += 1
                return $0
            }
        }
        let run = try Fixture.run(
            """
            scenario: 1
            name: jitter
            devices: { A: { user: ada } }
            network: { A: { 0s: { flap: [{ wifi: 2s }, { 100-loss: 1s }], jitter: 50% }, 20s: wifi } }
            expect: { finally: { server: { count: 0 } } }

            """)
        let worlds = RunWorlds(
            simulated: RunWorlds.standard.simulated, live: RunWorlds.standard.live,
            traced: { (run, onStep) throws(SetupError) -> RunResult in
                try SimulatedRun.run(run.scenario, seed: next()) { _ in
                } onStep: { step in
                    if onStep(step) { return true }
                    stopped.withLock { $0 += 1 }
                    return false
                }
            })
        let lines = try DeterminismProbe.lines(run, worlds)
        #expect(lines.count == 3)
        #expect(lines[0].hasPrefix("repeated step by step: step "))
        #expect(lines[1].hasPrefix("  run 3: ") && lines[2].hasPrefix("  run 4: "))
        #expect(lines[1].dropFirst(9) != lines[2].dropFirst(9))
        #expect(stopped.withLock { $0 } > 0)
        let same = try DeterminismProbe.lines(run, .standard)
        #expect(same == ["two further runs were equal: the difference is not there in every run"])
    }

    @Test func aStateThatNoSeedReachesIsInconclusive() async throws {
        let never = Self.worlds { (_) throws(SetupError) in History() }
        #expect(try await Self.explore(never, Fixture.short + Self.sometimes) == 3)
        // One seed is enough.
        let once = Self.worlds { (run) throws(SetupError) in
            guard run.seed == 7 else { return History() }
            return Fixture.history([.device("A", .init(rows: [], outbox: 1))])
        }
        #expect(try await Self.explore(once, Fixture.short + Self.sometimes) == 0)
        // The section 'explore' has expectations for drawn runs only.
        let drawn = Fixture.passing + "explore: { seeds: 40, expect: { sometimes: [{ A: { outbox: 1 } }] } }\n"
        #expect(try await Self.explore(never, drawn) == 3)
        #expect(try await Self.explore(once, drawn) == 0)
        let always = Fixture.passing + "explore: { seeds: 40, expect: { always: [{ A: { outbox: 0 } }] } }\n"
        #expect(try await Self.explore(once, always) == 1)
    }

    @Test func argumentsThatSelectNothingToExploreAreErrors() async throws {
        let worlds = Self.worlds { (_) throws(SetupError) in History() }
        #expect(try await Self.explore(worlds) { $0.variant = "other" } == 64)
        #expect(try await Self.explore(worlds, "scenario: 1\nname: a\n") == 65)
        #expect(try await Self.explore(worlds, Fixture.passing + "matrix: { a: [1, 2] }\n") == 64)
        let failing = Self.worlds { (_) throws(SetupError) in throw SetupError("no") }
        #expect(try await Self.explore(failing) == 65)
    }

    /// No seed is begun after the time; all results are counted.
    @Test func theTimeEndsAnExploration() async throws {
        let worlds = Self.worlds { (_) throws(SetupError) in
            Thread.sleep(forTimeInterval: 0.001)
            return History()
        }
        // Without the limit, the seeds would not end.
        let status = try await Self.explore(worlds) { options in
            options.seeds = nil
            options.time = .milliseconds(50)
        }
        #expect(status == 0)
    }

    @Test(arguments: [
        ("0..<200", "0..<200"), ("7+3", "7..<10"), ("5", "0..<5"), ("18446744073709551614+2", nil), ("3..<3", nil),
        ("5..<3", nil), ("0", nil), ("1+2+3", nil), ("-1", nil), ("a", nil), ("", nil), ("0..<2000000000", nil),
    ]) func seedRangesAreRead(_ text: String, _ expected: String?) {
        #expect(SeedRange(text).map { "\($0)" } == expected)
    }

    @Test func theProgressNamesRateStatesFailuresAndTimeLeft() {
        var progress = ExplorationProgress(.seeds(1000), isRewritten: true)
        progress.update(done: 200, failed: 3, states: 57)
        #expect(
            progress.line(at: .seconds(20))
                == "200 of 1000 seeds, 10.0 seeds/s, 57 states reached, 3 failed, 80 s left")
        var timed = ExplorationProgress(.time(.seconds(600)), isRewritten: false)
        timed.update(done: 200, failed: 0, states: 57)
        #expect(timed.report(at: .seconds(1)) == nil)
        #expect(
            timed.report(at: .seconds(20))
                == "200 seeds, 10.0 seeds/s, 57 states reached, 0 failed, 10 min left")
        #expect(timed.report(at: .seconds(21)) == nil)
    }
}
