import Dispatch
import Synchronization

/// A gate that holds tasks, cancelled or not, until it is opened.
public final class Gate: Sendable {
    private let state = Mutex<(waiting: [CheckedContinuation<Void, Never>], isOpen: Bool)>(([], false))
    private let arrivals = DispatchSemaphore(value: 0)

    public init() {}

    public func wait() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiting.append(continuation) }
                return state.isOpen
            }
            arrivals.signal()
            if isOpen { continuation.resume() }
        }
    }

    /// Blocks the thread until one more task has arrived at the gate, for a minute at most; returns whether one has.
    public func awaitArrival() -> Bool { arrivals.wait(timeout: .now() + .seconds(60)) == .success }

    public func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }
}
