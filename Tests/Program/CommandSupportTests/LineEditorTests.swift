import TestSupport
import Testing

@testable import CommandSupport
@testable import slowlane

/// Lines that are typed on a terminal, and lines of a pipe.
@Suite struct LineEditorTests {
    private static let left = "\u{1B}[D"
    private static let right = "\u{1B}OC"
    private static let up = "\u{1B}[A"
    private static let down = "\u{1B}[B"
    private static let words = ["profile", "pause", "proxy-reset", "edge", "edge-good", "subway"]

    private var editor = LineEditor { _ in words }

    /// Types keys and returns the actions.
    @discardableResult
    private mutating func type(_ keys: String) -> [LineEditor.Action] {
        keys.utf8.compactMap { editor.receive($0) }
    }

    private var text: String { String(editor.typed.characters) }

    /// The text with `|` at the cursor.
    private var shown: String {
        editor.typed.beforeCursor + "|" + String(editor.typed.characters[editor.typed.cursor...])
    }

    @Test mutating func aFinishedLineIsACommandWithoutSurroundingSpace() {
        #expect(type("staé\u{7F}tx\u{08}us") == [])
        #expect(text == "status")
        #expect(type("\n") == [.line(.command("status"))])
        #expect(type("nonsense\u{15}  quit \r") == [.line(.command("quit"))])
        #expect(type("  \n").isEmpty && text.isEmpty)
    }

    @Test(arguments: [
        ("abc" + left + left + "X", "aX|bc"), ("abc" + left + right + right, "abc|"), ("ab\u{01}X\u{05}Y", "XabY|"),
        ("ab\u{1B}[HX\u{1B}[FY", "XabY|"), ("ab\u{1B}[1~X\u{1B}[4~Y", "XabY|"), ("abc\u{02}\u{02}\u{06}\u{7F}", "a|c"),
        ("abc\u{01}\u{1B}[3~", "|bc"), ("abc\u{01}\u{04}", "|bc"), ("one two\u{02}\u{02}\u{0B}", "one t|"),
        ("one two  \u{17}", "one |"), ("one two\u{02}\u{15}", "|o"), ("one two\u{1B}b\u{1B}bX", "X|one two"),
        ("one two\u{1B}[1;5D\u{1B}[1;5D\u{1B}fX", "oneX| two"), ("ab\u{1B}[15;2~c", "abc|"), ("a\u{1B}xb", "ab|"),
        ("日本é" + left + "\u{7F}", "日|é"), ("e\u{301}x\u{7F}\u{7F}", "|"), ("👩‍👩‍👧" + left + "a", "a|👩‍👩‍👧"),
        ("a\u{02}\u{301}b", "\u{301}b|a"), ("a\u{9B}A", "aA|"),
    ]) mutating func keysEditTheLine(_ keys: String, shown: String) {
        type(keys)
        #expect(self.shown == shown)
    }

