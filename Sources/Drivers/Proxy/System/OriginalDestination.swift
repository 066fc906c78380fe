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

    /// Returns the address to which the client of an accepted socket has connected. That is the socket's local address if
    /// the connection was not redirected; `nil` if the system does not report it.
    static func address(of descriptor: CInt) -> SocketAddress? {
        #if os(Linux)
        let levels = [CInt(IPPROTO_IP), CInt(IPPROTO_IPV6)]
        // A socket for both families has an IPv4 destination if its client has an IPv4 address.
        return levels.lazy.compactMap { level in
            try? SystemSocket.address("getsockopt") { getsockopt(descriptor, level, option, $0, $1) }
        }.first
        #else
        return nil
        #endif
    }

    /// `SO_ORIGINAL_DST` and `IP6T_SO_ORIGINAL_DST` (linux/netfilter_ipv4.h, linux/netfilter_ipv6/ip6_tables.h).
    private static let option: CInt = 80
}
