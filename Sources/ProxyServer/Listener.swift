internal import Impairment
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import SystemSockets

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// A proxy's listening socket, and how it treats a client that knocks: its SYN is answered, lost or refused.
///
/// Lives and is used on its event loop only.
final class Listener {
    private let eventLoop: any EventLoop
    private let bootstrap: ServerBootstrap
    private let logger: Logger
    private let method: SilenceMethod
    /// What was asked for; with the real port once there was one.
    private var asked: SocketAddress
    private var hold: PortHold?
    private var channel: (any Channel)?
    /// What is to be, and what is.
    private var wanted = Reachability.open
    private var present = Reachability.refused
    private var isMoving = false
    private var hasListened = false
    private var isToTryAgain = false
    /// Whether there is room for more clients; otherwise they wait in the kernel's backlog.
    private var accepts = true
    private var isClosed = false
    /// Somebody else lets clients in.
    private var isLent = false
    private var waiting: [EventLoopPromise<Void>] = []
    /// Told why it cannot listen although it is to, and of `nil` when it can again.
    var onFailure: (String?) -> Void = { _ in }
    /// Told when the system has taken the socket away.
    var onLoss: () -> Void = {}
    /// Told when it may be lent that could not be.
    var onReady: () -> Void = {}
    /// Connections of our own that keep the accept queue full, until they have been accepted.
    private var fillers: [PortHold.Filler] = []

    /// Clients that the kernel may keep waiting for us; capped by the system (`net.core.somaxconn`).
    static let backlog: CInt = 4096
    /// How long after it was needed a filler is kept, if it has not been accepted.
    private static let fillerTimeMax = TimeAmount.seconds(5)

    /// - Parameter bootstrap: Makes the channels of the socket and of its clients.
    init(
        _ address: SocketAddress, _ bootstrap: ServerBootstrap, _ method: SilenceMethod, on eventLoop: any EventLoop,
        logger: Logger
    ) {
        asked = address
        self.bootstrap = bootstrap
        self.method = method
        self.eventLoop = eventLoop
        self.logger = logger
    }

    /// How clients are kept from being answered, while they are.
    var silence: SilenceMethod? { present == .blackholed ? method : nil }

    /// Takes the port; gives its number.
    func open() throws -> Int {
        #if os(Linux)
            let hold = try PortHold(asked)
            self.hold = hold
            return hold.address.port ?? 0
        #else
            return asked.port ?? 0
        #endif
    }

    /// Treats clients so from now on; the future says when that is in force.
    func set(_ reachability: Reachability) -> EventLoopFuture<Void> {
        if isClosed { return eventLoop.makeSucceededVoidFuture() }
        wanted = reachability
        if reachability == .refused { onFailure(nil) }
        let promise = eventLoop.makePromise(of: Void.self)
        waiting.append(promise)
        move()
        return promise.futureResult
    }

    /// Where the socket listens, once it does.
    var address: SocketAddress? { channel?.localAddress }

    /// Its port.
    var port: Int? { address?.port }

    /// Accepts clients, or lets them wait; in force at once.
    func setAccepting(_ accepts: Bool) {
        if accepts == self.accepts { return }
        self.accepts = accepts
        setReading()
    }

    /// Gives a descriptor of the listening socket to somebody else, who lets clients in until ``takeBack()``; `nil` if it does not
    /// listen, or not to everybody.
    func lend() -> OwnedSocket? {
        guard present == .open, wanted == .open, !isMoving, !isClosed, fillers.isEmpty else { return nil }
        var copy: CInt = -1
        withDescriptor { copy = fcntl($0, F_DUPFD_CLOEXEC, 0) }
        guard copy >= 0 else { return nil }
        isLent = true
        setReading()
        return OwnedSocket(copy)
    }

    /// Lets clients in itself again.
    func takeBack() {
        isLent = false
        setReading()
    }

    /// A read of a listening socket is an accept.
    private func setReading() {
        let isKeptFull = present == .blackholed && method == .acceptQueue
        try? channel?.syncOptions?.setOption(.autoRead, value: accepts && !isKeptFull && !isLent)
    }

    /// Whether `channel` is a connection of our own, which nobody waits for.
    func isFiller(_ channel: any Channel) -> Bool {
        guard !fillers.isEmpty, let remote = channel.remoteAddress,
            let place = fillers.firstIndex(where: {
                $0.address.port == remote.port && $0.address.ipAddress == remote.ipAddress
            })
        else { return false }
        fillers.remove(at: place)
        return true
    }

