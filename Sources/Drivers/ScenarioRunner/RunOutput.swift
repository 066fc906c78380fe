internal import CommandSupport
internal import Determinism
internal import Foundation
internal import Scenario

/// The output of a batch: results as they come, in the order of the plan, and reports at the end.
struct RunOutput {
    private let options: RunSession.Options
    private let console: Console
    private let runCount: Int
    /// Whether the result of a run lists its checks.
    private let showsChecks: Bool
    private var report: RunReport
    private let part: BatchPart?
    /// The lines of the results file so far; none if there is no such file.
    private var resultLines: [String] = []

    init(
        _ options: RunSession.Options, _ console: Console, _ rejections: [ScenarioSelection.Rejection], runs: Int,
        showsChecks: Bool, part: BatchPart? = nil
    ) {
        self.options = options
        self.console = console
        runCount = runs
        self.showsChecks = showsChecks
        report = RunReport(rejections: rejections)
        self.part = part
    }

    /// Prints a line of JSON, and adds it to the results file.
    private mutating func add(_ line: (RunReport) -> String) {
        guard options.output == .json || options.resultsPath != nil else { return }
        let line = line(report)
        if options.output == .json { console.print(line) }
        if options.resultsPath != nil { resultLines.append(line) }
    }

    /// Prints a line for readers: on standard error if a program reads standard output.
    private func print(_ line: String) {
        if options.output == .text {
            console.print(line)
        } else if !options.isQuiet {
            console.print(line, to: .progress)
        }
    }

    /// Prints what comes before the first result.
    mutating func begin() {
        let (count, part) = (runCount, part)
        add { _ in JSONLinesReport.start(planned: count, program: SlowlaneVersion.current, part: part) }
        for rejection in report.rejections { add { _ in JSONLinesReport.line(rejection) } }
        switch options.output {
        case .text, .trace, .json: break
        case .tap:
            for line in TAPReport.start { console.print(line) }
            for (index, rejection) in report.rejections.enumerated() {
                for line in TAPReport.lines(rejection, number: index + 1) { console.print(line) }
            }
        }
    }

    /// The number of the next test point.
    private var nextPoint: Int { report.rejections.count + report.runs.count + report.differences.count + 1 }

    /// Prints the result of the next run.
    mutating func add(_ summary: RunSummary) {
        add { _ in JSONLinesReport.line(summary) }
        if summary.run.isCanary {
            report.canaries.append(summary.withoutHistory)
            if summary.result != .fail { console.error("the canary, a run that must fail: \(summary.result.rawValue)") }
            return
        }
        writePage(summary)
        switch options.output {
        case .text, .json: break
        case .trace: for line in summary.trace { console.print(line) }
        case .tap: for line in TAPReport.lines(summary, number: nextPoint) { console.print(line) }
        }
        printText(summary)
        let previous = report.runs.last
        report.runs.append(summary.withoutHistory)
        if summary.run.world == .live, let previous, previous.run.world == .simulated { compare(previous, summary) }
    }

    /// Writes the page and the history of a run: into the folder itself if it is the only run.
    private mutating func writePage(_ summary: RunSummary) {
        guard let path = options.reportFolder, let json = summary.document else { return }
        var folder = URL(filePath: path)
        if runCount > 1 {
            let number = String(summary.run.index + 1)
            let zeros = String(repeating: "0", count: max(0, String(runCount).utf8.count - number.utf8.count))
            folder.append(
                path: "\(zeros)\(number)-\(Self.fileName(summary.run.fullName))-\(summary.run.world.rawValue)")
        }
        write(folder.path) {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let page = RunDocument.page(title: "\(summary.run.fullName): \(summary.result.rawValue)", json: json)
            try Data((json + "\n").utf8).write(to: folder.appending(path: "result.json"), options: .atomic)
            try Data(page.utf8).write(to: folder.appending(path: "report.html"), options: .atomic)
            for file in summary.views {
                try Data(file.bytes).write(to: folder.appending(path: file.name), options: .atomic)
            }
        }
    }

