internal import Foundation
internal import HTTPWire
internal import LinkModel
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import SyncEngine
internal import SyncStore

/// A client's state on its event loop: commits, then sends; tells the engine what came of it. Decides nothing.
final class SyncCore {
    private let configuration: SyncClientConfiguration
    private let eventLoop: any EventLoop
    private let logger: Logger
    private let onEvent: @Sendable (SyncEvent) -> Void
    private let origin = NIODeadline.now()
    private let store: SyncStore
    private var engine: SyncEngine
    private var http: HTTPClientMachine
    private var channels: [HTTPConnectionID: any Channel] = [:]
    private var exchanges: [HTTPExchangeID: SyncExchangeID] = [:]
    private var timer: Scheduled<Void>?
    private var lastView: NotesView?
    private var isStopped = false
    private let authorization: String

    init(
        _ configuration: SyncClientConfiguration, on eventLoop: any EventLoop, logger: Logger,
        onEvent: @escaping @Sendable (SyncEvent) -> Void
    ) throws {
        self.configuration = configuration
        self.eventLoop = eventLoop
        self.logger = logger
        self.onEvent = onEvent
        store = try SyncStore(path: configuration.storePath)
        engine = SyncEngine(
            restoring: try store.load(), policy: configuration.policy, seed: configuration.seed,
            mutant: configuration.mutant)
        let isPlainHost = !configuration.host.contains(":")
        http = HTTPClientMachine(
            host: (isPlainHost ? configuration.host : "[\(configuration.host)]") + ":\(configuration.port)")
        let credentials = Data("\(configuration.user):\(configuration.password)".utf8)
        authorization = "Basic \(credentials.base64EncodedString())"
    }

    private var now: Instant { Instant(Nanoseconds((NIODeadline.now() - origin).nanoseconds)) }

    var view: NotesView { engine.view }
    var isSettled: Bool { engine.isSettled }
    var pausedBecause: String? { engine.pausedBecause }

    // MARK: The user

    func begin(isOnline: Bool) {
        if !isOnline { _ = engine.take(.interface(isUp: false), at: now) }
        tellView()
        try? take(.start)
    }

    func create(title: String?, text: String?, uuid: String?) throws -> String {
        try change { engine, now in
            engine.create(title: title, text: text, date: SyncClient.date(), uuid: uuid, at: now)
        } ?? ""
    }

    func edit(_ uuid: String, title: String?, text: String?) throws {
        try change { engine, now in try engine.edit(uuid, title: title, text: text, date: SyncClient.date(), at: now) }
    }

    func delete(_ uuid: String) throws {
        try change { engine, now in try engine.delete(uuid, at: now) }
    }

    func resolve(_ uuid: String, _ resolution: SyncEngine.Resolution) throws -> String {
        try change { engine, now in try engine.resolve(uuid, resolution, date: SyncClient.date(), at: now) } ?? uuid
    }

    func take(_ input: SyncEngine.Input) throws {
        try change { engine, now in engine.take(input, at: now) }
    }

    /// Lets the engine decide, makes it durable, then acts; if it cannot be made durable nothing has happened.
    @discardableResult
    private func change(_ body: (inout SyncEngine, Instant) throws -> SyncEngine.Output) throws -> String? {
        var next = engine
        let output = try body(&next, now)
        do {
            try store.commit(output.change)
        } catch {
            logger.error("\(error)")
            onEvent(.cannotStore(error))
            throw error
        }
        engine = next
        tellView()
        if let request = output.request { send(request) }
        carryOut()
        return output.created
    }

    private func tellView() {
        let view = engine.view
        guard view != lastView else { return }
        lastView = view
        onEvent(.view(view))
    }

    // MARK: The network

    private func send(_ request: SyncRequest) {
        var fields = [(name: "Authorization", value: authorization), (name: "Accept", value: "application/json")]
        fields += request.headers
        onEvent(.sent(exchange: request.id.number, method: request.method, target: request.target))
        let id = http.start(
            HTTPClientRequest(
                method: request.method, target: request.target, fields: fields, body: Array(request.body.utf8)),
            at: now)
        exchanges[id] = request.id
    }

