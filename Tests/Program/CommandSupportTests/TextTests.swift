import Determinism
import LinkModel
import Proxy
import Testing

@testable import CommandSupport
@testable import slowlane

@Suite struct TextTests {
    @Test func onlyLocalhostAndLoopbackAddressesAreLoopback() {
        for host in ["localhost", "127.0.0.1", "127.9.9.9", "::1"] { #expect(LocalAddresses.isLoopback(host)) }
        for host in ["127.example.org", "127.", "127.0.0.1.example.org", "10.0.0.1", "::", "localhost.example.org"] {
            #expect(!LocalAddresses.isLoopback(host), "\(host)")
        }
    }

    @Test func columnsAreAligned() {
        #expect(TextTable.lines([["A", "BB"], ["ccc", ""], ["d", "e"]]) == ["A    BB", "ccc", "d    e"])
    }

    @Test(arguments: [1, 8, 20, 33, 40, 59, 60, 100_000, Int.max]) func aTableFitsItsWidth(_ width: Int) {
        let rows = [
            ["NAME", "ABOUT", "N"], [String(repeating: "n", count: 30), String(repeating: "日", count: 12), "1"],
            ["e\u{301}\u{301}", "👩‍👩‍👧 x", "1000000"],
        ]
        let lines = TextTable.lines(rows, width: width)
        let widest = lines.map(\.terminalWidth).max() ?? 0
        // Three columns of at least 8, 8 and 7, and two gaps.
        #expect(widest <= max(width, 27), "\(lines)")
        if width >= 65 {
            #expect(lines == TextTable.lines(rows))
        } else {
            #expect(widest > min(width, 27) - 6, "no more is taken than necessary: \(lines)")
            #expect(lines[1].contains("..."), "\(lines)")
        }
        #expect(lines[2].contains("1000000") && lines[2].hasPrefix("e\u{301}\u{301} "))
    }

    @Test func aWrappedColumnKeepsAllWords() {
        let words = (0..<30).map { "word\($0)" }
        let rows = [["KEY", "ABOUT"], ["a", words.joined(separator: " ")], ["b", "short"]]
        let lines = TextTable.lines(rows, width: 40, wrapsLastColumn: true)
        #expect(lines.allSatisfy { $0.count <= 40 } && lines.count > 5)
        #expect(lines.dropFirst().dropLast().flatMap { $0.split(separator: " ") }.map(String.init) == ["a"] + words)
        #expect(lines.last == "b    short")
        #expect(TextTable.lines(rows, width: nil, wrapsLastColumn: true).count == 3)
        #expect(TextTable.lines(rows, width: Int.min, wrapsLastColumn: true).last == "b    short")
    }

    @Test func onlyAPositiveNumberOfColumnsCounts() {
        for (text, columns) in [("0", nil), ("1", 1), ("100000", 100_000), ("-3", nil), ("x", nil), ("", nil)] {
            #expect(Terminal.columns(inEnvironment: ["COLUMNS": text]) == columns)
        }
        #expect(Terminal.columns(inEnvironment: [:]) == nil)
    }

    @Test func textOfOthersIsOneLineWithoutControlCharacters() {
        #expect(TextTable.singleLine("a\nb\u{1B}[31m\u{2028}c\u{200B}\u{202E}") == "a b [31m c")
        #expect(TextTable.singleLine(nil).isEmpty)
    }

    @Test func pluralsAgree() {
        #expect(TextTable.count(1, "note") == "1 note")
        #expect(TextTable.count(2, "note") == "2 notes")
        #expect(TextTable.count(0, "entry", "entries") == "0 entries")
    }

    @Test func longTextIsWrappedBetweenWords() {
        #expect(TextTable.wrapped("one two\n three", width: 7) == "one two\nthree")
        #expect(TextTable.wrapped("incomprehensible", width: 7) == "incomprehensible")
    }

    @Test(arguments: [
        (Nanoseconds.zero, "0s"), (.milliseconds(700), "700ms"), (.seconds(80), "1m20s"), (.seconds(3601), "1h1s"),
    ]) func timesHaveTheFormOfTimelineFiles(_ time: Nanoseconds, text: String) {
        #expect(Units.time(time) == text)
    }

    @Test func sizesHaveASpaceBeforeTheUnit() {
        #expect([999, 1200, 3_400_000, 5_000_000_000].map(Units.bytes) == ["999 B", "1.2 kB", "3.4 MB", "5.00 GB"])
    }

    @Test func throughputIsInMillionsOfPackets() {
        #expect(
            Units.throughput(1_200_000, in: .milliseconds(500)) == "1200000 packets in 0.500 s: 2.40 million packets/s")
    }

    @Test func booleanEnvironmentVariablesAreFalseUnlessSet() throws {
        for (value, expected) in [("1", true), ("YES", true), ("true", true), ("0", false), ("", false), ("No", false)]
        {
            #expect(try EnvironmentVariable.boolean("X", in: ["X": value]) == expected, "\(value)")
        }
        #expect(try EnvironmentVariable.boolean("X", in: ["Y": "1"]) == false)
        let error = #expect(throws: EnvironmentVariable.ValueError.self) {
            try EnvironmentVariable.boolean("X", in: ["X": "on"])
        }
        #expect(error?.description == "X 'on' must be 0 or 1")
    }

    @Test func conditionsAreDescribed() {
        #expect(Units.conditions(.clear) == "no conditions")
        var conditions = Conditions(
            up: DirectionConditions(delay: .milliseconds(100)),
            down: DirectionConditions(rate: .kilobits(780), delay: .milliseconds(100)), dnsDelay: .seconds(3))
        #expect(
            Units.conditions(conditions) == "down 780 kbit/s 100 ms, up no rate limit 100 ms, DNS 3000 ms")
        conditions.connectionPolicy = .offline
        #expect(Units.conditions(conditions) == "all connections refused")
    }
}
