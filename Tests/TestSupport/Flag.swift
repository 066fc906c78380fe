import Synchronization

/// Set once, asked by threads.
public final class Flag: Sendable {
    private let value = Atomic(false)

    public init() {}

    public var isSet: Bool { value.load(ordering: .relaxed) }

    public func set() { value.store(true, ordering: .relaxed) }
}
