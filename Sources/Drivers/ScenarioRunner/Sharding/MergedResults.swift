public import CommandSupport
internal import Foundation

/// The results of all shards of a batch as one report: `slowlane merge-reports`.
public struct MergedResults: Sendable {
    /// What to merge, and what to print.
    public struct Options: Sendable {
        /// Files, and folders whose files `*.jsonl` are read.
        public var paths: [String]
        /// The form of the results on standard output.
        public var output = RunSession.Output.text
        /// The path of the JUnit XML file.
        public var junitPath: String?
        /// Whether annotations for GitHub Actions are printed.
        public var isOnGitHub = false
        /// The path of the file to which GitHub's summary is appended.
        public var githubSummaryPath: String?

        /// Creates the options for paths.
        public init(paths: [String]) { self.paths = paths }
    }

    /// The maximum number of failure classes that are printed.
    static let classesMax = 20

    private let options: Options
    private let console: Console

    /// Creates a merge.
    public init(_ options: Options, console: Console) {
        self.options = options
        self.console = console
    }

    /// Merges the files, and returns the exit status: the worst of all runs, or 65 if the files are not one complete
    /// batch.
    public func run() -> Int32 {
        let paths = Self.filePaths(options.paths)
        if paths.contains(where: ExplorationResults.isExploration) {
            return ExplorationMerge(paths: paths, options: options, console: console).run()
        }
        let (files, problems) = Self.read(options.paths)
        if files.isEmpty && problems.isEmpty {
            console.error("no results: the arguments name no file, and no folder with files *.jsonl")
            return RunStatus.nothingSelected
        }
        guard problems.isEmpty else {
            for problem in problems { console.error(problem) }
            return RunStatus.invalidFile
        }
        return report(files)
    }

    /// Reads files, and returns them with the reasons why they are not one complete batch.
    static func read(_ paths: [String]) -> (files: [ResultsFile], problems: [String]) {
        var files: [ResultsFile] = []
        var problems: [String] = []
        for path in filePaths(paths) {
            do throws(ResultsFile.Failure) { files.append(try ResultsFile(path: path)) } catch {
                problems.append(error.description)
            }
        }
        return (files, problems + Self.problems(files))
    }

    /// Returns the paths of the files, those of a folder in their order.
    private static func filePaths(_ paths: [String]) -> [String] {
        paths.flatMap { path -> [String] in
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue else {
                return [path]
            }
            let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
            return names.filter { $0.hasSuffix(".jsonl") }.sorted().map { "\(path)/\($0)" }
        }
    }

    /// Returns why files are not one complete batch; nothing if they are.
    private static func problems(_ files: [ResultsFile]) -> [String] {
        guard let first = files.first else { return [] }
        var problems: [String] = []
        var names: [Int: String] = [:]
        for file in files {
            guard let part = file.part else {
                if files.count > 1 {
                    problems.append("\(file.name): not a shard of a batch, and there are other files")
                }
                continue
            }
            if let expected = first.part {
                problems += Self.differences(part, in: file.name, from: expected, in: first.name)
            }
            if file.program != first.program {
                problems.append("\(file.name): of slowlane \(file.program), and \(first.name) of \(first.program)")
            }
            if let other = names.updateValue(file.name, forKey: part.shard.index) {
                problems.append("\(file.name): shard \(part.shard), which \(other) is too")
            }
            if !file.canaries.contains(where: { $0.result == .fail }) {
                problems.append("\(file.name): its canary, a run that must fail, is not among the failures")
            }
        }
        guard problems.isEmpty, let expected = first.part else { return problems }
        let missing = (1...expected.shard.count).filter { names[$0] == nil }
        if !missing.isEmpty {
            let list = missing.prefix(20).map { "\($0)/\(expected.shard.count)" }.joined(separator: ", ")
            let more = missing.count > 20 ? " and \(missing.count - 20) more" : ""
            return ["missing: \(missing.count == 1 ? "shard" : "shards") \(list)\(more)"]
        }
        let count = files.reduce(0) { $0 + $1.runs.count }
        return count == expected.runCount ? [] : ["\(count) runs in all shards, and the batch has \(expected.runCount)"]
    }

    /// The maximum number of differences that are printed for a file.
    static let differencesMax = 20

