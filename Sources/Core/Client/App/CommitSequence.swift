public import Determinism

/// A change of a store that an engine commits.
public protocol Committable: Sendable {
    /// Creates a change of nothing.
    init()
    /// Whether nothing changes.
    var isEmpty: Bool { get }
}

extension AppChange: Committable {}

/// The commits of an engine, one after the other: what changes while the result of a commit is awaited is committed with
/// the next one. A commit that fails is repeated.
public struct CommitSequence<Change: Committable>: Sendable {
    /// What has changed since the last commit began.
    public var next = Change()
    private var current: Change?
    /// The time at which the commit that has failed is repeated.
    public private(set) var retryAt: Instant?

    /// The time after which a commit is repeated.
    private static var retryDelay: Nanoseconds { .seconds(1) }

    /// Creates a sequence without a commit.
    public init() {}

    /// Whether the result of a commit is awaited.
    public var isAwaited: Bool { current != nil }

    /// Whether the result of a commit is awaited, or a change has not been committed.
    public var isPending: Bool { current != nil || !next.isEmpty }

    /// Begins the next commit. Returns its change; `nil` if there is none, or if the result of a commit is awaited.
    public mutating func begin() -> Change? {
        guard current == nil, !next.isEmpty else { return nil }
        current = next
        next = Change()
        return current
    }

    /// The change of the last commit is durable.
    public mutating func succeeded() { current = nil }

    /// The change of the last commit could not be made durable.
    public mutating func failed(at now: Instant) { retryAt = now + Self.retryDelay }

    /// Begins the last commit again if that is due. Returns its change.
    public mutating func retry(at now: Instant) -> Change? {
        guard let at = retryAt, at <= now else { return nil }
        retryAt = nil
        return current
    }
}
