internal import CommandSupport
internal import Determinism
internal import Foundation
internal import Scenario
internal import Wire

/// The file of the results of an exploration, or of a shard of it. A file that is there is complete.
final class ExplorationResultsWriter {
    /// The reason why a file was not written.
    struct Failure: Error, CustomStringConvertible { let description: String }

    private let path: String
    private let file: FileHandle
    private var partialPath: String { path + ".partial" }

    /// Creates the file, which gets its name at the end.
    init(
        _ path: String, _ report: ExplorationReport, _ shard: Shard?, seeds: SeedRange, fileDigest: UInt64
    ) throws(Failure) {
        self.path = path
        do {
            try Data().write(to: URL(filePath: path + ".partial"))
            file = try FileHandle(forWritingTo: URL(filePath: path + ".partial"))
        } catch {
            throw Failure(description: "cannot write \(path): \(FileFailure.reason(error, writing: path))")
        }
        let head = ExplorationResults.Head(report, shard, seeds: seeds, fileDigest: fileDigest)
        try add(head.json)
    }

    deinit { try? FileManager.default.removeItem(atPath: partialPath) }

    private func add(_ line: String) throws(Failure) {
        do {
            try file.write(contentsOf: Data((line + "\n").utf8))
        } catch {
            throw Failure(description: "cannot write \(path): \(FileFailure.reason(error, writing: path))")
        }
    }

    /// Adds the result of a seed; returns the error, if there is one.
    func error(adding seed: ExploredSeed) -> Failure? {
        do throws(Failure) {
            try add(seed.json)
            return nil
        } catch {
            return error
        }
    }

    /// Completes the file; returns the error, if there is one.
    func error(endingWith isCanaryFailed: Bool) -> Failure? {
        do throws(Failure) {
            try end(isCanaryFailed)
            return nil
        } catch {
            return error
        }
    }

    private func end(_ isCanaryFailed: Bool) throws(Failure) {
        try add(
            JSONText.object([
                ("type", JSONText.string("end")), ("canary_failed", isCanaryFailed ? "true" : "false"),
            ]))
        do {
            try file.close()
            _ = try? FileManager.default.removeItem(atPath: path)
            try FileManager.default.moveItem(atPath: partialPath, toPath: path)
        } catch {
            throw Failure(description: "cannot write \(path): \(FileFailure.reason(error, writing: path))")
        }
    }
}

/// The results of an exploration, or of a shard of it, read from a file.
struct ExplorationResults {
    /// The first line: what was explored.
    struct Head {
        /// The version of the program.
        let program: String
        let shard: Shard?
        let report: ExplorationReport
        /// A digest of what determines the runs of all shards, besides the file.
        let batch: UInt64
        /// The scenario's file.
        let file: BatchFile

        fileprivate static let type = "exploration"

        init(_ report: ExplorationReport, _ shard: Shard?, seeds: SeedRange, fileDigest: UInt64) {
            file = BatchFile(source: report.source, digest: fileDigest)
            program = SlowlaneVersion.current
            self.shard = shard
            self.report = report
            let parts = [report.source, report.fullName, "\(seeds)"] + report.parts + ["mutants"] + report.mutants
            batch = FNV1a.digest(parts.joined(separator: "\n").utf8)
        }
    }

    /// A file that is not complete, or not of this format.
    struct Failure: Error, CustomStringConvertible { let description: String }

    let name: String
    let head: Head
    let seeds: [ExploredSeed]
    let isCanaryFailed: Bool

    /// Returns whether a file has results of an exploration.
    static func isExploration(_ path: String) -> Bool {
        guard let file = FileHandle(forReadingAtPath: path) else { return false }
        defer { try? file.close() }
        let start = (try? file.read(upToCount: 40)) ?? nil
        return start?.starts(with: Data("{\"type\":\"\(Head.type)\"".utf8)) ?? false
    }

