import Determinism
import Foundation
import LinkModel
import TestSupport
import Testing

@testable import ConfigFiles

@Suite struct BandwidthTableTests {
    private static func table(
        _ text: String, time: String = "Timestamp", rate: String = "DL_bitrate"
    ) -> Result<BandwidthTable, FileError> {
        Result { () throws(FileError) in
            try BandwidthTable(
                parsing: text, .init(time: time, rate: rate, timeUnit: 1_000_000_000, rateUnit: 1000), file: "drive.csv"
            )
        }
    }

    /// The layout of a data set of 5G measurements: dates, and rows without a value.
    @Test func columnsHaveNamesAndTimesMayBeDates() throws {
        let table = try Self.table(
            """
            Timestamp,Speed,DL_bitrate,UL_bitrate
            2019.12.31_23.59.58,0,1200,3
            2019.12.31_23.59.59,0,-,3
            2020.01.01_00.00.00,1,2400.5,4

            2020.01.01_00.00.01,1,0,4
            """
        ).get()
        #expect(table.steps.map(\.start) == [.zero, .seconds(2), .seconds(3)])
        #expect(table.steps.map(\.bitsPerSecond) == [1_200_000, 2_400_500, 0])
        #expect(table.end == .seconds(4) && table.skippedRows == 1)
    }

    @Test func columnsWithoutNamesHaveNumbers() throws {
        for separator in [" ", "\t", ";", ", "] {
            let rows = [("10.0", "1.5"), ("10.5", "3"), ("10.5", "4"), ("11", "2")].map { $0.0 + separator + $0.1 }
            let table = try Self.table(rows.joined(separator: "\n"), time: "1", rate: "2").get()
            #expect(table.steps.map(\.start) == [.zero, .milliseconds(500), .seconds(1)])
            #expect(table.steps.map(\.bitsPerSecond) == [1500, 4000, 2000])
        }
    }

    @Test(arguments: [
        ("", "the table has 0 rows"), ("Timestamp,DL_bitrate\n1,2\n", "the table has 1 rows"),
        (
            "Timestamp,DL_bitrat\n1,2\n",
            "drive.csv:1:1: no column 'DL_bitrate'; did you mean 'DL_bitrat'? (columns: Timestamp, DL_bitrat)"
        ),
        ("Timestamp,DL_bitrate\n1,2\n0,2\n", "drive.csv:3:1: the time is earlier"),
        ("Timestamp,DL_bitrate\n1,2\n2,-2\n", "drive.csv:3:1: the rate -2 is not from 0"),
        ("Timestamp,DL_bitrate\n1,2\n2,1e300\n", "drive.csv:3:1: the rate 1e300 is not"),
        ("Timestamp,DL_bitrate\n1,2\n1e300,2\n", "drive.csv:3:1: the time is out of range"),
        ("Timestamp,DL_bitrate\n1,2\n90000,2\n", "drive.csv:3:1: the table is longer than a day"),
    ])
    func problemsHaveTheirPlaces(_ text: String, _ message: String) {
        guard case .failure(let error) = Self.table(text) else {
            Issue.record("'\(text)' was accepted")
            return
        }
        #expect("\(error)".contains(message), "\(error)")
    }

    @Test func theTextOfATraceIsReadBack() throws {
        let trace = try DeliveryTrace(milliseconds: [0, 1, 1, 7, 20])
        #expect(TraceFile.text(trace) == "0\n1\n1\n7\n20\n")
        #expect(try TraceFile.parse(Data(TraceFile.text(trace).utf8), file: "t") == trace)
    }

    @Test(arguments: randomSeeds(200, soak: 5000)) func noTextTraps(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let words = [
            "1", "2", ",", ";", " ", "\n", "Timestamp", "DL_bitrate", "-", "1e308", "nan", "inf", "2019.12.31_23.59.58",
            "\0", "é",
        ]
        let text = (0..<Int.random(in: 0...60, using: &random)).map { _ in words.randomElement(using: &random) ?? "" }
            .joined()
        if case .success(let table) = Self.table("Timestamp,DL_bitrate\n" + text) {
            #expect(table.steps.count >= 2)
            _ = try? DeliveryTrace(steps: table.steps, until: table.end)
        }
    }
}
