internal import NIOCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The destinations of connections that the firewall has redirected to a port of this machine (REDIRECT of nftables and
/// iptables; Linux).
enum OriginalDestination {
    /// Whether the system reports original destinations.
    static var isAvailable: Bool {
        #if os(Linux)
            true
        #else
            false
        #endif
    }

    /// Returns the address to which the client of an accepted channel has connected. That is the channel's local address
    /// if the connection was not redirected; `nil` if the system does not report it. Called on the channel's event loop.
    static func address(of channel: any Channel) -> SocketAddress? {
        #if os(Linux)
            let levels = [CInt(IPPROTO_IP), CInt(IPPROTO_IPV6)]
            return try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
                descriptor in
                // A socket for both families has an IPv4 destination if its client has an IPv4 address.
                levels.lazy.compactMap { level in
                    try? SystemSocket.address("getsockopt") { getsockopt(descriptor, level, option, $0, $1) }
                }.first
            } ?? nil
        #else
            return nil
        #endif
    }

    /// `SO_ORIGINAL_DST` and `IP6T_SO_ORIGINAL_DST` (linux/netfilter_ipv4.h, linux/netfilter_ipv6/ip6_tables.h).
    private static let option: CInt = 80
}
