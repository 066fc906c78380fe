import Foundation
import TestSupport
import Testing
import Wire

/// Parsing and writing JSON, hostile input included.
@Suite struct JSONTests {
    private static func parse(_ text: String) -> JSONValue? { JSONText.parse(Array(text.utf8)) }

    @Test func membersOfAValueThatLacksThemAreNull() throws {
        let value = try #require(Self.parse(#"{"a":[1,2.5],"b":"x"}"#))
        #expect(value["a"].array.map(\.number) == [1, 2.5])
        #expect(value["b"].number == nil && value["b"].array.isEmpty && value["b"]["c"] == .null)
        #expect(
            value["b"].displayText == "x" && value["a"].displayText == "[1,2.5]" && value["c"].displayText == "null")
    }

    @Test(
        arguments: [
            ("null", .null), (" true ", true), ("\r\n\t false", false), ("0", 0), ("-0", 0), ("-12", -12),
            ("9223372036854775807", .integer(.max)), ("9223372036854775808", .number(9_223_372_036_854_775_808)),
            ("1.0", 1), ("1e3", 1000), ("1.5E+2", 150), ("1.25", .number(1.25)), ("1e-7", .number(1e-7)),
            ("1e400", .unrepresentable),
            (#""""#, ""), (#""a\"\\\/\b\f\n\r\tz""#, "a\"\\/\u{8}\u{C}\n\r\tz"),
            (#""\u0000\u00e9\uD83E\udded""#, "\u{0}\u{E9}\u{1F9ED}"),
            (#""\uD83E""#, .unrepresentable), (#""\uD83Ex""#, .unrepresentable), (#""\uDDED\uD83E""#, .unrepresentable),
            (#""\uD83E\u0041""#, .unrepresentable), ("\"\u{FEFF}x\"", "\u{FEFF}x"), ("\"\u{7F}\"", "\u{7F}"),
            ("[]", []),
            ("[ ]", []),
            ("{}", [:]), (#"{"a":[1,{"b":null}],"c":"d"}"#, ["a": [1, ["b": .null]], "c": "d"]),
            (#"{"a":1,"a":2}"#, ["a": 2]),
        ] as [(String, JSONValue)]) func validJSONIsParsed(text: String, value: JSONValue)
    { #expect(Self.parse(text) == value) }

    @Test(arguments: [
        "", " ", "nul", "nulll", "True", "+1", "01", "1.", ".5", "1e", "1e+", "--1", "0x1", "NaN", "Infinity", "\"",
        "\"\\", "\"\\x\"",
        "\"\\u12\"", "\"\\u12g4\"", "\"a\nb\"", "\"\u{1}\"", "[", "[1", "[1,", "[1,]", "[,]", "[1 2]", "{", "{\"a\"",
        "{\"a\":",
        "{\"a\":1", "{\"a\":1,}", "{a:1}", "{1:1}", "{\"\\uD800\":1}", "1 1", "[]]", "'a'", "\u{FEFF}1", "/**/1",
    ]) func invalidJSONIsRejected(text: String) { #expect(Self.parse(text) == nil) }

    /// Readers of JSON lines may split at the line breaks of Unicode, as Python's `splitlines()` does.
    @Test(arguments: randomSeeds(20)) func noLineBreakOfUnicodeStandsInAString(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let pieces: [String] = [
            "\u{2028}", "\u{2029}", "\u{85}", "\u{B}", "\u{C}", "\u{1C}", "\r\n", "\u{A9}", "\u{20AC}", "\u{2027}",
            "\u{202A}",
            "a", "\"", "\\", "\u{C2}\u{301}", "😀",
        ]
        let text = (0..<40).map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
        let json = JSONText.string(text)
        #expect(!json.unicodeScalars.contains { Character($0).isNewline }, "\(json)")
        #expect(Self.parse(json)?.text?.hasSameBytes(as: text) == true)
        #expect(JSONText.string("\u{2028}\u{2029}\u{85}€") == #""\u2028\u2029\u0085€""#)
    }

    @Test func invalidUTF8IsRejected() {
        for bytes: [UInt8] in [
            [0x22, 0xFF, 0x22], [0x22, 0xC3, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22], [0xFF], [0x22, 0xC0, 0x80, 0x22],
        ] {
            #expect(JSONText.parse(bytes) == nil)
        }
    }

    @Test func depthHasALimit() {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(Self.parse(nested(64)) != nil)
        #expect(Self.parse(nested(65)) == nil)
        #expect(Self.parse(String(repeating: "{\"a\":", count: 100_000)) == nil)
    }

    /// Foundation's decoder takes minutes for such input.
    @Test(.timeLimit(.minutes(20))) func wideAndDeepInputTakesLinearTime() {
        for depth in [0, 30, 60] {
            let text =
                String(repeating: "[", count: depth) + String(repeating: "[],", count: 300_000) + "1"
                + String(repeating: "]", count: depth)
            #expect((Self.parse(text) == nil) == (depth == 0))
        }
    }

    /// Foundation parses the same values.
    @Test(arguments: 0..<200 as Range<UInt64>) func parsingAgreesWithFoundation(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        func text(_ depth: Int) -> String {
            switch Int.random(in: 0..<(depth > 4 ? 5 : 7), using: &random) {
            case 0: return ["null", "true", "false"].randomElement(using: &random)!
            case 1: return String(Int.random(in: -1000...1000, using: &random))
            case 2: return String(Double.random(in: -1e6...1e6, using: &random))
            case 3, 4:
                let scalars = [
                    "a", "\\n", "\u{E9}", "e\u{301}", "\\u0041", "\\uD83E\\uDDED", "\u{1F9ED}", "\\\"", " ", "\u{7F}",
                    "\\u0000",
                ]
                return "\""
                    + (0..<Int.random(in: 0..<6, using: &random)).map { _ in scalars.randomElement(using: &random)! }
                    .joined() + "\""
            case 5:
                return "["
                    + (0..<Int.random(in: 0..<4, using: &random)).map { _ in text(depth + 1) }.joined(separator: " ,")
                    + "]"
            default:
                return "{"
                    + (0..<Int.random(in: 0..<4, using: &random)).map { "\"k\($0)\": \(text(depth + 1))" }.joined(
                        separator: ",") + "}"
            }
        }
        let whole = text(0)
        let parsed = try #require(Self.parse(whole), "\(whole)")
        func canonical(_ text: String) throws -> Data {
            let value = try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)
            return try JSONSerialization.data(withJSONObject: value, options: [.sortedKeys, .fragmentsAllowed])
        }
        let (foundation, again) = try (canonical(whole), canonical(parsed.json))
        #expect(foundation == again, "\(whole) became \(parsed.json)")
        // The written text parses to the same value. A truncated array or object is rejected.
        #expect(Self.parse(parsed.json) == parsed)
        if whole.hasPrefix("[") || whole.hasPrefix("{") {
            let bytes = Array(whole.utf8)
            for length in 0..<bytes.count { #expect(JSONText.parse(bytes.prefix(length)) == nil) }
        }
    }

    @Test func stringsAreEscaped() {
        #expect(JSONText.string("\"\\\n\r\t\u{0}\u{1F}\u{7F}/\u{E9}\u{1F9ED}") == #""\"\\\n\r\t\u0000\u001f\u007f/é🧭""#)
        #expect(JSONText.string("") == "\"\"")
        #expect(JSONText.string(nil) == "null")
        // A string that is not contiguous in memory.
        let long = String(repeating: "a\"", count: 1000)
        #expect(JSONText.string(String(long.dropFirst(1).dropLast(1))).utf8.count == 1998 + 999 + 2)
    }

    /// Eight plain characters are read and written at a time; an escaped one may be at any place among them.
    @Test func everyCharacterIsWrittenAndReadAtEveryPlace() throws {
        for scalar in (0..<0x100).map({ UnicodeScalar($0)! }) + ["\u{2028}", "\u{FFFD}", "😀"] {
            for position in 0..<17 {
                let text =
                    String(repeating: "x", count: position) + String(scalar)
                    + String(repeating: "y", count: 17 - position)
                let json = JSONText.string(text)
                #expect(JSONText.parse(Array(json.utf8))?.text == text)
                #expect(!json.utf8.contains { $0 < 0x20 })
            }
        }
    }
}
