internal import Determinism
public import LinkModel

/// Conditions of one direction in the syntax of `tc qdisc ... netem`:
/// `delay 100ms 20ms distribution normal loss 1% rate 780kbit limit 50`.
///
/// The supported keywords are `delay TIME [JITTER [distribution uniform|normal|pareto]]`, `loss [random] PERCENT`,
/// `loss gemodel P [R [1-H [1-K]]]`, `duplicate PERCENT`, `reorder PERCENT`, `rate RATE` and `limit PACKETS`, and as an
/// extension `loss timed GOOD BAD [1-H [1-K]]` with the mean durations of both states. Units are those of `tc`
/// (``TrafficControlUnits``). The default `limit` is netem's, 1000 packets. Jitter keeps packets in order, as netem
/// with `rate` does; only `reorder` lets packets overtake.
public enum NetemExpression {
    /// The reason why an expression is rejected, with the position of the invalid word.
    public struct ParseError: Error, CustomStringConvertible {
        /// The expression.
        public let expression: String
        /// The column of the word in characters, from 1.
        public let column: Int
        /// The error and the expected value.
        public let message: String

        public var description: String {
            "\(message)\n  \(expression)\n  \(String(repeating: " ", count: column - 1))^"
        }
    }

    /// netem's default queue limit in packets.
    public static let limitDefault = 1000
    private static let words = ["delay", "loss", "duplicate", "reorder", "rate", "limit", "distribution"]
    private static let unsupported = ["corrupt", "slot", "gap", "ecn", "seed"]

    /// Parses an expression.
    public static func parse(_ text: String) throws(ParseError) -> DirectionConditions {
        var reader = Reader(text)
        var conditions = DirectionConditions(queue: QueueLimit(packets: limitDefault) ?? .standard)
        var seen: Set<String> = []
        var reordering: Reader.Word?
        while let word = reader.next() {
            guard words.contains(word.text) else {
                throw reader.parseError(
                    word,
                    unsupported.contains(word.text)
                        ? "'\(word.text)' is not supported"
                        : "unknown word '\(word.text)'\(NearestName.hint(word.text, in: words)) (known: \(words.joined(separator: ", ")))"
                )
            }
            if !seen.insert(word.text).inserted { throw reader.parseError(word, "'\(word.text)' is given twice") }
            switch word.text {
            case "delay": try readDelay(&reader, word, &conditions)
            case "loss": try readLoss(&reader, word, &conditions)
            case "duplicate":
                conditions.duplication = try reader.quantity(after: word, Quantity.probability)
                try reader.rejectCorrelation()
            case "reorder":
                conditions.reordering = try reader.quantity(after: word, Quantity.probability)
                try reader.rejectCorrelation()
                reordering = word
            case "rate": conditions.rate = try reader.quantity(after: word, TrafficControlUnits.rate)
            case "limit":
                let count = try reader.argument(after: word, "a number of packets such as 'limit 50'")
                guard let packets = Int(count.text), let limit = QueueLimit(packets: packets) else {
                    throw reader.parseError(count, "'\(count.text)' is not a number of packets from 1 to 100000")
                }
                conditions.queue = limit
            default: throw reader.parseError(word, "'distribution' must follow 'delay TIME JITTER'")
            }
        }
        if let reordering, conditions.delay == .zero {
            throw reader.parseError(reordering, "'reorder' needs a delay that packets can skip, such as 'delay 10ms'")
        }
        return conditions
    }

    private static func readDelay(
        _ reader: inout Reader, _ word: Reader.Word, _ conditions: inout DirectionConditions
    ) throws(ParseError) {
        conditions.delay = try reader.quantity(after: word, TrafficControlUnits.time)
        guard let next = reader.peek(), next.text.first?.isNumber == true else { return }
        let span = try reader.quantity(after: word, TrafficControlUnits.time)
        var jitter = Jitter(span: span)
        try reader.rejectCorrelation()
        if let next = reader.peek(), next.text == "distribution" {
            _ = reader.next()
            let name = try reader.argument(after: next, "a distribution: uniform, normal or pareto")
            guard let distribution = Jitter.Distribution(rawValue: name.text) else {
                throw reader.parseError(name, "'\(name.text)' is not supported; expected uniform, normal or pareto")
            }
            jitter.distribution = distribution
        }
        if span > .zero { conditions.jitter = jitter }
    }

