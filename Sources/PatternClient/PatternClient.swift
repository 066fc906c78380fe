//  PatternClient: client X over sockets: PatternMachine and PatternStore with an event loop and a clock.
//
//  Owns: the event loop, the timer, the execution of commits.
//
//  Does not own: decisions (PatternEngine), SQL (PatternStore), sockets (ClientSockets).

public import ClientSockets
internal import Determinism
public import HTTPWire
internal import NIOCore
internal import NIOPosix
public import PatternEngine
internal import PatternStore
internal import Synchronization

/// Client X: an app with offline patterns, a store in a file and real connections.
public final class PatternClient: Sendable {
    /// Server, account and store of a client.
    public struct Configuration: Sendable {
        /// Where connections lead to.
        public var target: ClientChannels.Target
        /// The value of the `Authorization` field; `nil` for none.
        public var authorization: String?
        /// The store's file.
        public var storePath: String
        /// The timeouts of exchanges and connections.
        public var timeouts = HTTPTimeouts()
        /// Determines delays and operation ids. Must differ at each start with the same store.
        public var seed: UInt64
        /// Deliberate defects.
        public var mutants: Set<PatternMutant> = []
        /// Whether the interface is up at the start.
        public var isInterfaceUp = true
        /// Called on the client's own thread after each commit; if it returns `true`, the client ends at once, as a kill
        /// would end it.
        public var mustEnd: @Sendable () -> Bool = { false }

        /// Creates a configuration.
        public init(target: ClientChannels.Target, authorization: String?, storePath: String, seed: UInt64) {
            self.target = target
            self.authorization = authorization
            self.storePath = storePath
            self.seed = seed
        }
    }

    /// What a client does, for observers.
    public enum Activity: Sendable {
        /// The state of a connection has changed.
        case connection(ClientChannels.Activity)
        /// The store has committed a change.
        case committed(PatternChange)
        /// The view has changed.
        case view(PatternView)
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
    private let core: NIOLoopBound<PatternCore>
    private let eventLoop: any EventLoop
    private let isStopped = Mutex(false)

    private init(_ group: MultiThreadedEventLoopGroup, _ eventLoop: any EventLoop, _ core: NIOLoopBound<PatternCore>) {
        self.group = group
        self.eventLoop = eventLoop
        self.core = core
    }

    /// Opens the store and starts.
    ///
    /// - Parameter onActivity: Called on the client's own thread; must not block.
    public static func start(
        _ configuration: Configuration, onActivity: @escaping @Sendable (Activity) -> Void
    ) async throws -> PatternClient {
        // The client has its own thread, because commits block.
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let eventLoop = group.next()
        do {
            let core = try await eventLoop.submit {
                let core = try PatternCore(configuration, on: eventLoop, onActivity: onActivity)
                core.begin(isInterfaceUp: configuration.isInterfaceUp)
                return NIOLoopBound(core, eventLoop: eventLoop)
            }.get()
            return PatternClient(group, eventLoop, core)
        } catch {
            try? await group.shutdownGracefully()
            throw error
        }
    }

    /// Performs an act of the user. What it changes is durable when the call returns, unless the store has failed.
    public func perform(_ act: PatternEngine.Act) async throws {
        try await onLoop { core in try core.perform(act) }
    }

    /// Reports that the interface has come up or gone down.
    public func setInterface(isUp: Bool) async throws {
        try await onLoop { core in core.input { machine, now in machine.interfaceChanged(isUp: isUp, at: now) } }
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

    private func onLoop(_ body: @escaping @Sendable (PatternCore) throws -> Void) async throws {
        let core = core
        // A task that is submitted to a loop after its end is never executed.
        let result = try isStopped.withLock { isStopped in
            if isStopped { throw StoppedError() }
            return eventLoop.submit { try body(core.value) }
        }
        try await result.get()
    }
}
