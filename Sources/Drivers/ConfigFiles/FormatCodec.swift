internal import Determinism
internal import LinkModel
internal import Scenario
internal import Yams

/// A form of values in scenario files: their shape in the format's table, their reader and their writer.
struct FormatCodec<Value: Sendable>: Sendable {
    /// The shape.
    let shape: ScenarioFormat.Shape
    /// Whether the number of elements is limited by the shape, and compared with the limits by the key that has the list.
    private(set) var limitsLength = false
    /// Reads a value; reports what is wrong with it.
    let read: @Sendable (Node, ScenarioReader) -> Value?
    /// Returns a value as it is written.
    let write: @Sendable (Value) -> YAMLTree

    init(
        _ shape: ScenarioFormat.Shape, read: @escaping @Sendable (Node, ScenarioReader) -> Value?,
        write: @escaping @Sendable (Value) -> YAMLTree
    ) {
        self.shape = shape
        self.read = read
        self.write = write
    }

    /// Returns the form of other values that stand for these.
    func converted<Other>(
        to other: @escaping @Sendable (Value) -> Other, from value: @escaping @Sendable (Other) -> Value
    ) -> FormatCodec<Other> {
        FormatCodec<Other>(shape, read: { read($0, $1).map(other) }, write: { write(value($0)) })
    }

    /// Returns the form of lists. An element that cannot be read is left out.
    ///
    /// - Parameter isFlow: Whether a list is written in brackets if it fits.
    func list(_ count: ClosedRange<Int>, isFlow: Bool = true) -> FormatCodec<[Value]> {
        var codec = FormatCodec<[Value]>(
            .list(shape, atLeast: count.lowerBound, atMost: count.upperBound),
            read: { node, reader in reader.list(node).compactMap { read($0, reader) } },
            write: { .list($0.map(write), isFlow: isFlow) })
        codec.limitsLength = true
        return codec
    }

    /// Returns the form with a text or number, or else a mapping.
    func orMapping(_ mapping: FormatCodec<Value>, isPlain: @escaping @Sendable (Value) -> Bool) -> Self {
        Self(
            .either([shape, mapping.shape]), read: { $0.mapping == nil ? read($0, $1) : mapping.read($0, $1) },
            write: { isPlain($0) ? write($0) : mapping.write($0) })
    }

    /// The values of a mapping.
    static func object(_ mapping: FormatMapping<Value>) -> Self {
        Self(.object(mapping.object.name), read: { mapping.read($0, $1) }, write: { mapping.tree($0) })
    }

    /// One of some words.
    static func words(_ words: [(word: String, value: Value)]) -> Self where Value: Equatable {
        Self(
            .choice(words.map(\.word)),
            read: { node, reader in
                reader.oneOf(node, words.map(\.word)).flatMap { word in words.first { $0.word == word }?.value }
            }, write: { value in .word(words.first { $0.value == value }?.word ?? "") })
    }
}

// MARK: - Texts and names

extension FormatCodec where Value == String {
    static var text: Self { Self(.text, read: { $1.text($0) }, write: { .text($0) }) }

    static var kebabCase: Self { word(.kebabCase) { $1.kebabCase($0) } }

    static var fraction: Self { word(.fraction) { $1.fraction($0) } }

    /// One of some words.
    static func choice(_ words: [String]) -> Self { word(.choice(words)) { $1.oneOf($0, words) } }

    static var device: Self { word(.name(.device)) { $1.knownDevice($0) } }
    static var actor: Self { word(.name(.actor)) { $1.knownActor($0) } }
    static var row: Self { word(.name(.row)) { $1.knownRow($0) } }
    static var newRow: Self { word(.name(.newRow)) { $1.newRow($0) } }
    static var mark: Self { word(.name(.mark)) { $1.knownMark($0) } }

    /// A value that is written without quotes.
    static func word(
        _ shape: ScenarioFormat.Shape, _ read: @escaping @Sendable (Node, ScenarioReader) -> String?
    ) -> Self {
        Self(shape, read: read, write: { .word($0) })
    }
}

extension FormatCodec where Value: RawRepresentable<String> & CaseIterable {
    /// The names of the cases.
    static var word: Self {
        Self(
            .choice(Value.allCases.map(\.rawValue)),
            read: { $1.oneOf($0, Value.allCases.map(\.rawValue)).flatMap(Value.init(rawValue:)) },
            write: { .word($0.rawValue) })
    }
}

extension FormatCodec where Value == [Scenario.Argument] {
    /// Header fields.
    static var headers: Self { fields(isHeader: true) }
    /// The arguments of a call, or the like.
    static var arguments: Self { fields(isHeader: false) }

