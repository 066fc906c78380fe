internal import Determinism
internal import ScenarioModel

/// One of several parts of a batch, each of which runs in a process of its own, on any machine.
///
/// A hash of its name assigns each run to a shard: other runs have no influence on that.
public struct Shard: Hashable, Sendable, CustomStringConvertible {
    /// The maximum number of shards of a batch.
    public static let countMax = 100_000

    /// The number of the shard, from 1.
    public let index: Int
    /// The number of shards.
    public let count: Int

    /// A text that is no shard, or variables that name none.
    public struct Failure: Error, CustomStringConvertible {
        /// The reason, and what to do.
        public let description: String
    }

    /// Creates a shard; `nil` unless `1 <= index <= count <= countMax`.
    public init?(index: Int, count: Int) {
        guard (1...Self.countMax).contains(count), (1...count).contains(index) else { return nil }
        self.index = index
        self.count = count
    }

    /// `2/4`.
    public var description: String { "\(index)/\(count)" }

    /// Returns whether a run with this name belongs to the shard.
    func contains(_ name: String) -> Bool {
        var random = RandomStream(seed: 0, "shard/\(name)")
        return random.integer(below: Int64(count)) == Int64(index - 1)
    }

    /// Returns whether a seed of an exploration belongs to the shard.
    func contains(seed: UInt64) -> Bool { contains("seed\n\(seed)") }

    // MARK: Arguments and variables

    /// A shard, and the variables that name it; `nil` if the argument does.
    public typealias Named = (shard: Shard, variables: String?)

    /// Returns the shard of an argument: `2/4`, `auto`, or `auto/4`, which takes the number from the argument.
    public static func named(_ argument: String, environment: [String: String]) throws(Failure) -> Named {
        let parts = argument.split(separator: "/", omittingEmptySubsequences: false)
        if parts[0] == "auto", parts.count <= 2 {
            let count = parts.count == 2 ? number(parts[1]) : nil
            if parts.count == 2, count == nil { throw invalid(argument) }
            return try automatic(count: count, environment)
        }
        guard parts.count == 2, let index = number(parts[0]), let count = number(parts[1]),
            let shard = Shard(index: index, count: count)
        else { throw invalid(argument) }
        return (shard, nil)
    }

    private static func invalid(_ argument: String) -> Failure {
        Failure(
            description:
                "'\(argument)' is not a shard: 2/4 is the second of four (at most \(countMax)); 'auto' reads the "
                + "variables of a job scheduler, and 'auto/4' takes the number of shards from the argument")
    }

    /// The variables of a job scheduler.
    private struct Scheduler {
        let name: String
        let index: String
        let count: String?
        /// The variable with the lowest index, or that index.
        var first: String?
        var firstIndex = 0
        /// The variable with the step between indices.
        var step: String?
    }

    private static let schedulers = [
        Scheduler(name: "Bazel", index: "TEST_SHARD_INDEX", count: "TEST_TOTAL_SHARDS"),
        Scheduler(name: "Buildkite", index: "BUILDKITE_PARALLEL_JOB", count: "BUILDKITE_PARALLEL_JOB_COUNT"),
        Scheduler(name: "CircleCI", index: "CIRCLE_NODE_INDEX", count: "CIRCLE_NODE_TOTAL"),
        Scheduler(name: "GitLab", index: "CI_NODE_INDEX", count: "CI_NODE_TOTAL", firstIndex: 1),
        Scheduler(
            name: "Slurm", index: "SLURM_ARRAY_TASK_ID", count: "SLURM_ARRAY_TASK_COUNT",
            first: "SLURM_ARRAY_TASK_MIN", step: "SLURM_ARRAY_TASK_STEP"),
        Scheduler(name: "Kubernetes", index: "JOB_COMPLETION_INDEX", count: nil),
    ]

    private static func automatic(count: Int?, _ environment: [String: String]) throws(Failure) -> Named {
        for scheduler in schedulers {
            guard let text = environment[scheduler.index], !text.isEmpty else { continue }
            let variables = [scheduler.index] + (count == nil ? scheduler.count.map { [$0] } ?? [] : [])
            let names = "\(scheduler.name): \(variables.joined(separator: ", "))"
            guard let total = count ?? scheduler.count.flatMap({ environment[$0] }).flatMap({ number($0) }) else {
                throw Failure(
                    description:
                        "\(scheduler.name) sets \(scheduler.index)=\(text), and the number of shards is not known: "
                        + "--shard auto/8 names it")
            }
            let first = scheduler.first.flatMap { environment[$0] }.map { number($0) ?? -1 } ?? scheduler.firstIndex
            let step = scheduler.step.flatMap { environment[$0] }.map { number($0) ?? 0 } ?? 1
            guard let value = number(text), first >= 0, step > 0, value >= first, (value - first) % step == 0,
                let shard = Shard(index: (value - first) / step + 1, count: total)
            else {
                let values = variables.map { "\($0)=\(environment[$0] ?? "")" }.joined(separator: " ")
                throw Failure(
                    description: "\(scheduler.name)'s variables name no shard of \(total): \(values)")
            }
            return (shard, names)
        }
        throw Failure(
            description:
                "--shard auto: no variables of \(schedulers.map(\.name).joined(separator: ", ")); --shard 2/4 names "
                + "the second of four shards")
    }

    /// Returns a number of at most nine decimal digits.
    private static func number(_ text: some StringProtocol) -> Int? {
        (1...9).contains(text.utf8.count) && text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(text) : nil
    }
}

/// The part of a batch that a process runs, as it is reported.
public struct BatchPart: Hashable, Sendable {
    /// The shard.
    public let shard: Shard
    /// A digest of the names of all runs of the batch: equal for shards of equal batches.
    public let batch: UInt64
    /// The number of runs of the whole batch.
    public let runCount: Int

    /// The digest in 16 hexadecimal digits.
    var batchText: String {
        let text = String(batch, radix: 16)
        return String(repeating: "0", count: 16 - text.utf8.count) + text
    }

    /// Divides a batch; returns its part and the runs of the part, with a run that must fail at the end.
    static func divide(_ plan: [PlannedRun], _ shard: Shard) -> (part: BatchPart, runs: [PlannedRun]) {
        var names = FNV1a()
        for run in plan {
            for byte in "\(run.source)\n\(run.shardName)\n\(run.world.rawValue)\n\(run.mutantNames ?? "")\n".utf8 {
                names.add(byte)
            }
        }
        var runs = plan.filter { shard.contains($0.shardName) }
        for index in runs.indices { runs[index].index = index }
        runs.append(Canary.run(index: runs.count, seed: UInt64(shard.index)))
        return (BatchPart(shard: shard, batch: names.value, runCount: plan.count), runs)
    }
}

extension PlannedRun {
    /// The name that determines the shard of the run: both worlds of a scenario are in one.
    fileprivate var shardName: String { "\(scenario.fullName)\n\(seed)" }
}
