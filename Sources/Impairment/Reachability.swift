/// The treatment of a client's SYN.
public enum Reachability: Hashable, Sendable {
    /// The SYN is answered with a SYN-ACK.
    case open
    /// The SYN or its SYN-ACK is lost: connecting times out.
    case blackholed
    /// The SYN is answered with a RST.
    case refused
}
