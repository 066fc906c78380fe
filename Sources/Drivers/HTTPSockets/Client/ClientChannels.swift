//  HTTPSockets/Client: the sockets of a client's state machine.
//
//  Owns: connecting, writing, closing, and the inputs that follow from them.
//
//  Does not own: HTTP and its timeouts (Wire), decisions (SyncEngine, ExpenseEngine), stores.

internal import ForwardProxy
internal import Foundation
public import NIOCore
internal import NIOPosix
public import Wire

/// The sockets of a client on an event loop: executes the actions of a `ClientMachine` that concern connections. Not thread
/// safe; used on its event loop only.
public final class ClientChannels {
    /// An event of a connection, for observers.
    public enum Activity: Sendable {
        /// The client has started to open a connection.
        case attempted(HTTPConnectionID)
        /// The connection is established from this port of the client.
        case connected(HTTPConnectionID, localPort: Int)
        /// The client has read bytes; the end of the stream counts as one.
        case read(HTTPConnectionID, bytes: Int)
        /// The attempt has failed, or the client's socket is closed, by the client or by its peer.
        case ended(HTTPConnectionID)
    }

    /// Where connections lead to.
    public struct Target: Sendable {
        /// The server's host name or address.
        public var host: String
        /// The server's port.
        public var port: Int
        /// The TLS of the connections; `nil` for none.
        public var tls: UpstreamTLS?
        /// Returns whether the host name resolves at present; called before each connection.
        public var isHostResolvable: @Sendable () -> Bool

        /// Creates a target.
        public init(
            host: String, port: Int, tls: UpstreamTLS? = nil,
            isHostResolvable: @escaping @Sendable () -> Bool = { true }
        ) {
            self.host = host
            self.port = port
            self.tls = tls
            self.isHostResolvable = isHostResolvable
        }
    }

    /// A connection that is being opened; one that the machine closes meanwhile is closed as soon as it is open.
    private struct Dial {
        /// The channel during the handshake of TLS.
        var channel: (any Channel)?
    }

    let target: Target
    private let eventLoop: any EventLoop
    private let onActivity: (Activity) -> Void
    /// Receives the inputs of the machine.
    public var onInput: (ClientInput) -> Void = { _ in }
    private var channels: [HTTPConnectionID: any Channel] = [:]
    private var dialing: [HTTPConnectionID: Dial] = [:]

    /// The size of the socket's send buffer in bytes. A small one shows how much of a request has been sent.
    private static let sendBufferBytes = 64 << 10
    /// The size of a write in bytes; each is reported when the kernel has it.
    private static let writeBytesMax = 16 << 10
    /// Longer than the machine's own timeout.
    static let connectTimeout = TimeAmount.seconds(60)

    /// Creates the sockets of a client without connections.
    public init(to target: Target, on eventLoop: any EventLoop, onActivity: @escaping (Activity) -> Void) {
        self.target = target
        self.eventLoop = eventLoop
        self.onActivity = onActivity
    }

