import CommandSupport
import ConfigFiles
import Foundation
import Scenario
import Testing

@testable import ScenarioRunner

/// Parts of a batch, and their results as one report.
@Suite struct ShardTests {
    // MARK: Arguments and variables

    private static func named(_ argument: String, _ environment: [String: String] = [:]) -> String {
        do throws(Shard.Failure) {
            let named = try Shard.named(argument, environment: environment)
            return "\(named.shard) \(named.variables ?? "argument")"
        } catch {
            return error.description
        }
    }

    @Test(arguments: ["0/4", "5/4", "1/0", "1", "a/b", "1/100001", "", "auto/0", "auto/x", "auto/1/2", "-1/4", "1/4/4"])
    func anArgumentThatIsNoShardIsRefused(_ argument: String) {
        #expect(throws: Shard.Failure.self) { try Shard.named(argument, environment: ["JOB_COMPLETION_INDEX": "1"]) }
    }

    @Test func schedulersNameTheirShards() {
        #expect(Self.named("2/4") == "2/4 argument")
        #expect(
            Self.named("auto", ["CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "4"])
                == "2/4 GitLab: CI_NODE_INDEX, CI_NODE_TOTAL")
        #expect(Self.named("auto", ["CIRCLE_NODE_INDEX": "1", "CIRCLE_NODE_TOTAL": "4"]).hasPrefix("2/4 CircleCI"))
        #expect(
            Self.named("auto", ["BUILDKITE_PARALLEL_JOB": "3", "BUILDKITE_PARALLEL_JOB_COUNT": "4"]).hasPrefix(
                "4/4 Buildkite"))
        #expect(Self.named("auto", ["TEST_SHARD_INDEX": "0", "TEST_TOTAL_SHARDS": "3"]).hasPrefix("1/3 Bazel"))
        let slurm = [
            "SLURM_ARRAY_TASK_ID": "14", "SLURM_ARRAY_TASK_COUNT": "4", "SLURM_ARRAY_TASK_MIN": "10",
            "SLURM_ARRAY_TASK_STEP": "2",
        ]
        #expect(Self.named("auto", slurm).hasPrefix("3/4 Slurm"))
        #expect(Self.named("auto/8", ["JOB_COMPLETION_INDEX": "7"]) == "8/8 Kubernetes: JOB_COMPLETION_INDEX")
        #expect(Self.named("auto", ["JOB_COMPLETION_INDEX": "7"]).contains("--shard auto/8 names it"))
        #expect(Self.named("auto", ["CI_NODE_INDEX": "5", "CI_NODE_TOTAL": "4"]).contains("no shard of 4"))
        #expect(Self.named("auto", slurm.merging(["SLURM_ARRAY_TASK_ID": "15"]) { $1 }).contains("no shard of 4"))
        #expect(Self.named("auto").contains("no variables of Bazel, Buildkite"))
    }

    // MARK: Parts

    private static func plan(_ count: Int) throws -> [PlannedRun] {
        try (0..<count).map { try Fixture.run(Fixture.passing, index: $0, seed: UInt64($0)) }
    }

    @Test func eachRunIsInOneShard() throws {
        let plan = try Self.plan(200)
        var seeds: [UInt64] = []
        for index in 1...4 {
            let shard = try #require(Shard(index: index, count: 4))
            let (part, runs) = BatchPart.divide(plan, shard)
            #expect(runs.last?.isCanary == true && runs.map(\.index) == Array(runs.indices))
            #expect(part.runCount == 200)
            #expect((30...70).contains(runs.count - 1), "\(runs.count)")
            seeds += runs.dropLast().map(\.seed)
            // Other runs have no influence.
            let fewer = BatchPart.divide(plan.filter { $0.seed % 3 == 0 }, shard)
            let expected: [UInt64] = runs.dropLast().map(\.seed).filter { $0 % 3 == 0 }
            let found: [UInt64] = fewer.runs.dropLast().map(\.seed)
            #expect(found == expected)
            #expect(fewer.part.batch != part.batch)
        }
        #expect(seeds.sorted() == plan.map(\.seed))
        // The assignment is the same in every process and version.
        let second = try #require(Shard(index: 2, count: 4))
        let few: [UInt64] = BatchPart.divide(Array(plan.prefix(8)), second).runs.dropLast().map(\.seed)
        #expect(few == [1, 3, 6])
    }

