internal import Synchronization

/// The memory budget shared by all request bodies of a server.
final class BodyBudget: Sendable {
    private let remaining: Atomic<Int>

    init(_ bytes: Int) { remaining = Atomic(bytes) }

    /// Reserves bytes; returns whether the budget had that many left.
    func reserve(_ bytes: Int) -> Bool {
        if remaining.subtract(bytes, ordering: .relaxed).newValue >= 0 { return true }
        release(bytes)
        return false
    }

    func release(_ bytes: Int) { remaining.add(bytes, ordering: .relaxed) }
}

/// The share of the budget held by one request body, released when neither the connection nor the handler refers to it.
final class BodyReservation: Sendable {
    private let budget: BodyBudget
    private let bytes = Atomic(0)

    init(_ budget: BodyBudget) { self.budget = budget }

    deinit { budget.release(bytes.load(ordering: .relaxed)) }

    /// Reserves further bytes; returns whether the budget had that many left.
    func grow(by count: Int) -> Bool {
        guard budget.reserve(count) else { return false }
        bytes.add(count, ordering: .relaxed)
        return true
    }
}
