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
    var isFull: Bool { count >= max || files.isFull }
    /// Whether the limit of the process is reached and not that of the proxy. No event tells when it is over, so ask again later.
    var mustAskAgain: Bool { count < max && files.isFull }

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
