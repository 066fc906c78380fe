public import LinkModel

/// The links among which an exploration draws.
public struct SwarmLinks: Sendable {
    /// Links on which exchanges can be completed.
    public let working: [Timeline.NamedConditions]
    /// Links on which nothing reaches the server.
    public let broken: [Timeline.NamedConditions]
    /// Links of which one direction is dead.
    public let oneWay: [Timeline.NamedConditions]
    /// The link without any packet.
    public let silent: Timeline.NamedConditions

    /// Creates the links.
    ///
    /// - Precondition: No list is empty.
    public init(
        working: [Timeline.NamedConditions], broken: [Timeline.NamedConditions], oneWay: [Timeline.NamedConditions],
        silent: Timeline.NamedConditions
    ) {
        precondition(!working.isEmpty && !broken.isEmpty && !oneWay.isEmpty)
        self.working = working
        self.broken = broken
        self.oneWay = oneWay
        self.silent = silent
    }
}