    /// Returns a name for a file: letters, digits and hyphens, at most 80 of them.
    private static func fileName(_ text: String) -> String {
        let bytes = text.utf8.map { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                byte
            default: UInt8(ascii: "-")
            }
        }
        let words = bytes.split(separator: UInt8(ascii: "-")).map { String(decoding: $0, as: UTF8.self) }
        return String(words.joined(separator: "-").prefix(80))
    }

    private func printText(_ summary: RunSummary) {
        if options.hidesRuns { return }
        for line in summary.errors { print(line) }
        guard showsChecks else {
            if options.isQuiet && runCount <= options.worldsMax {
                for line in summary.screen { print(line) }
                print("\(summary.run.fullName): \(summary.result.rawValue)")
            } else {
                print(summary.line)
                for line in summary.screen { print(line) }
            }
            return
        }
        console.print("", to: .progress)
        for line in summary.checkLines { print(line) }
        if let digest = summary.digest { print("  digest \(digest), \(summary.eventCount) events") }
        if !summary.screen.isEmpty { print("") }
        for line in summary.screen { print(line) }
        print("\(summary.run.fullName): \(summary.result.rawValue)")
    }

    private mutating func compare(_ simulated: RunSummary, _ live: RunSummary) {
        let name = live.run.fullName
        let lines = WorldComparison.differences(name, simulated: simulated, live: live)
        guard !lines.isEmpty else { return }
        let difference = RunReport.Difference(name: name, source: live.run.source, lines: lines)
        add { _ in JSONLinesReport.line(difference) }
        switch options.output {
        case .text, .trace, .json: break
        case .tap: for line in TAPReport.lines(difference, number: nextPoint) { console.print(line) }
        }
        report.differences.append(difference)
        for line in lines { print(line) }
    }

    /// Prints the end of a batch that was interrupted.
    func interrupt() {
        switch options.output {
        case .text, .trace: break
        case .json: console.print(JSONLinesReport.interruption)
        case .tap: console.print(TAPReport.interruption)
        }
    }

    /// Prints what comes after the last result, writes the reports, and returns the exit status.
    mutating func end(startedAt start: Date) -> Int32 {
        if report.runs.count > 1 || !report.rejections.isEmpty {
            var text = "\(report.count(.pass)) of \(TextTable.count(report.runs.count, "run")) passed"
            if !report.rejections.isEmpty {
                text += ", \(TextTable.count(report.rejections.count, "file")) rejected"
            }
            print(text)
        }
        writeReports(startedAt: start)
        add(JSONLinesReport.end)
        if let path = options.resultsPath {
            let text = resultLines.joined(separator: "\n") + "\n"
            write(path) { try Data(text.utf8).write(to: URL(filePath: path), options: .atomic) }
        }
        switch options.output {
        case .text, .trace, .json: break
        case .tap: console.print(TAPReport.end(points: nextPoint - 1))
        }
        return report.exitStatus
    }

    /// The number of runs whose results are known.
    var resultCount: Int { report.runs.count }

    /// Writes the results as they are to files, and prints annotations.
    mutating func writeReports(startedAt start: Date) {
        if let path = options.junitPath {
            let text = JUnitReport.document(report, timestamp: start.formatted(.iso8601))
            write(path) { try Data(text.utf8).write(to: URL(filePath: path), options: .atomic) }
        }
        if options.isOnGitHub {
            let stream: Console.Stream = options.output == .text ? .result : .progress
            for line in GitHubReport.annotations(report) { console.print(line, to: stream) }
            if let path = options.githubSummaryPath { appendSummary(path) }
        }
    }

    private mutating func appendSummary(_ path: String) {
        let text = GitHubReport.summary(report)
        write(path) {
            if !FileManager.default.fileExists(atPath: path) { try Data().write(to: URL(filePath: path)) }
            let file = try FileHandle(forWritingTo: URL(filePath: path))
            defer { try? file.close() }
            try file.seekToEnd()
            try file.write(contentsOf: Data(text.utf8))
        }
    }

    private mutating func write(_ path: String, _ body: () throws -> Void) {
        do {
            try body()
        } catch {
            console.error("cannot write \(path): \(FileFailure.reason(error, writing: path))")
            report.hasWriteError = true
        }
    }
}
