internal import Foundation
internal import Yams

/// Reads a YAML document with the place of every value, and gathers everything that is wrong.
final class YAMLReader {
    let file: String
    private(set) var problems: [Problem] = []

    /// Larger files are refused unread.
    static let bytesMax = 256 * 1024

    /// Nested aliases can stand for more nodes than memory holds; this few cannot.
    static let aliasesMax = 32

    /// Lines that were put before what the user wrote.
    private let linesBefore: Int

    /// Whether other files may be read that the document names.
    let readsFiles: Bool

    init(file: String, linesBefore: Int = 0, readsFiles: Bool = true) {
        self.file = file
        self.readsFiles = readsFiles
        self.linesBefore = linesBefore
    }

    func report(_ message: String, at node: Node?) {
        let mark = node?.mark
        let line = mark.map { max(1, $0.line - linesBefore) }
        problems.append(Problem(file: file, line: line, column: mark?.column, message: message))
    }

    /// The error of everything reported so far, in the order of the lines.
    var error: FileError {
        FileError(
            problems: problems.sorted { ($0.line ?? 0, $0.column ?? 0) < ($1.line ?? 0, $1.column ?? 0) })
    }

    /// The root of a document that must be a mapping.
    func root(of text: String, expected: String) -> Node? {
        if text.utf8.count > Self.bytesMax {
            report("the file is larger than \(Self.bytesMax / 1024) KiB; expected \(expected)", at: nil)
            return nil
        }
        if Self.aliasCount(in: text) > Self.aliasesMax {
            report("more than \(Self.aliasesMax) aliases (*name); write the values out", at: nil)
            return nil
        }
        if let place = MarkRun.place(in: text) {
            problems.append(
                Problem(
                    file: file, line: max(1, place.line - linesBefore), column: place.column,
                    message: "more than \(MarkRun.marksMax) combining marks in a row"))
            return nil
        }
        do {
            guard let node = try compose(yaml: text) else {
                report("the file is empty; expected \(expected)", at: nil)
                return nil
            }
            guard node.mapping != nil else {
                report("expected \(expected)", at: node)
                return nil
            }
            return node
        } catch {
            problems.append(Self.problem(of: error, file: file))
            return nil
        }
    }

    /// The values of a mapping by key; reports keys that are unknown.
    func mapping(_ node: Node, keys known: [String], in place: String) -> [String: Node]? {
        guard let mapping = node.mapping else {
            report("\(place): expected a mapping with \(known.joined(separator: ", "))", at: node)
            return nil
        }
        var values: [String: Node] = [:]
        for (key, value) in mapping {
            guard let name = key.scalar?.string else {
                report("\(place): a key must be a word", at: key)
                continue
            }
            guard known.contains(name) else {
                let others = known.filter { values[$0] == nil }
                report(
                    "unknown key '\(name.prefix(40))' in \(place)\(NearestName.hint(name, in: others)) "
                        + "(known: \(known.joined(separator: ", ")))", at: key)
                continue
            }
            values[name] = value
        }
        return values
    }

    /// The text of a scalar.
    func text(_ node: Node, expected: String) -> String? {
        guard let scalar = node.scalar else {
            report("expected \(expected)", at: node)
            return nil
        }
        return scalar.string
    }

    /// One of a few words.
    func word<Word: RawRepresentable & CaseIterable>(_ node: Node, as: Word.Type) -> Word?
    where Word.RawValue == String {
        let words = Word.allCases.map(\.rawValue)
        let expected = "one of \(words.joined(separator: ", "))"
        guard let text = text(node, expected: expected) else { return nil }
        guard let word = Word(rawValue: text) else {
            report("'\(text.prefix(40))': expected \(expected)\(NearestName.hint(text, in: words))", at: node)
            return nil
        }
        return word
    }

    /// Places that look like an alias; a few in running text may be counted too.
    private static func aliasCount(in text: String) -> Int {
        var count = 0
        var previous = UInt8(ascii: "\n")
        var isStar = false
        for byte in text.utf8 {
            if isStar, byte > UInt8(ascii: " "), byte != UInt8(ascii: "*") { count += 1 }
            // Whatever is no letter or digit may come before an alias, the line breaks of Unicode included.
            let isInsideWord = previous < 0x80 && Character(UnicodeScalar(previous)).isLetterOrNumber
            isStar = byte == UInt8(ascii: "*") && !isInsideWord
            previous = byte
        }
        return count
    }

    private static func problem(of error: any Error, file: String) -> Problem {
        switch error {
        case YamlError.scanner(_, let problem, let mark, _),
            YamlError.parser(_, let problem, let mark, _),
            YamlError.composer(_, let problem, let mark, _):
            return Problem(file: file, line: mark.line, column: mark.column, message: "not YAML: \(problem)")
        case YamlError.duplicatedKeysInMapping(let duplicates, let context):
            let names = duplicates.map { "'\($0)'" }.joined(separator: ", ")
            return Problem(
                file: file, line: context.mark.line, column: context.mark.column, message: "\(names) given twice")
        case YamlError.reader(let problem, _, _, _):
            return Problem(file: file, line: nil, column: nil, message: "not YAML: \(problem)")
        default:
            return Problem(file: file, line: nil, column: nil, message: "not YAML that can be read")
        }
    }
}

extension Character {
    fileprivate var isLetterOrNumber: Bool { isLetter || isNumber }
}
