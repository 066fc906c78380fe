/// The sizes of IP packets of a TCP connection, in bytes.
///
/// IPv4 with an MTU of 1500 and TCP timestamps, the defaults between two Linux or Apple kernels.
public enum PacketSize {
    /// The headers of a segment after the handshake: 20 IP + 20 TCP + 12 timestamps.
    public static let header = 52
    /// The payload of a full segment: 1500 - 52.
    public static let segmentMax = 1448
    /// SYN and SYN-ACK: 20 IP + 20 TCP + 20 options (MSS, SACK permitted, timestamps, window scale).
    public static let handshake = 60
    /// RST: 20 IP + 20 TCP, no options (RFC 9293, 3.10.7.1).
    public static let reset = 40
    /// The headers of a datagram: 20 IP + 8 UDP.
    public static let datagramHeader = 28
    /// The header of IPv4 without options.
    public static let internetHeader = 20
    /// The largest packet (MTU) of the link.
    public static let packetMax = 1500
    /// The payload of a fragment: the multiple of 8 (RFC 791) that fits into a packet.
    public static let fragmentMax = 1480
}
