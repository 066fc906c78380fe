internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// The client has been stopped.
public struct ClientStoppedError: Error, CustomStringConvertible {
    public let description = "the client is stopped"
}

/// The thread of a client, which has one of its own because commits block, with its event loop and what runs there.
final class ClientThread<Core>: Sendable {
    private let group: MultiThreadedEventLoopGroup
    private let eventLoop: any EventLoop
    private let core: NIOLoopBound<Core>
    private let isStopped = Mutex(false)

    private init(_ group: MultiThreadedEventLoopGroup, _ eventLoop: any EventLoop, _ core: NIOLoopBound<Core>) {
        self.group = group
        self.eventLoop = eventLoop
        self.core = core
    }

    /// Starts a thread with what `makeCore` returns there.
    static func start(_ makeCore: @escaping @Sendable (any EventLoop) throws -> Core) async throws -> ClientThread {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let eventLoop = group.next()
        do {
            let core = try await eventLoop.submit { NIOLoopBound(try makeCore(eventLoop), eventLoop: eventLoop) }.get()
            return ClientThread(group, eventLoop, core)
        } catch {
            try? await group.shutdownGracefully()
            throw error
        }
    }

    /// Calls `body` on the thread.
    func run<Value: Sendable>(_ body: @escaping @Sendable (Core) throws -> Value) async throws -> Value {
        // A task that is submitted to a loop after its end is never executed.
        let result = try isStopped.withLock { isStopped in
            if isStopped { throw ClientStoppedError() }
            return submit(body)
        }
        return try await result.get()
    }

    /// Whether the thread has been ended.
    var hasEnded: Bool { isStopped.withLock { $0 } }

    /// Calls `body` on the thread, and ends the thread.
    func end(_ body: @escaping @Sendable (Core) -> Void) async {
        let stopping = isStopped.withLock { isStopped -> EventLoopFuture<Void>? in
            if isStopped { return nil }
            isStopped = true
            return submit(body)
        }
        try? await stopping?.get()
        try? await group.shutdownGracefully()
    }

    private func submit<Value: Sendable>(
        _ body: @escaping @Sendable (Core) throws -> Value
    ) -> EventLoopFuture<Value> {
        let core = core
        return eventLoop.submit { try body(core.value) }
    }
}
