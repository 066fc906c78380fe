//  HTTPSockets/Server: an HTTP/1.1 server for the programs of this package.
//
//  Owns: binding, starting and stopping; the table of connections; handler tasks; limits on all connections
//  together.
//
//  Does not own: the decisions about one connection and its limits (Wire), the content of responses.

public import HTTPTypes
public import NIOCore
internal import NIOPosix
internal import Wire

/// An HTTP/1.1 server that maps each request to a response.
public final class HTTPServer: Sendable {
    /// The bound port.
    public let port: Int
    private let listener: any Channel
    private let connections: ConnectionTable

    private init(port: Int, listener: any Channel, connections: ConnectionTable) {
        self.port = port
        self.listener = listener
        self.connections = connections
    }

    /// A request handler.
    public typealias Handler = @Sendable (HTTPRequest, Exchange) async -> Response

    /// Binds an address and serves requests until ``stop()``.
    ///
    /// A handler's task is cancelled when its client disconnects.
    ///
    /// - Parameters:
    ///   - port: The port; 0 lets the kernel choose one.
    ///   - addressOption: The command-line option that sets the address, for error messages.
    ///   - portOption: The command-line option that sets the port, if it is another.
    ///   - defaultHeaders: Header fields added to every response that lacks them, including responses to malformed
    ///     requests.
    ///   - group: The event loops; the process-wide group by default.
    ///   - respond: Returns the response to a request.
    /// - Throws: ``BindError`` if the address cannot be bound.
    public static func start(
        host: String, port: Int, addressOption: String = "--listen", portOption: String? = nil, limits: Limits,
        defaultHeaders: HTTPFields = [:], on group: (any EventLoopGroup)? = nil, respond: @escaping Handler
    ) async throws(BindError) -> HTTPServer {
        let connections = ConnectionTable(max: limits.connectionsMax)
        let budget = BodyBudget(limits.bodiesBytesMax)
        var bootstrap = ServerBootstrap(group: group ?? MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: Int32(limits.backlogMax))
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AcceptBackoff())
                }
            }
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelOption(.autoRead, value: false)
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelOption(
                .recvAllocator,
                value: AdaptiveRecvByteBufferAllocator(minimum: 512, initial: 2048, maximum: limits.readBytesMax))
        for (option, value) in limits.socketOptions {
            bootstrap = bootstrap.childChannelOption(option, value: value)
        }
        bootstrap = bootstrap.childChannelInitializer { channel in
            channel.eventLoop.makeCompletedFuture {
                try channel.pipeline.syncOperations.addHandler(
                    HTTPServerConnection(channel, limits, defaultHeaders, connections, budget, respond))
            }
        }
        do {
            let listener = try await bootstrap.bind(host: host, port: port).get()
            return HTTPServer(port: listener.localAddress?.port ?? port, listener: listener, connections: connections)
        } catch {
            throw BindError(
                error, host: host, port: port, addressOption: addressOption, portOption: portOption ?? addressOption)
        }
    }

    /// Closes the listener and all connections; requests in progress get no response.
    public func stop() async {
        try? await listener.close()
        await connections.closeAll()
    }
}
