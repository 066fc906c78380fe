import Determinism
import Testing

@testable import ScenarioRunner

@Suite struct PatternsDemoTests {
    private static func frame(_ seconds: Int64, width: Int = 80, withEscapes: Bool = false) throws -> [String] {
        try PatternsDemo().frame(at: .seconds(seconds), width: width, withEscapes: withEscapes)
    }

    /// Returns the five columns of a frame as text.
    private static func columns(_ seconds: Int64) throws -> [String] {
        let frame = try frame(seconds)
        return (0..<5).map { column in
            frame.dropFirst(2).map { line in
                String(line.dropFirst(16 * column).prefix(15)).reversed().drop { $0 == " " }.reversed()
                    .map { String($0) }.joined()
            }.joined(separator: "\n")
        }
    }

    @Test func eachPatternHasItsLookWithoutANetwork() throws {
        #expect(try Self.frame(20)[0].hasSuffix("network: none (100 % loss)"))
        let columns = try Self.columns(20)
        #expect(columns[0].contains(" Taxi 12.00") && !columns[0].contains("~"))
        #expect(columns[1].contains(" Bo pinned\n1 to send"), "no pending look")
        #expect(columns[2].contains("-Lunch 9.50\n~Hotel 700.00\n~Taxi 14.00\n3 to send"))
        #expect(columns[3].contains("to [Bo]\namount [20.00]\nmemo []\n(Send)\n! offline"))
        #expect(columns[4].contains("(no content)\n! offline") && !columns[4].contains("100.00"))
    }

    @Test func eachPatternHasItsResultAfterTheOutage() throws {
        #expect(try Self.frame(36)[0].hasSuffix("network: Wi-Fi"))
        let columns = try Self.columns(36)
        #expect(columns[0].contains("Museum 16.00"), "what another device has added")
        #expect(columns[1].contains(" Bo pinned\n\n"), "nothing to send")
        #expect(columns[2].contains("~Hotel 700.00\n!amount:\nexceeds the\nlimit of 500.00"))
        #expect(columns[2].contains(" Taxi 14.00") && !columns[2].contains("Lunch 9.50"))
        #expect(columns[3].contains("(sent)") && columns[3].contains("POST: 201"))
        #expect(columns[4].contains("100.00"))
    }

    @Test(arguments: [79, 80, 120, 500]) func aFrameFitsIntoTheTerminal(_ width: Int) throws {
        let demo = try PatternsDemo()
        for second in 0...45 {
            let frame = demo.frame(at: .seconds(Int64(second)), width: width, withEscapes: false)
            #expect(frame.count == PatternsDemo.frameSize.lines)
            #expect(frame.allSatisfy { $0.count <= width }, "\(frame)")
        }
    }

    @Test func escapeSequencesChangeNoText() throws {
        let plain = try Self.frame(20)
        let styled = try Self.frame(20, withEscapes: true)
        let text = styled.map { line in
            line.replacing(/\u{1B}\[[0-9;]*m/, with: "").reversed().drop { $0 == " " }.reversed().map { String($0) }
                .joined()
        }
        #expect(text == plain)
        #expect(styled.contains { $0.contains("\u{1B}[2;9m-Lunch 9.50\u{1B}[0m") }, "faint and crossed out")
    }

    @Test func theTranscriptHasEachChangeOnce() throws {
        let lines = try PatternsDemo().transcript()
        #expect(lines.count { $0.hasPrefix("8.0 s  network: none") } == 1)
        #expect(lines.count { $0.hasPrefix("28.0 s  network: Wi-Fi") } == 1)
        #expect(lines.contains("11.0 s  A: optimistic:  Trip |  Bo pinned | 1 to send"))
        #expect(zip(lines, lines.dropFirst()).allSatisfy { $0 != $1 })
    }
}
