internal import Determinism
internal import Foundation
internal import Scenario
internal import Yams

/// A reader of one YAML document: provides source locations and collects all errors.
final class YAMLReader {
    let file: String
    private(set) var problems: [Problem] = []
    private(set) var warnings: [Problem] = []
    /// The problems and warnings so far; each is reported once.
    private var reported: Set<Problem> = []

    /// The maximum number of errors that are reported.
    static let problemsMax = 100

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

    func report(_ message: @autoclosure () -> String, at node: Node?) {
        report(message(), at: location(node?.mark?.line, node?.mark?.column))
    }

    /// Reports an error at the location of a value that has been read. Errors after the first
    /// ``problemsMax`` are dropped.
    func report(_ message: @autoclosure () -> String, at location: SourceLocation) {
        guard problems.count < Self.problemsMax else { return }
        let problem = Problem(location, message())
        if reported.insert(problem).inserted { problems.append(problem) }
        if problems.count == Self.problemsMax {
            problems.append(
                Problem(SourceLocation(file: file), "more than \(Self.problemsMax) errors; the rest is not listed"))
        }
    }

    /// Reports a warning: the file is valid, but probably not what its author means.
    func warn(_ message: @autoclosure () -> String, at location: SourceLocation) {
        guard warnings.count < Self.problemsMax else { return }
        let warning = Problem(location, message(), severity: .warning)
        if reported.insert(warning).inserted { warnings.append(warning) }
    }

    /// Returns the location of a value.
    func location(_ node: Node) -> SourceLocation { location(node.mark?.line ?? 1, node.mark?.column ?? 1) }

    // MARK: Content

    /// A digest of the bytes of the documents, and of the files that they name, in the order of their first reading.
    private(set) var content = FNV1a()
    private var namedFiles: Set<String> = []

    /// Adds a file that a document names to ``content``. A file that cannot be read is reported elsewhere.
    func addContent(ofFile path: String) {
        guard namedFiles.insert(path).inserted,
            let bytes = try? TextFile.readBytes(path, bytesMax: TraceFile.bytesMax)
        else { return }
        for byte in bytes { content.add(byte) }
    }

    // MARK: Other files

    /// The files that are read besides ``file``. The lines of the file with index i are counted from
    /// (i + 1) * ``fileLines``.
    private var otherFiles: [String] = []

    /// The maximum number of lines of a file: each is at least one byte.
    private static let fileLines = bytesMax + 1

    /// Parses another file, whose values are merged with those of this file.
    func root(ofOther text: String, file other: String, expected: String) -> Node? {
        otherFiles.append(other)
        // A node has no file, so empty lines before the text make its line numbers distinct.
        let text = String(repeating: "\n", count: otherFiles.count * Self.fileLines) + text
        return root(of: text, expected: expected, bytesMax: text.utf8.count)
    }

    /// Returns the location in the user's text of a position in the parsed text.
    private func location(_ line: Int?, _ column: Int?) -> SourceLocation {
        if let line, line > Self.fileLines, !otherFiles.isEmpty {
            let index = min(line / Self.fileLines, otherFiles.count)
            return SourceLocation(
                file: otherFiles[index - 1], line: line - index * Self.fileLines, column: column)
        }
        guard let line, let column, let normalization else {
            return SourceLocation(file: file, line: line, column: column)
        }
        let original = normalization.originalPosition(line: line, column: column)
        return SourceLocation(file: file, line: original.line, column: original.column)
    }

    /// All errors so far, in the order of their lines; those of other files follow.
    var error: FileError { FileError(problems: Self.sorted(problems, first: file)) }

    /// Returns problems in the order of their lines; those of other files follow.
    static func sorted(_ problems: [Problem], first file: String) -> [Problem] {
        problems.sorted { left, right in
            func key(_ problem: Problem) -> (Int, String, Int, Int) {
                let location = problem.location
                // The notice that errors are not listed comes last.
                return (
                    location.line == nil && problems.count > 1 ? 2 : location.file == file ? 0 : 1, location.file,
                    location.line ?? 0, location.column ?? 0
                )
            }
            return key(left) < key(right)
        }
    }

    /// Parses a document and returns its root, which must be a mapping.
    func root(of text: String, expected: String, bytesMax: Int = YAMLReader.bytesMax) -> Node? {
        if text.utf8.count > bytesMax {
            report("the file is larger than \(bytesMax / 1024) KiB; expected \(expected)", at: nil)
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
        for byte in text.utf8 { content.add(byte) }
        do {
            // Without the rules for types of scalars, which are regular expressions: the declarations of the format decide.
            guard let node = try compose(yaml: text, .basic) else {
                report("the file is empty; expected \(expected)", at: nil)
                return nil
            }
            guard node.mapping != nil else {
                report("expected \(expected)", at: node)
                return nil
            }
            return node
        } catch {
            problems.append(tab(in: text, error) ?? problem(of: error))
            return nil
        }
    }

    /// Returns the values of a mapping by key; reports unknown keys.
    ///
    /// - Parameter synonyms: Known keys by words that are often used for them.
    func mapping(
        _ node: Node, keys known: [String], in context: String, synonyms: [String: String] = [:]
    ) -> [String: Node]? {
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
                report(
                    "unknown key '\(name.prefix(40))' in \(context)"
                        + NearestName.hint(name, in: known.filter { values[$0] == nil }, synonyms: synonyms)
                        + " (known: \(known.joined(separator: ", ")))", at: key)
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

    /// Returns the problem of a parser that met a tab; YAML forbids tabs in the indentation.
    private func tab(in text: String, _ error: any Error) -> Problem? {
        let line: Int
        switch error {
        case YamlError.scanner(_, _, let mark, _), YamlError.parser(_, _, let mark, _): line = mark.line
        default: return nil
        }
        var number = 0
        for row in text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            number += 1
            // The parser may notice the error at the start of the next line.
            if number > line + 1 { return nil }
            let indentation = row.prefix { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
            guard number >= line - 1, let tab = indentation.firstIndex(of: UInt8(ascii: "\t")) else { continue }
            let column = row.distance(from: row.startIndex, to: tab) + 1
            return Problem(location(number, column), "a tab in the indentation; YAML allows only spaces there")
        }
        return nil
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
