internal import Determinism
internal import Foundation
internal import HTTPWire
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import SyncEngine
internal import SyncStore

/// The driver of a ``SyncMachine`` on an event loop: executes its actions with sockets, the store and a timer.
final class SyncCore {
    private let configuration: SyncClientConfiguration
    private let eventLoop: any EventLoop
    private let logger: Logger
    private let onEvent: @Sendable (SyncEvent) -> Void
    private let origin = NIODeadline.now()
    private let store: SyncStore
    private var machine: SyncMachine
    private var channels: [HTTPConnectionID: any Channel] = [:]
    private var timer: Scheduled<Void>?
    private var isStopped = false

    init(
        _ configuration: SyncClientConfiguration, on eventLoop: any EventLoop, logger: Logger,
        onEvent: @escaping @Sendable (SyncEvent) -> Void
    ) throws {
        self.configuration = configuration
        self.eventLoop = eventLoop
        self.logger = logger
        self.onEvent = onEvent
        store = try SyncStore(path: configuration.storePath)
        let isPlainHost = !configuration.host.contains(":")
        let credentials = Data("\(configuration.user):\(configuration.password)".utf8)
        machine = SyncMachine(
            engine: SyncEngine(
                restoring: try store.load(), policy: configuration.policy, seed: configuration.seed,
                mutant: configuration.mutant),
            host: (isPlainHost ? configuration.host : "[\(configuration.host)]") + ":\(configuration.port)",
            authorization: "Basic \(credentials.base64EncodedString())")
    }

    private var now: Instant { Instant(Nanoseconds((NIODeadline.now() - origin).nanoseconds)) }

    var view: NotesView { machine.engine.view }
    var status: SyncStatus { machine.status }

    func begin(isOnline: Bool) {
        try? update { machine, now in machine.started(isOnline: isOnline, at: now) }
    }

    /// Passes an input to the machine and executes its actions. Throws if a commit fails; the input is then undone.
    @discardableResult
    func update<Value>(_ input: (inout SyncMachine, Instant) throws -> Value) throws -> Value {
        let value = try input(&machine, now)
        var commitError: SyncStoreError?
        while let action = machine.takeAction() {
            switch action {
            case .commit(let change):
                do {
                    try store.commit(change)
                    machine.committed(at: now)
                } catch {
                    logger.error("\(error)")
                    commitError = commitError ?? error
                    machine.commitFailed(error, at: now)
                }
            case .connect(let id): connect(id)
            case .write(let id, let bytes): write(bytes, on: id)
            case .close(let id):
                // Closes with FIN, so that bytes in flight may still arrive.
                channels.removeValue(forKey: id)?.close(promise: nil)
            case .report(let event): onEvent(event)
            }
        }
        setTimer()
        if let commitError { throw commitError }
        return value
    }

    // MARK: Connections

    private func connect(_ id: HTTPConnectionID) {
        guard configuration.isHostResolvable() else {
            return eventLoop.assumeIsolated().execute {
                try? self.update { machine, now in machine.connectFailed(id, reason: .nameNotFound, at: now) }
            }
        }
        let bound = NIOLoopBound(self, eventLoop: eventLoop)
        ClientBootstrap(group: eventLoop)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(SyncConnection(id, of: bound.value))
                }
            }
            // Longer than the machine's own timeout.
            .connectTimeout(.seconds(60))
            .connect(host: configuration.host, port: configuration.port)
            .assumeIsolated()
            .whenComplete { result in
                switch result {
                case .success(let channel):
                    if self.isStopped { return channel.close(promise: nil) }
                    self.channels[id] = channel
                    try? self.update { machine, now in machine.connected(id, at: now) }
                case .failure(let error):
                    let reason = Self.reason(of: error)
                    try? self.update { machine, now in machine.connectFailed(id, reason: reason, at: now) }
                }
            }
    }

    private func write(_ bytes: ByteBuffer, on id: HTTPConnectionID) {
        guard let channel = channels[id] else { return }
        channel.writeAndFlush(bytes).assumeIsolated().whenSuccess {
            // The promise may be fulfilled at once, inside of `update`.
            self.eventLoop.assumeIsolated().execute {
                guard !self.isStopped else { return }
                try? self.update { machine, now in machine.written(bytes.readableBytes, on: id, at: now) }
            }
        }
    }

    func received(_ bytes: ByteBuffer, on id: HTTPConnectionID) {
        try? update { machine, now in machine.received(bytes, on: id, at: now) }
    }

    func closed(_ id: HTTPConnectionID, how: HTTPCloseReason) {
        guard channels.removeValue(forKey: id) != nil else { return }
        try? update { machine, now in machine.closed(id, how: how, at: now) }
    }

    private static func reason(of error: any Error) -> HTTPConnectError {
        if let error = error as? IOError, error.errnoCode == ECONNREFUSED { return .refused }
        if let error = error as? NIOConnectionError {
            if error.connectionErrors.isEmpty { return .nameNotFound }
            if let first = error.connectionErrors.first?.error { return reason(of: first) }
        }
        return .other("\(error)")
    }

    // MARK: Time

    private func setTimer() {
        timer?.cancel()
        timer = nil
        guard !isStopped, let deadline = machine.nextDeadline else { return }
        let time = origin + .nanoseconds(deadline.sinceStart.count)
        timer = eventLoop.assumeIsolated().scheduleTask(deadline: time) { [weak self] in
            guard let self else { return }
            self.timer = nil
            try? self.update { machine, now in machine.advance(to: now) }
        }
    }

    func stop() {
        isStopped = true
        timer?.cancel()
        for channel in channels.values { channel.close(promise: nil) }
        channels = [:]
        store.close()
    }
}

/// The channel handler of one connection.
private final class SyncConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let id: HTTPConnectionID
    private unowned let core: SyncCore
    private var error: (any Error)?

    init(_ id: HTTPConnectionID, of core: SyncCore) {
        self.id = id
        self.core = core
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        core.received(unwrapInboundIn(data), on: id)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.error = error
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        if let error = error as? IOError {
            core.closed(id, how: error.errnoCode == ECONNRESET ? .reset : .other("\(error)"))
        } else {
            core.closed(id, how: .fin)
        }
    }
}
