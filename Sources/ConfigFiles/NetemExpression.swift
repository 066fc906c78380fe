public import LinkModel

/// Conditions of one direction in the words of `tc qdisc ... netem`:
/// `delay 100ms 20ms distribution normal loss 1% rate 780kbit limit 50`.
///
/// Understood are `delay TIME [JITTER [distribution uniform|normal|pareto]]`, `loss [random] PERCENT`,
/// `loss gemodel P [R [1-H [1-K]]]`, `duplicate PERCENT`, `reorder PERCENT`, `rate RATE`, `limit PACKETS`; and, which netem
/// has not, `loss timed GOOD BAD [1-H [1-K]]` for states that last a time. Without `limit` the queue is netem's own, 1000
/// packets. Jitter keeps the order of packets, as `rate` does in netem; only `reorder` lets them overtake.
public enum NetemExpression {
    /// Why an expression was refused, with the word it is about.
    public struct Refusal: Error, CustomStringConvertible {
        /// The expression.
        public let expression: String
        /// Where the word begins, in characters from 1.
        public let column: Int
        /// What is wrong with it and what was expected.
        public let message: String

        public var description: String {
            "\(message)\n  \(expression)\n  \(String(repeating: " ", count: column - 1))^"
        }
    }

    /// netem's default queue.
    public static let limitDefault = 1000
    private static let words = ["delay", "loss", "duplicate", "reorder", "rate", "limit", "distribution"]
    private static let unsupported = ["corrupt", "slot", "gap", "ecn", "seed"]

    /// Reads an expression.
    public static func parse(_ text: String) throws(Refusal) -> DirectionConditions {
        var reader = Reader(text)
        var conditions = DirectionConditions(queue: QueueLimit(packets: limitDefault) ?? .standard)
        var seen: Set<String> = []
        var reordering: Reader.Word?
        while let word = reader.next() {
            guard words.contains(word.text) else {
                throw reader.refusal(
                    word,
                    unsupported.contains(word.text)
                        ? "'\(word.text)' is not modelled"
                        : "unknown word '\(word.text)'\(NearestName.hint(word.text, in: words)) (known: \(words.joined(separator: ", ")))"
                )
            }
            if !seen.insert(word.text).inserted { throw reader.refusal(word, "'\(word.text)' is given twice") }
            switch word.text {
            case "delay": try readDelay(&reader, word, &conditions)
            case "loss": try readLoss(&reader, word, &conditions)
            case "duplicate":
                conditions.duplication = try reader.quantity(after: word, Quantity.loss)
                try reader.refuseCorrelation()
            case "reorder":
                conditions.reordering = try reader.quantity(after: word, Quantity.loss)
                try reader.refuseCorrelation()
                reordering = word
            case "rate": conditions.rate = try reader.quantity(after: word, Quantity.rate)
            case "limit":
                let count = try reader.argument(after: word, "a number of packets, as 'limit 50'")
                guard let packets = Int(count.text), let limit = QueueLimit(packets: packets) else {
                    throw reader.refusal(count, "'\(count.text)' is not a number of packets from 1 to 100000")
                }
                conditions.queue = limit
            default: throw reader.refusal(word, "'distribution' belongs after 'delay TIME JITTER'")
            }
        }
        if let reordering, conditions.delay == .zero {
            throw reader.refusal(reordering, "'reorder' needs a delay that packets can skip, as 'delay 10ms'")
        }
        return conditions
    }

    private static func readDelay(
        _ reader: inout Reader, _ word: Reader.Word, _ conditions: inout DirectionConditions
    ) throws(Refusal) {
        conditions.delay = try reader.quantity(after: word, Quantity.delay)
        guard let next = reader.peek(), next.text.first?.isNumber == true else { return }
        let span = try reader.quantity(after: word, Quantity.delay)
        var jitter = Jitter(span: span)
        try reader.refuseCorrelation()
        if let next = reader.peek(), next.text == "distribution" {
            _ = reader.next()
            let name = try reader.argument(after: next, "a distribution: uniform, normal or pareto")
            guard let distribution = Jitter.Distribution(rawValue: name.text) else {
                throw reader.refusal(name, "'\(name.text)' is not modelled; expected uniform, normal or pareto")
            }
            jitter.distribution = distribution
        }
        if span > .zero { conditions.jitter = jitter }
    }

    private static func readLoss(
        _ reader: inout Reader, _ word: Reader.Word, _ conditions: inout DirectionConditions
    ) throws(Refusal) {
        guard let next = reader.peek() else { throw reader.refusal(word, "'loss' needs a percentage, as 'loss 1%'") }
        if next.text == "state" { throw reader.refusal(next, "'loss state' is not modelled; 'loss gemodel' is") }
        if next.text == "timed" {
            _ = reader.next()
            let expected = "how long the good and the bad state last on average, as 'timed 20s 800ms'"
            let good = try reader.argument(after: next, expected)
            let bad = try reader.argument(after: next, expected)
            let lossInBad = try reader.optionalPercent() ?? .one
            let lossInGood = try reader.optionalPercent() ?? .zero
            conditions.bursts = .timed(
                good: try reader.quantity(good, Quantity.delay), bad: try reader.quantity(bad, Quantity.delay),
                lossInBad: lossInBad, lossInGood: lossInGood)
            return
        }
        if next.text == "gemodel" {
            _ = reader.next()
            let becomesBad = try reader.quantity(after: next, Quantity.loss)
            let becomesGood = try reader.optionalPercent() ?? Probability.complement(becomesBad)
            let lossInBad = try reader.optionalPercent() ?? .one
            let lossInGood = try reader.optionalPercent() ?? .zero
            conditions.bursts = .gilbertElliott(
                becomesBad: becomesBad, becomesGood: becomesGood, lossInBad: lossInBad, lossInGood: lossInGood)
            return
        }
        if next.text == "random" { _ = reader.next() }
        conditions.loss = try reader.quantity(after: word, Quantity.loss)
        if let extra = reader.peek(), extra.text.hasSuffix("%") {
            throw reader.refusal(
                extra, "a correlation of losses is not modelled: its statistics in netem are wrong; use gemodel")
        }
    }

    /// The words of an expression with their places.
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

        mutating func argument(after word: Word, _ expected: String) throws(Refusal) -> Word {
            guard let argument = next() else { throw refusal(word, "'\(word.text)' needs \(expected)") }
            return argument
        }

        mutating func quantity<Value>(
            after word: Word, _ parse: (String) throws(Quantity.Refusal) -> Value
        ) throws(Refusal) -> Value {
            try quantity(try argument(after: word, "a value"), parse)
        }

        func quantity<Value>(
            _ argument: Word, _ parse: (String) throws(Quantity.Refusal) -> Value
        ) throws(Refusal) -> Value {
            do {
                return try parse(argument.text)
            } catch {
                throw refusal(argument, error.message)
            }
        }

        mutating func optionalPercent() throws(Refusal) -> Probability? {
            guard let word = peek(), word.text.hasSuffix("%") else { return nil }
            return try quantity(after: word, Quantity.loss)
        }

        func refuseCorrelation() throws(Refusal) {
            if let word = peek(), word.text.hasSuffix("%") {
                throw refusal(word, "a correlation is not modelled: its statistics in netem are not what they seem")
            }
        }

        func refusal(_ word: Word, _ message: String) -> Refusal {
            Refusal(expression: expression, column: word.column, message: message)
        }
    }
}

extension Probability {
    fileprivate static func complement(_ loss: Probability) -> Probability {
        Probability(partsPerMillion: 1_000_000 - loss.partsPerMillion) ?? .one
    }
}
