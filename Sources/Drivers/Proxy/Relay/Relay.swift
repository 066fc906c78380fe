#if os(Linux)
internal import CRelay
internal import NIOConcurrencyHelpers
package import NIOCore
internal import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A handle to a relay thread, which forwards connections from socket to socket by `splice(2)`, without copying the
/// bytes to user space, while no conditions apply.
///
/// All proxies of the process share the relays: one of them accepts a proxy's clients, and each connection is
/// forwarded by the relay with the fewest. Other threads send closures to a relay.
package final class Relay: Sendable {
    /// The position in ``all``.
    package let index: Int
    /// A `Mutex` is not used, because a contended one does not report its happens-before edges to ThreadSanitizer.
    private let jobs = NIOLockedValueBox<[@Sendable (RelayLoop) -> Void]>([])
    /// Connections forwarded here, including those handed over and not yet received.
    private let connectionCount = Atomic<Int>(0)
    /// An eventfd that wakes the thread when there are jobs.
    private let wakeupFD: CInt

    /// One relay for each processor on which the process may run, at most four, started on first use; fewer or none if the
    /// system cannot provide them.
    package static let all: [Relay] = {
        var relays: [Relay] = []
        for index in 0..<min(System.coreCount, Int(crelay_processors()), countMax) {
            guard let relay = try? Relay(index) else { break }
            relays.append(relay)
        }
        return relays
    }()

    private static let countMax = 4
    private static let portCount = Atomic<UInt32>(0)
    private static let proxyCount = Atomic<Int>(0)

    /// Returns the relay that accepts the next proxy's clients, in round-robin order; `nil` if there is none.
    package static func forNextProxy() -> Relay? {
        all.isEmpty ? nil : all[proxyCount.add(1, ordering: .relaxed).oldValue % all.count]
    }

    private init(_ index: Int) throws {
        self.index = index
        let epoll = crelay_epoll_create()
        guard epoll >= 0 else { throw IOError(errnoCode: errno, reason: "epoll_create1") }
        wakeupFD = crelay_eventfd()
        guard wakeupFD >= 0 else {
            let code = errno
            SystemSocket.close(epoll)
            throw IOError(errnoCode: code, reason: "eventfd")
        }
        let wakeupError = Self.registerWakeup(wakeupFD, with: epoll, relay: index)
        guard wakeupError == 0 else {
            SystemSocket.close(epoll)
            SystemSocket.close(wakeupFD)
            throw IOError(errnoCode: wakeupError, reason: "epoll_ctl")
        }
        var thread = pthread_t()
        let start = Unmanaged.passRetained(ThreadStart(relay: self, epoll: epoll))
        let code = pthread_create(
            &thread, nil,
            { argument in
                let start = Unmanaged<ThreadStart>.fromOpaque(argument!).takeRetainedValue()
                RelayLoop(start.relay, epoll: start.epoll).run()
            }, start.toOpaque())
        guard code == 0 else {
            start.release()
            SystemSocket.close(epoll)
            SystemSocket.close(wakeupFD)
            throw IOError(errnoCode: code, reason: "pthread_create")
        }
        pthread_detach(thread)
    }

    /// The thread's argument.
    private final class ThreadStart: Sendable {
        let relay: Relay
        let epoll: CInt

        init(relay: Relay, epoll: CInt) {
            self.relay = relay
            self.epoll = epoll
        }
    }

    /// Returns a token that no port has used.
    package static func makePortToken() -> RelayToken {
        RelayToken(.listener, relay: 0, index: 0, generation: portCount.add(1, ordering: .relaxed).newValue)
    }

    /// Returns the relay that forwards a connection accepted here, and adds the connection to its count until
    /// ``connectionClosed()``. This relay forwards it unless another has over a fifth fewer connections, because a
    /// handover wakes another thread.
    func assignConnection(allowOthers: Bool) -> Relay {
        var (chosen, least) = (self, connectionCount.load(ordering: .relaxed))
        for other in Self.all where allowOthers && other !== self {
            let count = other.connectionCount.load(ordering: .relaxed)
            if count + count / 4 < least { (chosen, least) = (other, count) }
        }
        chosen.connectionCount.add(1, ordering: .relaxed)
        return chosen
    }

    /// Removes one connection from the count.
    func connectionClosed() {
        let before = connectionCount.subtract(1, ordering: .relaxed).oldValue
        precondition(before > 0, "a relayed connection was closed twice")
    }

    /// Runs a closure on the relay's thread.
    package func perform(_ job: @escaping @Sendable (RelayLoop) -> Void) {
        let isFirst = jobs.withLockedValue { jobs in
            jobs.append(job)
            return jobs.count == 1
        }
        if isFirst { crelay_eventfd_signal(wakeupFD) }
    }

    /// Runs a closure on the relay's thread; the future completes on `eventLoop` with its result.
    package func submit<Output: Sendable>(
        on eventLoop: any EventLoop, _ job: @escaping @Sendable (RelayLoop) -> Output
    ) -> EventLoopFuture<Output> {
        let promise = eventLoop.makePromise(of: Output.self)
        perform { promise.succeed(job($0)) }
        return promise.futureResult
    }

    /// Whether closures wait for the thread.
    package var hasJobs: Bool { jobs.withLockedValue { !$0.isEmpty } }

    /// Removes and returns the waiting closures; the next ``perform(_:)`` wakes the thread again. Called on the
    /// relay's thread.
    func takeJobs() -> [@Sendable (RelayLoop) -> Void] {
        jobs.withLockedValue { jobs in
            defer { jobs = [] }
            return jobs
        }
    }

    /// Registers the descriptor that wakes the thread; returns 0 or the errno.
    private static func registerWakeup(_ descriptor: CInt, with epoll: CInt, relay index: Int) -> CInt {
        let token = RelayToken(.wakeup, relay: index, index: 0, generation: 0)
        return crelay_epoll_add(epoll, descriptor, CRELAY_EPOLLIN, token.bits) == 0 ? 0 : errno
    }
}
#endif
