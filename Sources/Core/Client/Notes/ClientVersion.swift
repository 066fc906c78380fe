/// A version of the sync client: the current one, or an earlier one that a scenario replaces.
public enum ClientVersion: Int, CaseIterable, Hashable, Sendable, Comparable {
    /// The first version has pins: a kind of change that no later version knows. It stores them, and sends none.
    case first = 1
    /// The version of this program.
    case current = 2

    /// The name of the kind of change that only the first version knows.
    static let pin = "pin"

    /// Returns whether the version knows a kind of change without sending it.
    func keeps(_ kind: OutboxEntry.Kind) -> Bool {
        if case .unknown(Self.pin) = kind { self == .first } else { false }
    }

    public static func < (left: ClientVersion, right: ClientVersion) -> Bool { left.rawValue < right.rawValue }
}