    /// Does what the HTTP machine asks for, then sets the timer for what is due next.
    private func carryOut() {
        while let action = http.takeAction() {
            switch action {
            case .connect(let id): connect(id)
            case .write(let id, let bytes): channels[id]?.writeAndFlush(bytes, promise: nil)
            case .close(let id, isAbortive: _): close(id)
            case .finished(let id, let result): finish(id, result)
            }
        }
        setTimer()
    }

    private func connect(_ id: HTTPConnectionID) {
        guard configuration.nameIsKnown() else {
            return eventLoop.assumeIsolated().execute {
                self.http.connectFailed(id, reason: .nameNotFound, at: self.now)
                self.carryOut()
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
            // The machine has a time-out of its own.
            .connectTimeout(.seconds(60))
            .connect(host: configuration.host, port: configuration.port)
            .assumeIsolated()
            .whenComplete { result in
                switch result {
                case .success(let channel):
                    if self.isStopped { return channel.close(promise: nil) }
                    self.channels[id] = channel
                    self.http.connected(id, at: self.now)
                case .failure(let error): self.http.connectFailed(id, reason: Self.reason(of: error), at: self.now)
                }
                self.carryOut()
            }
    }

    func received(_ bytes: ByteBuffer, on id: HTTPConnectionID) {
        http.received(bytes, on: id, at: now)
        carryOut()
    }

    func closed(_ id: HTTPConnectionID, how: HTTPCloseReason) {
        guard channels.removeValue(forKey: id) != nil else { return }
        http.closed(id, how: how, at: now)
        carryOut()
    }

    private func close(_ id: HTTPConnectionID) {
        // Also what is given up is closed as programs close sockets, with a FIN: what is on its way may still arrive.
        channels.removeValue(forKey: id)?.close(promise: nil)
    }

    private func finish(_ id: HTTPExchangeID, _ result: Result<HTTPClientResponse, HTTPClientError>) {
        guard let exchange = exchanges.removeValue(forKey: id) else { return }
        let input: SyncEngine.Input
        switch result {
        case .success(let response):
            onEvent(.answered(exchange: exchange.number, status: response.head.status))
            let headers = response.head.fieldLines
            input = .answered(exchange, SyncAnswer(status: response.head.status, headers: headers, body: response.body))
        case .failure(let failure):
            onEvent(.failed(exchange: exchange.number, reason: "\(failure)"))
            let reason = "\(failure)"
            input = .failed(exchange, failure.phase == .notSent ? .notSent(reason) : .unknown(reason))
        }
        if (try? take(input)) == nil {
            // The answer could not be stored: as if it had not come.
            try? take(.failed(exchange, .unknown("the answer cannot be stored")))
        }
    }

    private static func reason(of error: any Error) -> HTTPConnectError {
        if let error = error as? IOError, error.errnoCode == ECONNREFUSED { return .refused }
        if let error = error as? NIOConnectionError {
            if error.connectionErrors.isEmpty { return .nameNotFound }
            if let first = error.connectionErrors.first?.error { return reason(of: first) }
        }
        return .other("\(error)")
    }

    private func setTimer() {
        timer?.cancel()
        timer = nil
        guard !isStopped, let due = [engine.nextWake, http.nextDeadline].compactMap({ $0 }).min() else { return }
        let deadline = origin + .nanoseconds(due.sinceStart.count)
        timer = eventLoop.assumeIsolated().scheduleTask(deadline: deadline) { [weak self] in
            guard let self else { return }
            self.timer = nil
            self.http.advance(to: self.now)
            if let wake = self.engine.nextWake, wake <= self.now { try? self.take(.wake) }
            self.carryOut()
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

/// One connection's channel: reports what it brings.
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
