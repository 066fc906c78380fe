/// The identifier of an exchange of one machine.
public struct HTTPExchangeID: Hashable, Comparable, Sendable {
    /// The number of exchanges that were started before.
    public let number: Int

    public static func < (left: HTTPExchangeID, right: HTTPExchangeID) -> Bool { left.number < right.number }
}