    private static func fields(isHeader: Bool) -> Self {
        Self(
            .map(.field, .text), read: { $1.arguments($0, isHeader: isHeader) },
            write: { arguments in
                ScenarioWriter.braces(
                    arguments.map { YAMLTree.Entry(key: .text($0.name), value: .text($0.value)) })
            })
    }
}

extension FormatCodec where Value == Scenario.Program {
    /// A program with its arguments.
    static var program: Self {
        let texts = FormatCodec<String>.text.list(1...100)
        var codec = Self(
            texts.shape,
            read: { node, reader in texts.read(node, reader).map { reader.program($0) } },
            write: { texts.write($0.arguments) })
        codec.limitsLength = true
        return codec
    }
}

// MARK: - Numbers

extension FormatCodec where Value == Int {
    static func integer(_ range: ClosedRange<Int>) -> Self {
        Self(.integer(range), read: { $1.integer($0, range) }, write: { .word("\($0)") })
    }

    /// A number of a mapping's place: without the mapping, that number exactly.
    static func count(expected: String) -> Self {
        Self(
            .integer(0...ScenarioFormat.numberMax), read: { $1.number($0, expected) }, write: { .word("\($0)") })
    }

    static var size: Self { Self(.size, read: { $1.size($0) }, write: { .word("\($0)") }) }
}

extension FormatCodec where Value == Int64 {
    static func integer(_ range: ClosedRange<Int>) -> Self {
        Self(.integer(range), read: { $1.integer($0, range).map { Int64($0) } }, write: { .word("\($0)") })
    }
}

extension FormatCodec where Value == Bool {
    static var boolean: Self { Self(.boolean, read: { $1.boolean($0) }, write: { .word($0 ? "true" : "false") }) }
}

extension FormatCodec where Value == Probability {
    static var percentage: Self {
        Self(.percentage, read: { $1.percentage($0) }, write: { .word(QuantityText.percentage($0)) })
    }
}

extension FormatCodec where Value == Nanoseconds {
    static var time: Self { Self(.time, read: { $1.time($0) }, write: { .word(QuantityText.time($0)) }) }

    static var signedTime: Self {
        Self(.signedTime, read: { $1.signedTime($0) }, write: { .word(QuantityText.signedTime($0)) })
    }
}

/// The least and the greatest number, as far as they are given.
struct Bounds: Hashable, Sendable {
    enum Most: Hashable, Sendable {
        case number(Int)
        /// The number of attempts that the client's retry policy allows.
        case budget
    }

    var least: Int?
    var most: Most?
}

extension FormatCodec where Value == ClosedRange<Int> {
    /// A number, or the least and the greatest one.
    ///
    /// - Parameters:
    ///   - exact: The form of a single number.
    ///   - bounds: The mapping with `min` and `max`.
    ///   - least: The default of `min`.
    ///   - most: The default of `max` for a value of `min`.
    static func range(
        _ exact: FormatCodec<Int>, _ bounds: FormatMapping<Bounds>, least: Int,
        most: @escaping @Sendable (Int) -> Int
    ) -> Self {
        let mapping = Self(
            .object(bounds.object.name),
            read: { node, reader in
                guard let found = bounds.read(node, reader) else { return nil }
                let lower = found.least ?? least
                let upper = if case .number(let number)? = found.most { number } else { most(lower) }
                return reader.range(lower, upper, at: node)
            },
            write: { range in
                let upper: Bounds.Most? = range.upperBound == most(range.lowerBound) ? nil : .number(range.upperBound)
                let lower = range.lowerBound == least && upper != nil ? nil : range.lowerBound
                return bounds.tree(Bounds(least: lower, most: upper))
            })
        return exact.converted(to: { $0...$0 }, from: \.lowerBound)
            .orMapping(mapping) { $0.lowerBound == $0.upperBound }
    }
}

// MARK: - Times and requests

extension FormatCodec where Value == TimeReference {
    static var timeOrMark: Self {
        Self(
            .timeOrMark, read: { $1.reference($0) },
            write: { reference in
                switch reference {
                case .time(let time): .word(QuantityText.time(time))
                case .mark(let mark): .word(mark)
                case .end: .word(TimeReference.endName)
                }
            })
    }
}

extension FormatCodec where Value == RequestPattern {
    static var request: Self {
        Self(
            .request, read: { $1.pattern($0) },
            write: { pattern in
                pattern == .any ? .word("any") : .word("\(pattern.method ?? "any") \(pattern.row ?? "any")")
            })
    }
}
