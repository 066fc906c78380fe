/// The identifier of a connection of one machine.
public struct HTTPConnectionID: Hashable, Comparable, Sendable {
    /// The number of connections that were opened before.
    public let number: Int

    public static func < (left: HTTPConnectionID, right: HTTPConnectionID) -> Bool { left.number < right.number }
}
