internal import ArgumentParser
internal import CommandSupport
internal import ConfigFiles
internal import Determinism
internal import Foundation
internal import LinkModel

/// `slowlane trace`.
struct TraceCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trace",
        abstract: "Convert and cut recordings of a link's rate: Mahimahi traces and tables.",
        discussion: """
            Examples:
              slowlane trace drive.trace
              slowlane trace drive.csv --time-column Timestamp \\
                  --rate-column DL_bitrate -o drive.trace
              slowlane trace drive.trace --from 60s --to 120s --scale 0.5 -o half.trace
              slowlane trace drive.trace --csv --window 1s > drive.csv

            The input is a trace in the format of Mahimahi's mm-link (one line with a time in milliseconds for each 1500 \
            bytes) or, with --rate-column, a table: columns separated by commas, semicolons, tabs or spaces, whose names \
            are in the first row. Columns without names are called 1, 2 and so on. Times are numbers or dates; a rate \
            holds until the next row.

            Without --output and --csv, the command prints the length, the rate and the longest gap. The key 'trace' of a \
            profile names a trace file; a trace repeats after its end.

            Exit status: 0 success; 64 wrong arguments; 65 invalid file; 69 the output cannot be written.
            """)

    @Argument(help: "A trace or a table.", completion: NameCompletion.file)
    var file: String

    @Option(help: ArgumentHelp("Column of the times. (default: the first column)", valueName: "name"))
    var timeColumn: String?

    @Option(help: ArgumentHelp("Column of the rates.", valueName: "name"))
    var rateColumn: String?

    @Option(help: ArgumentHelp("Unit of times that are numbers: s, ms or us.", valueName: "unit"))
    var timeUnit = "s"

    @Option(help: ArgumentHelp("Unit of the rates: bit/s, kbit/s, Mbit/s, B/s, kB/s or MB/s.", valueName: "unit"))
    var rateUnit = "kbit/s"

    @Option(help: ArgumentHelp("Start of the part to use, such as 1m30s. (default: the start)", valueName: "time"))
    var from: String?

    @Option(help: ArgumentHelp("End of the part to use. (default: the end)", valueName: "time"))
    var to: String?

    @Option(help: ArgumentHelp("Factor for the rate, such as 0.5.", valueName: "factor"))
    var scale: Double?

    @Option(name: .customLong("repeat"), help: ArgumentHelp("Number of times to write the part.", valueName: "count"))
    var rounds: Int?

    @Option(
        name: [.customShort("o"), .long], help: ArgumentHelp("Write a Mahimahi trace to this file.", valueName: "file"))
    var output: String?

    @Flag(help: "Print a table of times in seconds and rates in kbit/s.")
    var csv = false

    @Option(help: ArgumentHelp("Length of a row of the table.", valueName: "time"))
    var window = "1s"

    func validate() throws {
        if let scale, !(scale > 0 && scale <= 1000) {
            throw ValidationError("--scale \(scale) must be above 0 and at most 1000")
        }
        if let rounds, !(1...100_000).contains(rounds) {
            throw ValidationError("--repeat \(rounds) must be from 1 to 100000")
        }
        if BandwidthTable.timeUnits[timeUnit] == nil {
            throw ValidationError("--time-unit '\(timeUnit)' must be s, ms or us")
        }
        if BandwidthTable.rateUnits[rateUnit] == nil {
            throw ValidationError("--rate-unit '\(rateUnit)' must be bit/s, kbit/s, Mbit/s, B/s, kB/s or MB/s")
        }
        if timeColumn != nil && rateColumn == nil { throw ValidationError("--time-column needs --rate-column") }
        for (name, text) in [("--from", from), ("--to", to), ("--window", window)] {
            if let text, TimelineFile.time(text) == nil {
                throw ValidationError("\(name) '\(text)' must be a time such as 1m30s")
            }
        }
        guard let length = TimelineFile.time(window), length >= .milliseconds(1) else {
            throw ValidationError("--window must be at least 1ms")
        }
    }

    func run() throws {
        let console = Console()
        var trace: DeliveryTrace
        do {
            trace = try read(console)
        } catch let error as FileError {
            console.errors(error)
            throw ExitStatus.invalidFile
        }
        do {
            if from != nil || to != nil {
                let start = from.flatMap(TimelineFile.time) ?? .zero
                trace = try trace.part(from: start, to: to.flatMap(TimelineFile.time) ?? trace.length)
            }
            if let scale { trace = try trace.scaled(byThousandths: Int64((scale * 1000).rounded())) }
            if let rounds { trace = try trace.repeated(rounds) }
        } catch {
            console.error("\(file): \(Self.text(error))")
            throw ExitStatus.invalidFile
        }
        if let output {
            do {
                try Data(TraceFile.text(trace).utf8).write(to: URL(filePath: output))
            } catch {
                console.error("cannot write \(output)")
                throw ExitStatus.unavailable
            }
        }
        if csv {
            let length = TimelineFile.time(window) ?? .seconds(1)
            console.print("seconds,kbit/s")
            for (index, rate) in trace.rates(window: length).enumerated() {
                console.print(String(format: "%.3f,%.3f", Double(index) * length.inSeconds, Double(rate) / 1000))
            }
        } else if output == nil {
            console.print(
                "\(Units.time(trace.length)), \(TextTable.count(trace.count, "opportunity", "opportunities")) of 1500 B, mean "
                    + "\(Rate(bitsPerSecond: max(100, trace.averageBitsPerSecond / 1000 * 1000))?.description ?? "0 bit/s"), "
                    + "longest gap \(Units.time(trace.longestGap))")
        }
    }

    private func read(_ console: Console) throws -> DeliveryTrace {
        guard let rateColumn else { return try TraceFile.read(file) }
        let columns = BandwidthTable.Columns(
            time: timeColumn ?? BandwidthTable.firstColumn, rate: rateColumn,
            timeUnit: BandwidthTable.timeUnits[timeUnit] ?? 1,
            rateUnit: BandwidthTable.rateUnits[rateUnit] ?? 1)
        let table = try BandwidthTable(file, columns)
        if table.skippedRows > 0 {
            console.print(
                "\(TextTable.count(table.skippedRows, "row")) without a time and a rate skipped", to: .progress)
        }
        do {
            return try DeliveryTrace(steps: table.steps, until: table.end)
        } catch {
            console.error("\(file): \(Self.text(error))")
            throw ExitStatus.invalidFile
        }
    }

    private static func text(_ error: DeliveryTraceError) -> String {
        switch error {
        case .isEmpty: "the part has no opportunity after 0 ms"
        case .descending: "times decrease"
        case .tooLate: "longer than a day"
        case .tooManyOpportunities:
            "more than \(DeliveryTrace.countMax) opportunities; use a part of it, or a smaller scale"
        }
    }
}
