public import NIOCore

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// When a connection that says nothing is probed (RFC 1122, section 4.2.3.6), so that one whose peer has vanished ends.
///
/// By default a peer that has vanished is noticed after two minutes of silence. One that vanishes with data on its way to it is
/// not probed but sent that data again, for some 15 minutes (`tcp_retries2`). `TCP_USER_TIMEOUT`, which would shorten that, stays
/// unset: Linux counts a receiver that does not read as silent too, and a proxy must not end those.
public struct KeepAlive: Hashable, Sendable {
    /// How long a connection is silent before the first probe; whole seconds.
    public var idle: TimeAmount
    /// The time between probes; whole seconds.
    public var interval: TimeAmount
    /// How many probes go unanswered before the connection ends.
    public var probes: Int

    /// Creates times; the defaults are 60 s, 10 s and 6 probes.
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

    /// Sets the times of a socket; what a listening socket accepts has them from it.
    func apply(to descriptor: CInt) {
        for option in options {
            var value = option.value
            setsockopt(descriptor, option.level, option.name, &value, socklen_t(MemoryLayout<CInt>.size))
        }
    }

    /// The same for a channel, on its event loop.
    func apply(to channel: any Channel) {
        try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
            apply(to: $0)
        }
    }
}
