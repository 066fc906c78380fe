#if os(Linux)
internal import CRelay
internal import HeapModule
internal import LinkModel
internal import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A relay thread's event loop: one epoll instance for the listening sockets and connections of all proxies.
///
/// Sockets are registered edge-triggered: a socket counts as ready until a call returns `EAGAIN`. Used on its
/// thread only.
package final class RelayLoop {
    let relay: Relay
    let epoll: CInt
    let buffers = RelayBuffers(pipes: PipePool(poolCount: Relay.all.count))
    var ports: [RelayToken: RelayPort] = [:]
    var connections: [RelayedConnection?] = []
    var freeIndices: [Int] = []
    /// The number of connections so far.
    var generation: UInt32 = 0
    /// Ports and connections that have used up their turn and continue in the next round.
    var yielded: [RelayToken] = []
    /// Connections whose latest dial has no timer yet.
    var dialsWithoutTimer: [RelayToken] = []
    var timers = Heap<Timer>()
    /// The number of `epoll_wait` calls so far.
    var round: UInt64 = 0

    /// The time at which a dial, an abort or a port that pauses accepting needs attention.
    struct Timer: Comparable {
        let deadline: NIODeadline
        let token: RelayToken

        static func < (left: Timer, right: Timer) -> Bool { left.deadline < right.deadline }
    }

    private static let eventsPerRound = 256

    init(_ relay: Relay, epoll: CInt) {
        self.relay = relay
        self.epoll = epoll
    }

    /// Runs the loop for the life of the process.
    func run() -> Never {
        crelay_name_thread("relay \(relay.index)")
        blockSignals()
        var events = [crelay_event](repeating: crelay_event(), count: Self.eventsPerRound)
        while true {
            let timeout = yielded.isEmpty ? millisecondsToNextTimer : 0
            let count = crelay_epoll_wait(epoll, &events, CInt(events.count), timeout)
            precondition(count >= 0 || errno == EINTR, "epoll_wait failed with errno \(errno)")
            round += 1
            let continuing = yielded
            yielded.removeAll(keepingCapacity: true)
            for index in 0..<max(0, Int(count)) {
                handle(events[index].events, of: RelayToken(bits: events[index].token))
            }
            for token in continuing { resume(token) }
            fireTimers()
            startDialTimers()
        }
    }

    /// Leaves signals to other threads; a write to a closed socket returns `EPIPE` here. Signals that a defect
    /// raises (`SIGSEGV` and others) stay unblocked and end the process with a backtrace.
    private func blockSignals() {
        var signals = sigset_t()
        sigfillset(&signals)
        for fault in [SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS] { sigdelset(&signals, fault) }
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// Continues a port or connection after a round of other events.
    private func resume(_ token: RelayToken) {
        if token.kind == .listener {
            if let port = ports[token] { accept(port) }
        } else if let connection = activeConnection(token) {
            connection.isYielded = false
            forward(connection, first: .up)
        }
    }

    // MARK: Timers

    private func fireTimers() {
        while let timer = timers.min, timer.deadline <= .now() {
            timers.removeMin()
            if timer.token.kind == .listener {
                ports[timer.token]?.isAcceptPaused = false
                if let port = ports[timer.token] { accept(port) }
            } else if let connection = activeConnection(timer.token) {
                if connection.isDialling, connection.dialTimer == timer.deadline {
                    dialTimerFired(connection, at: timer.deadline)
                } else if connection.hasAbortTimer {
                    connection.hasAbortTimer = false
                    forward(connection, first: .up)
                }
            }
        }
    }

    /// The `timeout` argument of `epoll_wait`, rounded up.
    private var millisecondsToNextTimer: CInt {
        guard let deadline = timers.min?.deadline else { return -1 }
        let left = (deadline - .now()).nanoseconds
        return left <= 0 ? 0 : CInt(clamping: (left + 999_999) / 1_000_000)
    }

    // MARK: Tables

    /// Returns a connection unless it is closed, detached or on a frozen port.
    func activeConnection(_ token: RelayToken) -> RelayedConnection? {
        connection(token).flatMap { $0.port.isFrozen ? nil : $0 }
    }

    /// Returns a connection unless it is closed or detached.
    func connection(_ token: RelayToken) -> RelayedConnection? {
        guard token.index < connections.count, let connection = connections[token.index],
            connection.token.generation == token.generation
        else { return nil }
        return connection
    }

    /// Registers a socket with epoll; `false` sets `errno`.
    func register(_ descriptor: CInt, _ events: UInt32, _ token: RelayToken) -> Bool {
        crelay_epoll_add(epoll, descriptor, events, token.bits) == 0
    }

    /// The epoll events of a connection's sockets.
    static let socketEvents = CRELAY_EPOLLIN | CRELAY_EPOLLPRI | CRELAY_EPOLLOUT | CRELAY_EPOLLRDHUP

    /// Disables Nagle's algorithm.
    static func setNoDelay(_ descriptor: CInt) {
        var yes: CInt = 1
        setsockopt(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<CInt>.size))
    }
}
#endif
