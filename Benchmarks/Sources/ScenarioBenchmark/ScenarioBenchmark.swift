import ConfigFiles
import Determinism
import Foundation
import MutantGallery
import Scenario
import Worlds

/// Measures the speed of scenarios in virtual time, or prints digests to compare processes and builds.
@main struct ScenarioBenchmark {
    static let usage = """
        usage: ScenarioBenchmark [SEEDS]            seeds, events and virtual seconds per second; each built-in scenario
               ScenarioBenchmark --events SEEDS     runs the soak with the seeds and prints the number of events
               ScenarioBenchmark --digests SEEDS    digests of all built-in scenarios and of the soak with each seed
               ScenarioBenchmark --history SEED     the events of the soak with a seed, and what failed
               ScenarioBenchmark --kills NAME       kills the clients of a scenario at every commit boundary and
                                                    compares the final states; 'all' for all built-in scenarios,
                                                    or a YAML file, or a folder with a slash at its end
               ScenarioBenchmark --kill RUN DEVICE ACTION
                                                    the events of a built-in run, such as 'half-open (orig)', with one of
                                                    these kills, and what failed
               ScenarioBenchmark --mutation-coverage NAME     prints faults without which a scenario passes, and expectations that
                                                    no mutant violates, with counts; NAME as above
        """

