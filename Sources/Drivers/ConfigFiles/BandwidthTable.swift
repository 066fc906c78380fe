public import Determinism
internal import Foundation
public import LinkModel

/// A table of bandwidth over time as text: rows of columns, separated by commas, semicolons, tabs or spaces, with the names of
/// the columns in the first row. Without names, columns are called 1, 2 and so on.
///
/// A rate holds until the next row. Rows without a number in one of the columns are skipped.
public struct BandwidthTable: Hashable, Sendable {
    /// The columns and their units.
    public struct Columns: Sendable {
        /// The name of the column of times.
        public var time: String
        /// The name of the column of rates.
        public var rate: String
        /// The nanoseconds of a unit of time.
        public var timeUnit: Int64
        /// The bits per second of a unit of rate.
        public var rateUnit: Int64

        /// Creates a choice of columns.
        public init(time: String, rate: String, timeUnit: Int64, rateUnit: Int64) {
            self.time = time
            self.rate = rate
            self.timeUnit = timeUnit
            self.rateUnit = rateUnit
        }
    }

    /// The name that stands for the first column.
    public static let firstColumn = ""

    /// The units of time by name, in nanoseconds.
    public static let timeUnits: [String: Int64] = ["s": 1_000_000_000, "ms": 1_000_000, "us": 1000]
    /// The units of rates by name, in bit/s.
    public static let rateUnits: [String: Int64] = [
        "bit/s": 1, "kbit/s": 1000, "Mbit/s": 1_000_000, "B/s": 8, "kB/s": 8000, "MB/s": 8_000_000,
    ]
    /// The size limit of a file, and the most rows.
    static let bytesMax = 64 << 20
    static let rowsMax = 1_000_000

    /// The rates over time.
    public let steps: [DeliveryTrace.Step]
    /// The time to which the last rate holds: as long as the rate before it.
    public let end: Nanoseconds
    /// The rows that were skipped.
    public let skippedRows: Int

    /// Reads a file; errors have file and line.
    public init(_ path: String, _ columns: Columns) throws(FileError) {
        let text: String
        do {
            text = try TextFile.read(path, bytesMax: Self.bytesMax)
        } catch {
            throw TraceFile.fileError(path, nil, "cannot read the table: \(error.reason)")
        }
        if text.utf8.count > Self.bytesMax {
            throw TraceFile.fileError(path, nil, "the table is larger than \(Self.bytesMax >> 20) MiB")
        }
        try self.init(parsing: text, columns, file: path)
    }

