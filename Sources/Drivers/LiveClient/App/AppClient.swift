//  LiveClient/App: an app over sockets: its machine and its store with an event loop and a clock.
//
//  Owns: the event loop, the timer, the execution of commits.
//
//  Does not own: decisions (the engines of the apps), SQL (AppStore), sockets (HTTPSockets/Client).

public import Client
public import HTTPSockets
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// An app with offline patterns, a store in a file and real connections.
public final class AppClient: Sendable {
    /// Server, account and store of a client.
    public struct Configuration: Sendable {
        /// Where connections lead to.
        public var target: ClientChannels.Target
        /// The store's file.
        public var storePath: String
        /// The interface at the start.
        public var interface = AppInterface(isUp: true)
        /// Returns the app on what it has stored; called once, on the client's own thread.
        ///
        /// Its time is 0 at the call.
        public var makeApp: @Sendable (AppState) throws -> any RunningApp
        /// Called on the client's own thread after each commit; if it returns `true`, the client ends at once, as a kill
        /// would end it.
        public var mustEnd: @Sendable () -> Bool = { false }

        /// Creates a configuration.
        public init(
            target: ClientChannels.Target, storePath: String,
            makeApp: @escaping @Sendable (AppState) throws -> any RunningApp
        ) {
            self.target = target
            self.storePath = storePath
            self.makeApp = makeApp
        }
    }

    /// What a client does, for observers.
    public enum Activity: Sendable {
        /// The state of a connection has changed.
        case connection(ClientChannels.Activity)
        /// The store has committed a change.
        case committed(AppChange)
        /// The view has changed.
        case view(AppView)
        /// Whether the client has nothing to send or fetch. Reported when it changes, and by ``reportActivity()``.
        case settled(Bool)
        /// Whether an exchange is in flight or a change waits for its commit. Reported when it changes.
        case busy(Bool)
    }

    /// The client has been stopped.
    public struct StoppedError: Error, CustomStringConvertible {
        public let description = "the client is stopped"
    }

    private let group: MultiThreadedEventLoopGroup
    private let core: NIOLoopBound<AppClientCore>
    private let eventLoop: any EventLoop
    private let isStopped = Mutex(false)

    private init(_ group: MultiThreadedEventLoopGroup, _ eventLoop: any EventLoop, _ core: NIOLoopBound<AppClientCore>)
    {
        self.group = group
        self.eventLoop = eventLoop
        self.core = core
    }

    /// Opens the store and starts.
    ///
    /// - Parameter onActivity: Called on the client's own thread; must not block.
    public static func start(
        _ configuration: Configuration, onActivity: @escaping @Sendable (Activity) -> Void
    ) async throws -> AppClient {
        // The client has its own thread, because commits block.
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let eventLoop = group.next()
        do {
            let core = try await eventLoop.submit {
                let core = try AppClientCore(configuration, on: eventLoop, onActivity: onActivity)
                core.begin(configuration.interface)
                return NIOLoopBound(core, eventLoop: eventLoop)
            }.get()
            return AppClient(group, eventLoop, core)
        } catch {
            try? await group.shutdownGracefully()
            throw error
        }
    }

    /// Performs an act of the user. What it changes is durable when the call returns, unless the store has failed.
    public func perform(_ act: AppAct) async throws {
        try await onLoop { core in try core.perform(act) }
    }

    /// Reports that the interface has come up, gone down or changed its kind.
    public func setInterface(_ interface: AppInterface) async throws {
        try await onLoop { core in core.input { machine, now in machine.interfaceChanged(interface, at: now) } }
    }

    /// Reports that the device's wall clock was set.
    ///
    /// - Parameter milliseconds: The milliseconds since 1970 that it shows now.
    public func setClock(milliseconds: Int) async throws {
        try await onLoop { core in
            core.input { machine, now in
                machine.wallClockChanged(WallClock(showing: milliseconds, at: now), at: now)
            }
        }
    }

    /// Reports ``Activity/settled(_:)`` even if it has not changed.
    public func reportActivity() async throws { try await onLoop { $0.reportActivity() } }

    /// Ends the client as the end of its process would: its sockets are closed, and the store keeps what is committed.
    public func kill() async {
        let core = core
        let stopping = isStopped.withLock { isStopped -> EventLoopFuture<Void>? in
            if isStopped { return nil }
            isStopped = true
            return eventLoop.submit { core.value.kill() }
        }
        try? await stopping?.get()
        try? await group.shutdownGracefully()
    }

    private func onLoop(_ body: @escaping @Sendable (AppClientCore) throws -> Void) async throws {
        let core = core
        // A task that is submitted to a loop after its end is never executed.
        let result = try isStopped.withLock { isStopped in
            if isStopped { throw StoppedError() }
            return eventLoop.submit { try body(core.value) }
        }
        try await result.get()
    }
}
