//  Client/App: what the apps of scenarios share, besides their decisions.
//
//  Owns: the interface between an app and its drivers (`AppEngine`, `AppAct`, `AppView`, `AppChange`), an app as an engine
//  (`RunningApp`), the belief about connectivity, identifiers and fields of records.
//
//  Does not own: decisions (ExpenseEngine, ReaderEngine, FieldEngine), connections (ClientMachine), sockets, files and clocks
//  (drivers), the notes client (NotesEngine).

public import Determinism
internal import Wire

/// The decisions of an app, which ``RunningApp`` makes the engine of a client: its inputs are acts of the user and responses of
/// the app's service, its outputs are commits and requests.
public protocol AppEngine: Sendable {
    /// The path of the app's service, without a slash at its end, such as `/expense`.
    static var basePath: String { get }
    /// The header field with the value `1` that each response of the app's service has. A response without it is one
    /// of another server, such as a captive portal.
    static var markerField: String { get }

    /// The maximum number of connections of a pool (``AppRequest/pool``).
    var connectionsMax: Int { get }
    /// The time of the next ``advance(to:)``; `nil` until another input changes it.
    var nextDeadline: Instant? { get }
    /// Whether nothing is in flight and nothing is ready to be sent or waits for another attempt.
    var isSettled: Bool { get }
    /// Whether an exchange is in flight or a change is to be committed.
    var isBusy: Bool { get }
    /// Whether the result of a commit is awaited, or a change has not been committed: the view is not reported.
    var isCommitPending: Bool { get }
    /// What the app shows.
    var view: AppView { get }

    /// The app has started.
    mutating func started(_ interface: NetworkInterface, at now: Instant)
    /// The interface has come up, gone down or changed its kind.
    mutating func interfaceChanged(_ interface: NetworkInterface, at now: Instant)
    /// The device's wall clock was set.
    mutating func wallClockChanged(_ clock: WallClock, at now: Instant)
    /// The user acts. An act on a control that is inert has no effect.
    mutating func perform(_ act: AppAct, at now: Instant) throws(AppActError)
    /// The change of the last commit is durable.
    mutating func committed(at now: Instant)
    /// The change of the last commit could not be made durable; the engine commits it again.
    mutating func commitFailed(at now: Instant)
    /// A piece of the response's body has arrived, to a request that streams (``AppRequest/isStreamed``).
    mutating func pieceReceived(_ piece: AppResponse, to number: Int, at now: Instant)
    /// A response of the service has arrived. The body of one that streams has arrived in pieces.
    mutating func responseReceived(_ response: AppResponse, to number: Int, at now: Instant)
    /// A request has no response of the service.
    mutating func requestFailed(_ number: Int, _ failure: AppFailure, at now: Instant)
    /// Advances the time; due at ``nextDeadline``.
    mutating func advance(to now: Instant)
    /// Returns the next action; `nil` if there is none.
    mutating func nextAction() -> AppAction?
}

extension AppEngine {
    public var connectionsMax: Int { 1 }
    public mutating func wallClockChanged(_ clock: WallClock, at now: Instant) {}
    public mutating func pieceReceived(_ piece: AppResponse, to number: Int, at now: Instant) {}
}

/// An instruction of an engine.
public enum AppAction: Sendable {
    /// Commit the change to the store, and report it with ``AppEngine/committed(at:)``.
    case commit(AppChange)
    /// Send the request.
    case send(AppRequest)
    /// Abort the request with this number; its result is not needed.
    case cancel(Int)
}

/// An act of the user.
public enum AppAct: Hashable, Sendable {
    /// Creates a record with the key that the app is given, and the fields `title` and `text`.
    case create(RecordKey, RecordFields)
    /// Changes the fields `title` and `text` of a record.
    case edit(RecordKey, RecordFields)
    /// Deletes a record.
    case delete(RecordKey)
    /// Pins a record.
    case pin(RecordKey)
    /// Opens a record, or the first screen.
    case open(RecordKey?)
    /// Requests what is new on the server.
    case sync
    /// A call of the app by its name, with the record and the texts that it is given.
    case call(String, RecordKey?, RecordFields)
}

/// The error of an act that is not possible.
public struct AppActError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reason.
    public let description: String

    /// Creates an error.
    public init(_ description: String) { self.description = description }

    /// The error of an action that the app does not support.
    public static let unknown = AppActError("the app does not support this action")
}

/// A wall clock: the difference between a calendar and the monotonic time of an engine. The time zone is UTC.
public struct WallClock: Hashable, Sendable {
    /// The milliseconds since 1970 at the start of monotonic time.
    public var startMilliseconds: Int

    /// Creates a clock.
    public init(startMilliseconds: Int) { self.startMilliseconds = startMilliseconds }

    /// Creates a clock that shows the milliseconds since 1970 at a time.
    public init(showing milliseconds: Int, at now: Instant) {
        startMilliseconds = milliseconds - Int(now.sinceStart.count / 1_000_000)
    }

    /// Returns the milliseconds since 1970 at a time.
    public func milliseconds(at now: Instant) -> Int {
        startMilliseconds + Int(now.sinceStart.count / 1_000_000)
    }

    /// Returns the time at which the clock shows the milliseconds since 1970.
    public func time(of milliseconds: Int) -> Instant {
        Instant(.milliseconds(Int64(max(0, milliseconds - startMilliseconds))))
    }
}

/// The parts of an engine's environment that do not change.
public struct AppConfiguration: Sendable {
    /// Determines delays and operation ids. Differs at each start with the same store.
    public var seed: UInt64
    /// The device's wall clock at the start.
    public var clock: WallClock
    /// The settings of the app by name, as in the device's `settings`.
    public var settings: RecordFields

    /// Creates a configuration.
    public init(seed: UInt64, clock: WallClock = WallClock(startMilliseconds: 0), settings: RecordFields = [:]) {
        self.seed = seed
        self.clock = clock
        self.settings = settings
    }

    /// Returns a setting that is a time, in whole milliseconds such as `300000ms`.
    public func time(_ name: String, default fallback: Nanoseconds) -> Nanoseconds {
        guard let text = settings[name], text.hasSuffix("ms"), let count = Int64(text.dropLast(2)), count >= 0 else {
            return fallback
        }
        return .milliseconds(count)
    }
}
