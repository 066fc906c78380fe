internal import NIOCore

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

extension HTTPServer {
    /// The limits of a server.
    public struct Limits: Hashable, Sendable {
        // MARK: Sizes

        /// The maximum number of bytes of a request body.
        public var bodyBytesMax = 1 << 20
        /// The maximum number of bytes of all request bodies being received or handled.
        public var bodiesBytesMax = 64 << 20
        /// The maximum number of bytes of a request head; the request line may take half of them.
        public var headerBytesMax = 32 << 10
        /// The maximum number of header lines of a request.
        public var headerLinesMax = 100
        /// The maximum number of bytes of a request target or header value that is not ASCII. Comparing such strings is
        /// slow.
        public var nonASCIIBytesMax = 1024
        /// The maximum number of bytes of one read, and therefore of buffered input after a request.
        public var readBytesMax = 16 << 10

        /// The send buffer of a connection (`SO_SNDBUF`; Linux doubles it for bookkeeping).
        public var sendBufferBytes = 128 << 10

        // MARK: Connections

        /// The maximum number of open connections. At the limit, a new connection evicts the unauthenticated connection
        /// whose last progress is the oldest; if all connections are authenticated, the idle one whose last progress is
        /// the oldest. If none is idle, the new connection gets 503.
        public var connectionsMax = 256
        /// The length of the accept queue (the `backlog` of `listen`).
        public var backlogMax = 512
        /// Idle seconds before the first keep-alive probe (`TCP_KEEPIDLE`).
        public var keepAliveIdleSeconds = 60
        /// Seconds between two keep-alive probes (`TCP_KEEPINTVL`).
        public var keepAliveIntervalSeconds = 10
        /// Unacknowledged keep-alive probes before the kernel closes the connection (`TCP_KEEPCNT`).
        public var keepAliveProbesMax = 6

        /// The maximum number of pipelined requests per second of all unauthenticated connections together, so that
        /// they leave time for others. A request is pipelined if it arrives before the previous response is written.
        public var pipelinedPerSecondMax = 2000

        // MARK: Times

        /// The maximum number of seconds for a request head, from the connection's start or the first byte of a later
        /// request.
        public var headSecondsMax = 30.0
        /// The maximum number of seconds between the end of a response and the first byte of the next request.
        public var idleSecondsMax = 60.0
        /// The minimum rate of a request body, measured over each ``bodyWindowSeconds``.
        public var bodyBytesPerSecondMin = 250
        /// The window over which the rate of a request body is measured.
        public var bodyWindowSeconds = 30.0
        /// The minimum rate at which a client receives a response. Each write must complete within
        /// ``responseStallSecondsMax`` plus the time for its bytes at this rate.
        public var responseBytesPerSecondMin = 200
        /// The constant part of a write's deadline in seconds, see ``responseBytesPerSecondMin``.
        public var responseStallSecondsMax = 60.0
        /// The maximum number of seconds for which input is read and dropped after the last response. Closing earlier
        /// would reset the connection and could destroy that response (RFC 9112, 9.6).
        public var lingerSecondsMax = 5.0
        /// The maximum number of bytes read and dropped in that time.
        public var lingerBytesMax = 16 << 20

        /// Creates the default limits.
        public init() {}

        /// The options of an accepted socket: send buffer and keep-alive.
        var socketOptions: [(ChannelOptions.Types.SocketOption, SocketOptionValue)] {
            #if canImport(Darwin)
                let idle = TCP_KEEPALIVE
            #else
                let idle = TCP_KEEPIDLE
            #endif
            return [
                (.init(level: .socket, name: .so_sndbuf), SocketOptionValue(sendBufferBytes)),
                (.init(level: .socket, name: .so_keepalive), 1),
                (.init(level: .tcp, name: .init(rawValue: idle)), SocketOptionValue(keepAliveIdleSeconds)),
                (.init(level: .tcp, name: .init(rawValue: TCP_KEEPINTVL)), SocketOptionValue(keepAliveIntervalSeconds)),
                (.init(level: .tcp, name: .init(rawValue: TCP_KEEPCNT)), SocketOptionValue(keepAliveProbesMax)),
            ]
        }
    }
}
