public import Client
internal import Synchronization

/// The records of a client whenever they change (``SyncClient/updates()``).
public struct RecordUpdates: AsyncSequence, Sendable {
    private let client: SyncClient
    private let ticks: AsyncStream<Void>

    init(_ client: SyncClient, ticks: AsyncStream<Void>) {
        self.client = client
        self.ticks = ticks
    }

    /// The iterator.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let client: SyncClient
        fileprivate var ticks: AsyncStream<Void>.AsyncIterator

        public mutating func next() async -> [RecordRow]? {
            guard await ticks.next() != nil else { return nil }
            // A client that has stopped has no rows.
            return try? await client.rows()
        }
    }

    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(client: client, ticks: ticks.makeAsyncIterator())
    }
}

/// The observers of a client's records. Each has one pending notice at most, so that a slow one holds up nothing.
final class RecordObservers: Sendable {
    private struct State {
        var continuations: [Int: AsyncStream<Void>.Continuation] = [:]
        var next = 0
        var hasEnded = false
    }

    private let state = Mutex(State())

    /// Returns the notices of a new observer, of which one is pending.
    func add() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number: Int? = state.withLock { state in
            guard !state.hasEnded else { return nil }
            state.next += 1
            state.continuations[state.next] = continuation
            return state.next
        }
        continuation.yield()
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { _ = $0.continuations.removeValue(forKey: number) }
        }
        return stream
    }

    func notify() {
        for continuation in state.withLock({ Array($0.continuations.values) }) { continuation.yield() }
    }

    func finish() {
        let continuations = state.withLock { state in
            state.hasEnded = true
            return Array(state.continuations.values)
        }
        for continuation in continuations { continuation.finish() }
    }
}
