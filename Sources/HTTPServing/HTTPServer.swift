//  HTTPServer: what our HTTP servers have in common.
//
//  Owns: listening, starting and stopping; connections and their slots; framing of responses; limits of size, time and number.
//
//  Does not own: where a message begins and ends (HTTPWire), what is answered.

public import HTTPTypes
public import NIOCore
internal import NIOPosix
internal import Synchronization

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

/// An HTTP/1.1 server around a function from request to answer.
public final class HTTPServer: Sendable {
    /// The port it listens on.
    public let port: Int
    private let listener: any Channel
    private let slots: ConnectionSlots

    private init(port: Int, listener: any Channel, slots: ConnectionSlots) {
        self.port = port
        self.listener = listener
        self.slots = slots
    }

    /// What is answered.
    public struct Response: Sendable {
        /// Status and headers.
        public var head: HTTPResponse
        /// The body.
        public var body: Body

        /// Creates an answer.
        public init(_ head: HTTPResponse, _ body: Body) {
            self.head = head
            self.body = body
        }

        /// A body. Whatever it is, a response to HEAD has none.
        public enum Body: Sendable {
            /// Whole; may be empty.
            case text(String)
            /// Piece by piece as fast as it is taken, `nil` at the end. An error closes the connection.
            case pieces(@Sendable () async throws -> String?)
            /// None, as for HEAD: only how long it would be, if that is known.
            case length(Int?)
            /// None, and no head: the connection is closed.
            case closed
        }
    }

    /// Why a body is not there.
    public enum BodyError: Error {
        /// Over the limit.
        case tooLarge
        /// It arrived slower than ``Limits/bodyBytesPerSecondMin``.
        case tooSlow
        /// All together are over ``Limits/bodiesBytesMax``.
        case tooManyAtOnce
        /// It cannot be read.
        case broken(String)
    }

    /// What a handler can ask of the connection that its request came by.
    public struct Exchange: Sendable {
        /// The body's length as declared: 0 without a body, `nil` if it comes in chunks.
        public let declaredBodyBytes: Int?
        private let limits: Limits
        let connection: ConnectionHandle

        init(declaredBodyBytes: Int?, limits: Limits, connection: ConnectionHandle) {
            self.declaredBodyBytes = declaredBodyBytes
            self.limits = limits
            self.connection = connection
        }

        /// Reads the body whole.
        ///
        /// - Parameter bytesMax: The most bytes, if fewer than ``Limits/bodyBytesMax``.
        public func callAsFunction(bytesMax: Int? = nil) async throws(BodyError) -> [UInt8] {
            if declaredBodyBytes == 0 { return [] }
            let bytesMax = min(bytesMax ?? limits.bodyBytesMax, limits.bodyBytesMax)
            if let declaredBodyBytes, declaredBodyBytes > bytesMax { throw .tooLarge }
            return try await connection.readBody(bytesMax: bytesMax).get()
        }

        /// Records that the caller has authenticated: their connection keeps its slot when unauthenticated ones take all.
        public func recordAuthentication() { connection.slot.isAuthenticated.store(true, ordering: .relaxed) }
    }

    /// Listens and answers until ``stop()``.
    ///
    /// A handler's task is cancelled when its client has gone.
    ///
    /// - Parameters:
    ///   - fields: What every answer has that says nothing else of it, those to what is no HTTP among them.
    ///   - group: Where it runs; the process' own if none is given.
    ///   - respond: Gives the answer to a request; may read its body.
    /// - Throws: What the system says if the address cannot be had.
    public static func start(
        host: String, port: Int, limits: Limits, fields: HTTPFields = [:], on group: (any EventLoopGroup)? = nil,
        respond: @escaping @Sendable (HTTPRequest, Exchange) async -> Response
    ) async throws -> HTTPServer {
        let slots = ConnectionSlots(max: limits.connectionsMax)
        let budget = BodyBudget(limits.bodiesBytesMax)
        var bootstrap = ServerBootstrap(group: group ?? MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: Int32(limits.backlogMax))
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(AcceptPause()) }
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
        let listener =
            try await bootstrap
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        HTTPServerConnection(channel, limits, fields, slots, budget, respond))
                }
            }
            .bind(host: host, port: port).get()
        return HTTPServer(port: listener.localAddress?.port ?? port, listener: listener, slots: slots)
    }

    /// Closes everything, whatever is under way: requests that are being handled get no answer.
    public func stop() async {
        try? await listener.close()
        await slots.closeAll()
    }
}

/// Stops accepting for a moment when the process has no more open files: the system would report it again at once.
private final class AcceptPause: ChannelInboundHandler {
    typealias InboundIn = Channel

    private static let pause = TimeAmount.milliseconds(100)

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let code = (error as? IOError)?.errnoCode, [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(code) else {
            return context.fireErrorCaught(error)
        }
        let channel = context.channel
        channel.setOption(.autoRead, value: false).whenSuccess {
            channel.eventLoop.scheduleTask(in: Self.pause) { channel.setOption(.autoRead, value: true) }
        }
    }
}
