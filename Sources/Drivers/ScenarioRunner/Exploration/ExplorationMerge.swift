internal import CommandSupport
internal import Foundation
internal import Scenario

/// The results of all shards of an exploration as one report.
struct ExplorationMerge {
    let paths: [String]
    let options: MergedResults.Options
    let console: Console

    /// Merges the files, and returns the exit status of the exploration in one process, or 65 if the files are not one
    /// complete exploration.
    func run() -> Int32 {
        guard options.junitPath == nil, !options.isOnGitHub, options.output == .text || options.output == .json else {
            console.error("results of an exploration are merged as text or with --json")
            return RunStatus.usage
        }
        var files: [ExplorationResults] = []
        var problems: [String] = []
        for path in paths {
            do throws(ExplorationResults.Failure) { files.append(try ExplorationResults(path: path)) } catch {
                problems.append(error.description)
            }
        }
        problems += Self.problems(files)
        guard problems.isEmpty, let head = files.first?.head else {
            for problem in problems { console.error(problem) }
            return RunStatus.invalidFile
        }
        return report(files.flatMap(\.seeds).sorted { $0.seed < $1.seed }, head.report)
    }

    /// Returns why files are not one complete exploration; nothing if they are.
    static func problems(_ files: [ExplorationResults]) -> [String] {
        guard let first = files.first else { return [] }
        var problems: [String] = []
        var names: [Int: String] = [:]
        for file in files {
            guard let shard = file.head.shard else {
                if files.count > 1 { problems.append("\(file.name): not a shard, and there are other files") }
                continue
            }
            problems += Self.differences(file, from: first)
            if file.head.program != first.head.program {
                problems.append(
                    "\(file.name): of slowlane \(file.head.program), and \(first.name) of \(first.head.program)")
            }
            if let other = names.updateValue(file.name, forKey: shard.index) {
                problems.append("\(file.name): shard \(shard), which \(other) is too")
            }
            if !file.isCanaryFailed {
                problems.append("\(file.name): its canary, a run that must fail, did not")
            }
        }
        guard problems.isEmpty, let count = first.head.shard?.count else { return problems }
        let missing = (1...count).filter { names[$0] == nil }
        if !missing.isEmpty {
            let list = missing.prefix(20).map { "\($0)/\(count)" }.joined(separator: ", ")
            let more = missing.count > 20 ? " and \(missing.count - 20) more" : ""
            return ["missing: \(missing.count == 1 ? "shard" : "shards") \(list)\(more)"]
        }
        let seeds = Set(files.flatMap { $0.seeds.map(\.seed) }).count
        let expected = first.head.report.count ?? 0
        return UInt64(seeds) == expected
            ? [] : ["\(seeds) seeds in all shards, and the exploration has \(expected)"]
    }

    /// Returns how what a file has explored differs from that of another one, with both values.
    private static func differences(_ file: ExplorationResults, from other: ExplorationResults) -> [String] {
        let (head, expected) = (file.head, other.head)
        var lines = BatchFile.differences([head.file], in: file.name, from: [expected.file], in: other.name)
        if head.report.first != expected.report.first || head.report.count != expected.report.count {
            lines.append(
                "\(file.name): explores \(head.report.range), and \(other.name) \(expected.report.range)")
        }
        if lines.isEmpty, head.batch != expected.batch || head.shard?.count != expected.shard?.count {
            func text(_ head: ExplorationResults.Head) -> String {
                let parts = [head.report.fullName] + head.report.parts + head.report.mutants
                return parts.joined(separator: " ")
                    + (head.shard.map { " in \(TextTable.count($0.count, "shard"))" } ?? "")
            }
            lines.append(
                "\(file.name): of another exploration than \(other.name): \(text(head)), not \(text(expected))")
        }
        return lines
    }

    private func report(_ seeds: [ExploredSeed], _ report: ExplorationReport) -> Int32 {
        let isJSON = options.output == .json
        if isJSON { console.print(report.startJSON) }
        var tally = ExplorationTally()
        for seed in seeds {
            let first = tally.add(seed)
            if isJSON {
                if !ExplorationReport.problemLines(seed).isEmpty { console.print(ExplorationReport.problemJSON(seed)) }
                for failure in seed.failures { console.print(ExplorationReport.json(failure, seed)) }
                continue
            }
            for line in ExplorationReport.problemLines(seed) { console.print(line) }
            guard let failure = first.first else { continue }
            for line in failure.screen + seed.configuration.map({ "  " + $0 }) { console.print(line) }
        }
        let status = tally.exitStatus(report.wanted)
        if isJSON {
            console.print(report.coverageJSON(tally))
            console.print(report.endJSON(tally, duration: nil, status: status))
        } else {
            for line in report.endLines(tally, duration: nil) { console.print(line) }
        }
        return status
    }
}
