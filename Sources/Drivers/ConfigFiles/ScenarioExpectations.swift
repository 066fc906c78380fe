internal import Determinism
internal import Scenario
internal import Yams

/// An entry of `sometimes`: states, a fault, or requests.
struct Sometimes: Sendable {
    var states: [DeviceState] = []
    var fault: Expectation.FaultPattern?
    var traffic: Expectation.Traffic?

    init() {}

    /// Creates the entry of an expectation; `nil` if it is not one of this section.
    init?(_ kind: Expectation.Kind) {
        switch kind {
        case .sometimes(let device, let condition): states = [DeviceState(device, condition)]
        case .sometimesFault(let pattern): fault = pattern
        case .sometimesTraffic(let found): traffic = found
        default: return nil
        }
    }

    var kinds: [Expectation.Kind] {
        if let fault { return [.sometimesFault(fault)] }
        if let traffic { return [.sometimesTraffic(traffic)] }
        return states.map { .sometimes(device: $0.device, $0.condition) }
    }
}

/// An entry of `eventually`.
struct Eventually: Sendable {
    var window = Expectation.Window.by(.zero)
    var states: [DeviceState] = []

    init() {}

    /// Creates the entry of an expectation; `nil` if it is not one of this section.
    init?(_ kind: Expectation.Kind) {
        guard case .eventually(let device, let condition, let window) = kind else { return nil }
        self.window = window
        states = [DeviceState(device, condition)]
    }

    var kinds: [Expectation.Kind] { states.map { .eventually(device: $0.device, $0.condition, window) } }
}

/// The values of a note on the server at the end.
struct RowEnd: Sendable {
    var revision: Int?
    var title: String?
    var text: String?
}

/// The window of a condition on requests.
struct TrafficWindow: Sendable {
    var from: TimeReference
    var to: TimeReference
}

extension Expectation.Traffic {
    /// The window of ``between``.
    var window: TrafficWindow? {
        get { between.map { TrafficWindow(from: $0.from, to: $0.to) } }
        set { between = newValue.map { ($0.from, $0.to) } }
    }
}

// MARK: - Forms of values

extension FormatCodec where Value == TrafficWindow {
    static var window: Self {
        let ends = FormatCodec<TimeReference>.timeOrMark
        return Self(
            .list(.timeOrMark, atLeast: 2, atMost: 2), read: { $1.window($0) },
            write: { ScenarioWriter.brackets([ends.write($0.from), ends.write($0.to)]) })
    }
}

extension FormatCodec where Value == Expectation.Traffic.During {
    static var during: Self {
        Self(.either([.choice(["flap"]), .name(.link)]), read: { $1.during($0) }, write: { .text($0.description) })
    }
}

extension FormatCodec where Value == Expectation.Traffic.Response {
    static var response: Self { Self(.response, read: { $1.response($0) }, write: { .word($0.description) }) }
}

extension FormatCodec where Value == RequestPattern {
    /// Requests, or all requests of a note.
    static var requestOrRow: Self {
        Self(
            .either([.request, .name(.row)]), read: { $1.requestOrRow($0) },
            write: { pattern in
                if pattern.method == nil, let row = pattern.row { .word(row) } else { Self.request.write(pattern) }
            })
    }
}

extension FormatCodec where Value == Bounds.Most {
    /// A greatest number.
    static func most(_ number: FormatCodec<Int>) -> Self {
        number.converted(to: { .number($0) }, from: { if case .number(let number) = $0 { number } else { 0 } })
    }

    /// A greatest number, or that of the retry policy.
    static var mostOrBudget: Self {
        let number = most(.count(expected: "a whole number, or budget"))
        return Self(
            .either([number.shape, .choice(["budget"])]),
            read: { $0.scalar?.string == "budget" ? .budget : number.read($0, $1) },
            write: { $0 == .budget ? .word("budget") : number.write($0) })
    }
}

extension FormatCodec where Value == Expectation.Traffic.Count {
    /// A number, the least and the greatest one, or the number of the retry policy.
    static var count: Self {
        let range = FormatCodec<ClosedRange<Int>>.range(
            .count(expected: ScenarioFormat.countText), ScenarioFormat.count, least: 0, most: { _ in .max })
        return Self(
            range.shape,
            read: { node, reader in
                if node.mapping?["max"]?.scalar?.string == "budget" {
                    return ScenarioFormat.count.read(node, reader).map { .budget(min: $0.least ?? 0) }
                }
                return range.read(node, reader).map { .range($0) }
            },
            write: { count in
                switch count {
                case .range(let numbers): range.write(numbers)
                case .budget(let least):
                    ScenarioFormat.count.tree(Bounds(least: least > 0 ? least : nil, most: .budget))
                }
            })
    }
}
