internal import Foundation
public import Logging
internal import NIOCore
internal import NIOPosix
internal import NotesContract
public import SyncEngine
public import SyncStore

/// A sync client: notes that are there without a network, and at the server as soon as there is one.
///
/// ```swift
/// let client = try await SyncClient.start(
///     SyncClientConfiguration(host: "127.0.0.1", port: 8000, user: "ada", password: "secret", storePath: "ada.notes"))
/// let note = try await client.create(title: "Milk", text: "2 l")
/// await client.stop()
/// ```
///
/// A change is durable when its call returns; it is sent whenever it can be.
public final class SyncClient: Sendable {
    private let group: MultiThreadedEventLoopGroup
    private let eventLoop: any EventLoop
    private let core: NIOLoopBound<SyncCore>

    private init(group: MultiThreadedEventLoopGroup, eventLoop: any EventLoop, core: NIOLoopBound<SyncCore>) {
        self.group = group
        self.eventLoop = eventLoop
        self.core = core
    }

    /// Opens the store and begins to sync.
    ///
    /// - Parameters:
    ///   - isOnline: Whether the device's interface is up from the start; if not, nothing is tried until
    ///     ``setInterface(isUp:)`` says so.
    ///   - onEvent: Told on the client's own thread of everything that shows; must not block.
    public static func start(
        _ configuration: SyncClientConfiguration, isOnline: Bool = true,
        logger: Logger = Logger(label: "slowlane.client") { _ in SwiftLogNoOpLogHandler() },
        onEvent: @escaping @Sendable (SyncEvent) -> Void = { _ in }
    ) async throws -> SyncClient {
        // A thread of its own: it waits for the disk.
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

    /// A new note; gives its uuid, which is a new one unless given.
    public func create(title: String?, text: String?, uuid: String? = nil) async throws -> String {
        try await onLoop { try $0.create(title: title, text: text, uuid: uuid) }
    }

    /// Another title or text; `nil` leaves it as it is.
    public func edit(_ uuid: String, title: String?, text: String?) async throws {
        try await onLoop { try $0.edit(uuid, title: title, text: text) }
    }

    /// Deletes a note.
    public func delete(_ uuid: String) async throws {
        try await onLoop { try $0.delete(uuid) }
    }

    /// Decides about a conflict; gives the note's uuid, which is a new one if theirs was gone.
    public func resolve(_ uuid: String, _ resolution: SyncEngine.Resolution) async throws -> String {
        try await onLoop { try $0.resolve(uuid, resolution) }
    }

    /// Looks at the server now.
    public func sync() async throws { try await onLoop { try $0.take(.sync) } }

    /// Tells whether the device's network interface is up.
    public func setInterface(isUp: Bool) async throws { try await onLoop { try $0.take(.interface(isUp: isUp)) } }

    /// What a client would draw.
    public func view() async throws -> NotesView { try await onLoop { $0.view } }

    /// Whether nothing is in flight and nothing waits that could be sent, and why nothing is sent if it is paused.
    public func progress() async throws -> (isSettled: Bool, pausedBecause: String?) {
        try await onLoop { ($0.isSettled, $0.pausedBecause) }
    }

    /// Closes everything. What has not been sent is in the store.
    public func stop() async {
        try? await onLoop { $0.stop() }
        try? await group.shutdownGracefully()
    }

    /// Now, as the contract writes it.
    public static func date() -> String {
        NoteDate.text(millisecondsSince1970: Int(Date().timeIntervalSince1970 * 1000))
    }

    private func onLoop<Result: Sendable>(_ body: @escaping @Sendable (SyncCore) throws -> Result) async throws
        -> Result
    {
        let core = core
        return try await eventLoop.submit { try body(core.value) }.get()
    }
}

/// Whom a client talks to, and how.
public struct SyncClientConfiguration: Sendable {
    /// The server's host name or address.
    public var host: String
    /// Whether that name has an address at present; asked before each connection, so that a look-up can be made to fail.
    public var nameIsKnown: @Sendable () -> Bool = { true }
    /// Its port.
    public var port: Int
    /// Who the user is.
    public var user: String
    /// Their password.
    public var password: String
    /// The file that keeps the notes; `nil` keeps them in memory.
    public var storePath: String?
    /// When what failed is tried again.
    public var policy = RetryPolicy()
    /// A deliberate defect, to prove that a scenario finds it.
    public var mutant: Mutant?
    /// Where identifiers come from; by chance unless given. Must be another one at each start with the same store.
    public var seed: UInt64 = .random(in: 0...(.max))

    /// Creates a configuration.
    public init(host: String, port: Int, user: String, password: String, storePath: String?) {
        self.host = host
        self.port = port
        self.user = user
        self.password = password
        self.storePath = storePath
    }
}

/// Something that shows.
public enum SyncEvent: Sendable {
    /// What would be drawn has changed.
    case view(NotesView)
    /// A request goes out.
    case sent(exchange: Int, method: String, target: String)
    /// Its answer has come whole.
    case answered(exchange: Int, status: Int)
    /// It has failed.
    case failed(exchange: Int, reason: String)
    /// Something could not be stored.
    case cannotStore(SyncStoreError)
}
