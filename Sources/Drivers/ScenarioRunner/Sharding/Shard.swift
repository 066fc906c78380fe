internal import Determinism
internal import Scenario

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
    /// The least and the greatest seed of the whole batch.
    public let seeds: ClosedRange<UInt64>
    /// The scenario files of the whole batch, in the order of the plan.
    public let files: [BatchFile]

    /// The digest in 16 hexadecimal digits.
    var batchText: String { BatchFile.text(of: batch) }

    /// The seeds: `0 to 99`.
    var seedsText: String {
        seeds.lowerBound == seeds.upperBound
            ? "\(seeds.lowerBound)" : "\(seeds.lowerBound) to \(seeds.upperBound)"
    }

    /// Divides a batch; returns its part and the runs of the part, with a run that must fail at the end.
    static func divide(_ plan: [PlannedRun], _ shard: Shard) -> (part: BatchPart, runs: [PlannedRun]) {
        var names = FNV1a()
        for run in plan {
            for byte in "\(run.source)\n\(run.shardName)\n\(run.world.rawValue)\n\(run.mutantNames ?? "")\n".utf8 {
                names.add(byte)
            }
        }
        var files: [BatchFile] = []
        for run in plan where files.last?.source != run.source {
            files.append(BatchFile(source: run.source, digest: run.fileDigest))
        }
        let seeds = plan.map(\.seed)
        var runs = plan.filter { shard.contains($0.shardName) }
        for index in runs.indices { runs[index].index = index }
        runs.append(Canary.run(index: runs.count, seed: UInt64(shard.index)))
        let part = BatchPart(
            shard: shard, batch: names.value, runCount: plan.count,
            seeds: (seeds.min() ?? 0)...(seeds.max() ?? 0), files: files)
        return (part, runs)
    }
}

/// A scenario file of a batch, as it is reported.
public struct BatchFile: Hashable, Sendable {
    /// The built-in name or the path.
    public let source: String
    /// A digest of the bytes of the file, and of all files that it names.
    public let digest: UInt64

    /// The digest in 16 hexadecimal digits.
    var digestText: String { Self.text(of: digest) }

    /// Returns a digest in 16 hexadecimal digits.
    static func text(of digest: UInt64) -> String {
        let text = String(digest, radix: 16)
        return String(repeating: "0", count: 16 - text.utf8.count) + text
    }

    /// Returns how the files of a shard differ from those of another one.
    static func differences(_ files: [BatchFile], in name: String, from others: [BatchFile], in other: String)
        -> [String]
    {
        let (found, expected) = (digests(files), digests(others))
        var lines: [String] = []
        for source in Set(found.keys).union(expected.keys).sorted() {
            switch (found[source], expected[source]) {
            case (let found?, let expected?) where found != expected:
                lines.append(
                    "\(name): \(source) has the digest \(text(of: found)), and in \(other) \(text(of: expected)): "
                        + "the file, or one that it names, has changed between the shards; run all shards again")
            case (_?, nil): lines.append("\(name): has runs of \(source), and \(other) has none")
            case (nil, _?): lines.append("\(name): has no runs of \(source), and \(other) has some")
            default: break
            }
        }
        return lines
    }

    private static func digests(_ files: [BatchFile]) -> [String: UInt64] {
        Dictionary(files.map { ($0.source, $0.digest) }) { first, _ in first }
    }
}

extension PlannedRun {
    /// The name that determines the shard of the run: both worlds of a scenario are in one.
    fileprivate var shardName: String { "\(scenario.fullName)\n\(seed)" }
}
