internal import CommandSupport
internal import Determinism
internal import Foundation
internal import Scenario
internal import Wire

/// The results of one process, read from the file that `slowlane run --results` has written.
struct ResultsFile {
    /// The maximum size of a file, in bytes.
    static let bytesMax = 1 << 30
    /// The maximum size of a line, in bytes.
    static let lineBytesMax = 16 << 20

    let name: String
    /// The version of the program.
    let program: String
    /// The part of a batch; `nil` if the process ran all of it.
    let part: BatchPart?
    let runs: [RunSummary]
    let canaries: [RunSummary]
    let rejections: [ScenarioSelection.Rejection]

    /// A file that is not complete, or not of this format.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    init(path: String) throws(Failure) {
        func failure(_ reason: String, line: Int? = nil) -> Failure {
            Failure(description: "\(path)\(line.map { ":\($0)" } ?? ""): \(reason)")
        }
        let data: Data
        do {
            let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
            guard size <= Self.bytesMax else { throw failure("larger than \(Self.bytesMax >> 20) MiB") }
            data = try Data(contentsOf: URL(filePath: path))
        } catch let error as Failure {
            throw error
        } catch {
            throw failure("cannot be read: \(FileFailure.reason(error))")
        }
        name = path
        var (runs, canaries): ([RunSummary], [RunSummary]) = ([], [])
        var rejections: [ScenarioSelection.Rejection] = []
        var start: JSONValue?
        var hasEnded = false
        for (index, bytes) in data.split(separator: 0x0A).enumerated() {
            let number = index + 1
            guard bytes.count <= Self.lineBytesMax, let line = JSONText.parse(bytes), let type = line["type"].text
            else {
                throw failure("not a line of results", line: number)
            }
            guard (start == nil) == (type == "run"), !hasEnded else {
                throw failure("a line '\(type.prefix(40))' that does not belong here", line: number)
            }
            switch type {
            case "run": start = line
            case "result":
                guard let run = RunSummary(line, index: runs.count) else {
                    throw failure("not a complete result of a run", line: number)
                }
                if run.run.isCanary { canaries.append(run) } else { runs.append(run) }
            case "rejected":
                let location = SourceLocation(line)
                rejections.append(
                    .init(
                        name: location.file, description: line["description"].text ?? "", location: location,
                        message: line["message"].text ?? ""))
            case "interrupted": throw failure("the runs were interrupted", line: number)
            case "end": hasEnded = true
            default: break
            }
        }
        guard let start else { throw failure("no results: 'slowlane run --results FILE' writes them") }
        guard start["version"].number == Double(JSONLinesReport.version) else {
            throw failure(
                "results of version \(start["version"].displayText); this program reads \(JSONLinesReport.version)")
        }
        guard hasEnded else { throw failure("the end is missing") }
        guard let planned = start["planned"].integer, planned == runs.count + canaries.count else {
            throw failure("\(runs.count + canaries.count) runs of \(start["planned"].displayText)")
        }
        program = start["slowlane"].text ?? ""
        let shard = start["shard"]
        if shard.object == nil {
            part = nil
        } else if shard["seeds"].isMissing || shard["files"].isMissing {
            throw failure(
                "its shard has no seeds and no digests of the scenario files: an older slowlane has written it; run the "
                    + "shard again",
                line: 1)
        } else if let index = shard["index"].integer, let count = shard["count"].integer,
            let named = Shard(index: index, count: count),
            let batch = shard["batch"].text.flatMap({ UInt64($0, radix: 16) }),
            let runCount = shard["runs"].integer, let seeds = shard["seeds"].seeds,
            let files = shard["files"].batchFiles
        {
            part = BatchPart(shard: named, batch: batch, runCount: runCount, seeds: seeds, files: files)
        } else {
            throw failure("its shard is not valid", line: 1)
        }
        self.runs = runs
        self.canaries = canaries
        self.rejections = rejections
    }
}

extension JSONValue {
    /// The value of a non-negative integer.
    fileprivate var integer: Int? {
        if case .integer(let number) = self, number >= 0 { Int(exactly: number) } else { nil }
    }

    fileprivate var isMissing: Bool { if case .null = self { true } else { false } }

    /// The range of two seeds.
    fileprivate var seeds: ClosedRange<UInt64>? {
        let seeds = array.compactMap { $0.text.flatMap { UInt64($0) } }
        return seeds.count == 2 && seeds[0] <= seeds[1] ? seeds[0]...seeds[1] : nil
    }

    fileprivate var batchFiles: [BatchFile]? {
        let files = array.compactMap { file -> BatchFile? in
            guard let source = file["source"].text,
                let digest = file["digest"].text.flatMap({ UInt64($0, radix: 16) })
            else { return nil }
            return BatchFile(source: source, digest: digest)
        }
        return files.count == array.count ? files : nil
    }

    fileprivate var truth: Bool? { if case .bool(let truth) = self { truth } else { nil } }

    fileprivate var texts: [String] { array.compactMap(\.text) }
}

extension SourceLocation {
    fileprivate init(_ value: JSONValue) {
        self.init(file: value["file"].text ?? "", line: value["line"].integer, column: value["column"].integer)
    }
}

extension RunSummary {
    /// Reads the line of a run; `nil` if something is missing.
    fileprivate init?(_ line: JSONValue, index: Int) {
        guard let scenario = line["scenario"].text, let source = line["source"].text,
            let world = line["world"].text.flatMap(RunWorld.init(rawValue:)),
            let seed = line["seed"].text.flatMap({ UInt64($0) }),
            let result = line["result"].text.flatMap(Result.init(rawValue:)), let events = line["events"].integer,
            let duration = line["duration_ns"].integer, let wallTime = line["wall_ms"].integer,
            let isCanary = line["canary"].truth, let status = line["exit_status"].integer, status < 256
        else { return nil }
        var checks: [Check] = []
        for value in line["checks"].array {
            guard let description = value["check"].text,
                let outcome = value["outcome"].text.flatMap(Check.Outcome.init(rawValue:))
            else { return nil }
            checks.append(
                Check(
                    description: description, location: SourceLocation(value), outcome: outcome,
                    reason: value["reason"].text ?? "", time: value["time_ns"].integer.map { Nanoseconds(Int64($0)) },
                    advice: value["advice"].text ?? ""))
        }
        let run = RunIdentity(
            index: index, scenario: scenario, variant: line["variant"].text, fullName: line["name"].text ?? scenario,
            source: source, world: world, seed: seed, mutants: line["mutant"].text,
            network: line["network"].text ?? "", contract: line["contract"].text, replay: line["replay"].texts,
            isCanary: isCanary)
        self.init(
            run: run, result: result, checks: checks,
            impossible: line["not_possible"].array.map {
                ImpossibleCheck(
                    description: $0["check"].text ?? "", location: SourceLocation($0), reason: $0["reason"].text ?? "")
            },
            digest: line["digest"].text, eventCount: events, duration: Nanoseconds(Int64(duration)),
            wallTime: .milliseconds(wallTime), isReproducible: line["reproducible"].truth, errors: line["errors"].texts,
            screen: line["screen"].texts, exitStatus: Int32(status))
    }
}
