internal import HTTPSockets
internal import Impairment
internal import Logging
internal import NIOCore
internal import NIOPosix

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A proxy's listening socket, and the treatment of new connections: accepted, refused, or their SYNs dropped.
///
/// Used on its event loop only.
final class Listener {
    private let eventLoop: any EventLoop
    private let bootstrap: ServerBootstrap
    private let logger: Logger
    private let method: SYNDropMethod
    /// The configured address; with the actual port once the socket has been bound.
    private var configuredAddress: SocketAddress
    private var portHold: PortHold?
    private var channel: (any Channel)?
    private var target = SYNTreatment.open
    private var current = SYNTreatment.refused
    /// Whether a bind or close is under way.
    private var isTransitioning = false
    private var hasListened = false
    private var retryIsScheduled = false
    /// Whether new connections are accepted; otherwise they wait in the kernel's backlog.
    private var accepts = true
    private var isClosed = false
    /// Whether the fast path accepts the connections.
    private var isDelegated = false
    private var transitionPromises: [EventLoopPromise<Void>] = []
    /// Called with the cause when the socket cannot listen, and with `nil` when it listens again.
    var onFailure: (String?) -> Void = { _ in }
    /// Called when the system has closed the socket.
    var onSocketClosed: () -> Void = {}
    /// Called when ``delegateAccepting()`` may succeed again.
    var onReady: () -> Void = {}
    /// The proxy's own connections that keep the accept queue full, until they are accepted.
    private var fillers: [PortHold.Filler] = []

    /// The `listen()` backlog; the system limits it further (`net.core.somaxconn`).
    static let backlog: CInt = 4096
    /// The time for which an unneeded filler is kept if it is not accepted.
    private static let fillerTimeMax = TimeAmount.seconds(5)
    /// Time between attempts to listen again.
    private static let retryInterval = TimeAmount.seconds(1)

    /// - Parameter bootstrap: Opens the channels of the listening socket and of its clients.
    init(
        _ address: SocketAddress, _ bootstrap: ServerBootstrap, _ method: SYNDropMethod, on eventLoop: any EventLoop,
        logger: Logger
    ) {
        configuredAddress = address
        self.bootstrap = bootstrap
        self.method = method
        self.eventLoop = eventLoop
        self.logger = logger
    }

    /// The method by which SYNs are dropped; `nil` while they are not.
    var activeSYNDropMethod: SYNDropMethod? { current == .blackholed ? method : nil }

    /// Reserves the port. Returns its number.
    func open() throws -> Int {
        #if os(Linux)
        let hold = try PortHold(configuredAddress)
        portHold = hold
        return hold.address.port ?? 0
        #else
        return configuredAddress.port ?? 0
        #endif
    }

    /// Sets the treatment of new connections. The future succeeds when it is in effect.
    func set(_ synTreatment: SYNTreatment) -> EventLoopFuture<Void> {
        if isClosed { return eventLoop.makeSucceededVoidFuture() }
        target = synTreatment
        if synTreatment == .refused { onFailure(nil) }
        let promise = eventLoop.makePromise(of: Void.self)
        transitionPromises.append(promise)
        transition()
        return promise.futureResult
    }

    /// The address of the socket while it listens.
    var address: SocketAddress? { channel?.localAddress }

    /// The port of the socket while it listens.
    var port: Int? { address?.port }

    /// Accepts new connections or leaves them in the kernel's backlog, in effect when the call returns.
    func setAccepting(_ accepts: Bool) {
        if accepts == self.accepts { return }
        self.accepts = accepts
        updateAutoRead()
    }

    /// Duplicates the listening socket for the fast path, which accepts connections until ``endDelegation()``. Returns
    /// `nil` if the socket does not listen or not all connections are to be accepted.
    func delegateAccepting() -> OwnedSocket? {
        guard current == .open, target == .open, !isTransitioning, !isClosed, fillers.isEmpty else { return nil }
        var copy: CInt = -1
        withDescriptor { copy = fcntl($0, F_DUPFD_CLOEXEC, 0) }
        guard copy >= 0 else { return nil }
        isDelegated = true
        updateAutoRead()
        return OwnedSocket(copy)
    }

    /// Ends the effect of ``delegateAccepting()``: the listener accepts connections itself again.
    func endDelegation() {
        isDelegated = false
        updateAutoRead()
    }

    /// Updates whether the channel accepts connections: a read of a listening channel is an accept.
    private func updateAutoRead() {
        let queueIsKeptFull = current == .blackholed && method == .acceptQueue
        try? channel?.syncOptions?.setOption(.autoRead, value: accepts && !queueIsKeptFull && !isDelegated)
    }

    /// Returns whether `channel` is a filler connection, and releases the filler if it is.
    func isFiller(_ channel: any Channel) -> Bool {
        guard !fillers.isEmpty, let remote = channel.remoteAddress,
            let index = fillers.firstIndex(where: {
                $0.address.port == remote.port && $0.address.ipAddress == remote.ipAddress
            })
        else { return false }
        fillers.remove(at: index)
        return true
    }