    /// Reads a file.
    init(path: String) throws(Failure) {
        func failure(_ reason: String, line: Int? = nil) -> Failure {
            Failure(description: "\(path)\(line.map { ":\($0)" } ?? ""): \(reason)")
        }
        guard let data = FileManager.default.contents(atPath: path), data.count <= ResultsFile.bytesMax else {
            throw failure("cannot be read, or is larger than \(ResultsFile.bytesMax >> 20) MiB")
        }
        name = path
        var head: Head?
        var seeds: [ExploredSeed] = []
        var end: Bool?
        for (index, bytes) in data.split(separator: 0x0A).enumerated() {
            let number = index + 1
            guard bytes.count <= ResultsFile.lineBytesMax, let line = JSONText.parse(bytes), end == nil else {
                throw failure("not a line of results", line: number)
            }
            switch line["type"].text {
            case Head.type? where head == nil:
                guard line["digest"].text != nil else {
                    throw failure(
                        "no digest of the scenario file: an older slowlane has written it; run the shard again",
                        line: number)
                }
                head = Head(line)
                if head == nil { throw failure("not results of an exploration of this version", line: number) }
            case "seed"? where head != nil:
                guard let source = head?.report.source, let seed = ExploredSeed(line, source: source) else {
                    throw failure("not a complete result of a seed", line: number)
                }
                seeds.append(seed)
            case "end"? where head != nil: end = line["canary_failed"] == .bool(true)
            default: throw failure("a line that does not belong here", line: number)
            }
        }
        guard let head, let end else { throw failure("the end is missing") }
        self.head = head
        self.seeds = seeds
        isCanaryFailed = end
    }
}

extension ExplorationResults.Head {
    fileprivate var json: String {
        JSONText.object([
            ("type", JSONText.string(Self.type)), ("version", "\(ExplorationReport.version)"),
            ("slowlane", JSONText.string(program)), ("source", JSONText.string(report.source)),
            ("scenario", JSONText.string(report.name)), ("variant", JSONText.string(report.variant)),
            ("name", JSONText.string(report.fullName)), ("first", JSONText.string("\(report.first)")),
            ("count", JSONText.string(report.count.map { "\($0)" })),
            ("commit", report.isFromCommit ? "true" : "false"),
            ("parts", ExplorationReport.strings(report.parts)),
            ("mutants", ExplorationReport.strings(report.mutants)),
            ("wanted", ExplorationReport.strings(report.wanted)),
            ("possible_faults", JSONText.array(report.possibleFaults.map(\.json))),
            ("batch", JSONText.string(String(batch, radix: 16))), ("digest", JSONText.string(file.digestText)),
            ("shard", JSONText.string(shard.map { "\($0)" })),
        ])
    }

    fileprivate init?(_ line: JSONValue) {
        guard line["version"].number == Double(ExplorationReport.version), let program = line["slowlane"].text,
            let source = line["source"].text, let name = line["scenario"].text, let fullName = line["name"].text,
            let first = line["first"].text.flatMap({ UInt64($0) }),
            let batch = line["batch"].text.flatMap({ UInt64($0, radix: 16) }),
            let digest = line["digest"].text.flatMap({ UInt64($0, radix: 16) })
        else { return nil }
        var shard: Shard?
        if let text = line["shard"].text {
            shard = try? Shard.named(text, environment: [:]).shard
            if shard == nil { return nil }
        }
        self.program = program
        self.shard = shard
        self.batch = batch
        file = BatchFile(source: source, digest: digest)
        report = ExplorationReport(
            fullName: fullName, name: name, variant: line["variant"].text, source: source,
            parts: line["parts"].array.compactMap(\.text), wanted: line["wanted"].array.compactMap(\.text),
            possibleFaults: line["possible_faults"].array.compactMap(CoverageCell.init), first: first,
            count: line["count"].text.flatMap { UInt64($0) }, isFromCommit: line["commit"] == .bool(true),
            mutants: line["mutants"].array.compactMap(\.text))
    }
}

extension CoverageCell {
    /// The cell as a JSON array of texts.
    fileprivate var json: String {
        let parts: [String]
        switch self {
        case .state(let belief, let pending, let hasConflict, let hasError):
            parts = ["state", belief, "\(pending)", "\(hasConflict)", "\(hasError)"]
        case .merge(let method, let row, let result): parts = ["merge", method, row.rawValue, result]
        case .fault(let action, let point, let method): parts = ["fault", action, point, method]
        }
        return ExplorationReport.strings(parts)
    }

