import Determinism
import LinkModel
import Testing

@testable import CommandSupport

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
        conditions.connectionPolicy = .refuse
        #expect(Units.conditions(conditions) == "all connections refused")
    }

    @Test func aLineIsEditedWithBackspaceAndControlU() {
        var editor = LineEditor()
        func type(_ text: String) -> String? { text.utf8.reduce(nil) { $0 ?? editor.append($1) } }
        #expect(type("staé\u{7F}tx\u{08}us") == nil)
        #expect(editor.text == "status")
        #expect(type("\n") == "status")
        #expect(type("nonsense\u{15}quit\r") == "quit")
        #expect(type("  \n") == nil)
    }
}
