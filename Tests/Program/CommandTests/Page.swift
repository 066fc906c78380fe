import Foundation
import TestSupport

/// A page of the documentation with its fenced blocks.
struct Page: Sendable {
    struct Block: Sendable {
        /// The line of its opening fence, from 1.
        let line: Int
        let language: String
        /// The lines without the indentation of the fence.
        let lines: [String]
        /// The file that the paragraph before the block names, with the extension of the language.
        let fileName: String?
        /// The reason of the comment `<!-- not run: REASON -->` before the block.
        let reason: String?

        var text: String { lines.joined(separator: "\n") + "\n" }

        /// The commands of a block whose first line begins with a prompt: `$` of a shell, `>` of a running proxy.
        var steps: [Step] {
            var steps: [Step] = []
            var isContinued = false
            for line in lines {
                if isContinued, !steps.isEmpty {
                    steps[steps.count - 1].text += "\n" + line
                } else if line.hasPrefix("$ ") || line.hasPrefix("> ") {
                    steps.append(Step(isTyped: line.hasPrefix("> "), text: String(line.dropFirst(2)), output: []))
                } else if steps.isEmpty {
                    return []
                } else {
                    steps[steps.count - 1].output.append(line)
                    continue
                }
                isContinued = line.hasSuffix("\\")
            }
            return steps
        }
    }

    /// A command with the output that the page shows.
    struct Step: Sendable {
        /// Whether a running proxy reads the command.
        let isTyped: Bool
        var text: String
        var output: [String]
    }

    /// The permitted reasons of blocks that are not run.
    static let reasons: Set = [
        "needs another machine or device", "needs a network or registry", "needs a container engine",
        "needs another language's packages", "needs a browser", "builds the program", "shows output", "is a fragment",
    ]

    private static let extensions = [
        "python": "py", "js": "js", "yaml": "yaml", "json": "json", "sh": "sh", "swift": "swift", "go": "go",
    ]

    let path: String
    let text: String
    let blocks: [Block]

    /// README.md and the pages of the tutorials and recipes.
    static func all() throws -> [Page] {
        let folders = try ["docs/start", "docs/how-to"].map { folder in
            try FileManager.default.contentsOfDirectory(atPath: Repository.root.appending(path: folder).path())
                .filter { $0.hasSuffix(".md") }.sorted().map { "\(folder)/\($0)" }
        }
        return try (["README.md"] + folders.joined()).map(Page.init)
    }

    init(_ path: String) throws {
        self.path = path
        text = try String(contentsOf: Repository.root.appending(path: path), encoding: .utf8)
        var blocks: [Block] = []
        var fence: (line: Int, indentation: Int, language: String)?
        var lines: [String] = []
        var paragraph = ""
        var isNewParagraph = true
        var reason: String?
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let indentation = line.prefix { $0 == " " }.count
            let content = line.dropFirst(indentation)
            if content.hasPrefix("```") {
                if let start = fence {
                    let file = Self.extensions[start.language].flatMap { Self.fileName(in: paragraph, $0) }
                    blocks.append(
                        Block(
                            line: start.line, language: start.language, lines: lines, fileName: file, reason: reason))
                    (fence, lines, paragraph, reason) = (nil, [], "", nil)
                } else {
                    fence = (index + 1, indentation, String(content.dropFirst(3)))
                }
            } else if let fence {
                lines.append(String(line.dropFirst(min(indentation, fence.indentation))))
            } else if let comment = content.wholeMatch(of: /<!-- not run: (.+) -->/) {
                reason = String(comment.1)
            } else if content.isEmpty {
                isNewParagraph = true
            } else {
                paragraph = isNewParagraph ? String(content) : paragraph + " " + content
                (isNewParagraph, reason) = (false, nil)
            }
        }
        self.blocks = blocks
    }

    /// Returns the first name of a file with an extension that a paragraph has as code.
    private static func fileName(in paragraph: String, _ type: String) -> String? {
        paragraph.matches(of: /`([A-Za-z0-9_.\-]+)`/).map { String($0.1) }.first { $0.hasSuffix(".\(type)") }
    }

    /// Returns the spans of code of the tables' rows: the cells of a row, each with its spans.
    var tableCells: [[[String]]] {
        text.split(separator: "\n").filter { $0.hasPrefix("| ") }.map { row in
            row.split(separator: "|").map { cell in cell.matches(of: /`([^`]+)`/).map { String($0.1) } }
        }
    }
}
