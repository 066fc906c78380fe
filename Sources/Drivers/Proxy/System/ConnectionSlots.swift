internal import Synchronization

/// The number of a proxy's connections, on the fast path and on the link together, and its limits.
package final class ConnectionSlots: Sendable {
    /// The proxy's own limit.
    package let max: Int
    private let used = Atomic<Int>(0)
    private let acquired = Atomic<UInt64>(0)
    private let files: FileBudget

    /// - Parameter files: The limit that all proxies of the process share.
    package init(max: Int, files: FileBudget = .shared) {
        self.max = max
        self.files = files
    }

    /// The number of connections.
    package var count: Int { used.load(ordering: .relaxed) }
    /// The number of connections so far. If it has not changed since a time at which it was read and then ``count`` was
    /// zero, there has been no connection since.
    package var total: UInt64 { acquired.load(ordering: .acquiring) }
    /// Whether a limit is reached.
    package var isFull: Bool { availability != .available }

    /// The availability of a slot for another connection, or the limit that is reached.
    package enum Availability: Sendable {
        case available
        /// The proxy's own limit; ``ConnectionSlots/release()`` reports when it is no longer reached.
        case proxyLimit
        /// The limit of the process. No event reports when it is no longer reached; callers poll.
        case processLimit
    }

    /// Whether there is a slot now.
    package var availability: Availability {
        count >= max ? .proxyLimit : files.isFull ? .processLimit : .available
    }

    /// Takes a slot for an accepted connection.
    package func acquire() {
        used.add(1, ordering: .relaxed)
        // After `used`: a thread that reads this total also reads the slot in use.
        acquired.add(1, ordering: .releasing)
        files.take()
    }

    /// Frees a slot; returns `true` if the proxy's limit was reached before.
    @discardableResult
    package func release() -> Bool {
        files.release()
        let before = used.subtract(1, ordering: .relaxed).oldValue
        precondition(before > 0, "a connection slot was released twice")
        return before >= max
    }
}