    private static func readLoss(
        _ reader: inout Reader, _ word: Reader.Word, _ conditions: inout DirectionConditions
    ) throws(ParseError) {
        guard let next = reader.peek() else {
            throw reader.parseError(word, "'loss' needs a percentage such as 'loss 1%'")
        }
        if next.text == "state" { throw reader.parseError(next, "'loss state' is not supported; use 'loss gemodel'") }
        if next.text == "timed" {
            _ = reader.next()
            let expected = "the mean durations of the good and the bad state, such as 'timed 20s 800ms'"
            let good = try reader.argument(after: next, expected)
            let bad = try reader.argument(after: next, expected)
            let lossInBad = try reader.optionalPercent() ?? .one
            let lossInGood = try reader.optionalPercent() ?? .zero
            conditions.bursts = .timed(
                good: try reader.quantity(good, TrafficControlUnits.time),
                bad: try reader.quantity(bad, TrafficControlUnits.time),
                lossInBad: lossInBad, lossInGood: lossInGood)
            return
        }
        if next.text == "gemodel" {
            _ = reader.next()
            let becomesBad = try reader.quantity(after: next, Quantity.probability)
            let becomesGood = try reader.optionalPercent() ?? Probability.complement(becomesBad)
            let lossInBad = try reader.optionalPercent() ?? .one
            let lossInGood = try reader.optionalPercent() ?? .zero
            conditions.bursts = .gilbertElliott(
                becomesBad: becomesBad, becomesGood: becomesGood, lossInBad: lossInBad, lossInGood: lossInGood)
            return
        }
        if next.text == "random" { _ = reader.next() }
        conditions.loss = try reader.quantity(after: word, Quantity.probability)
        if let extra = reader.peek(), extra.text.hasSuffix("%") {
            throw reader.parseError(
                extra,
                "a loss correlation is not supported, because it changes the loss rate in netem; use 'loss gemodel'")
        }
    }

    /// A reader of the words of an expression, with their columns.
    private struct Reader {
        struct Word {
            let text: String
            let column: Int
        }

        let expression: String
        private let words: [Word]
        private var position = 0

        init(_ text: String) {
            expression = String(text.prefix(1000))
            var words: [Word] = []
            var current = ""
            for (index, character) in expression.enumerated() {
                if character.isWhitespace {
                    if !current.isEmpty { words.append(Word(text: current, column: index - current.count + 1)) }
                    current = ""
                } else {
                    current.append(character)
                }
            }
            if !current.isEmpty { words.append(Word(text: current, column: expression.count - current.count + 1)) }
            self.words = words
        }

        mutating func next() -> Word? {
            guard position < words.count else { return nil }
            position += 1
            return words[position - 1]
        }

        func peek() -> Word? { position < words.count ? words[position] : nil }

        mutating func argument(after word: Word, _ expected: String) throws(ParseError) -> Word {
            guard let argument = next() else { throw parseError(word, "'\(word.text)' needs \(expected)") }
            return argument
        }

        mutating func quantity<Value>(
            after word: Word, _ parse: (String) throws(Quantity.ParseError) -> Value
        ) throws(ParseError) -> Value {
            try quantity(try argument(after: word, "a value"), parse)
        }

        func quantity<Value>(
            _ argument: Word, _ parse: (String) throws(Quantity.ParseError) -> Value
        ) throws(ParseError) -> Value {
            do {
                return try parse(argument.text)
            } catch {
                throw parseError(argument, error.message)
            }
        }

        mutating func optionalPercent() throws(ParseError) -> Probability? {
            guard let word = peek(), word.text.hasSuffix("%") else { return nil }
            return try quantity(after: word, Quantity.probability)
        }

        func rejectCorrelation() throws(ParseError) {
            if let word = peek(), word.text.hasSuffix("%") {
                throw parseError(word, "a correlation is not supported, because it changes the distribution in netem")
            }
        }

        func parseError(_ word: Word, _ message: String) -> ParseError {
            ParseError(expression: expression, column: word.column, message: message)
        }
    }
}

extension Probability {
    fileprivate static func complement(_ loss: Probability) -> Probability {
        Probability(partsPerMillion: 1_000_000 - loss.partsPerMillion) ?? .one
    }
}
