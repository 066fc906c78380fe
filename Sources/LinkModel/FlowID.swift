/// Names one connection on a link for as long as it is there; a name is never used twice.
public struct FlowID: Hashable, Sendable, CustomStringConvertible {
    /// The flow's place in the link's table; places are used again.
    public let index: Int
    /// How often the place had been used before.
    public let generation: UInt32

    public var description: String { "\(index).\(generation)" }
}