    /// Opens a connection.
    public func connect(_ id: HTTPConnectionID) {
        onActivity(.attempted(id))
        guard target.isHostResolvable() else {
            onActivity(.ended(id))
            return onInput(.connectFailed(id, .nameNotFound))
        }
        dialing[id] = Dial()
        let bound = NIOLoopBound(self, eventLoop: eventLoop)
        let bootstrap = ClientBootstrap(group: eventLoop)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(.socketOption(.so_sndbuf), value: Self.sendBufferBytes)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try bound.value.addTLS(to: channel, of: id)
                    try channel.pipeline.syncOperations.addHandler(ConnectionHandler(id, of: bound.value))
                }
            }
            .connectTimeout(Self.connectTimeout)
        // A lookup may end after the event loop, which an address does not need.
        let address = try? SocketAddress(ipAddress: target.host, port: target.port)
        let channel = address.map(bootstrap.connect(to:)) ?? bootstrap.connect(host: target.host, port: target.port)
        channel
            .assumeIsolated()
            .flatMap { channel in
                self.dialing[id]?.channel = channel
                return Self.handshake(of: channel, on: self.eventLoop)
            }
            .whenComplete { result in
                switch result {
                case .success(let channel):
                    guard self.dialing.removeValue(forKey: id) != nil else { return channel.close(promise: nil) }
                    self.channels[id] = channel
                    self.onActivity(.connected(id, localPort: channel.localAddress?.port ?? 0))
                    self.onInput(.connected(id))
                case .failure(let error):
                    guard self.dialing.removeValue(forKey: id) != nil else { return }
                    self.onActivity(.ended(id))
                    self.onInput(.connectFailed(id, Self.reason(of: error)))
                }
            }
    }

    /// Writes bytes in pieces, each reported when the kernel has it.
    public func write(_ bytes: ByteBuffer, on id: HTTPConnectionID) {
        guard let channel = channels[id] else { return }
        var rest = bytes
        while let piece = rest.readSlice(length: min(rest.readableBytes, Self.writeBytesMax)),
            piece.readableBytes > 0
        {
            channel.write(piece).assumeIsolated().whenSuccess { self.onInput(.written(piece.readableBytes, id)) }
        }
        channel.flush()
    }

    /// Closes a connection; with a RST if abortive.
    public func close(_ id: HTTPConnectionID, isAbortive: Bool) {
        onActivity(.ended(id))
        let dialed = dialing.removeValue(forKey: id)?.channel
        guard let channel = channels.removeValue(forKey: id) ?? dialed else { return }
        if isAbortive { Self.skipCloseNotify(of: channel) }
        if isAbortive, let options = channel as? any SocketOptionProvider {
            // Closing then sends a RST.
            _ = options.setSoLinger(linger(l_onoff: 1, l_linger: 0))
        }
        channel.close(promise: nil)
    }

    /// Closes all connections, as the end of the process would.
    public func closeAll() {
        for (id, channel) in channels.sorted(by: { $0.key < $1.key }) {
            onActivity(.ended(id))
            Self.skipCloseNotify(of: channel)
            channel.close(promise: nil)
        }
        channels = [:]
        for (id, dial) in dialing.sorted(by: { $0.key < $1.key }) {
            onActivity(.ended(id))
            dial.channel?.close(promise: nil)
        }
        dialing = [:]
    }

    fileprivate func received(_ bytes: ByteBuffer, on id: HTTPConnectionID) {
        onActivity(.read(id, bytes: bytes.readableBytes))
        onInput(.received(bytes, id))
    }

    func closed(_ id: HTTPConnectionID, how: HTTPCloseReason) {
        guard channels.removeValue(forKey: id) != nil else { return }
        if how == .fin { onActivity(.read(id, bytes: 1)) }
        onActivity(.ended(id))
        onInput(.closed(id, how))
    }

    private static func reason(of error: any Error) -> HTTPConnectError {
        if let failure = error as? TLSFailure { return HTTPConnectError(failure) }
        if let error = error as? IOError {
            switch error.errnoCode {
            case ECONNREFUSED: return .refused
            case ENETUNREACH, EHOSTUNREACH: return .unreachable
            case ETIMEDOUT: return .timedOut
            default: break
            }
        }
        if let error = error as? NIOConnectionError {
            if error.connectionErrors.isEmpty { return .nameNotFound }
            if let first = error.connectionErrors.first?.error { return reason(of: first) }
        }
        return .other("\(SystemErrorDescription(error))")
    }
}

/// The channel handler of one connection.
private final class ConnectionHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let id: HTTPConnectionID
    /// `nil` when the client was released without an end.
    private weak var channels: ClientChannels?
    private var error: (any Error)?

    init(_ id: HTTPConnectionID, of channels: ClientChannels) {
        self.id = id
        self.channels = channels
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard let channels else { return context.close(promise: nil) }
        channels.received(unwrapInboundIn(data), on: id)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.error = error
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        if let error = error as? IOError {
            channels?.closed(id, how: error.errnoCode == ECONNRESET ? .reset : .other("\(error)"))
        } else if ClientChannels.isTruncated(context.channel) {
            channels?.closed(id, how: .other("the TLS connection has ended without close_notify"))
        } else {
            channels?.closed(id, how: .fin)
        }
    }
}
