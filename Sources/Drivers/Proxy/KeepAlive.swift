public import NIOCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// TCP keep-alive settings (RFC 1122, section 4.2.3.6), which end connections whose peer has disappeared.
///
/// With the defaults an idle connection ends after two minutes. A connection with unacknowledged data is not probed:
/// the kernel retransmits for some 15 minutes (`tcp_retries2`). `TCP_USER_TIMEOUT` would shorten that, but stays unset,
/// because on Linux it would also end connections whose receiver does not read, which a proxy must keep open.
public struct KeepAlive: Hashable, Sendable {
    /// Idle time before the first probe, in whole seconds (`TCP_KEEPIDLE`).
    public var idle: TimeAmount
    /// Time between probes, in whole seconds (`TCP_KEEPINTVL`).
    public var interval: TimeAmount
    /// Unacknowledged probes after which the connection ends (`TCP_KEEPCNT`).
    public var probes: Int

    /// Creates settings; the defaults are 60 s, 10 s and 6 probes.
    public init(idle: TimeAmount = .seconds(60), interval: TimeAmount = .seconds(10), probes: Int = 6) {
        self.idle = idle
        self.interval = interval
        self.probes = probes
    }

    /// The socket options, as level, name and value.
    private var options: [(level: CInt, name: CInt, value: CInt)] {
        let seconds = { (time: TimeAmount) in CInt(clamping: max(1, time.nanoseconds / 1_000_000_000)) }
        #if canImport(Darwin)
        let idleName = TCP_KEEPALIVE
        #else
        let idleName = TCP_KEEPIDLE
        #endif
        return [
            (SOL_SOCKET, SO_KEEPALIVE, 1), (CInt(IPPROTO_TCP), idleName, seconds(idle)),
            (CInt(IPPROTO_TCP), TCP_KEEPINTVL, seconds(interval)),
            (CInt(IPPROTO_TCP), TCP_KEEPCNT, CInt(clamping: max(1, probes))),
        ]
    }

    /// Sets the options of a socket. Accepted sockets inherit them from the listening socket.
    func apply(to descriptor: CInt) {
        for option in options {
            var value = option.value
            setsockopt(descriptor, option.level, option.name, &value, socklen_t(MemoryLayout<CInt>.size))
        }
    }

    /// Sets the options of a channel's socket; must be called on its event loop.
    func apply(to channel: any Channel) {
        try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
            apply(to: $0)
        }
    }
}