    static func main() throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        switch (arguments.first, arguments.count) {
        case (nil, 0): try measure(seeds: 30)
        case ("--events", 2):
            guard let count = number(arguments[1]) else { return print(usage) }
            print(try soak(count).events)
        case ("--digests", 2):
            guard let count = number(arguments[1]) else { return print(usage) }
            try printDigests(seeds: count)
        case ("--history", 2):
            guard let seed = number(arguments[1]) else { return print(usage) }
            try printHistory(seed: UInt64(seed))
        case ("--kills", 2): try sweepKills(arguments[1])
        case ("--kill", 4):
            guard let action = number(arguments[3]) else { return print(usage) }
            try printKill(arguments[1], arguments[2], action)
        case ("--mutation-coverage", 2): try examineMutationCoverage(arguments[1])
        case (let count?, 1):
            guard let count = number(count) else { return print(usage) }
            try measure(seeds: count)
        default: print(usage)
        }
    }

    static func number(_ text: String) -> Int? { Int(text).flatMap { (1...1_000_000).contains($0) ? $0 : nil } }

    // MARK: Digests

    static func printDigests(seeds: Int) throws {
        for scenario in try builtIn() { print(try SimulatedRun.run(scenario).digestText, scenario.fullName) }
        for seed in 1...UInt64(seeds) {
            let scenario = try swarm().scenario(seed: seed)
            let digests = try [ServerStorage.sqlite, .collections].map {
                try SimulatedRun.run(scenario, storage: $0).digestText
            }
            // Where the notes are has no influence.
            let difference = digests[0] == digests[1] ? "" : ", and \(digests[1]) without SQLite"
            print(digests[0] + difference, "soak seed \(seed)")
        }
    }

    static func printHistory(seed: UInt64) throws {
        printEvents(try SimulatedRun.run(swarm().scenario(seed: seed)))
    }

    static func printKill(_ name: String, _ device: String, _ action: Int) throws {
        guard let scenario = try builtIn().first(where: { $0.fullName == name }) else {
            return print("no run is called '\(name)'")
        }
        let kill = SimulatedRun.Kill(device: device, beforeAction: action, restartsAfter: KillSweep.restartDelay)
        printEvents(try SimulatedRun.run(scenario, kill: kill))
    }

    static func printEvents(_ result: RunResult) {
        for entry in result.history.entries {
            print(String(format: "%14.6f", Double(entry.time.count) / 1e9), entry.event)
        }
        for check in result.verdict.checks where check.outcome != .pass { print(check.description, check.outcome) }
    }

    /// The soak: what `slowlane explore two-device-soak` runs.
    static func swarm() throws -> Swarm {
        Swarm(try ScenarioCatalogue.scenario("two-device-soak").scenario, links: .builtIn)
    }

    /// Returns all runs of a built-in scenario, of a file or of the files in a folder; of all built-in scenarios by default.
    static func builtIn(_ name: String = "all") throws -> [Scenario] {
        if name.hasSuffix(".yaml") {
            let text = try String(contentsOfFile: name, encoding: .utf8)
            return try ScenarioFile(parsing: text, file: name).runs(ofVariant: nil)
        }
        if name.hasSuffix("/") {
            return try FileManager.default.contentsOfDirectory(atPath: name).filter { $0.hasSuffix(".yaml") }.sorted()
                .flatMap { try builtIn(name + $0) }
        }
        return try (name == "all" ? ScenarioCatalogue.names : [name]).flatMap { try ScenarioCatalogue.scenario($0).runs(ofVariant: nil) }
    }

    // MARK: Sweeps

    /// Performs the work of each number on all processors, and passes the results on in the order of the numbers.
    static func inParallel<Value: Sendable>(
        _ count: Int, _ work: @escaping @Sendable (Int) throws -> Value, _ each: (Int, Value) throws -> Void
    ) throws {
        let size = 64
        for start in stride(from: 0, to: count, by: size) {
            let results = Results<Value>(min(size, count - start))
            DispatchQueue.concurrentPerform(iterations: min(size, count - start)) { index in
                results.set(index, Result { try work(start + index) })
            }
            for (index, result) in results.values.enumerated() {
                if let result { try each(start + index, try result.get()) }
            }
        }
    }

    /// The results of concurrent work.
    final class Results<Value: Sendable>: @unchecked Sendable {
        private let lock = NSLock()
        private(set) var values: [Result<Value, any Error>?]

        init(_ count: Int) { values = Array(repeating: nil, count: count) }

        func set(_ index: Int, _ value: Result<Value, any Error>) {
            lock.lock()
            values[index] = value
            lock.unlock()
        }
    }

    static func sweepKills(_ name: String) throws {
        let scenarios = try builtIn(name)
        var (kills, differing) = (0, 0)
        try inParallel(scenarios.count) { try KillSweep(scenarios[$0]) } _: { index, sweep in
            kills += sweep.kills
            differing += sweep.differences.count
            print(
                "\(scenarios[index].fullName): \(sweep.kills) kills, \(sweep.repeatedReplies) with a repeated reply, "
                    + "\(sweep.differences.count) differ\(sweep.comparesStates ? "" : " (invariants only)")")
            for difference in sweep.differences { print("  \(difference)") }
        }
        print("\(scenarios.count) runs, \(kills) kills, \(differing) with another final state or a violated invariant")
        if differing > 0 { exit(1) }
    }

    static func examineMutationCoverage(_ name: String) throws {
        let scenarios = try builtIn(name)
        var all = MutationCoverage()
        try inParallel(scenarios.count) { try MutationCoverage(scenarios[$0]) } _: { _, coverage in all.add(coverage) }
        var unneeded = 0
        for (part, finding) in all.findings.sorted(by: { $0.key < $1.key }) where !finding.isNeeded(part.kind) {
            unneeded += 1
            let runs = finding.passesWithout.count
            let reason =
                part.kind != .fault
                ? "no mutant violates" : finding.isFired ? "\(runs) runs pass without" : "never applies:"
            print("\(part.location): \(reason) \(part.text)")
        }
        print("\nkind        parts  needed  detected by nothing else")
        for kind in MutationCoverage.Part.Kind.allCases {
            let parts = all.findings.filter { $0.key.kind == kind }
            let counts = [
                parts.count, parts.count { $0.value.isNeeded(kind) }, parts.count { !$0.value.onlyHere.isEmpty },
            ]
            print(
                kind.rawValue.padding(toLength: 10, withPad: " ", startingAt: 0),
                String(format: "%6d  %6d  %24d", counts[0], counts[1], counts[2]))
        }
        print(
            "\(scenarios.count) runs, \(all.killers.count) of \(MutantGallery.mutants.count) mutants fail, "
                + "\(all.findings.count) faults and expectations, \(unneeded) not needed")
        if unneeded > 0 { exit(1) }
    }

    // MARK: Speed

    struct Total {
        var events = 0
        var entries = 0
        var virtualSeconds = 0.0
        var results: [Verdict.Result: Int] = [:]
        var wall = 0.0
        var processor = 0.0

        mutating func add(_ result: RunResult) {
            events += result.eventCount
            entries += result.history.entries.count
            virtualSeconds += Double(result.history.entries.last?.time.count ?? 0) / 1e9
            results[result.verdict.result, default: 0] += 1
        }
    }

    static func soak(_ seeds: Int, _ storage: ServerStorage = .collections) throws -> Total {
        var total = Total()
        let swarm = try swarm()
        let scenarios = (1...UInt64(seeds)).map { swarm.scenario(seed: $0) }
        let start = (seconds(CLOCK_MONOTONIC), seconds(CLOCK_PROCESS_CPUTIME_ID))
        for scenario in scenarios { total.add(try SimulatedRun.run(scenario, storage: storage)) }
        total.wall = seconds(CLOCK_MONOTONIC) - start.0
        total.processor = seconds(CLOCK_PROCESS_CPUTIME_ID) - start.1
        return total
    }

    static func seconds(_ clock: clockid_t) -> Double {
        var time = timespec()
        clock_gettime(clock, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    static func measure(seeds: Int) throws {
        _ = try soak(1)
        let length = Swarm.length.count / 1_000_000_000
        print("soak: \(seeds) seeds of \(length) s and \(Swarm.actions) actions, best of 3 rounds")
        var (best, sqlite) = (try soak(seeds), try soak(seeds, .sqlite))
        for _ in 0..<2 {
            let (next, other) = (try soak(seeds), try soak(seeds, .sqlite))
            if next.processor < best.processor { best = next }
            if other.processor < sqlite.processor { sqlite = other }
        }
        func rate(_ count: Double) -> String { String(format: "%.0f", count / best.processor) }
        print("  seeds per CPU second            \(String(format: "%.1f", Double(seeds) / best.processor))")
        print("    with the notes in SQLite      \(String(format: "%.1f", Double(seeds) / sqlite.processor))")
        print("  seeds per second                \(String(format: "%.1f", Double(seeds) / best.wall))")
        print("  events per CPU second           \(rate(Double(best.events)))")
        print("  virtual seconds per CPU second  \(rate(best.virtualSeconds))")
        print("  events per seed                 \(best.events / seeds)")
        print("  entries of the history per seed \(best.entries / seeds)")
        let results = best.results.map { "\($0.value) \($0.key.rawValue)" }.sorted().joined(separator: ", ")
        print("  verdicts                        \(results)")
        print("built-in scenarios, best of 5 runs")
        for scenario in try builtIn() {
            var shortest = Double.infinity
            for _ in 0..<5 {
                let start = seconds(CLOCK_MONOTONIC)
                _ = try SimulatedRun.run(scenario)
                shortest = min(shortest, seconds(CLOCK_MONOTONIC) - start)
            }
            print("  \(String(format: "%6.1f ms", shortest * 1000))  \(scenario.fullName)")
        }
    }
}
