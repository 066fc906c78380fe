internal import Foundation
internal import Synchronization

/// Threads that take numbers, one after the other, and work on them. They share nothing but the next number.
final class SeedWorkers<Value: Sendable>: Sendable {
    private struct State {
        var next = 0
        var running: Int
        var isStopped = false
    }

    private let state: Mutex<State>
    private let jobs: Int
    private let count: Int
    private let work: @Sendable (Int) -> Value

    /// Creates the workers.
    ///
    /// - Parameters:
    ///   - count: The number of numbers, from 0.
    ///   - work: Called with each number, on any of the threads.
    init(jobs: Int, count: Int, work: @escaping @Sendable (Int) -> Value) {
        self.jobs = max(1, min(jobs, count))
        self.count = count
        self.work = work
        state = Mutex(State(running: self.jobs))
    }

    /// Takes no more numbers; what is being worked on ends.
    func stop() { state.withLock { $0.isStopped = true } }

    private func take() -> Int? {
        state.withLock { state in
            guard !state.isStopped, state.next < count else { return nil }
            defer { state.next += 1 }
            return state.next
        }
    }

    /// Starts the threads. The results arrive in the order of their ends; the stream ends with the last one. If the
    /// reader's task is cancelled, the workers stop.
    func results() -> AsyncStream<(index: Int, value: Value)> {
        AsyncStream { continuation in
            continuation.onTermination = { [self] _ in stop() }
            for _ in 0..<jobs {
                let thread = Thread { [self] in
                    while let index = take() { continuation.yield((index, work(index))) }
                    let isLast = state.withLock { state in
                        state.running -= 1
                        return state.running == 0
                    }
                    if isLast { continuation.finish() }
                }
                thread.stackSize = BlockingThread.stackBytes
                thread.start()
            }
        }
    }
}
