internal import CommandSupport

/// The two versions of a title and a text in one file with conflict markers, for an editor.
///
///     ------- title
///     Milk
///     ------- text
///     <<<<<<< mine
///     2 l, oat
///     =======
///     3 l
///     >>>>>>> theirs
///
/// Lines that both versions have at their beginning or end are outside the markers. The length of the markers is 7
/// characters, or more if a line of either version begins with such a run, so that a line of the user is never taken
/// for a marker.
struct ConflictText: Sendable {
    /// One version.
    struct Version: Hashable, Sendable {
        /// The title.
        var title: String
        /// The text.
        var text: String

        /// Creates a version.
        init(title: String, text: String) {
            self.title = title
            self.text = text
        }
    }

    /// The reason why an edited file is not a version.
    struct ParseError: Error, Hashable, Sendable, CustomStringConvertible {
        /// The number of the line, from 1; `nil` if the whole file is meant.
        let line: Int?
        /// The reason.
        let reason: String

        /// Creates an error.
        init(line: Int?, reason: String) {
            self.line = line
            self.reason = reason
        }

        var description: String { line.map { "line \($0): \(reason)" } ?? reason }
    }

    /// The smallest length of a marker.
    private static let markerLengthMin = 7

    private let mine: Version?
    private let theirs: Version?
    private let markerLength: Int

    /// Creates the file of two versions; `nil` is a deletion.
    init(mine: Version?, theirs: Version?) {
        self.mine = mine
        self.theirs = theirs
        var longest = Self.markerLengthMin - 1
        for text in [mine?.title, mine?.text, theirs?.title, theirs?.text] {
            for line in Self.lines(text ?? "") { longest = max(longest, Self.markerRun(line)) }
        }
        markerLength = longest + 1
    }

    /// The content of the file.
    var contents: String {
        let titles = (mine?.title ?? theirs?.title ?? "", theirs?.title ?? mine?.title ?? "")
        var lines: [Substring] = ["\(marker("-")) title"]
        lines += merged(Self.lines(titles.0), Self.lines(titles.1))
        lines.append("\(marker("-")) text")
        lines += merged(mine.map { Self.lines($0.text) } ?? [], theirs.map { Self.lines($0.text) } ?? [])
        return lines.joined(separator: "\n") + "\n"
    }

    /// Returns the version in an edited file. A leftover of a marker is an error.
    func parse(_ contents: String) throws(ParseError) -> Version {
        var lines = Self.lines(contents)
        // The last line ends with a line feed.
        if lines.last?.isEmpty == true { lines.removeLast() }
        let (titleHeader, textHeader) = (marker("-") + " title", marker("-") + " text")
        guard let first = lines.first, first.utf8.elementsEqual(titleHeader.utf8) else {
            throw ParseError(line: 1, reason: "must be '\(titleHeader)'")
        }
        guard let middle = lines.firstIndex(where: { $0.utf8.elementsEqual(textHeader.utf8) }) else {
            throw ParseError(line: nil, reason: "the line '\(textHeader)' is missing")
        }
        for (index, line) in lines.enumerated() where index > 0 && index != middle {
            if Self.markerRun(line) >= markerLength {
                throw ParseError(
                    line: index + 1,
                    reason: "'\(line.prefix(markerLength + 20))' is a conflict marker; keep one version and remove it")
            }
        }
        return Version(
            title: lines[1..<middle].joined(separator: "\n"), text: lines[(middle + 1)...].joined(separator: "\n"))
    }

    private func merged(_ mine: [Substring], _ theirs: [Substring]) -> [Substring] {
        var prefix = 0
        while prefix < min(mine.count, theirs.count), mine[prefix].utf8.elementsEqual(theirs[prefix].utf8) {
            prefix += 1
        }
        if prefix == mine.count && prefix == theirs.count { return mine }
        var suffix = 0
        while suffix < min(mine.count, theirs.count) - prefix,
            mine[mine.count - 1 - suffix].utf8.elementsEqual(theirs[theirs.count - 1 - suffix].utf8)
        {
            suffix += 1
        }
        var lines = Array(mine[..<prefix])
        lines.append("\(marker("<")) mine\(self.mine == nil ? " (deleted)" : "")")
        lines += mine[prefix..<(mine.count - suffix)]
        lines.append(Substring(marker("=")))
        lines += theirs[prefix..<(theirs.count - suffix)]
        lines.append("\(marker(">")) theirs\(self.theirs == nil ? " (deleted)" : "")")
        return lines + mine[(mine.count - suffix)...]
    }

    private func marker(_ character: Character) -> String { String(repeating: character, count: markerLength) }

    private static func lines(_ text: String) -> [Substring] {
        // By bytes: Swift counts CR LF as one character.
        text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { Substring($0) }
    }

    /// Returns the length of the run of one marker character at the beginning of a line.
    private static func markerRun(_ line: Substring) -> Int {
        guard let first = line.utf8.first, "<=>-".utf8.contains(first) else { return 0 }
        return line.utf8.prefix { $0 == first }.count
    }
}

/// Two texts beside each other.
enum SideBySide {
    /// Returns lines with the left text, a separator and the right text. A `|` marks a line that differs.
    static func lines(_ left: (String, String), _ right: (String, String), width: Int) -> [String] {
        let column = max(8, (width - 3) / 2)
        let (leftLines, rightLines) = (wrapped(left.1, column), wrapped(right.1, column))
        var lines = [line(left.0, right.0, " ", column)]
        for index in 0..<max(leftLines.count, rightLines.count) {
            let pair = (
                index < leftLines.count ? leftLines[index] : nil, index < rightLines.count ? rightLines[index] : nil
            )
            lines.append(line(pair.0 ?? "", pair.1 ?? "", pair.0 == pair.1 ? " " : "|", column))
        }
        return lines
    }

    private static func line(_ left: String, _ right: String, _ mark: String, _ column: Int) -> String {
        var line = left + String(repeating: " ", count: max(0, column - left.terminalWidth)) + " \(mark) " + right
        while line.last == " " { line.removeLast() }
        return line
    }

    /// Returns a text in lines of at most `width` columns, without characters that control a terminal.
    private static func wrapped(_ text: String, _ width: Int) -> [String] {
        var lines: [String] = []
        for line in text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            var rest = Substring(TextTable.singleLine(String(Substring(line))))
            repeat {
                // One character at least, even if it is wider.
                let piece = String(rest).prefix(columns: width)
                let count = max(1, piece.count)
                lines.append(String(rest.prefix(count)))
                rest = rest.dropFirst(count)
            } while !rest.isEmpty
        }
        return lines
    }
}
