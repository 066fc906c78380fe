internal import Determinism
internal import NIOCore
public import Wire

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

extension HTTPServer {
    /// The limits of a server. Those of one connection can be used as properties of this type.
    @dynamicMemberLookup
    public struct Limits: Hashable, Sendable {
        /// The limits of one connection.
        public var connection = HTTPServerLimits()

        /// Accesses a limit of one connection.
        public subscript<Value>(dynamicMember limit: WritableKeyPath<HTTPServerLimits, Value>) -> Value {
            get { connection[keyPath: limit] }
            set { connection[keyPath: limit] = newValue }
        }

        /// The maximum number of bytes of all request bodies being received or handled.
        public var bodiesBytesMax = 64 << 20
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

        /// Creates the default limits.
        public init() {}

        /// Returns the time by which a pipelined request of an unauthenticated connection is delayed.
        func pipeliningPause(connections: Int) -> Nanoseconds {
            Nanoseconds(
                Int64(connections).multipliedSaturating(by: 1_000_000_000) / Int64(max(1, pipelinedPerSecondMax)))
        }

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
