/// The identifier of one flow on a link, unique over the link's lifetime.
public struct FlowID: Hashable, Sendable, CustomStringConvertible {
    /// The index of the flow's slot in the link's table. Slots are reused.
    public let index: Int
    /// The number of earlier uses of the slot.
    public let generation: UInt32

    /// Creates an identifier.
    @inlinable
    package init(index: Int, generation: UInt32) {
        self.index = index
        self.generation = generation
    }

    public var description: String { "\(index).\(generation)" }
}
