public import Determinism

/// The treatment of UDP datagrams, in addition to the conditions of their packets.
public struct DatagramConditions: Hashable, Sendable {
    /// The treatment of all datagrams.
    public enum Policy: String, CaseIterable, Hashable, Sendable {
        /// Datagrams enter the link.
        case open
        /// Datagrams are lost silently, as behind a firewall that drops UDP.
        case blackhole
        /// A client's datagrams get an ICMP port unreachable, as behind a firewall that rejects UDP.
        case refuse
    }

    /// The treatment of all datagrams.
    public var policy: Policy
    /// The size of the largest IP packet with a datagram, in bytes; longer ones are lost, as those that must not be
    /// fragmented (QUIC's) are behind a router that sends no ICMP. With `nil`, datagrams longer than 1500 bytes travel
    /// in fragments.
    public var mtu: Int?
    /// The time without a datagram after which a session ends, as the mapping of a NAT does; `nil` means the default.
    public var idle: Nanoseconds?
    /// The time after which a session gets another port at the server, as when the mapping of a NAT changes; `nil` means
    /// never.
    public var rebind: Nanoseconds?

    /// Creates a treatment.
    public init(policy: Policy = .open, mtu: Int? = nil, idle: Nanoseconds? = nil, rebind: Nanoseconds? = nil) {
        self.policy = policy
        self.mtu = mtu
        self.idle = idle
        self.rebind = rebind
    }

    /// The treatment without effect.
    public static let open = DatagramConditions()
    /// The supported values of ``mtu``: from the smallest that IPv4 permits (RFC 791) to the longest packet.
    public static let mtuAllowed = 68...65_535
}
