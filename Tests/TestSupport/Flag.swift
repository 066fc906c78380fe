import Dispatch
import Synchronization

/// A boolean that threads set once, read, and wait for.
public final class Flag: Sendable {
    private let value = Atomic(false)
    private let changed = DispatchSemaphore(value: 0)

    public init() {}

    public var isSet: Bool { value.load(ordering: .relaxed) }

    public func set() {
        if !value.exchange(true, ordering: .relaxed) { changed.signal() }
    }

    /// Blocks the thread until the flag is set, for a minute at most; returns whether it is set.
    public func wait() -> Bool {
        guard changed.wait(timeout: .now() + .seconds(60)) == .success else { return isSet }
        // For the next thread that waits.
        changed.signal()
        return true
    }
}
