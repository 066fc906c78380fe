//  Client: what a client decides, and its HTTP connections.
//
//  Owns: the interface between an engine and its machine (`Engine`), the HTTP connections of an engine (`ClientMachine`),
//  the engine of the notes client (`Notes/`), what the apps of scenarios share (`App/`).
//
//  Does not own: HTTP (Wire), the decisions of the apps (Expense, Reader, Field), sockets, files and clocks (drivers).

public import Determinism
public import NIOCore
public import Wire

/// The decisions of a client: what it stores, what it sends and when, and what it shows. A value without a socket, clock or
/// file: its inputs are facts with their time, its outputs are commits and requests.
///
/// A change is committed before anything of it is sent or shown. After each input, ``ClientMachine`` takes every action with
/// ``nextAction(at:)``.
public protocol Engine: Sendable {
    /// A change of the store.
    associatedtype Change: Sendable
    /// An event for the app.
    associatedtype Event: Sendable

    /// The maximum number of connections of a pool (``EngineRequest/pool``).
    var connectionsMax: Int { get }
    /// The value of the `Authorization` field, in place of that of the machine; `nil` if the engine has none.
    var authorization: String? { get }
    /// The time of the next ``advance(to:)``; `nil` until another input changes it.
    var nextDeadline: Instant? { get }
    /// Whether nothing is in flight and nothing is ready to be sent or waits for another attempt.
    var isSettled: Bool { get }
    /// Whether an exchange is in flight or a change waits for its commit.
    var isBusy: Bool { get }

    /// The client has started.
    mutating func started(_ interface: NetworkInterface, at now: Instant)
    /// The interface has come up, gone down or changed its kind.
    mutating func interfaceChanged(_ interface: NetworkInterface, at now: Instant)
    /// The change of the last commit is durable.
    mutating func committed(at now: Instant)
    /// The change of the last commit could not be made durable, for a reason; the engine commits it again after a pause.
    mutating func commitFailed(_ reason: String, at now: Instant)
    /// A piece of the response's body has arrived, to a request that streams.
    mutating func pieceReceived(_ bytes: ByteBuffer, of head: HTTPResponseHead, to number: Int, at now: Instant)
    /// The complete response to a request has arrived; without the body if it has arrived in pieces. Returns an event to be
    /// reported before any action that follows; `nil` for none.
    mutating func responseReceived(_ response: HTTPClientResponse, to number: Int, at now: Instant) -> Event?
    /// A request has ended without a response. Returns an event to be reported before any action that follows; `nil` for
    /// none.
    mutating func requestFailed(_ number: Int, _ error: HTTPClientError, at now: Instant) -> Event?
    /// Advances the time; due at ``nextDeadline``.
    mutating func advance(to now: Instant)
    /// Returns the next action; `nil` if there is none.
    mutating func nextAction(at now: Instant) -> EngineAction<Change, Event>?
    /// Returns the event of what the client shows; `nil` if that has not changed, or is not durable.
    mutating func takeViewChange() -> Event?
}

extension Engine {
    public var authorization: String? { nil }
    public mutating func pieceReceived(
        _ bytes: ByteBuffer, of head: HTTPResponseHead, to number: Int, at now: Instant
    ) {}
}

/// An instruction of an engine.
public enum EngineAction<Change: Sendable, Event: Sendable>: Sendable {
    /// Commit the change to the store, and report the result before any other input.
    case commit(Change)
    /// Send the request.
    case send(EngineRequest)
    /// Abort the request with this number; its result is not needed.
    case cancel(Int)
    /// Report the event.
    case report(Event)
}

/// A request of an engine.
public struct EngineRequest: Sendable {
    /// The number of the request; each has another.
    public let number: Int
    /// The request, without the fields `Host` and `Authorization`.
    public let content: HTTPClientRequest
    /// The connection pool: a request does not wait for those of another pool.
    public let pool: Int
    /// Whether the request has the field `Authorization`, if there is a value for it.
    public let isAuthorized: Bool

    /// Creates a request.
    public init(number: Int, _ content: HTTPClientRequest, pool: Int, isAuthorized: Bool = true) {
        self.number = number
        self.content = content
        self.pool = pool
        self.isAuthorized = isAuthorized
    }
}

/// The network interface of a device.
public struct NetworkInterface: Hashable, Sendable {
    /// Whether it is up.
    public var isUp: Bool
    /// Whether its data are charged, as on a cellular network.
    public var isMetered: Bool

    /// Creates an interface.
    public init(isUp: Bool, isMetered: Bool = false) {
        self.isUp = isUp
        self.isMetered = isMetered
    }
}
