//  SyncClient: the live sync client: SyncEngine, SyncStore and HTTPWire's client machine over sockets.
//
//  Owns: sockets, timers, the order of commit and send.
//
//  Does not own: decisions about notes (SyncEngine).

internal import Determinism
internal import Foundation
public import Logging
internal import NIOCore
internal import NIOPosix
internal import NotesContract
public import SyncEngine

/// An offline-first notes client: changes are stored locally and sent as soon as the server can be reached.
///
/// ```swift
/// let client = try await SyncClient.start(
///     SyncClientConfiguration(host: "127.0.0.1", port: 8000, user: "ada", password: "secret", storePath: "ada.notes"))
/// let note = try await client.create(title: "Milk", text: "2 l")
/// await client.stop()
/// ```
///
/// A change is durable when its call returns.
public final class SyncClient: Sendable {
    private let group: MultiThreadedEventLoopGroup
    private let eventLoop: any EventLoop
    private let core: NIOLoopBound<SyncCore>

    private init(group: MultiThreadedEventLoopGroup, eventLoop: any EventLoop, core: NIOLoopBound<SyncCore>) {
        self.group = group
        self.eventLoop = eventLoop
        self.core = core
    }

    /// Opens the store and starts syncing.
    ///
    /// - Parameters:
    ///   - isOnline: Whether the device's interface is up at the start. If not, nothing is sent until
    ///     ``setInterface(isUp:)`` reports it up.
    ///   - onEvent: Called on the client's own thread for each event; must not block.
    public static func start(
        _ configuration: SyncClientConfiguration, isOnline: Bool = true,
        logger: Logger = Logger(label: "slowlane.client") { _ in SwiftLogNoOpLogHandler() },
        onEvent: @escaping @Sendable (SyncEvent) -> Void = { _ in }
    ) async throws -> SyncClient {
        // The client has its own thread, because commits block.
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let eventLoop = group.next()
        do {
            let core = try await eventLoop.submit {
                let core = try SyncCore(configuration, on: eventLoop, logger: logger, onEvent: onEvent)
                core.begin(isOnline: isOnline)
                return NIOLoopBound(core, eventLoop: eventLoop)
            }.get()
            return SyncClient(group: group, eventLoop: eventLoop, core: core)
        } catch {
            try? await group.shutdownGracefully()
            throw error
        }
    }

    /// Creates a note and returns its identifier.
    ///
    /// - Parameter uuid: The identifier; a random one by default.
    public func create(title: String?, text: String?, uuid: String? = nil) async throws -> String {
        try await change { engine, now in
            engine.create(title: title, text: text, date: SyncClient.date(), uuid: uuid, at: now)
        }
    }

    /// Changes a note's title or text; `nil` leaves it unchanged.
    public func edit(_ uuid: String, title: String?, text: String?) async throws {
        try await change { engine, now in
            try engine.edit(uuid, title: title, text: text, date: SyncClient.date(), at: now)
        }
    }

    /// Deletes a note.
    public func delete(_ uuid: String) async throws {
        try await change { engine, now in try engine.delete(uuid, at: now) }
    }

    /// Resolves a conflict and returns the note's identifier, which is new if the server's side was a deletion.
    public func resolve(_ uuid: String, _ resolution: SyncEngine.Resolution) async throws -> String {
        try await change { engine, now in try engine.resolve(uuid, resolution, date: SyncClient.date(), at: now) }
    }

    /// Fetches the index now and ends retry delays.
    public func sync() async throws { try await change { engine, now in engine.syncRequested(at: now) } }

    /// Reports that the device's network interface is up or down.
    public func setInterface(isUp: Bool) async throws {
        try await change { engine, now in engine.interfaceChanged(isUp: isUp, at: now) }
    }

    /// Returns the notes as a user interface would draw them.
    public func view() async throws -> NotesView { try await onLoop { $0.view } }

    /// Returns the state of the client's work.
    public func status() async throws -> SyncStatus { try await onLoop { $0.status } }

    /// Closes the connections and the store. Pending changes are kept in the store.
    public func stop() async {
        try? await onLoop { $0.stop() }
        try? await group.shutdownGracefully()
    }

    /// Returns the current time in the contract's date format.
    public static func date() -> String {
        NoteDate.text(millisecondsSince1970: Int(Date().timeIntervalSince1970 * 1000))
    }

    private func change<Value: Sendable>(
        _ body: @escaping @Sendable (inout SyncEngine, Instant) throws -> Value
    ) async throws -> Value {
        try await onLoop { core in try core.update { machine, now in try machine.change(at: now, body) } }
    }

    private func onLoop<Value: Sendable>(_ body: @escaping @Sendable (SyncCore) throws -> Value) async throws -> Value {
        let core = core
        return try await eventLoop.submit { try body(core.value) }.get()
    }
}
