//  LiveClient/App: an app over sockets.
//
//  Owns: the server, the store's file and the acts of an app's user.
//
//  Does not own: decisions (the engines of the apps), the execution of actions (Driver), SQL (AppStore).

public import Client
public import HTTPSockets

/// An app with offline patterns, a store in a file and real connections.
public final class AppClient: Sendable {
    /// Server, account and store of a client.
    public struct Configuration: Sendable {
        /// Where connections lead to.
        public var target: ClientChannels.Target
        /// The store's file.
        public var storePath: String
        /// The interface at the start.
        public var interface = NetworkInterface(isUp: true)
        /// Returns the app with its stored state; called once, on the client's own thread.
        ///
        /// Its time is 0 at the call.
        public var makeApp: @Sendable (AppState) throws -> ClientMachine<RunningApp>
        /// Called on the client's own thread after each commit. `true` ends the client at once, like a kill.
        public var mustEnd: (@Sendable () -> Bool)?
        /// Called on the client's own thread before each commit, which fails for the reason that it returns.
        public var beforeCommit: (@Sendable () -> String?)?

        /// Creates a configuration.
        public init(
            target: ClientChannels.Target, storePath: String,
            makeApp: @escaping @Sendable (AppState) throws -> ClientMachine<RunningApp>
        ) {
            self.target = target
            self.storePath = storePath
            self.makeApp = makeApp
        }
    }

    private let thread: ClientThread<MachineDriver<RunningApp>>

    private init(_ thread: ClientThread<MachineDriver<RunningApp>>) { self.thread = thread }

    /// Opens the store and starts.
    ///
    /// - Parameters:
    ///   - onView: Called on the client's own thread with each change of the view; must not block.
    ///   - onActivity: Called on the client's own thread; must not block.
    public static func start(
        _ configuration: Configuration, onView: @escaping @Sendable (AppView) -> Void = { _ in },
        onActivity: @escaping @Sendable (ClientActivity<AppChange>) -> Void
    ) async throws -> AppClient {
        AppClient(
            try await ClientThread.start { eventLoop in
                let store = try AppStore(path: configuration.storePath)
                let state = try store.load()
                let driver = try MachineDriver(
                    store: store, target: configuration.target, on: eventLoop, mustEnd: configuration.mustEnd,
                    beforeCommit: configuration.beforeCommit,
                    onActivity: onActivity, onEvent: onView
                ) { try configuration.makeApp(state) }
                driver.input { app, now in app.started(configuration.interface, at: now) }
                return driver
            })
    }

    /// Performs an act of the user. What it changes is durable when the call returns, unless the store has failed.
    public func perform(_ act: AppAct) async throws {
        try await thread.run { driver in try driver.perform { app, now in try app.perform(act, at: now) } }
    }

    /// Reports that the interface has come up, gone down or changed its kind.
    public func setInterface(_ interface: NetworkInterface) async throws {
        try await thread.run { driver in driver.input { app, now in app.interfaceChanged(interface, at: now) } }
    }

    /// Reports that the device's wall clock was set.
    ///
    /// - Parameter milliseconds: The milliseconds since 1970 that it shows now.
    public func setClock(milliseconds: Int) async throws {
        try await thread.run { driver in
            driver.input { app, now in app.wallClockChanged(WallClock(showing: milliseconds, at: now), at: now) }
        }
    }

    /// Reports ``ClientActivity/settled(_:)`` even if it has not changed.
    public func reportActivity() async throws { try await thread.run { $0.reportActivity() } }

    /// Ends the client as the end of its process would: its sockets are closed, and the store keeps what is committed.
    public func kill() async { await thread.end { $0.kill() } }
}

extension AppStore: LiveStore {
    func execute(_ change: AppChange) -> CommitResult<RunningApp> {
        do {
            try commit(change)
            return .committed
        } catch {
            return .failed(reason: error.description)
        }
    }
}
