/// The treatment of a client's SYN.
public enum SYNTreatment: Hashable, Sendable {
    /// The SYN gets a SYN-ACK.
    case open
    /// The SYN or its SYN-ACK is lost: connecting times out.
    case blackholed
    /// The SYN gets a RST.
    case refused
}
