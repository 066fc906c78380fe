/// Text in columns for terminals.
public enum TextTable {
    /// Returns rows with each column padded to a common width, two spaces apart.
    public static func lines(_ rows: [[String]]) -> [String] {
        var widths: [Int] = []
        for row in rows {
            for (column, cell) in row.enumerated() {
                if column == widths.count { widths.append(0) }
                widths[column] = max(widths[column], cell.count)
            }
        }
        return rows.map { row in
            var line = ""
            for (column, cell) in row.enumerated() {
                line += cell + String(repeating: " ", count: widths[column] - cell.count + 2)
            }
            while line.last == " " { line.removeLast() }
            return line
        }
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