    @Test func theCanaryFails() throws {
        let summary = try Fixture.summary(Canary.run(index: 0, seed: 3))
        #expect(summary.result == .fail)
        #expect(summary.cause.hasPrefix("finally: server n1 text three: "))
    }

    // MARK: Merging

    /// A folder of results, removed at the end of the test.
    private final class Folder: Sendable {
        let path = FileManager.default.temporaryDirectory.appending(path: "shards-\(UUID().uuidString)").path

        init() throws { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }
        deinit { try? FileManager.default.removeItem(atPath: path) }

        func write(_ name: String, _ text: String) throws {
            try Data(text.utf8).write(to: URL(filePath: "\(path)/\(name)"))
        }

        func text(_ name: String) throws -> String { try String(contentsOfFile: "\(path)/\(name)", encoding: .utf8) }
    }

    private static let failing = Fixture.short + "expect: { finally: { server: { n1: { text: <four> } } } }\n"

    /// Runs a session and returns its exit status.
    private static func run(_ folder: Folder, shard: Int?, results: String, junit: String? = nil) async throws -> Int32
    {
        var options = RunSession.Options(scenarios: ["\(folder.path)/set"])
        options.shard = shard.flatMap { Shard(index: $0, count: 3) }
        options.resultsPath = "\(folder.path)/\(results)"
        options.junitPath = junit.map { "\(folder.path)/\($0)" }
        options.isQuiet = true
        return try await RunSession(options, console: Console()).run()
    }

    private static func merge(_ folder: Folder, junit: String? = nil) -> Int32 {
        var options = MergedResults.Options(paths: [folder.path])
        options.junitPath = junit.map { "\(folder.path)/\($0)" }
        return MergedResults(options, console: Console()).run()
    }

    private static func batch() async throws -> Folder {
        let folder = try Folder()
        try FileManager.default.createDirectory(atPath: "\(folder.path)/set", withIntermediateDirectories: true)
        for number in 1...9 {
            let text = number % 4 == 0 ? failing : Fixture.passing
            try folder.write("set/s\(number).yaml", text.replacing("name: short", with: "name: short-\(number)"))
        }
        try folder.write("set/bad.yaml", "scenario: 1\nname: bad\nwrong: 1\n")
        return folder
    }