    /// Returns how a part of a batch differs from that of another file, with both values.
    private static func differences(
        _ part: BatchPart, in name: String, from other: BatchPart, in otherName: String
    ) -> [String] {
        var lines = BatchFile.differences(part.files, in: name, from: other.files, in: otherName)
        if part.seeds != other.seeds {
            lines.append("\(name): the seeds are \(part.seedsText), and in \(otherName) \(other.seedsText)")
        }
        if lines.isEmpty,
            part.shard.count != other.shard.count || part.batch != other.batch || part.runCount != other.runCount
        {
            func text(_ part: BatchPart) -> String {
                "\(part.batchText), \(TextTable.count(part.runCount, "run")) in "
                    + TextTable.count(part.shard.count, "shard")
            }
            lines.append("\(name): of another batch than \(otherName): \(text(part)), not \(text(other))")
        }
        let more = lines.count - differencesMax
        return more > 0 ? lines.prefix(differencesMax) + ["\(name): and \(more) more differences"] : lines
    }

    // MARK: The report

    private func report(_ files: [ResultsFile]) -> Int32 {
        var runs = files.flatMap(\.runs)
        runs.sort { Self.key($0) < Self.key($1) }
        var rejections: [ScenarioSelection.Rejection] = []
        var seen: Set<[UInt8]> = []
        // Each shard has read all files.
        for rejection in files.flatMap(\.rejections) where seen.insert(Array(rejection.description.utf8)).inserted {
            rejections.append(rejection)
        }
        var session = RunSession.Options(scenarios: [])
        session.output = options.output
        session.junitPath = options.junitPath
        session.isOnGitHub = options.isOnGitHub
        session.githubSummaryPath = options.githubSummaryPath
        session.hidesRuns = true
        var output = RunOutput(session, console, rejections, runs: runs.count, showsChecks: false)
        output.begin()
        for run in runs { output.add(run) }
        if options.output == .text, let first = files.first {
            for rejection in rejections { console.print(rejection.description) }
            for line in FailureClass.lines(runs) { console.print(line) }
            if first.part != nil {
                let shards = TextTable.count(files.count, "shard")
                console.print("\(shards), each with a canary that failed as it must", to: .progress)
            }
        }
        return output.end(startedAt: Date())
    }

    /// Returns the key of the order of runs; that in virtual time precedes that in real time.
    private static func key(_ run: RunSummary) -> String {
        let seed = String(run.run.seed)
        let digits = String(repeating: "0", count: 20 - seed.utf8.count) + seed
        return "\(run.run.source)\n\(run.run.fullName)\n\(digits)\n\(run.run.world == .simulated ? 0 : 1)"
    }
}

/// Runs that failed in the same way.
struct FailureClass {
    /// The result and what failed, with `#` in place of each number.
    let name: String
    private(set) var count = 0
    /// The run with the fewest events.
    private(set) var example: RunSummary

    /// Returns the classes of the runs that did not pass, in the order of their first runs.
    static func classes(_ runs: [RunSummary]) -> [FailureClass] {
        var found: [FailureClass] = []
        var positions: [[UInt8]: Int] = [:]
        for run in runs where !run.hasPassed {
            let subject = run.mainCheck?.description ?? run.errors.first ?? ""
            let name = "\(run.result.rawValue): \(withoutNumbers(subject))"
            let key = Array(name.utf8)
            let position = positions[key] ?? found.count
            if position == found.count {
                positions[key] = position
                found.append(FailureClass(name: name, example: run))
            }
            found[position].count += 1
            if run.eventCount < found[position].example.eventCount { found[position].example = run }
        }
        return found
    }

    /// Returns the classes in lines, each with the explanation of its example.
    static func lines(_ runs: [RunSummary]) -> [String] {
        let classes = classes(runs)
        var lines: [String] = []
        for found in classes.prefix(MergedResults.classesMax) {
            let run = found.example
            lines.append("\(TextTable.count(found.count, "run")): \(TextTable.singleLine(found.name))")
            lines += run.errors.map { "  \($0)" } + run.screen
            if run.screen.isEmpty { lines.append("  replay: \(run.run.replayText)") }
        }
        let more = classes.count - MergedResults.classesMax
        if more > 0 { lines.append("and \(more) more classes of failures; --junit and --json have them all") }
        return lines
    }

    /// Returns a text with `#` in place of each number.
    private static func withoutNumbers(_ text: String) -> String {
        var result = ""
        var isInNumber = false
        for scalar in text.unicodeScalars {
            let isDigit = ("0"..."9").contains(scalar)
            if isDigit && !isInNumber { result += "#" }
            if !isDigit { result.unicodeScalars.append(scalar) }
            isInNumber = isDigit
        }
        return result
    }
}
