internal import Synchronization

/// How many connections of a proxy there are, wherever they are carried, and how many there may be.
final class Places: Sendable {
    let max: Int
    private let taken = Atomic<Int>(0)
    private let files: FileBudget

    init(max: Int, files: FileBudget = .shared) {
        self.max = max
        self.files = files
    }

    var count: Int { taken.load(ordering: .relaxed) }
    var isFull: Bool { room != .free }

    /// Whether there is room for one more connection, and which limit is reached if not.
    enum Room {
        case free
        /// The proxy's own; ``release()`` tells when that is over.
        case proxyIsFull
        /// The process's. No event tells when that is over, so ask again later.
        case processIsFull
    }

    var room: Room { count >= max ? .proxyIsFull : files.isFull ? .processIsFull : .free }

    /// Takes a place for somebody who is in.
    func take() {
        taken.add(1, ordering: .relaxed)
        files.take()
    }

    /// Gives a place back; `true` if there was none before.
    @discardableResult
    func release() -> Bool {
        files.release()
        return taken.subtract(1, ordering: .relaxed).oldValue >= max
    }
}

/// Numbers a proxy's connections in the order in which they come, wherever they are carried: their chance goes by it.
final class ConnectionNumbers: Sendable {
    private let next = Atomic<Int>(0)

    func take() -> Int { next.add(1, ordering: .relaxed).oldValue }

    /// The next is number 0.
    func restart() { next.store(0, ordering: .relaxed) }
}
