internal import Foundation
internal import ScenarioModel
internal import Yams

/// A reader of one YAML document: provides source locations and collects all errors.
final class YAMLReader {
    let file: String
    private(set) var problems: [Problem] = []

    /// The size limit; larger files are rejected unread.
    static let bytesMax = 256 * 1024

    /// The maximum number of aliases. Nested aliases expand exponentially; this many cannot exhaust memory.
    static let aliasesMax = 32

    /// The mapping from positions in the parsed text to those in the user's text.
    private let normalization: InlineTimeline?

    /// Whether files named in the document may be read.
    let readsFiles: Bool

    init(file: String, normalization: InlineTimeline? = nil, readsFiles: Bool = true) {
        self.file = file
        self.readsFiles = readsFiles
        self.normalization = normalization
    }

    func report(_ message: String, at node: Node?) {
        problems.append(Problem(location(node?.mark?.line, node?.mark?.column), message))
    }

    /// Reports an error at the location of a value that has been read.
    func report(_ message: String, at location: SourceLocation) { problems.append(Problem(location, message)) }

    /// Returns the location in the user's text of a position in the parsed text.
    private func location(_ line: Int?, _ column: Int?) -> SourceLocation {
        guard let line, let column, let normalization else {
            return SourceLocation(file: file, line: line, column: column)
        }
        let original = normalization.originalPosition(line: line, column: column)
        return SourceLocation(file: file, line: original.line, column: original.column)
    }

    /// All errors so far, in the order of their lines.
    var error: FileError {
        FileError(
            problems: problems.sorted {
                ($0.location.line ?? 0, $0.location.column ?? 0) < ($1.location.line ?? 0, $1.location.column ?? 0)
            })
    }

    /// Parses a document and returns its root, which must be a mapping.
    func root(of text: String, expected: String) -> Node? {
        if text.utf8.count > Self.bytesMax {
            report("the file is larger than \(Self.bytesMax / 1024) KiB; expected \(expected)", at: nil)
            return nil
        }
        if Self.aliasCount(in: text) > Self.aliasesMax {
            report("more than \(Self.aliasesMax) aliases (*name); write the values out", at: nil)
            return nil
        }
        if let run = CombiningMarkRun.location(in: text) {
            problems.append(
                Problem(
                    location(run.line, run.column),
                    "more than \(CombiningMarkRun.marksMax) combining marks in a row"))
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
            problems.append(problem(of: error))
            return nil
        }
    }

    /// Returns the values of a mapping by key; reports unknown keys.
    func mapping(_ node: Node, keys known: [String], in context: String) -> [String: Node]? {
        guard let mapping = node.mapping else {
            report("\(context): expected a mapping with \(known.joined(separator: ", "))", at: node)
            return nil
        }
        var values: [String: Node] = [:]
        for (key, value) in mapping {
            guard let name = key.scalar?.string else {
                report("\(context): a key must be a scalar", at: key)
                continue
            }
            guard known.contains(name) else {
                let others = known.filter { values[$0] == nil }
                report(
                    "unknown key '\(name.prefix(40))' in \(context)\(NearestName.hint(name, in: others)) "
                        + "(known: \(known.joined(separator: ", ")))", at: key)
                continue
            }
            values[name] = value
        }
        return values
    }

    /// Returns the text of a scalar.
    func text(_ node: Node, expected: String) -> String? {
        guard let scalar = node.scalar else {
            report("expected \(expected)", at: node)
            return nil
        }
        return scalar.string
    }

    /// Returns a value of an enumeration.
    func value<Value: RawRepresentable & CaseIterable>(_ node: Node, as: Value.Type) -> Value?
    where Value.RawValue == String {
        let names = Value.allCases.map(\.rawValue)
        let expected = "one of \(names.joined(separator: ", "))"
        guard let text = text(node, expected: expected) else { return nil }
        guard let value = Value(rawValue: text) else {
            report("'\(text.prefix(40))': expected \(expected)\(NearestName.hint(text, in: names))", at: node)
            return nil
        }
        return value
    }

    /// Returns the number of apparent aliases; an asterisk in running text may count too.
    private static func aliasCount(in text: String) -> Int {
        var count = 0
        var previous = UInt8(ascii: "\n")
        var isStar = false
        for byte in text.utf8 {
            if isStar, byte > UInt8(ascii: " "), byte != UInt8(ascii: "*") { count += 1 }
            // Any character but a letter or digit can precede an alias, line breaks of Unicode included.
            let isInsideWord = previous < 0x80 && Character(UnicodeScalar(previous)).isLetterOrNumber
            isStar = byte == UInt8(ascii: "*") && !isInsideWord
            previous = byte
        }
        return count
    }

    private func problem(of error: any Error) -> Problem {
        switch error {
        case YamlError.scanner(_, let problem, let mark, _),
            YamlError.parser(_, let problem, let mark, _),
            YamlError.composer(_, let problem, let mark, _):
            return Problem(location(mark.line, mark.column), "invalid YAML: \(problem)")
        case YamlError.duplicatedKeysInMapping(let duplicates, let context):
            let names = duplicates.map { "'\($0)'" }.joined(separator: ", ")
            return Problem(location(context.mark.line, context.mark.column), "duplicate key \(names)")
        case YamlError.reader(let problem, _, _, _):
            return Problem(location(nil, nil), "invalid YAML: \(problem)")
        default:
            return Problem(location(nil, nil), "invalid YAML")
        }
    }
}

extension Character {
    fileprivate var isLetterOrNumber: Bool { isLetter || isNumber }
}