    /// Times of the real clock.
    private static func withoutTimes(_ text: String) -> String {
        text.replacing(#/ (time|timestamp)="[^"]*"/#, with: "")
    }

    @Test func mergedShardsAreTheWholeBatch() async throws {
        let folder = try await Self.batch()
        #expect(try await Self.run(folder, shard: nil, results: "all.txt", junit: "all.xml") == RunStatus.failed)
        for shard in 1...3 {
            #expect(try await Self.run(folder, shard: shard, results: "\(shard).jsonl") != RunStatus.passed)
        }
        #expect(Self.merge(folder, junit: "merged.xml") == RunStatus.failed)
        let (files, problems) = MergedResults.read([folder.path])
        #expect(files.count == 3 && problems == [])
        let classes = FailureClass.classes(files.flatMap(\.runs))
        #expect(classes.map(\.name) == ["fail: finally: server n# text <four>"] && classes[0].count == 2)
        #expect(FailureClass.lines(files.flatMap(\.runs)).contains { $0.contains("slowlane run ") })
        let merged = Self.withoutTimes(try folder.text("merged.xml")).split(separator: "\n")
        let whole = Self.withoutTimes(try folder.text("all.xml")).split(separator: "\n")
        #expect(merged.count == whole.count)
        for (found, expected) in zip(merged, whole) { #expect(found == expected) }
    }

    @Test func filesThatAreNotOneBatchAreRefused() async throws {
        let folder = try await Self.batch()
        for shard in 1...3 { _ = try await Self.run(folder, shard: shard, results: "\(shard).jsonl") }
        let second = try folder.text("2.jsonl")
        func expect(_ problem: String, _ text: String?) throws {
            if let text {
                try folder.write("2.jsonl", text)
            } else {
                try FileManager.default.removeItem(atPath: "\(folder.path)/2.jsonl")
            }
            let found = MergedResults.read([folder.path]).problems
            #expect(found.contains { $0.contains(problem) }, "\(problem): \(found)")
        }
        try expect("missing: shard 2/3", nil)
        try expect("2.jsonl: shard 1/3, which ", try folder.text("1.jsonl"))
        let lines = second.split(separator: "\n").map(String.init)
        try expect("2.jsonl: the end is missing", lines.dropLast().joined(separator: "\n"))
        try expect("runs of ", (lines.prefix(2) + lines.suffix(1)).joined(separator: "\n"))
        try expect("2.jsonl:2: not a line of results", lines[0] + "\n" + second.dropFirst(40).prefix(100))
        try expect("2.jsonl:2: a line 'run' that does not belong here", lines[0] + "\n" + second)
        try expect("2.jsonl: no results", "")
        try expect("not among the failures", second.replacing("\"canary\":true", with: "\"canary\":false"))
        try expect("results of version 2", second.replacing("\"version\":1", with: "\"version\":2"))
        try expect("of another batch", second.replacing("\"runs\":9", with: "\"runs\":8"))
        try expect(
            "2.jsonl: the seeds are 1 to 9, and in \(folder.path)/1.jsonl 1",
            second.replacing("\"seeds\":[\"1\",\"1\"]", with: "\"seeds\":[\"1\",\"9\"]"))
        for key in ["seeds", "files"] {
            try expect(
                "2.jsonl:1: its shard has no seeds and no digests of the scenario files: an older slowlane",
                second.replacing("\"\(key)\":[", with: "\"former-\(key)\":["))
        }
        try expect("of slowlane 0", second.replacing(#/"slowlane":"[^"]*"/#, with: "\"slowlane\":\"0\""))
        try expect("its shard is not valid", second.replacing("\"index\":2", with: "\"index\":4"))
        try folder.write("2.jsonl", second)
        #expect(Self.merge(folder) == RunStatus.failed)
        try folder.write("2.jsonl", "")
        #expect(Self.merge(folder) == RunStatus.invalidFile)
    }

    @Test func shardsOfAFileThatWasEditedBetweenThemAreRefused() async throws {
        let folder = try await Self.batch()
        func digest(_ shard: Int) throws -> Substring {
            let text = try folder.text("\(shard).jsonl")
            let found = text.firstMatch(of: #/s3\.yaml","digest":"([0-9a-f]{16})"/#)
            return try #require(found).output.1
        }
        for shard in 1...2 { _ = try await Self.run(folder, shard: shard, results: "\(shard).jsonl") }
        // The runs have the same names and seeds.
        try folder.write("set/s3.yaml", try folder.text("set/s3.yaml").replacing("three", with: "four"))
        _ = try await Self.run(folder, shard: 3, results: "3.jsonl")
        let problems = MergedResults.read([folder.path]).problems
        #expect(
            problems == [
                "\(folder.path)/3.jsonl: \(folder.path)/set/s3.yaml has the digest \(try digest(3)), and in "
                    + "\(folder.path)/1.jsonl \(try digest(1)): the file, or one that it names, has changed between "
                    + "the shards; run all shards again"
            ])
        #expect(Self.merge(folder) == RunStatus.invalidFile)
    }

    @Test func theFilesThatAScenarioNamesAreCompared() async throws {
        let folder = try await Self.batch()
        let profile = "profile: 1\nname: P\ndown: { rate: 1000 kbit/s }\nup: { rate: 1000 kbit/s }\n"
        let base = try folder.text("set/s1.yaml").replacing("wifi", with: "p.yaml")
        try folder.write("set/p.yaml", profile)
        try folder.write("set/s1.yaml", base)
        try folder.write("set/e.yaml", "scenario: 1\nname: short-e\nextends: s1.yaml\n")
        func digests() throws -> [UInt64] {
            try ScenarioSelection(["\(folder.path)/set/s1.yaml", "\(folder.path)/set/e.yaml"]).sources.map(
                \.file.digest)
        }
        let before = try digests()
        try #require(before.count == 2)
        try folder.write("set/p.yaml", profile.replacing("1000", with: "2000"))
        let after = try digests()
        #expect(after.count == 2 && after[0] != before[0] && after[1] != before[1])
        try folder.write("set/p.yaml", profile)
        #expect(try digests() == before)
        try folder.write("set/s1.yaml", base + "# edited\n")
        #expect(try digests()[1] != before[1])
    }

    @Test func oneCompleteFileIsAReportToo() async throws {
        let folder = try await Self.batch()
        _ = try await Self.run(folder, shard: nil, results: "all.jsonl")
        #expect(Self.merge(folder) == RunStatus.failed)
    }
}
