/// The text at a prompt, with the cursor.
struct TypedText: Hashable, Sendable {
    /// The characters of the text.
    var characters: [Character] = []
    /// The number of characters before the cursor.
    var cursor = 0

    /// The text before the cursor.
    var beforeCursor: String { String(characters[..<cursor]) }

    /// Returns the part of the text around the cursor that fits into a number of columns, of which the cursor takes one,
    /// and the columns of that part behind the cursor.
    func view(columns: Int) -> (text: String, columnsBehindCursor: Int) {
        let widths = characters.map(\.terminalWidth)
        let behind = widths[cursor...].reduce(0, +)
        if widths[..<cursor].reduce(behind, +) < columns { return (String(characters), behind) }
        // A quarter of the columns shows what follows the cursor.
        var free = columns - 1 - min(behind, columns / 4)
        var start = cursor
        while start > 0, widths[start - 1] <= free {
            start -= 1
            free -= widths[start]
        }
        free = columns - 1 - widths[start..<cursor].reduce(0, +)
        var end = cursor
        while end < characters.count, widths[end] <= free {
            free -= widths[end]
            end += 1
        }
        return (String(characters[start..<end]), widths[cursor..<end].reduce(0, +))
    }
}
