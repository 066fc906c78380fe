//  LiveClient/Notes: the live sync client.
//
//  Owns: the changes of the user, changes of the store by other processes, the state of the synchronisation.
//
//  Does not own: decisions about records, the order of commit and send (SyncEngine), the execution of actions (Driver), SQL
//  (SyncStore).

public import Client
public import Determinism
internal import Foundation
public import Logging

/// An offline-first client: changes are stored locally and sent as soon as the server can be reached.
///
/// ```swift
/// let client = try await SyncClient.start(
///     SyncClientConfiguration(host: "127.0.0.1", port: 8000, user: "ada", password: "secret", storePath: "ada.notes"))
/// let note = try await client.create(title: "Milk", text: "2 l")
/// await client.stop()
/// ```
///
/// A change is durable when its call returns. A change that cannot be made durable has not happened: the call throws.
public final class SyncClient: Sendable {
    private let thread: ClientThread<SyncCore>

    private init(_ thread: ClientThread<SyncCore>) { self.thread = thread }

    deinit {
        if thread.hasEnded { return }
        // A client that is released without a stop: the task ends with its thread.
        Task { [thread] in await thread.end { $0.stop() } }
    }

    /// Opens the store and starts syncing.
    ///
    /// - Parameters:
    ///   - interface: The device's network interface at the start. While it is down, nothing is sent until
    ///     ``setInterface(_:)`` reports it up.
    ///   - onEvent: Called on the client's own thread with each event and its time; must not block.
    /// - Throws: A `SyncStoreError` if the store cannot be used, or another process synchronises it.
    public static func start(
        _ configuration: SyncClientConfiguration, interface: NetworkInterface = NetworkInterface(isUp: true),
        logger: Logger = Logger(label: "slowlane.client") { _ in SwiftLogNoOpLogHandler() },
        onEvent: @escaping @Sendable (SyncEvent, ContinuousClock.Instant) -> Void = { _, _ in }
    ) async throws -> SyncClient {
        SyncClient(
            try await ClientThread.start { eventLoop in
                let core = try SyncCore(configuration, on: eventLoop, logger: logger, onEvent: onEvent)
                core.begin(interface)
                return core
            })
    }

    /// The client has been stopped.
    public typealias StoppedError = ClientStoppedError

    /// Other processes keep changing the store.
    public struct SupersededError: Error, CustomStringConvertible {
        public let description = "other processes keep changing the store; try again"
    }

    // MARK: The user's changes

    /// Creates a record and returns its identifier.
    ///
    /// - Parameter id: The identifier; a random UUID by default.
    public func create(_ content: RecordContent, id: RecordID? = nil) async throws -> RecordID {
        try await change { engine, now in try engine.create(content, id: id, at: now) }
    }

    /// Replaces a record's content.
    public func edit(_ id: RecordID, _ content: RecordContent) async throws {
        try await change { engine, now in try engine.edit(id, content, at: now) }
    }

    /// Changes a record as a value of a Swift type, in one step: no other change comes between the read and the write.
    ///
    ///     try await client.edit(id) { (item: inout Item) in item.isBought = true }
    ///
    /// Members that the type does not have stay. If another process has changed the record first, `body` is called again.
    public func edit<Value: Codable & Sendable>(
        _ id: RecordID, as type: Value.Type = Value.self, _ body: @escaping @Sendable (inout Value) throws -> Void
    ) async throws {
        try await change { engine, now in
            guard let record = engine.shownRecord(id), !record.isDeleted else { throw SyncEngine.RecordError.unknown }
            try engine.edit(id, record.mine.changing(Value.self, body), at: now)
        }
    }

    /// Deletes a record.
    public func delete(_ id: RecordID) async throws {
        try await change { engine, now in try engine.delete(id, at: now) }
    }

    /// Resolves a conflict and returns the record's identifier, which is new if the server's side was a deletion.
    @discardableResult
    public func resolve(_ id: RecordID, _ resolution: SyncEngine.Resolution) async throws -> RecordID {
        try await change { engine, now in try engine.resolve(id, resolution, at: now) }
    }

    /// Sends a parked change again.
    public func retry(_ id: RecordID) async throws {
        try await change { engine, now in try engine.retry(id, at: now) }
    }

    /// Discards a record's parked changes; the server's version is shown again, if there is one.
    public func dismiss(_ id: RecordID) async throws {
        try await change { engine, now in try engine.dismiss(id, at: now) }
    }

    // MARK: The device

    /// Fetches the index now, and ends pauses and retry delays.
    public func sync() async throws { try await input { engine, now in engine.syncRequested(at: now) } }

    /// Assigns the store of another account to this client's account: all pending changes are sent, and a record that
    /// the server does not have becomes a conflict.
    public func adopt() async throws { try await input { engine, now in engine.adopt(at: now) } }

    /// Reports a change of the device's network interface.
    public func setInterface(_ interface: NetworkInterface) async throws {
        try await input { engine, now in engine.interfaceChanged(interface, at: now) }
    }

    /// Replaces the credentials of the user and ends the pause after rejected ones.
    public func setCredentials(_ credentials: SyncClientConfiguration.Credentials) async throws {
        try await onLoop { core in core.setCredentials(credentials) }
    }

    // MARK: State

    /// Returns the records as a user interface would draw them, in no particular order.
    public func rows() async throws -> [RecordRow] { try await onLoop { Array($0.engine.rows) } }

    /// Returns a record as a user interface would draw it; `nil` if there is none.
    public func row(_ id: RecordID) async throws -> RecordRow? { try await onLoop { $0.engine.row(id) } }

    /// Returns the records of now, and again whenever they have changed, or the state of the synchronisation has
    /// (``SyncStatus/problem``). Changes between two reads of the sequence are one element. The sequence ends with the client.
    public func updates() async throws -> RecordUpdates {
        RecordUpdates(self, ticks: try await onLoop { $0.observers.add() })
    }

    /// Returns the state of the client's work.
    public func status() async throws -> SyncStatus { try await onLoop { $0.status } }

    /// Reports ``ClientActivity/settled(_:)`` even if it has not changed.
    public func reportActivity() async throws { try await onLoop { $0.driver.reportActivity() } }

    /// Closes the connections and the store. Pending changes are kept in the store.
    public func stop() async { await thread.end { $0.stop() } }

    /// Ends the client as the end of its process would: its sockets are closed, and the store keeps what is committed.
    public func kill() async { await thread.end { $0.driver.kill() } }

    // MARK: The event loop

    /// Makes a change with the engine's own calls. It is durable when the call returns.
    ///
    /// - Parameter body: Makes the change; called again if another process has changed the store first.
    public func change<Value: Sendable>(
        _ body: @escaping @Sendable (inout SyncEngine, Instant) throws -> Value
    ) async throws -> Value {
        try await onLoop { core in try core.change(body) }
    }

    /// Reports an input of the device. What follows from it is committed later.
    private func input(_ body: @escaping @Sendable (inout SyncEngine, Instant) -> Void) async throws {
        try await onLoop { core in core.driver.input { engine, now in body(&engine.sync, now) } }
    }

    func onLoop<Value: Sendable>(_ body: @escaping @Sendable (SyncCore) throws -> Value) async throws -> Value {
        try await thread.run(body)
    }
}