    /// Parses the text of a table.
    init(parsing text: String, _ columns: Columns, file: String) throws(FileError) {
        var steps: [DeliveryTrace.Step] = []
        var indices: (time: Int, rate: Int)?
        var first: Int64?
        var skipped = 0
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            let cells = Self.cells(line)
            if cells.isEmpty { continue }
            guard let (time, rate) = indices else {
                let isNamed = !cells.allSatisfy { Self.number($0) != nil || Self.date($0) != nil }
                let names = isNamed ? cells.map(String.init) : cells.indices.map { "\($0 + 1)" }
                indices = try Self.find(columns, names, file, index + 1)
                if isNamed { continue }
                try Self.add(cells, indices ?? (0, 0), columns, &first, &steps, &skipped, file, index + 1)
                continue
            }
            try Self.add(cells, (time, rate), columns, &first, &steps, &skipped, file, index + 1)
        }
        guard steps.count >= 2 else {
            throw TraceFile.fileError(
                file, nil, "the table has \(steps.count) rows with times and rates; expected at least 2")
        }
        self.steps = steps
        let last = steps[steps.count - 1].start
        end = last + (last - steps[steps.count - 2].start)
        skippedRows = skipped
    }

    private static func cells(_ line: Substring) -> [Substring] {
        let separator: Character? = [",", ";", "\t"].first { line.contains($0) }
        let parts =
            separator.map { line.split(separator: $0, omittingEmptySubsequences: false) } ?? line.split(separator: " ")
        let trimmed = parts.map { $0.drop { $0 == " " || $0 == "\"" } }.map { cell in
            var cell = cell
            while let last = cell.last, last == " " || last == "\"" { cell.removeLast() }
            return cell
        }
        return trimmed.allSatisfy(\.isEmpty) ? [] : trimmed
    }

    private static func find(
        _ columns: Columns, _ names: [String], _ file: String, _ line: Int
    ) throws(FileError) -> (Int, Int) {
        func index(_ name: String) throws(FileError) -> Int {
            if let index = names.firstIndex(of: name) { return index }
            throw TraceFile.fileError(
                file, line,
                "no column '\(name.prefix(40))'\(NearestName.hint(name, in: names)) (columns: "
                    + names.prefix(40).map { String($0.prefix(40)) }.joined(separator: ", ") + ")")
        }
        return (columns.time == firstColumn ? 0 : try index(columns.time), try index(columns.rate))
    }

    private static func add(
        _ cells: [Substring], _ indices: (time: Int, rate: Int), _ columns: Columns, _ first: inout Int64?,
        _ steps: inout [DeliveryTrace.Step], _ skipped: inout Int, _ file: String, _ line: Int
    ) throws(FileError) {
        guard max(indices.time, indices.rate) < cells.count, let rate = number(cells[indices.rate]),
            let time = number(cells[indices.time]).map({ $0 * Double(columns.timeUnit) })
                ?? date(cells[indices.time]).map({ Double($0) * 1e9 })
        else {
            skipped += 1
            return
        }
        guard rate >= 0, rate * Double(columns.rateUnit) <= Double(Rate.allowed.upperBound) else {
            throw TraceFile.fileError(
                file, line, "the rate \(cells[indices.rate].prefix(20)) is not from 0 to 100 Gbit/s")
        }
        // A time beyond 64 bits is out of range as well.
        guard abs(time) < 4e18 else { throw TraceFile.fileError(file, line, "the time is out of range") }
        let start = first ?? Int64(time)
        first = start
        let since = Int64(time).subtractingSaturating(start)
        if let last = steps.last?.start.count, since < last {
            throw TraceFile.fileError(file, line, "the time is earlier than that of the row before")
        }
        guard since <= Int64(DeliveryTrace.millisecondsMax) * 1_000_000 else {
            throw TraceFile.fileError(file, line, "the table is longer than a day; take a part of it")
        }
        guard steps.count < rowsMax else { throw TraceFile.fileError(file, line, "more than \(rowsMax) rows") }
        // Of several rows at one time, the last one holds.
        if steps.last?.start.count == since { steps.removeLast() }
        steps.append(
            DeliveryTrace.Step(
                at: Nanoseconds(since), bitsPerSecond: Int64((rate * Double(columns.rateUnit)).rounded())))
    }

    /// Returns a finite number.
    private static func number(_ text: Substring) -> Double? {
        guard text.utf8.count <= 40, let value = Double(text), value.isFinite else { return nil }
        return value
    }

    /// Returns the seconds since 1970 of a date and a time with any separators, such as `2019.12.14_10.16.30`.
    private static func date(_ text: Substring) -> Int64? {
        guard text.utf8.count <= 40 else { return nil }
        let groups = text.split { !$0.isASCII || !$0.isNumber }.prefix(6).compactMap { Int64($0) }
        guard groups.count == 6, (1900...3000).contains(groups[0]), (1...12).contains(groups[1]),
            (1...31).contains(groups[2]),
            groups[3] < 24, groups[4] < 60, groups[5] <= 60
        else { return nil }
        // The days of the proleptic Gregorian calendar, with years that begin in March.
        let year = groups[1] <= 2 ? groups[0] - 1 : groups[0]
        let month = (groups[1] + 9) % 12
        let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + groups[2] - 719_469
        return ((days * 24 + groups[3]) * 60 + groups[4]) * 60 + groups[5]
    }
}
