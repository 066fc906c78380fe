internal import NIOCore

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

extension HTTPServer {
    /// How much those who connect may ask for.
    public struct Limits: Hashable, Sendable {
        // MARK: Sizes

        /// Bytes of a request's body.
        public var bodyBytesMax = 1 << 20
        /// Bytes of all bodies that are being read or answered.
        public var bodiesBytesMax = 64 << 20
        /// Bytes of a request's head; of its first line half as many.
        public var headerBytesMax = 32 << 10
        /// Header lines of a request.
        public var headerLinesMax = 100
        /// Bytes of a target or of a header's value that is not ASCII: such texts are slow to compare.
        public var nonASCIIBytesMax = 1024
        /// Bytes read from a connection at once, and so the most that wait behind a request.
        public var readBytesMax = 16 << 10

        /// Bytes of a response that the kernel takes before its reader does (`SO_SNDBUF`; Linux counts twice as many).
        public var sendBufferBytes = 128 << 10

        // MARK: Connections

        /// Open connections. A further one takes the slot of the idlest that has not authenticated, or else of the idlest
        /// that waits for a request; if there is none, it is answered 503.
        public var connectionsMax = 256
        /// Connections that wait to be accepted.
        public var backlogMax = 512
        /// Seconds without a segment after which the kernel probes a connection (`TCP_KEEPIDLE`).
        public var keepAliveIdleSeconds = 60
        /// Seconds between two probes (`TCP_KEEPINTVL`).
        public var keepAliveIntervalSeconds = 10
        /// Probes without an answer after which the kernel closes the connection (`TCP_KEEPCNT`).
        public var keepAliveProbesMax = 6

        /// Requests a second that all connections together may have handled of those that were sent before the previous
        /// response was taken, unless they have authenticated: callers who only send would leave others no time.
        public var pipelinedPerSecondMax = 2000

        // MARK: Times

        /// Seconds from a connection's start, or from the first byte of a later request, to the end of the request's head.
        public var headSecondsMax = 30.0
        /// Seconds from a response's end to the first byte of the next request.
        public var idleSecondsMax = 60.0
        /// A body must arrive at this rate, taken over each ``bodyWindowSeconds``.
        public var bodyBytesPerSecondMin = 250
        /// Seconds over which a body's rate is taken.
        public var bodyWindowSeconds = 30.0
        /// A response must be taken at this rate, after ``readersPauseSecondsMax`` for nothing.
        public var responseBytesPerSecondMin = 200
        /// Seconds a reader may take nothing.
        public var responseStallSecondsMax = 60.0
        /// Seconds a connection is read on after its last response, so that the client sees that response instead of a reset.
        public var lingerSecondsMax = 5.0
        /// Bytes that are read and dropped meanwhile.
        public var lingerBytesMax = 16 << 20

        /// The defaults.
        public init() {}

        /// What is set on an accepted socket: its send buffer, `SO_KEEPALIVE` and its times.
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
