public import LinkModel

/// Something that must be true of a run.
public struct Expectation: Sendable {
    /// What kind.
    public enum Kind: Sendable {
        /// Of the requests.
        case traffic(Traffic)
        /// Of a device at every moment.
        case always(device: String, StateCondition)
        /// Of a device at some moment; otherwise the verdict is open.
        case sometimes(device: String, StateCondition)
        /// Of a device at some moment of a window.
        case eventually(device: String, StateCondition, Window)
        /// Of the server at the end: a note, with what is said of it.
        case serverRow(row: String, revision: Int?, title: String?, text: String?)
        /// Of the server at the end: how many notes.
        case serverCount(Int)
        /// Of a device at the end.
        case finally(device: String, StateCondition)
        /// All of these have the same notes at the end.
        case agree([String])

        /// Whether a slow machine can be why it does not hold.
        var goesByTime: Bool {
            switch self {
            case .traffic, .sometimes, .eventually: true
            // Between marks it must hold however long that takes.
            case .always(_, let condition):
                [condition.since, condition.until].contains { if case .time? = $0 { true } else { false } }
            case .serverRow, .serverCount, .finally, .agree: false
            }
        }
    }

    /// When something must come true.
    public enum Window: Hashable, Sendable {
        /// Not later than this.
        case by(Nanoseconds)
        /// Not longer than this after the mark.
        case after(String, within: Nanoseconds)
    }

    /// What kind.
    public let kind: Kind
    /// Where it stands.
    public let place: Place

    /// Creates an expectation.
    public init(_ kind: Kind, place: Place) {
        self.kind = kind
        self.place = place
    }

    /// What must be true of the requests.
    public struct Traffic: Sendable {
        /// Where a request counts as seen.
        public enum Seen: String, CaseIterable, Sendable { case server, proxy }
        /// How many.
        public enum Count: Hashable, Sendable {
            /// From so many to so many.
            case range(ClosedRange<Int>)
            /// As many as the retry policy allows for the outages of the window.
            case budget
        }
        /// What an exchange came to.
        public enum Answer: Hashable, Sendable, CustomStringConvertible {
            /// This status.
            case status(Int)
            /// A status of this hundred.
            case hundred(Int)
            /// The server answered, the client did not get it.
            case lost
            /// It never reached the server.
            case none

            public var description: String {
                switch self {
                case .status(let status): "\(status)"
                case .hundred(let hundred): "\(hundred)xx"
                case .lost: "lost"
                case .none: "none"
                }
            }
        }
        /// What must be the same in all of them.
        public enum Sameness: String, CaseIterable, Sendable { case body, key = "idempotency-key" }

        /// Which requests.
        public let request: RequestPattern
        /// Whose.
        public let from: String?
        /// Where they are counted.
        public let seen: Seen
        /// When.
        public let between: (from: TimeReference, to: TimeReference)?
        /// How many.
        public let count: Count?
        /// What they came to, in order.
        public let answers: [Answer]?
        /// What must be the same in all.
        public let same: [Sameness]

        /// Creates an expectation of traffic.
        public init(
            request: RequestPattern, from: String?, seen: Seen, between: (from: TimeReference, to: TimeReference)?,
            count: Count?, answers: [Answer]?, same: [Sameness]
        ) {
            self.request = request
            self.from = from
            self.seen = seen
            self.between = between
            self.count = count
            self.answers = answers
            self.same = same
        }
    }
}

extension Expectation: CustomStringConvertible {
    /// As short as it can be said.
    public var description: String {
        switch kind {
        case .traffic(let traffic):
            var text = "traffic: \(traffic.request)"
            if let from = traffic.from { text += " from \(from)" }
            if traffic.seen == .proxy { text += " at the proxy" }
            if let between = traffic.between { text += " between \(between.from) and \(between.to)" }
            switch traffic.count {
            case .range(let range)?:
                text +=
                    range.count == 1
                    ? ", count \(range.lowerBound)"
                    : range.upperBound == .max
                        ? ", at least \(range.lowerBound)" : ", count \(range.lowerBound) to \(range.upperBound)"
            case .budget?: text += ", within the budget"
            case nil: break
            }
            if let answers = traffic.answers {
                text += ", answers \(answers.map(\.description).joined(separator: " "))"
            }
            if !traffic.same.isEmpty { text += ", same \(traffic.same.map(\.rawValue).joined(separator: " and "))" }
            return text
        case .always(let device, let condition): return "always: \(device) \(condition)"
        case .sometimes(let device, let condition): return "sometimes: \(device) \(condition)"
        case .eventually(let device, let condition, .by(let time)):
            return "eventually: \(device) \(condition), by \(Moment.text(time))"
        case .eventually(let device, let condition, .after(let mark, let within)):
            return "eventually: \(device) \(condition), within \(Moment.text(within)) of \(mark)"
        case .serverRow(let row, let revision, let title, let text):
            var parts: [String] = []
            if let revision { parts.append("revision \(revision)") }
            if let title { parts.append("title \(Words.quoted(title))") }
            if let text { parts.append("text \(Words.quoted(text))") }
            return "finally: server \(row) \(parts.joined(separator: ", "))"
        case .serverCount(let count): return "finally: server has \(count) notes"
        case .finally(let device, let condition): return "finally: \(device) \(condition)"
        case .agree(let names): return "finally: \(names.joined(separator: ", ")) agree"
        }
    }
}