    /// Closes the socket and releases the port. The future succeeds when the socket is closed.
    @discardableResult
    func close() -> EventLoopFuture<Void> {
        isClosed = true
        let closed = channel?.closeFuture ?? eventLoop.makeSucceededVoidFuture()
        channel?.close(promise: nil)
        fillers = []
        portHold = nil
        completeTransition()
        return closed
    }

    // MARK: Transitions

    private func transition() {
        if isTransitioning || isClosed { return }
        if retryIsScheduled && target != .refused { return completeTransition() }
        if current == target { return completeTransition() }
        switch (current, target) {
        case (.refused, _): listen()
        case (.blackholed, _):
            current = .open
            stopDroppingSYNs()
            transition()
        case (.open, .blackholed):
            current = .blackholed
            startDroppingSYNs()
            transition()
        case (.open, _): stopListening()
        }
    }

    private func completeTransition() {
        let promises = transitionPromises
        transitionPromises = []
        for promise in promises { promise.succeed() }
    }

    private func listen() {
        isTransitioning = true
        bootstrap.bind(to: portHold?.address ?? configuredAddress).assumeIsolated().whenComplete { result in
            self.isTransitioning = false
            switch result {
            case .success(let channel):
                if self.isClosed { return channel.close(promise: nil) }
                self.channel = channel
                self.hasListened = true
                self.onFailure(nil)
                self.configuredAddress = channel.localAddress ?? self.configuredAddress
                self.updateAutoRead()
                self.current = .open
                channel.closeFuture.assumeIsolated().whenComplete { _ in self.socketClosed(channel) }
                self.transition()
                self.onReady()
            case .failure(let error):
                self.listenFailed(error)
            }
        }
    }

    private func listenFailed(_ error: any Error) {
        let cause = SystemErrorDescription(error)
        // The cause is reported before the promises fail, because their callers read it.
        if hasListened { onFailure(cause.text) }
        let promises = transitionPromises
        transitionPromises = []
        for promise in promises { promise.fail(error) }
        // At the start the caller handles the error; later the listener retries.
        guard hasListened else { return }
        logger.error("cannot bind \(configuredAddress): \(cause); retrying every second")
        scheduleRetry()
    }

    private func scheduleRetry() {
        if retryIsScheduled { return }
        retryIsScheduled = true
        eventLoop.assumeIsolated().scheduleTask(in: Self.retryInterval) {
            self.retryIsScheduled = false
            self.transition()
        }
    }

    /// Handles a socket that the system has closed, as when its network interface goes away.
    private func socketClosed(_ closed: any Channel) {
        guard closed === channel, !isClosed, !isTransitioning else { return }
        channel = nil
        current = .refused
        onSocketClosed()
        onFailure("the system has closed the socket")
        logger.error("the system has closed the listening socket \(configuredAddress); retrying every second")
        scheduleRetry()
    }

    private func stopListening() {
        guard let channel else { preconditionFailure("an open listener has no channel") }
        isTransitioning = true
        channel.close().assumeIsolated().whenComplete { _ in
            self.isTransitioning = false
            self.channel = nil
            self.current = .refused
            self.transition()
        }
    }

    // MARK: Dropping SYNs

    private func startDroppingSYNs() {
        switch method {
        case .none: break
        case .socketFilter: withDescriptor { _ = ListeningSocket.dropEverything($0) }
        case .acceptQueue:
            guard let channel, let address = channel.localAddress else { return }
            // Clients' connections that are in the queue already count towards its limit. Their handshakes are
            // complete, so they stall.
            updateAutoRead()
            withDescriptor { ListeningSocket.setBacklog($0, 0) }
            if let filler = PortHold.connection(to: Self.reachableAddress(of: address)) { fillers.append(filler) }
        }
    }

    private func stopDroppingSYNs() {
        switch method {
        case .none: break
        case .socketFilter: withDescriptor { ListeningSocket.dropNothing($0) }
        case .acceptQueue:
            withDescriptor { ListeningSocket.setBacklog($0, Self.backlog) }
            updateAutoRead()
            // A filler that did not fit into the queue is never accepted.
            let old = fillers
            eventLoop.assumeIsolated().scheduleTask(in: Self.fillerTimeMax) {
                self.fillers.removeAll { filler in old.contains { $0 === filler } }
                if self.fillers.isEmpty { self.onReady() }
            }
        }
    }

    private func withDescriptor(_ body: (CInt) -> Void) {
        try? channel?.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { body($0) }
    }

    /// Returns the address at which the proxy reaches its own listener: the loopback for a wildcard address.
    private static func reachableAddress(of address: SocketAddress) -> SocketAddress {
        let loopback: String? =
            switch address.ipAddress {
            case "0.0.0.0": "127.0.0.1"
            case "::": "::1"
            default: nil
            }
        return loopback.flatMap { try? SocketAddress(ipAddress: $0, port: address.port ?? 0) } ?? address
    }
}
