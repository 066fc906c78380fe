internal import Synchronization

/// The source of a proxy's connection numbers, in accept order, on the fast path and on the link together. A
/// connection's random streams are derived from its number.
package final class ConnectionNumbers: Sendable {
    private let nextNumber = Atomic<Int>(0)

    package init() {}

    /// Returns the next number.
    package func next() -> Int { nextNumber.add(1, ordering: .relaxed).oldValue }

    /// Makes 0 the next number.
    package func restart() { nextNumber.store(0, ordering: .relaxed) }
}