    @Test mutating func aKeyWithoutEffectRings() {
        #expect(
            type(Self.left + Self.right + "\u{7F}\u{04}" + Self.up + Self.down + "\u{85}").allSatisfy { $0 == .bell })
        #expect(type(Self.left) == [.bell])
        #expect(type(String(repeating: "a", count: 4096)) == [])
        #expect(type("é") == [.bell])
        #expect(type("\n") == [.line(.command(String(repeating: "a", count: 4096)))])
    }

    @Test mutating func invalidUTF8IsLeftOut() {
        for byte: UInt8 in [0x61, 0xFF, 0xFF, 0xFF, 0xFF, 0xC3, 0x62, 0x80, 0xE3, 0x81, 0xC3, 0xA9] {
            _ = editor.receive(byte)
        }
        #expect(text == "abé")
    }

    @Test mutating func theHistoryKeepsLinesAndTheTypedOne() {
        type("one\ntwo\ntwo\n  \nthr")
        type(Self.up)
        #expect(shown == "two|")
        type(Self.up)
        #expect(shown == "one|")
        #expect(type(Self.up) == [.bell])
        type("\u{0E}\u{0E}")
        #expect(shown == "thr|")
        type("\u{10}s\n")
        type(Self.up)
        #expect(shown == "twos|")
        type("\n" + (0..<LineEditor.historyMax).map { "\($0)\n" }.joined())
        #expect(type(String(repeating: Self.up, count: LineEditor.historyMax + 1)) == [.bell])
        #expect(text == "0")
    }

    @Test mutating func tabCompletesAWord() {
        #expect(type("pa\t") == [] && shown == "pause |")
        #expect(type("\u{15}P\t") == [.words(["profile", "pause", "proxy-reset"])] && shown == "P|")
        #expect(type("R\t") == [] && shown == "pro|")
        #expect(type("\t") == [.words(["profile", "proxy-reset"])])
        #expect(type("f\t\tE\t") == [.words(Self.words)] && shown == "profile edge|")
        #expect(type("\t") == [.words(["edge", "edge-good"])])
        #expect(type("-\t") == [] && shown == "profile edge-good |")
        #expect(type("x\t") == [.bell])
        #expect(type("\u{15}prof edge\u{1B}b\u{02}\t") == [] && shown == "profile| edge")
    }

    @Test(arguments: [
        ("", InteractiveProxy.commandNames), ("pro", InteractiveProxy.commandNames), ("OUTAGE ", ["up", "down"]),
        ("  timeline  s", ["3g-moving", "subway", "train", "elevator"]), ("status ", []), ("profile 3g ", []),
    ]) func thePromptCompletesCommandsAndTheirNames(_ text: String, words: [String]) {
        #expect(PromptWords.following(text) == words)
    }

    @Test func thePromptCompletesProfilesAndAliases() {
        let names = PromptWords.following("profile ")
        #expect(names.count > 40 && names.contains("edge") && names.contains("4g") && names == names.sorted())
    }

    @Test(arguments: [
        ("abcdefghi", 9, 10, "abcdefghi", 0), ("abcdefghij", 10, 10, "bcdefghij", 0),
        ("abcdefghij", 0, 10, "abcdefghi", 9),
        ("abcdefghijkl", 9, 8, "efghijk", 2), ("日本語日本語", 6, 8, "日本語", 0), ("日本語", 1, 20, "日本語", 4),
    ]) func aLongTextIsShownAroundTheCursor(
        _ text: String, cursor: Int, columns: Int, shown: String, behind: Int
    ) {
        let view = TypedText(characters: Array(text), cursor: cursor).view(columns: columns)
        #expect(view.text == shown && view.columnsBehindCursor == behind)
    }

    @Test func theViewAlwaysFitsAndContainsTheCursor() {
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<2000 {
            let alphabet: [Character] = ["a", "日", "e\u{301}", " ", "👩‍👩‍👧"]
            let characters = (0..<Int.random(in: 0...40, using: &generator)).map { _ in
                alphabet.randomElement(using: &generator) ?? "a"
            }
            let typed = TypedText(
                characters: characters, cursor: Int.random(in: 0...characters.count, using: &generator))
            let columns = Int.random(in: 4...30, using: &generator)
            let (text, behind) = typed.view(columns: columns)
            #expect(text.terminalWidth < columns && behind <= text.terminalWidth)
            #expect(String(characters).contains(text))
            let following = typed.cursor < characters.count ? characters[typed.cursor].terminalWidth : 0
            #expect(following == 0 || behind >= following || columns < 8, "the character at the cursor is shown")
        }
    }

    @Test func aLineThatCannotBeACommandHasAReason() {
        var splitter = LineSplitter()
        func read(_ bytes: [UInt8]) -> InputLine? { (bytes + [10]).reduce(nil) { $0 ?? splitter.receive($1) } }
        #expect(read([0xFF]) == .invalid("the line is not valid UTF-8"))
        #expect(read([0x7F]) == .invalid("the line contains a control character"))
        #expect(read(Array(repeating: 0x61, count: 4097)) == .invalid("the line is longer than 4096 bytes"))
        #expect(read(Array(repeating: 0x61, count: 4096)) == .command(String(repeating: "a", count: 4096)))
        #expect(read(Array("\ta\tb ".utf8)) == .command("a\tb"))
        #expect(read([]) == nil)
    }
}
