internal import Foundation
internal import Synchronization

/// Blocking work on threads of its own: the cooperative pool of tasks has one thread per CPU and must not be blocked.
enum BlockingThread {
    /// The default of musl, 128 KiB, is too small for the recursion of a decoder.
    static let stackBytes = 4 << 20

    /// Returns the result of blocking work. If the task is cancelled it throws at once, and the work continues without
    /// a reader until it ends.
    static func run<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        let reply = Reply<Value>()
        return try await withTaskCancellationHandler {
            try Task.checkCancellation()
            let thread = Thread { reply.resume(Result { try work() }) }
            thread.stackSize = stackBytes
            thread.start()
            return try await withCheckedThrowingContinuation { reply.wait($0) }
        } onCancel: {
            reply.resume(.failure(CancellationError()))
        }
    }

    /// The first result of two possible ones.
    private final class Reply<Value: Sendable>: Sendable {
        private enum State {
            case empty
            case waiting(CheckedContinuation<Value, any Error>)
            case available(Result<Value, any Error>)
            case taken
        }

        private let state = Mutex(State.empty)

        func resume(_ result: Result<Value, any Error>) {
            let waiting = state.withLock { state -> CheckedContinuation<Value, any Error>? in
                switch state {
                case .empty:
                    state = .available(result)
                    return nil
                case .waiting(let continuation):
                    state = .taken
                    return continuation
                case .available, .taken: return nil
                }
            }
            waiting?.resume(with: result)
        }

        func wait(_ continuation: CheckedContinuation<Value, any Error>) {
            let available = state.withLock { state -> Result<Value, any Error>? in
                if case .available(let result) = state {
                    state = .taken
                    return result
                }
                state = .waiting(continuation)
                return nil
            }
            if let available { continuation.resume(with: available) }
        }
    }
}
