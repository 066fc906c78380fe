internal import Yams

/// The comments of a YAML document, which the parser does not report.
struct YAMLComments {
    /// A comment.
    struct Comment: Hashable {
        /// The line, from 1.
        let line: Int
        /// The text from the number sign.
        let text: String
        /// Whether it follows a value on its line.
        let isTrailing: Bool
    }

    /// The comments, in the order of their lines.
    private(set) var all: [Comment] = []
    /// The lines that have neither a value nor a comment.
    private(set) var blankLines: Set<Int> = []
    /// The line of the first anchor, alias, tag or directive, or of a second document; `nil` if there is none.
    private(set) var unsupportedLine: Int?

    /// Scans a text.
    ///
    /// - Parameter blockScalars: The lines with the indicators of block scalars (`|`, `>`).
    init(_ text: String, blockScalars: Set<Int>) {
        var scanner = Scanner(blockScalars: blockScalars)
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) { scanner.scan(line) }
        all = scanner.comments
        blankLines = scanner.blankLines
        unsupportedLine = scanner.unsupportedLine
    }

    private struct Scanner {
        let blockScalars: Set<Int>
        var comments: [Comment] = []
        var blankLines: Set<Int> = []
        var unsupportedLine: Int?
        private var number = 0
        /// The quotation mark of the scalar that continues on the next line.
        private var quote: Character?
        private var isInBlockScalar = false
        /// The indentation of the block scalar; `nil` before its first line with text.
        private var blockIndentation: Int?

        init(blockScalars: Set<Int>) { self.blockScalars = blockScalars }

        mutating func scan(_ line: Substring) {
            number += 1
            let indentation = line.prefix { $0 == " " }.count
            let isBlank = line.allSatisfy { $0 == " " || $0 == "\t" }
            if isInBlockScalar {
                if isBlank || indentation >= blockIndentation ?? 1 {
                    if !isBlank && blockIndentation == nil { blockIndentation = indentation }
                    return
                }
                isInBlockScalar = false
            }
            if isBlank && quote == nil {
                blankLines.insert(number)
                return
            }
            if quote == nil, line.hasPrefix("%") || (line.hasPrefix("---") && number > 1) || line.hasPrefix("...") {
                unsupportedLine = unsupportedLine ?? number
            }
            scanCharacters(line)
            if blockScalars.contains(number) {
                isInBlockScalar = true
                blockIndentation = nil
            }
        }

        private mutating func scanCharacters(_ line: Substring) {
            // The character before, and the last one that is not a space: a quotation mark, an anchor or an alias
            // begins a value only after an indicator.
            var previous: Character = " "
            var last: Character = ","
            var hasValue = false
            var index = line.startIndex
            while index < line.endIndex {
                let character = line[index]
                index = line.index(after: index)
                if let open = quote {
                    if open == "\"" && character == "\\" && index < line.endIndex {
                        index = line.index(after: index)
                    } else if character == open {
                        if open == "'", index < line.endIndex, line[index] == "'" {
                            index = line.index(after: index)
                        } else {
                            quote = nil
                        }
                    }
                    (previous, last) = (character, "x")
                    hasValue = true
                    continue
                }
                if character == "#" && (previous == " " || previous == "\t") {
                    let text = String(line[line.index(before: index)...])
                    comments.append(Comment(line: number, text: Self.trimmed(text), isTrailing: hasValue))
                    return
                }
                let begins = ["{", "[", ",", ":", "-"].contains(last) && (previous == " " || "{[,".contains(previous))
                if begins {
                    switch character {
                    case "'", "\"": quote = character
                    case "&", "*", "!": unsupportedLine = unsupportedLine ?? number
                    default: break
                    }
                }
                if character != " " && character != "\t" {
                    last = character
                    hasValue = true
                }
                previous = character
            }
        }

        private static func trimmed(_ text: String) -> String {
            var text = text
            while let last = text.last, last == " " || last == "\t" || last == "\r" { text.removeLast() }
            return text
        }
    }
}
