internal import Determinism
public import LinkModel

/// Figures of conditions that a command gets as options, such as `--delay 200ms --loss-up 2%`. They replace those of
/// other conditions; the rest stays.
///
/// Units are those of profile files: `kbit` and `kbps` count bits.
public struct ConditionFigures: Hashable, Sendable {
    /// A kind of figure; the raw value is the key in profile files.
    public enum Kind: String, CaseIterable, Sendable {
        case delay, jitter, rate, loss
    }

    /// The reason why a text is no figure of its kind, with the accepted forms.
    public struct ParseError: Error, CustomStringConvertible {
        public let description: String
    }

    private enum Value: Hashable {
        case delay(Nanoseconds)
        case jitter(Jitter?)
        case rate(Rate?)
        case loss(Probability)
    }

    private struct Figure: Hashable {
        let kind: Kind
        /// The direction; `nil` for both.
        let direction: Direction?
        let text: String
        let value: Value
    }

    private var figures: [Figure] = []

    /// Creates a value without figures.
    public init() {}

    /// Whether there are no figures.
    public var isEmpty: Bool { figures.isEmpty }

    /// Adds a figure of one direction, or of both (`nil`).
    public mutating func add(_ kind: Kind, _ direction: Direction?, _ text: String) throws(ParseError) {
        let value: Value
        do {
            switch kind {
            case .delay: value = .delay(try Quantity.delay(text))
            case .jitter: value = .jitter(try Quantity.jitter(text))
            case .rate: value = .rate(try Quantity.rate(text))
            case .loss: value = .loss(try Quantity.probability(text))
            }
        } catch {
            throw ParseError(description: error.message)
        }
        figures.append(Figure(kind: kind, direction: direction, text: text, value: value))
    }

    /// Returns the figures of a direction with the keys of profile files, each key once. A figure of one direction
    /// goes before a figure of both.
    public func texts(_ direction: Direction) -> [(key: String, text: String)] {
        figures(direction).map { ($0.kind.rawValue, $0.text) }
    }

    /// Returns conditions with these figures. A rate replaces a trace.
    public func applied(to conditions: Conditions) -> Conditions {
        Conditions(
            up: applied(to: conditions.up, .up), down: applied(to: conditions.down, .down),
            dnsDelay: conditions.dnsDelay, connectionPolicy: conditions.connectionPolicy,
            datagrams: conditions.datagrams)
    }

    /// Returns the name of conditions with these figures.
    ///
    /// - Parameter name: The name of the conditions whose figures are replaced, if there are any.
    public func name(changing name: String?) -> String {
        guard let name else { return "custom" }
        guard !isEmpty else { return name }
        let words = figures.map { figure in
            "\(figure.kind.rawValue)\(figure.direction.map { "-\($0 == .up ? "up" : "down")" } ?? "") \(figure.text)"
        }
        return "\(name) with \(words.joined(separator: " "))"
    }

    private func figures(_ direction: Direction) -> [Figure] {
        Kind.allCases.compactMap { kind in
            let ofKind = figures.filter { $0.kind == kind }
            return ofKind.last { $0.direction == direction } ?? ofKind.last { $0.direction == nil }
        }
    }

    private func applied(to conditions: DirectionConditions, _ direction: Direction) -> DirectionConditions {
        var conditions = conditions
        for figure in figures(direction) {
            switch figure.value {
            case .delay(let delay): conditions.delay = delay
            case .jitter(let jitter): conditions.jitter = jitter
            case .rate(let rate): (conditions.rate, conditions.trace) = (rate, nil)
            case .loss(let loss): conditions.loss = loss
            }
        }
        return conditions
    }
}
