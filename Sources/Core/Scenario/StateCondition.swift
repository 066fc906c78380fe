/// A condition on the state of a device.
public struct StateCondition: Hashable, Sendable, CustomStringConvertible {
    /// A condition on one value.
    public struct Check: Hashable, Sendable {
        /// The name of a value, as in scenario files.
        public enum Key: String, CaseIterable, Hashable, Sendable {
            case present, icon, text, title, keeps, pending, outbox, screen, control, dialog, toast, opacity, strike,
                error,
                marker, field
        }
        /// The value's name.
        public var key: Key
        /// The value to compare with.
        public var value: String
        /// Whether the value must differ.
        public var isNegated: Bool

        /// Creates a check.
        public init(key: Key, value: String, isNegated: Bool) {
            self.key = key
            self.value = value
            self.isNegated = isNegated
        }
    }

    /// The note; `nil` for the device as a whole.
    public var row: String?
    /// Checks that must hold together. A check other than ``Check/Key/present`` fails if the note is absent.
    public var checks: [Check]
    /// Start of the period; `nil` for the scenario's start.
    public var since: TimeReference?
    /// End of the period, exclusive; `nil` for the scenario's end.
    public var until: TimeReference?

    /// Creates a condition.
    public init(row: String?, checks: [Check], since: TimeReference? = nil, until: TimeReference? = nil) {
        self.row = row
        self.checks = checks
        self.since = since
        self.until = until
    }

    /// The checks of values that a client publishes only if it has screens.
    public static let screenKeys: [Check.Key] = [
        .screen, .control, .dialog, .toast, .opacity, .strike, .error, .marker, .field,
    ]

    /// Those of ``screenKeys`` that are values of a note.
    public static let rowKeys: Set<Check.Key> = [.opacity, .strike]

    /// Whether the checks are about the note only, so that they hold as long as the note is the same.
    var isAboutRowOnly: Bool {
        checks.allSatisfy { check in
            check.key != .outbox && (!Self.screenKeys.contains(check.key) || Self.rowKeys.contains(check.key))
        }
    }

    /// Whether the note's presence is one of the checks.
    var asksForPresence: Bool { checks.contains { $0.key == .present } }

    public var description: String {
        var text = row.map { "\($0) " } ?? ""
        text += checks.map { "\($0.key.rawValue) \($0.isNegated ? "not " : "")\(Quoting.quoted($0.value))" }
            .joined(separator: ", ")
        if let since { text += " since \(since)" }
        if let until { text += " until \(until)" }
        return text
    }
}
