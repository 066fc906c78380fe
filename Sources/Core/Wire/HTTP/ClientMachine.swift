public import Determinism
public import NIOCore

/// An instruction of a client's state machine for its driver.
public enum ClientAction<Change: Sendable, Event: Sendable>: Sendable {
    /// Commit the change to the store.
    case commit(Change)
    /// Open a connection.
    case connect(HTTPConnectionID)
    /// Write the bytes, and report them with ``ClientMachine/written(_:on:at:)`` when the kernel has accepted them.
    case write(HTTPConnectionID, ByteBuffer)
    /// Close the connection; with a RST if abortive, so that the kernel drops what it has not sent. The kernel would
    /// otherwise retransmit a request that has failed, and the server might execute it after its repetition.
    case close(HTTPConnectionID, isAbortive: Bool)
    /// Report the event.
    case report(Event)
}

/// The state machine of a client with a store and HTTP connections, as its drivers see it: those of the simulated and of
/// the live world, and that of an app. Has no socket, clock or file.
///
/// After each input and each ``advance(to:)``, the driver takes every action with ``takeAction()``. It reports the result
/// of ``ClientAction/commit(_:)`` with ``committed(at:)`` before any other input.
public protocol ClientMachine: Sendable {
    /// A change of the store.
    associatedtype Change: Sendable
    /// An event for the app.
    associatedtype Event: Sendable

    /// The time of the next ``advance(to:)``; `nil` until another input changes it.
    var nextDeadline: Instant? { get }
    /// Whether nothing is in flight and nothing is ready to be sent or waits for another attempt.
    var isSettled: Bool { get }

    /// A connection is open.
    mutating func connected(_ id: HTTPConnectionID, at now: Instant)
    /// A connection could not be opened.
    mutating func connectFailed(_ id: HTTPConnectionID, reason: HTTPConnectError, at now: Instant)
    /// Bytes have arrived on a connection.
    mutating func received(_ bytes: ByteBuffer, on id: HTTPConnectionID, at now: Instant)
    /// The kernel has accepted bytes of a connection.
    mutating func written(_ count: Int, on id: HTTPConnectionID, at now: Instant)
    /// A connection was closed by the peer or has failed.
    mutating func closed(_ id: HTTPConnectionID, how: HTTPCloseReason, at now: Instant)
    /// Advances the time; due at ``nextDeadline``.
    mutating func advance(to now: Instant)
    /// The change of the last commit is durable.
    mutating func committed(at now: Instant)
    /// Returns the next action; `nil` if there is none.
    mutating func takeAction() -> ClientAction<Change, Event>?
}

/// An input of a client's state machine from its connections and its clock.
public enum ClientInput: Sendable {
    /// A connection is open.
    case connected(HTTPConnectionID)
    /// A connection could not be opened.
    case connectFailed(HTTPConnectionID, HTTPConnectError)
    /// Bytes have arrived on a connection.
    case received(ByteBuffer, HTTPConnectionID)
    /// The kernel has accepted bytes of a connection.
    case written(Int, HTTPConnectionID)
    /// A connection was closed by the peer or has failed.
    case closed(HTTPConnectionID, HTTPCloseReason)
    /// The deadline has passed.
    case deadline
}

extension ClientMachine {
    /// Passes on an input.
    public mutating func process(_ input: ClientInput, at now: Instant) {
        switch input {
        case .connected(let id): connected(id, at: now)
        case .connectFailed(let id, let reason): connectFailed(id, reason: reason, at: now)
        case .received(let bytes, let id): received(bytes, on: id, at: now)
        case .written(let count, let id): written(count, on: id, at: now)
        case .closed(let id, let how): closed(id, how: how, at: now)
        case .deadline: advance(to: now)
        }
    }
}