    fileprivate init?(_ value: JSONValue) {
        let parts = value.array.compactMap(\.text)
        switch (parts.first, parts.count) {
        case ("state"?, 5):
            guard let pending = Int(parts[2]) else { return nil }
            self = .state(
                belief: parts[1], pending: pending, hasConflict: parts[3] == "true", hasError: parts[4] == "true")
        case ("merge"?, 4):
            guard let row = RowState(rawValue: parts[2]) else { return nil }
            self = .merge(method: parts[1], row: row, result: parts[3])
        case ("fault"?, 4): self = .fault(action: parts[1], point: parts[2], method: parts[3])
        default: return nil
        }
    }
}

extension ExploredSeed {
    fileprivate var json: String {
        let lines: [String]
        let repeated: String
        switch repetition {
        case .none: (repeated, lines) = ("none", [])
        case .same: (repeated, lines) = ("same", [])
        case .different(let found): (repeated, lines) = ("different", found)
        }
        return JSONText.object([
            ("type", JSONText.string("seed")), ("seed", JSONText.string("\(seed)")), ("events", "\(eventCount)"),
            ("digest", JSONText.string(digest)), ("repetition", JSONText.string(repeated)),
            ("difference", ExplorationReport.strings(lines)),
            ("error", JSONText.string(error)), ("configuration", ExplorationReport.strings(configuration)),
            ("reached", ExplorationReport.strings(reached.sorted())),
            ("cells", JSONText.array(cells.map(\.json).sorted())), ("failures", JSONText.array(failures.map(\.json))),
        ])
    }

    fileprivate init?(_ line: JSONValue, source: String) {
        guard let seed = line["seed"].text.flatMap({ UInt64($0) }), let events = line["events"].number,
            (0..<1e15).contains(events)
        else { return nil }
        switch line["repetition"].text {
        case "none"?: repetition = .none
        case "same"?: repetition = .same
        case "different"?: repetition = .different(line["difference"].array.compactMap(\.text))
        default: return nil
        }
        self.seed = seed
        eventCount = Int(events)
        digest = line["digest"].text
        error = line["error"].text
        configuration = line["configuration"].array.compactMap(\.text)
        reached = Set(line["reached"].array.compactMap(\.text))
        let values = line["cells"].array
        cells = Set(values.compactMap(CoverageCell.init))
        failures = line["failures"].array.compactMap { SeedFailure($0, seed: seed, source: source) }
        guard cells.count == values.count, failures.count == line["failures"].array.count else { return nil }
    }
}

extension SeedFailure {
    fileprivate var json: String {
        JSONText.object([
            ("check", JSONText.string(check)), ("class", JSONText.string(group.check)),
            ("subject", JSONText.string(group.subject.rawValue)), ("actors", ExplorationReport.strings(actors)),
            ("notes", ExplorationReport.strings(rows)), ("reason", JSONText.string(reason)),
            ("screen", ExplorationReport.strings(screen)),
            ("replay", ExplorationReport.strings(ReplayCommand.arguments(run))),
        ])
    }

    /// Reads a failure, whose run has the arguments that repeat it and no steps.
    fileprivate init?(_ value: JSONValue, seed: UInt64, source: String) {
        guard let check = value["check"].text, let name = value["class"].text, let reason = value["reason"].text,
            let subject = value["subject"].text.flatMap(FailureGroup.Subject.init(rawValue:))
        else { return nil }
        func texts(_ key: String) -> [String] { value[key].array.compactMap(\.text) }
        run = PlannedRun(
            index: 0, source: source, scenario: Scenario(name: source), world: .simulated, seed: seed,
            replay: [texts("replay")])
        group = FailureGroup(check: name, subject: subject)
        self.check = check
        actors = texts("actors")
        rows = texts("notes")
        self.reason = reason
        screen = texts("screen")
    }
}
