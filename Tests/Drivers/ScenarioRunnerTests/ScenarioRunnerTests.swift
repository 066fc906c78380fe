import ConfigFiles
import Determinism
import Scenario
import Synchronization
import TestSupport
import Testing
import Worlds

@testable import ScenarioRunner

@Suite(.timeLimit(.minutes(20))) struct ScenarioRunnerTests {
    private static func plan(_ count: Int, world: RunWorld = .simulated) throws -> [PlannedRun] {
        try (0..<count).map { try Fixture.run(Fixture.passing, index: $0, world: world, seed: UInt64($0)) }
    }

    /// Worlds whose runs have one event, and take as long as `work` does.
    private static func worlds(_ work: @escaping @Sendable (PlannedRun) -> History = { _ in History() }) -> RunWorlds {
        RunWorlds(
            simulated: { (run, _) throws(SetupError) -> RunResult in Fixture.result(work(run)) },
            live: { run, _ in Fixture.result(work(run)) })
    }

    @Test func resultsLeaveInTheOrderOfThePlan() async throws {
        let gates = (0..<4).map { _ in BlockingGate() }
        // Each run ends only when the next one has: the completion order is the reverse of the plan.
        let worlds = Self.worlds { run in
            if run.index < 3 { gates[run.index + 1].wait() }
            gates[run.index].open()
            return History()
        }
        var indices: [Int] = []
        try await ScenarioRunner(worlds: worlds, jobs: 4).run(
            Self.plan(4), transform: { $0.run.index }, onResult: { indices.append($0) })
        #expect(indices == [0, 1, 2, 3])
    }

    /// More blocking runs than CPUs: on the cooperative pool they would wait for each other for ever.
    @Test func runsInVirtualTimeDoNotBlockTheCooperativePool() async throws {
        let count = 64
        let started = Mutex(0)
        let gate = BlockingGate()
        let worlds = Self.worlds { _ in
            if started.withLock({ count in
                count += 1
                return count
            }) == count {
                gate.open()
            }
            gate.wait()
            return History()
        }
        var results = 0
        try await ScenarioRunner(worlds: worlds, jobs: count).run(
            Self.plan(count), transform: { _ in () }, onResult: { _ in results += 1 })
        #expect(results == count)
    }

    @Test func noMoreThanTheGivenNumberRunsAtATime() async throws {
        let running = Mutex((now: 0, most: 0))
        let worlds = Self.worlds { _ in
            running.withLock {
                $0.now += 1
                $0.most = max($0.most, $0.now)
            }
            for _ in 0..<1000 { _ = History().digest }
            running.withLock { $0.now -= 1 }
            return History()
        }
        try await ScenarioRunner(worlds: worlds, jobs: 3).run(
            Self.plan(24), transform: { _ in () }, onResult: { _ in })
        #expect((1...3).contains(running.withLock { $0.most }))
    }

    /// Runs in both worlds end; the one in virtual time without its thread.
    @Test(arguments: [RunWorld.simulated, .live]) func cancellationEndsRuns(_ world: RunWorld) async throws {
        let started = BlockingGate()
        let gate = BlockingGate()
        defer { gate.open() }
        let worlds = RunWorlds(
            simulated: { (_, _) throws(SetupError) -> RunResult in
                started.open()
                gate.wait()
                return Fixture.result(History())
            },
            live: { _, _ in
                started.open()
                try await Task.sleep(for: .seconds(600))
                return Fixture.result(History())
            })
        let plan = try Self.plan(3, world: world)
        let task = Task {
            try await ScenarioRunner(worlds: worlds, jobs: 2).run(plan, transform: { _ in () }, onResult: { _ in })
        }
        try await BlockingThread.run { started.wait() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    /// Every second run in virtual time has another event.
    private static func unstableWorlds() -> RunWorlds {
        let calls = CallCounter()
        return worlds { _ in Fixture.history([.mark("a"), .mark(calls.next() % 2 == 0 ? "b" : "c")]) }
    }

    @Test func aRunWithOtherEventsInItsRepetitionIsAnError() async throws {
        var summaries: [RunSummary] = []
        try await ScenarioRunner(worlds: Self.unstableWorlds(), jobs: 1, checksDeterminism: true).run(
            Self.plan(1), transform: { RunSummary($0, showsText: false, isTraced: false) },
            onResult: { summaries.append($0) })
        let summary = try #require(summaries.first)
        #expect(summary.result == .error)
        #expect(summary.exitStatus == 70)
        #expect(summary.isReproducible == false)
        #expect(summary.errors[0].contains("the first event that differs has index 1:"))
        #expect(summary.errors[1] == "  run 1: 0.001000000 mark mark=b")
        #expect(summary.errors[2] == "  run 2: 0.001000000 mark mark=c")
    }

    @Test func passingRunsAreNotRepeatedByDefault() async throws {
        var repetitions: [Bool] = []
        try await ScenarioRunner(worlds: Self.unstableWorlds(), jobs: 1).run(
            Self.plan(2), transform: { if case .none = $0.repetition { false } else { true } },
            onResult: { repetitions.append($0) })
        #expect(repetitions == [false, false])
    }

    @Test func failingRunsAreRepeated() async throws {
        let run = try Fixture.run(Fixture.short + "expect: { finally: { server: { n1: { revision: 9 } } } }")
        var summary: RunSummary?
        try await ScenarioRunner(jobs: 1).run(
            [run], transform: { RunSummary($0, showsText: false, isTraced: false) }, onResult: { summary = $0 })
        #expect(summary?.isReproducible == true)
        #expect(summary?.exitStatus == 1)
        #expect(summary?.screen.contains { $0.hasPrefix("  reproducible: repeated with the same digest ") } == true)
    }

    /// Runs share no state: side by side they have the same events as one after the other.
    @Test func runsSideBySideHaveTheSameDigests() async throws {
        var plan: [PlannedRun] = []
        for name in ScenarioCatalogue.names.prefix(randomSeeds(8, soak: 400).count) {
            for seed in randomSeeds(1) {
                let scenario = try ScenarioCatalogue.scenario(name).scenario
                if scenario.tags.contains("soak") { continue }
                plan.append(
                    PlannedRun(index: plan.count, source: name, scenario: scenario, world: .simulated, seed: seed))
            }
        }
        var digests: [[UInt64]] = []
        for jobs in [1, 8] {
            var found: [UInt64] = []
            try await ScenarioRunner(jobs: jobs).run(
                plan, transform: { $0.result?.digest ?? 0 }, onResult: { found.append($0) })
            digests.append(found)
        }
        #expect(digests[0] == digests[1])
        #expect(Set(digests[0]).count == plan.count)
    }

    @Test func errorsOfOneRunDoNotEndTheOthers() async throws {
        struct PortError: Error, CustomStringConvertible { let description = "no port" }
        let worlds = RunWorlds(
            simulated: { (run, _) throws(SetupError) -> RunResult in
                if run.index == 0 { throw SetupError("bad contract") }
                return Fixture.result(History())
            }, live: { _, _ in throw PortError() })
        let plan = [
            try Fixture.run(Fixture.passing, index: 0), try Fixture.run(Fixture.passing, index: 1, world: .live),
            try Fixture.run(Fixture.passing, index: 2),
        ]
        var summaries: [RunSummary] = []
        try await ScenarioRunner(worlds: worlds, jobs: 2).run(
            plan, transform: { RunSummary($0, showsText: false, isTraced: false) },
            onResult: { summaries.append($0) })
        #expect(summaries.map(\.exitStatus) == [65, 69, 0])
        #expect(summaries.map(\.errors) == [["bad contract"], ["short: no port"], []])
        #expect(RunReport(runs: summaries).exitStatus == 69)
    }

    @Test(
        arguments: [
            ([], 0), ([0, 0], 0), ([0, 3], 3), ([3, 65], 65), ([65, 1, 3], 1), ([69, 65], 69), ([1, 69], 1),
            ([1, 70, 0], 70),
        ] as [([Int32], Int32)])
    func theWorstStatusCounts(_ statuses: [Int32], worst: Int32) {
        #expect(RunStatus.worst(of: statuses) == worst)
    }
}

/// A counter for several threads.
final class CallCounter: Sendable {
    private let count = Mutex(0)

    func next() -> Int {
        count.withLock { count in
            defer { count += 1 }
            return count
        }
    }
}
