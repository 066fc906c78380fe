import Synchronization

/// A boolean that threads set once and read.
public final class Flag: Sendable {
    private let value = Atomic(false)

    public init() {}

    public var isSet: Bool { value.load(ordering: .relaxed) }

    public func set() { value.store(true, ordering: .relaxed) }
}
