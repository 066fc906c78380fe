public import Scenario

/// A version of the reference client: the current one, or an earlier one that a scenario replaces.
public enum ClientVersion: Int, CaseIterable, Hashable, Sendable, Comparable {
    /// The first version has pins: a kind of change that no later version knows. It stores them, and sends none.
    case first = 1
    /// The version of this program.
    case current = 2

    /// The name of the kind of change that only the first version knows.
    static let pin = "pin"

    /// The kinds of changes that the version keeps without sending them.
    public var heldKinds: Set<String> { self == .first ? [Self.pin] : [] }

    public static func < (left: ClientVersion, right: ClientVersion) -> Bool { left.rawValue < right.rawValue }
}

/// The versions of the reference client and of their stores.
public enum StoreVersions {
    /// Returns a version of the client.
    public static func version(_ number: Int) throws(ActionError) -> ClientVersion {
        guard let version = ClientVersion(rawValue: number) else {
            throw ActionError("the reference client has no version \(number)")
        }
        return version
    }

    /// Returns why a version of the client does not start on a store; `nil` if it starts.
    public static func refusal(of version: ClientVersion, store: ClientVersion) -> History.Notice? {
        version < store ? .storeRefused(version: version.rawValue, store: store.rawValue) : nil
    }
}
