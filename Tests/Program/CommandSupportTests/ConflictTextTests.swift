import Testing

@testable import slowlane

/// The file with both versions of a note that `notes resolve --edit` opens.
@Suite struct ConflictTextTests {
    private typealias Version = ConflictText.Version

    @Test func bothTextsStandBetweenMarkers() {
        let file = ConflictText(
            mine: Version(title: "Milk", text: "2 l, oat"), theirs: Version(title: "Milk", text: "3 l"))
        #expect(
            file.contents == """
                ------- title
                Milk
                ------- text
                <<<<<<< mine
                2 l, oat
                =======
                3 l
                >>>>>>> theirs

                """)
    }

    @Test func commonLinesStandOutsideTheMarkers() {
        let file = ConflictText(
            mine: Version(title: "a", text: "1\n2\n3\n4"), theirs: Version(title: "b", text: "1\nx\ny\n4"))
        #expect(
            file.contents == """
                ------- title
                <<<<<<< mine
                a
                =======
                b
                >>>>>>> theirs
                ------- text
                1
                <<<<<<< mine
                2
                3
                =======
                x
                y
                >>>>>>> theirs
                4

                """)
    }

    @Test func anUneditedFileIsRefusedWithTheLineOfItsFirstMarker() {
        let file = ConflictText(mine: Version(title: "Milk", text: "2 l"), theirs: Version(title: "Milk", text: "3 l"))
        let error = #expect(throws: ConflictText.ParseError.self) { try file.parse(file.contents) }
        #expect(error?.line == 4)
        #expect(error?.description.contains("is a conflict marker") == true)
    }

    @Test(arguments: ["<<<<<<< mine", "=======", ">>>>>>> theirs"]) func eachMarkerAloneIsRefused(marker: String) {
        let file = ConflictText(mine: Version(title: "Milk", text: "2 l"), theirs: Version(title: "Milk", text: "3 l"))
        #expect(throws: ConflictText.ParseError.self) {
            try file.parse("------- title\nMilk\n------- text\n5 l\n\(marker)\n")
        }
    }

    @Test func anEditedFileIsTheNewVersion() throws {
        let file = ConflictText(mine: Version(title: "Milk", text: "2 l"), theirs: Version(title: "Milk", text: "3 l"))
        #expect(
            try file.parse("------- title\nMilk and bread\n------- text\n5 l\n\n= oat\n")
                == Version(title: "Milk and bread", text: "5 l\n\n= oat"))
        #expect(try file.parse("------- title\n------- text\n") == Version(title: "", text: ""))
        for wrong in ["", "Milk\n------- text\n5 l\n", "------- title\nMilk\n5 l\n"] {
            #expect(throws: ConflictText.ParseError.self) { try file.parse(wrong) }
        }
    }

    /// Lines of a note that look like markers make the markers longer.
    @Test(arguments: ["=======", "<<<<<<<<<< mine", "------- text", "a\n>>>>>>>>> b\r\nc"])
    func linesOfTheUserAreNoMarkers(text: String) throws {
        let mine = Version(title: "T", text: text)
        let file = ConflictText(mine: mine, theirs: Version(title: "T", text: "other"))
        #expect(throws: ConflictText.ParseError.self) { try file.parse(file.contents) }
        let lines = file.contents.utf8.split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
        let header = try #require(lines.first { $0.hasSuffix("- text") })
        #expect(header != "------- text")
        let edited = "\(lines[0])\nT\n\(header)\n\(text)\n"
        #expect(try file.parse(edited) == mine)
    }

    @Test func aDeletionIsAnEmptyVersionWithALabel() {
        let file = ConflictText(mine: Version(title: "Milk", text: "2 l"), theirs: nil)
        #expect(
            file.contents
                == "------- title\nMilk\n------- text\n<<<<<<< mine\n2 l\n=======\n>>>>>>> theirs (deleted)\n")
        #expect(throws: ConflictText.ParseError.self) { try file.parse(file.contents) }
    }

    @Test func columnsMarkTheLinesThatDiffer() {
        #expect(
            SideBySide.lines(("mine", "1\n2\nlonger than a column"), ("theirs", "1\n3"), width: 23) == [
                "mine         theirs",
                "1            1",
                "2          | 3",
                "longer tha |",
                "n a column |",
            ])
    }
}
