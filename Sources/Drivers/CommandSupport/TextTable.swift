/// Text in columns for terminals.
public enum TextTable {
    /// The number of spaces between two columns.
    private static let gap = 2
    /// The least width of a column whose cells are shortened.
    private static let shortenedWidthMin = 8
    /// The end of a shortened cell; not every terminal has U+2026.
    private static let ellipsis = "..."

    /// The least width of a last column whose cells are wrapped.
    private static let wrappedWidthMin = 20

    /// Returns rows with each column padded to a common width, two spaces apart.
    ///
    /// - Parameters:
    ///   - width: The number of terminal columns that lines fit into: cells of the widest columns are shortened, to
    ///     ``shortenedWidthMin`` at least. `nil` leaves all cells whole.
    ///   - wrapsLastColumn: Whether cells of the last column continue on further lines in place of the shortening.
    ///     Words are not broken.
    public static func lines(_ rows: [[String]], width: Int? = nil, wrapsLastColumn: Bool = false) -> [String] {
        var widths: [Int] = []
        for row in rows {
            for (column, cell) in row.enumerated() {
                if column == widths.count { widths.append(0) }
                widths[column] = max(widths[column], cell.terminalWidth)
            }
        }
        var rows = rows
        let width = width.map { max(1, $0) }
        if let width, wrapsLastColumn, let last = widths.last {
            let before = widths.dropLast().reduce(0) { $0 + $1 + gap }
            widths[widths.count - 1] = min(last, max(wrappedWidthMin, width - before))
            rows = rows.flatMap { wrapLastCell(of: $0, to: widths) }
        } else if let width {
            shorten(&widths, toFit: width)
            rows = rows.map { row in zip(row, widths).map(shortened) }
        }
        return rows.map { row in
            var line = ""
            for (column, cell) in row.enumerated() {
                line += cell + String(repeating: " ", count: max(0, widths[column] - cell.terminalWidth) + gap)
            }
            while line.last == " " { line.removeLast() }
            return line
        }
    }

    /// Returns a row with its last cell in as many rows as the width needs.
    private static func wrapLastCell(of row: [String], to widths: [Int]) -> [[String]] {
        guard row.count == widths.count, let cell = row.last, let width = widths.last, cell.terminalWidth > width else {
            return [row]
        }
        let pieces = wrapped(cell, width: width).split(separator: "\n").map(String.init)
        return pieces.enumerated().map { index, piece in
            (index == 0 ? Array(row.dropLast()) : row.dropLast().map { _ in "" }) + [piece]
        }
    }

    /// Takes from the widest columns until the sum fits; from the first one, which names the row, only if the others do
    /// not suffice.
    private static func shorten(_ widths: inout [Int], toFit width: Int) {
        shorten(&widths, 1..<max(1, widths.count), toFit: width)
        shorten(&widths, 0..<min(1, widths.count), toFit: width)
    }

    private static func shorten(_ widths: inout [Int], _ range: Range<Int>, toFit width: Int) {
        var excess = widths.reduce(0, +) + gap * max(0, widths.count - 1) - width
        while excess > 0, let widest = widths[range].max(), widest > shortenedWidthMin {
            // All widest columns are lowered to the next width together, as far as necessary.
            let columns = range.filter { widths[$0] == widest }
            let next = max(widths[range].filter { $0 < widest }.max() ?? 0, shortenedWidthMin)
            let step = min(widest - next, (excess + columns.count - 1) / columns.count)
            for column in columns { widths[column] -= step }
            excess -= step * columns.count
        }
    }

    /// Returns a cell, or its beginning with an ellipsis if it is wider than its column.
    private static func shortened(_ cell: String, _ width: Int) -> String {
        guard cell.terminalWidth > width else { return cell }
        return cell.prefix(columns: width - ellipsis.count) + ellipsis
    }

    /// Returns text on one line, without characters that control a terminal.
    public static func singleLine(_ text: String?) -> String {
        var line = ""
        for scalar in (text ?? "").unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator: line += " "
            case .format where !scalar.properties.isJoinControl: continue
            default: line.unicodeScalars.append(scalar)
            }
        }
        return line
    }

    /// Returns `1 note`, `2 notes`.
    public static func count(_ count: Int, _ singular: String, _ plural: String? = nil) -> String {
        "\(count) \(count == 1 ? singular : plural ?? "\(singular)s")"
    }

    /// Returns text in lines of at most `width` characters, broken between words.
    public static func wrapped(_ text: String, width: Int = 100) -> String {
        var lines = [""]
        for word in text.split(whereSeparator: \.isWhitespace) {
            let last = lines[lines.count - 1]
            if last.isEmpty {
                lines[lines.count - 1] = String(word)
            } else if last.count + 1 + word.count <= width {
                lines[lines.count - 1] += " \(word)"
            } else {
                lines.append(String(word))
            }
        }
        return lines.joined(separator: "\n")
    }
}
