internal import Client
internal import Determinism

/// The store of a client, as its driver sees it.
protocol LiveStore<E>: AnyObject {
    associatedtype E: Engine

    /// Commits a change.
    func execute(_ change: E.Change) -> CommitResult<E>

    /// Returns the result of a commit that fails before the store is asked.
    func refuse(_ reason: String) -> CommitResult<E>

    /// Executes the next action of the engine on the store that is not a commit. Returns the input that follows; `nil` if
    /// there is no action.
    func executeNext(of engine: inout E) -> ((inout E, Instant) -> Void)?

    /// Closes the store.
    func close()
}

extension LiveStore {
    func refuse(_ reason: String) -> CommitResult<E> { .failed(reason: reason) }

    func executeNext(of engine: inout E) -> ((inout E, Instant) -> Void)? { nil }
}

/// The result of a commit.
enum CommitResult<E: Engine> {
    /// The change is durable.
    case committed
    /// The change is not durable, for a reason; the engine commits it again.
    case failed(reason: String)
    /// Nothing was committed, and the engine gets this input.
    case rejected((inout E, Instant) -> Void)
}
