/// Sizes of the IP packets that carry a TCP connection, in bytes.
///
/// IPv4 on an MTU of 1500 with TCP timestamps on, as two Linux (or Apple) kernels talk by default.
public enum PacketSize {
    /// Headers of every segment once the connection is up: 20 IP + 20 TCP + 12 timestamps.
    public static let header = 52
    /// Payload of a full segment: 1500 - 52.
    public static let segmentMax = 1448
    /// SYN and SYN-ACK: 20 IP + 20 TCP + 20 options (MSS, SACK permitted, timestamps, window scale).
    public static let handshake = 60
    /// RST: 20 IP + 20 TCP, no options (RFC 9293, 3.10.7.1).
    public static let reset = 40
}