    /// Listens no more and lets the port go; the future says when it is gone.
    @discardableResult
    func close() -> EventLoopFuture<Void> {
        isClosed = true
        let closed = channel?.closeFuture ?? eventLoop.makeSucceededVoidFuture()
        channel?.close(promise: nil)
        fillers = []
        hold = nil
        settle()
        return closed
    }

    // MARK: From one to the other

    private func move() {
        if isMoving || isClosed { return }
        if isToTryAgain && wanted != .refused { return settle() }
        if present == wanted { return settle() }
        switch (present, wanted) {
        case (.refused, _): listen()
        case (.blackholed, _):
            present = .open
            endSilence()
            move()
        case (.open, .blackholed):
            present = .blackholed
            beginSilence()
            move()
        case (.open, _): stopListening()
        }
    }

    private func settle() {
        let promises = waiting
        waiting = []
        for promise in promises { promise.succeed() }
    }

    private func listen() {
        isMoving = true
        bootstrap.bind(to: hold?.address ?? asked).assumeIsolated().whenComplete { result in
            self.isMoving = false
            switch result {
            case .success(let channel):
                if self.isClosed { return channel.close(promise: nil) }
                self.channel = channel
                self.hasListened = true
                self.onFailure(nil)
                self.asked = channel.localAddress ?? self.asked
                self.setReading()
                self.present = .open
                channel.closeFuture.assumeIsolated().whenComplete { _ in self.isGone(channel) }
                self.move()
                self.onReady()
            case .failure(let error):
                self.cannotListen(error)
            }
        }
    }

    private func cannotListen(_ error: any Error) {
        // Recorded first: a caller that waits reads it as soon as its promise has failed.
        if hasListened { onFailure(SystemReason.of(error)) }
        let promises = waiting
        waiting = []
        for promise in promises { promise.fail(error) }
        // At the start whoever starts the proxy is told; later it goes on as soon as it can.
        guard hasListened else { return }
        logger.error("cannot listen on \(asked) again: \(SystemReason.of(error)); trying every second")
        tryAgain()
    }

    private func tryAgain() {
        if isToTryAgain { return }
        isToTryAgain = true
        eventLoop.assumeIsolated().scheduleTask(in: .seconds(1)) {
            self.isToTryAgain = false
            self.move()
        }
    }

    /// The system has taken the socket away, as when its network goes.
    private func isGone(_ gone: any Channel) {
        guard gone === channel, !isClosed, !isMoving else { return }
        channel = nil
        present = .refused
        onLoss()
        onFailure("the system has closed the socket")
        logger.error("the listening socket \(asked) is gone; trying to listen again every second")
        tryAgain()
    }

    private func stopListening() {
        guard let channel else { return }
        isMoving = true
        channel.close().assumeIsolated().whenComplete { _ in
            self.isMoving = false
            self.channel = nil
            self.present = .refused
            self.move()
        }
    }

    // MARK: Silence

    private func beginSilence() {
        switch method {
        case .none: break
        case .socketFilter: withDescriptor { _ = ListeningSocket.dropEverything($0) }
        case .acceptQueue:
            guard let channel, let address = channel.localAddress else { return }
            // Clients that wait already keep the queue full themselves: they have connected, and stall.
            setReading()
            withDescriptor { ListeningSocket.setBacklog($0, 0) }
            if let filler = PortHold.connection(to: Self.own(address)) { fillers.append(filler) }
        }
    }

    private func endSilence() {
        switch method {
        case .none: break
        case .socketFilter: withDescriptor { ListeningSocket.dropNothing($0) }
        case .acceptQueue:
            withDescriptor { ListeningSocket.setBacklog($0, Self.backlog) }
            setReading()
            // One that found no place never comes.
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

    /// Where a connection of our own reaches a listener: the loopback, if it listens everywhere.
    private static func own(_ address: SocketAddress) -> SocketAddress {
        let loopback: String? =
            switch address.ipAddress {
            case "0.0.0.0": "127.0.0.1"
            case "::": "::1"
            default: nil
            }
        return loopback.flatMap { try? SocketAddress(ipAddress: $0, port: address.port ?? 0) } ?? address
    }
}
